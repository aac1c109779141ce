"""Safe reading of a foreign JSON object: what is missing, null or of another kind is None, never an error."""

from __future__ import annotations

from typing import Any

from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.text import storable

_MOST_CHARACTERS = 300
_LARGEST = 2**63 - 1


def value_at(payload: Any, *keys: str) -> Any:
    """Give what lies below these keys, None where the way ends before."""
    for key in keys:
        if not isinstance(payload, dict):
            return None
        payload = payload.get(key)
    return payload


def text_at(payload: Any, *keys: str) -> str | None:
    """Give a text in one line, short and fit to be kept; None for what is blank or no text."""
    value = value_at(payload, *keys)
    return (in_one_line(value) or None) if isinstance(value, str) else None


def number_at(payload: Any, *keys: str) -> int | None:
    """Give a whole number from 1 up that a database can keep."""
    value = value_at(payload, *keys)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 < value <= _LARGEST else None


def list_at(payload: Any, *keys: str) -> list[Any]:
    """Give a list, an empty one for anything else."""
    value = value_at(payload, *keys)
    return value if isinstance(value, list) else []


def in_one_line(text: str) -> str:
    """Put a text into one short line. Secrets go before it is cut: half a secret would not be known for one."""
    line = storable(" ".join(text.split()))
    if len(line) > _MOST_CHARACTERS:
        line = f"{redact(line)[: _MOST_CHARACTERS - 1]}…"
    return line
