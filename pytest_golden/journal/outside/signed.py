"""Signed messages from outside: check the signature, read the JSON object safely, and the generic callback.

What a forge's message means is read in `github_webhooks.py` and `forge_webhooks.py`, which make signals of it here. Nothing is stored.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_golden.errors import PayloadError, SignatureError
from pytest_golden.journal.model import SignalType
from pytest_golden.journal.rules import check_free_name
from pytest_golden.manifest.units import show
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.columns import storable
from pytest_golden.values.checking import check_time, check_word, parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping

#: GitHub caps its own at 25 MiB; what decides something is a hundred times smaller.
MAX_BODY_BYTES = 2 * 1024 * 1024
#: How far `created_at` may lie from now, to either side.
MOST_APART = timedelta(minutes=5)
_SIGNATURE = re.compile(r"sha256=([0-9a-fA-F]{64})")
_REQUIRED = ("source", "signal_type", "summary")
_NAMES = ("external_id", "agent_id", "session_key", "entry_id")
_CREATED_AT = "created_at"
_MOST_CHARACTERS = 300
_LARGEST_NUMBER = 2**63 - 1
# In the data even when null; other keys are left out then.
_ALWAYS = ("event", "action", "repository", "pr", "sha")
#: The keys that a callback may have.
CALLBACK_KEYS = (*_REQUIRED, "data", *_NAMES, _CREATED_AT)


def callback_signal(headers: Mapping[str, str], body: bytes, secret: str | bytes, *, now: datetime) -> dict[str, Any]:
    """Return the arguments of `Journal.add_signal` that a callback signed by `X-Golden-Signature-256` carries.

    It has an `external_id`, or a `created_at` within five minutes of now; then the external id is derived from the signed body.
    Either way a replay has one effect.

    Raises:
        SignatureError: the signature is missing, malformed or wrong.
        PayloadError: the body is too large, not a JSON object, has an unknown key or a value that is not allowed, uses a
            reserved source, or could be a replay.
        ValueError: `now` is not an aware datetime.
    """
    timestamp = check_time("now", now)
    check_signature(headers, body, secret, header="X-Golden-Signature-256")
    given = read_object(bytes(body))
    try:
        return _read_callback(given, bytes(body), timestamp)
    except ValueError as error:
        raise PayloadError(str(error)) from None


def check_signature(headers: Mapping[str, str], body: bytes, secret: str | bytes, *, header: str) -> None:
    """Raise an error for a body that is not signed with the secret: `sha256=` and its HMAC-SHA256 in hexadecimal.

    Raises:
        PayloadError: the body is larger than 2 MiB, or is not the bytes that were received.
        SignatureError: the signature is missing, malformed or wrong, or there is no secret.
    """
    require_readable(body, secret)
    key = secret if isinstance(secret, bytes) else secret.encode("utf-8", "surrogateescape")
    given = find_header(headers, header)
    if given is None:
        raise SignatureError(f"the header {header} is missing; give the sender the secret")
    found = _SIGNATURE.fullmatch(given.strip())
    if found is None:
        raise SignatureError(f"the header {header} must be sha256= and 64 hexadecimal digits")
    if not hmac.compare_digest(bytes.fromhex(found[1]), hmac.digest(key, body, hashlib.sha256)):
        raise SignatureError(f"the header {header} does not fit the body: another secret, or a changed body")


def require_readable(body: object, secret: str | bytes) -> None:
    """Raise an error for a body that cannot be checked.

    Raises:
        PayloadError: it is larger than 2 MiB, or is not the bytes that were received.
        SignatureError: there is no secret.
    """
    if not isinstance(body, bytes | bytearray):
        raise PayloadError(f"the body must be bytes as they were received, not {type(body).__name__}")
    if len(body) > MAX_BODY_BYTES:
        raise PayloadError(f"the body has {len(body)} bytes; more than {MAX_BODY_BYTES} are not read")
    if not secret:
        raise SignatureError(
            "the secret is not set, so no signature can be checked; set GOLDEN_WEBHOOK_SECRET here and at the sender"
        )


def find_header(headers: Mapping[str, str], name: str) -> str | None:
    """Return a header's value, ignoring letter case in its name; repeated headers are joined as in HTTP."""
    wanted = name.lower()
    values = [
        value
        for key, value in headers.items()
        if isinstance(key, str) and isinstance(value, str) and key.lower() == wanted
    ]
    return ", ".join(values) if values else None


def read_object(body: bytes | str) -> dict[str, Any]:
    """Read a JSON object strictly: UTF-8, no NaN, and no key twice, since readers could differ on what was signed.

    Raises:
        PayloadError: it is something else.
    """
    try:
        text = body if isinstance(body, str) else bytes(body).decode("utf-8")
        read = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError:
        raise PayloadError("the body is nested too deeply to be read") from None
    except ValueError as error:
        raise PayloadError(f"the body is not JSON: {error}") from None
    if not isinstance(read, dict):
        raise PayloadError("the body must be a JSON object")
    return read


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("an object has a key twice")
    return read


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _read_callback(given: dict[str, Any], body: bytes, now: datetime) -> dict[str, Any]:
    unknown = sorted(set(given) - set(CALLBACK_KEYS))
    if unknown:
        raise ValueError(f"the key {show(unknown[0])} is unknown: there are {', '.join(CALLBACK_KEYS)}")
    given = {key: value for key, value in given.items() if value is not None}
    data = given.get("data", {})
    if not isinstance(data, dict):
        raise ValueError(f"data must be an object, not {show(data)}")  # noqa: TRY004 - one kind of refusal
    created_at = given.get(_CREATED_AT)
    timestamp = None if created_at is None else parse_time(_CREATED_AT, created_at)
    named = {key: _text(given, key) for key in _NAMES if key in given}
    return {
        "source": check_free_name(_text(given, "source")),
        "signal_type": check_word("signal_type", _text(given, "signal_type"), SignalType).value,
        "summary": _text(given, "summary"),
        "data": data,
        **({} if "external_id" in named else {"external_id": _derive_id(timestamp, body, now)}),
        **named,
    }


def _text(given: dict[str, Any], key: str) -> str:
    if key not in given:
        raise ValueError(f"{key} is missing")
    value = given[key]
    if not isinstance(value, str):
        raise ValueError(f"{key} must be a text, not {show(value)}")  # noqa: TRY004 - one kind of refusal
    if not value.strip():
        raise ValueError(f"{key} is blank")
    return value


def _derive_id(timestamp: datetime | None, body: bytes, now: datetime) -> str:
    if timestamp is None:
        raise ValueError("give an external_id, or a created_at: without one, a replay would count as a new signal")
    if abs(now - timestamp) > MOST_APART:
        raise ValueError("created_at is more than five minutes from now; send it at once, or give an external_id")
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@dataclass(frozen=True, slots=True)
class News:
    """The signal in a delivery of a forge.

    `identity` is what makes two deliveries one; its first item is the id that the forge gave, None if it gave none.
    `is_quoted` marks a title that is somebody's own words.
    """

    says: SignalType
    title: str
    facts: Mapping[str, Any]
    identity: tuple[Any, ...]
    is_quoted: bool = False


def make_signal(
    source: str,
    event: str,
    action: str | None,
    repository: tuple[int | str | None, str | None],
    news: News,
    body: bytes,
) -> dict[str, Any]:
    """Return the arguments of `Journal.add_signal` for what a forge sent.

    `repository` is its id and its full name. `body` identifies an event to which the forge gave no id.
    """
    number, name = repository
    facts = {**dict.fromkeys(_ALWAYS), **news.facts, "event": event, "action": action, "repository": name}
    known_by = news.identity if news.identity[0] is not None else (hashlib.sha256(body).hexdigest(),)
    identity = (event, action, number, name, *known_by)
    return {
        "source": source,
        "signal_type": news.says.value,
        "summary": in_one_line(news.title if news.is_quoted else f"{news.title} ({_place(facts)})"),
        "data": {key: value for key, value in facts.items() if value is not None or key in _ALWAYS},
        "external_id": f"sha256:{hashlib.sha256(json.dumps(identity).encode()).hexdigest()}",
    }


def read_closing(
    what: str, subject: str | None, facts: Mapping[str, Any], identity: tuple[Any, ...], *, is_merged: bool
) -> News:
    """Return the news that a pull or merge request was merged, or closed without that."""
    conclusion = "merged" if is_merged else "closed"
    title = f"{what} {'merged' if is_merged else 'closed without merging'}: {subject or 'untitled'}"
    known = {**facts, "conclusion": conclusion, "merge_sha": facts["merge_sha"] if is_merged else None}
    return News(SignalType.POSITIVE if is_merged else SignalType.NEGATIVE, title, known, (*identity, conclusion))


def name_branch(name: str | None, owner: str | None) -> str | None:
    """Name a branch; one of a fork, of which the owner is told, as `owner:branch`: a stranger's `main` is not taken for ours."""
    return name if name is None or owner is None else f"{owner.partition('/')[0]}:{name}"


def _place(facts: Mapping[str, Any]) -> str:
    number = facts["pr"] or facts.get("issue")
    name = facts["repository"] or "a repository"
    place = f"{name}#{number}" if number else name
    return f"{place}, {facts['sha'][:7]}" if facts["sha"] else place


def value_at(payload: Any, *keys: str) -> Any:
    """Return the value below these keys; None where the path does not exist."""
    for key in keys:
        if not isinstance(payload, dict):
            return None
        payload = payload.get(key)
    return payload


def text_at(payload: Any, *keys: str) -> str | None:
    """Return the text below these keys in one short line; None for what is blank, missing or not a text."""
    value = value_at(payload, *keys)
    return (in_one_line(value) or None) if isinstance(value, str) else None


def number_at(payload: Any, *keys: str) -> int | None:
    """Return the whole number below these keys, from 1 up and small enough for a database; None for anything else."""
    value = value_at(payload, *keys)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 < value <= _LARGEST_NUMBER else None


def list_at(payload: Any, *keys: str) -> list[Any]:
    """Return the list below these keys; an empty one for anything else."""
    value = value_at(payload, *keys)
    return value if isinstance(value, list) else []


def in_one_line(text: str) -> str:
    """Put a text into one short line. Secrets are redacted before it is cut: half a secret would not be recognised."""
    line = storable(" ".join(text.split()))
    if len(line) > _MOST_CHARACTERS:
        line = f"{redact(line)[: _MOST_CHARACTERS - 1]}…"
    return line
