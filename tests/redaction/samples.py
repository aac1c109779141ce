"""The written-down lists of secrets and innocents, with their made-up parts filled in: the same ones at each run."""

from __future__ import annotations

import base64
import random
import re
import string
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_FOLDER = Path(__file__).parent
_MARK = "§"
_DEFAULT_SECRET = "hunter-7-Gold"
_MADE = re.compile(r"\{(?P<kind>[a-z0-9]+)(?: (?P<user>[a-z]+))? (?P<length>\d+)\}")
_ALPHABETS = {
    "aws": string.ascii_letters + string.digits + "/+",
    "base32": string.ascii_uppercase + "234567",
    "base64": string.ascii_letters + string.digits,
    "digits": string.digits,
    "hex": "0123456789abcdef",
    "lower": string.ascii_lowercase + string.digits,
    "mixed": string.ascii_letters + string.digits,
    "upper": string.ascii_uppercase + string.digits,
}


class Secret(NamedTuple):
    """A value that holds a secret, the secret itself, and what must stay of the value."""

    kind: str
    value: Any
    secret: str
    keeps: tuple[str, ...]


class Innocent(NamedTuple):
    """A value that holds no secret."""

    kind: str
    value: Any


def read_secrets() -> tuple[Secret, ...]:
    """Read `secrets.yaml`."""
    return tuple(_make_secret(entry) for entry in _read("secrets.yaml"))


def read_innocents() -> tuple[Innocent, ...]:
    """Read `innocents.yaml`."""
    return tuple(
        Innocent(entry["kind"], _fill(entry["text"] if "text" in entry else entry["value"], entry["kind"]))
        for entry in _read("innocents.yaml")
    )


def _read(name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load((_FOLDER / name).read_text(encoding="utf-8"))
    return entries


def _make_secret(entry: dict[str, Any]) -> Secret:
    kind = entry["kind"]
    secret = _fill(entry.get("secret", _DEFAULT_SECRET), kind)
    value = _fill(entry["value"] if "value" in entry else entry.get("text", _MARK), kind)
    return Secret(kind, _put(value, secret), secret, tuple(entry.get("keeps", ())))


def _put(value: Any, secret: str) -> Any:
    if isinstance(value, dict):
        return {key: _put(item, secret) for key, item in value.items()}
    if isinstance(value, list):
        return [_put(item, secret) for item in value]
    return value.replace(_MARK, secret) if isinstance(value, str) else value


def _fill(value: Any, seed: str) -> Any:
    """Return the value with its made-up parts, which depend on the seed alone."""
    chance = random.Random(seed)
    if isinstance(value, dict):
        return {key: _fill(item, f"{seed} {key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, f"{seed} {number}") for number, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    return _MADE.sub(lambda found: _make(found, chance), value.replace("{+}", ""))


def _make(found: re.Match[str], chance: random.Random) -> str:
    length = int(found["length"])
    if found["kind"] == "basic":
        password = "".join(chance.choices(_ALPHABETS["mixed"], k=length))
        return base64.b64encode(f"{found['user']}:{password}".encode()).decode()
    letters = _ALPHABETS[found["kind"]]
    # One of each sort, as a value of this length would have, and then any.
    sorts = [
        sort for sort in (string.ascii_lowercase, string.ascii_uppercase, string.digits) if set(sort) <= set(letters)
    ]
    made = [chance.choice(sort) for sort in sorts][:length]
    made += chance.choices(letters, k=length - len(made))
    chance.shuffle(made)
    return "".join(made)
