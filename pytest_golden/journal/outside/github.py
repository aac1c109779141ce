"""GitHub's webhooks as signals: is a delivery signed, does it decide something, and has it come before?

Nothing is asked of GitHub and nothing is stored. What is not signed (the delivery's id, the event's name) is not believed:
the body must have what its event has, and a replay is known by what the body is about.

Source: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from pytest_golden.errors import PayloadError
from pytest_golden.journal.outside.github_events import EVENTS
from pytest_golden.journal.outside.payload import in_one_line, number_at, text_at
from pytest_golden.journal.outside.signed import check_signature, find_header, read_object
from pytest_golden.journal.sources import GITHUB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.journal.outside.github_events import News

_FORM = "application/x-www-form-urlencoded"
# In the data also when it is null; anything else is left out then.
_ALWAYS = ("event", "action", "repository", "pr", "sha")


def github_signal(headers: Mapping[str, str], body: bytes, secret: str | bytes) -> dict[str, Any] | None:
    """Give the arguments of `Journal.add_signal` for a delivery of GitHub; None when it decides nothing.

    The external id is derived from the signed body, so that a replay has one effect, whatever its delivery id. A re-run
    of a check is other news.

    Raises:
        SignatureError: `X-Hub-Signature-256` is missing, malformed or wrong.
        PayloadError: the body is too large, no JSON object, or not what its event has.
    """
    check_signature(headers, body, secret, header="X-Hub-Signature-256")
    event = find_header(headers, "X-GitHub-Event")
    if event is None:
        raise PayloadError("the header X-GitHub-Event is missing; it names the event")
    payload = read_object(_take_from_form(headers, bytes(body)))
    if event not in EVENTS:
        return None
    objects, read = EVENTS[event]
    for name in objects:
        if not isinstance(payload.get(name), dict):
            raise PayloadError(f"the event is said to be {event}, but the body has no {name}")
    news = read(payload)
    return None if news is None else _arguments(event, payload, news, bytes(body))


def _take_from_form(headers: Mapping[str, str], body: bytes) -> bytes | str:
    """Give the JSON text: GitHub also sends it as the field `payload` of a form, and signs the form."""
    kind = find_header(headers, "Content-Type")
    if not (body.startswith(b"payload=") if kind is None else kind.strip().lower().startswith(_FORM)):
        return body
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=10)
    except ValueError as error:
        raise PayloadError(f"the body is not a form: {error}") from None
    if len(fields.get("payload", ())) != 1:
        raise PayloadError("the form must have the field payload, once")
    return fields["payload"][0]


def _arguments(event: str, payload: dict[str, Any], news: News, body: bytes) -> dict[str, Any]:
    repository, action = text_at(payload, "repository", "full_name"), text_at(payload, "action")
    facts = {**dict.fromkeys(_ALWAYS), **news.facts, "event": event, "action": action, "repository": repository}
    known_by = news.identity if news.identity[0] is not None else (hashlib.sha256(body).hexdigest(),)
    identity = (event, action, number_at(payload, "repository", "id"), repository, *known_by)
    return {
        "source": GITHUB,
        "signal_type": news.says.value,
        "summary": in_one_line(news.title if news.is_quoted else f"{news.title} ({_place(facts)})"),
        "data": {key: value for key, value in facts.items() if value is not None or key in _ALWAYS},
        "external_id": f"sha256:{hashlib.sha256(json.dumps(identity).encode()).hexdigest()}",
    }


def _place(facts: Mapping[str, Any]) -> str:
    number = facts["pr"] or facts.get("issue")
    name = facts["repository"] or "a repository"
    place = f"{name}#{number}" if number else name
    return f"{place}, {facts['sha'][:7]}" if facts["sha"] else place
