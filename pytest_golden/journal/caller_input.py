"""Check what callers give the journal, and make it storable: without secrets, frozen, in forms that databases accept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_golden.manifest.units import show
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.columns import storable, storable_json
from pytest_golden.trajectory.vocabulary import freeze
from pytest_golden.values.checking import check_mapping, check_text, list_items
from pytest_golden.values.json_form import FrozenDict, json_form, list_scalars

if TYPE_CHECKING:
    from collections.abc import Iterable

# To redact and index more would block all writers.
_MOST_CHARACTERS = 1 << 20
# A row of PostgreSQL's indexes has up to 2,704 bytes: two names and the keys of a hint, or a source and its external id.
_LONGEST_NAME_BYTES = 800
_LONGEST_EXTERNAL_ID_BYTES = 1500
# SQLite's own integers end at 2^63 - 1.
_MOST_ASKED = 1_000_000


def clean_text(field: str, text: object) -> str:
    """Return a text as it is stored.

    Raises:
        ValueError: it is blank, not a string, too long, or holds a NUL character; the message names the field.
    """
    checked = check_text(field, text)
    _check_content(field, checked)
    return storable(redact(checked))


def clean_name(field: str, text: object, *, most_bytes: int = _LONGEST_NAME_BYTES) -> str:
    """Return a name unchanged. It is looked up later, and redaction of a part could make two names equal.

    Raises:
        ValueError: it is blank, not a string, too long, or holds a NUL character or a lone surrogate; the message names the field.
    """
    checked = check_text(field, text)
    _check_content(field, checked)
    if storable(checked) != checked:
        raise ValueError(f"{field} {show(checked)} holds half a character; remove it")
    size = len(checked.encode())
    if size > most_bytes:
        raise ValueError(f"{field} has {size:,} bytes, and at most {most_bytes:,} are looked up; give a shorter one")
    return checked


def clean_optional(field: str, name: str | None) -> str | None:
    """Return a name as `clean_name` does, or None for None."""
    return None if name is None else clean_name(field, name)


def clean_external_id(field: str, name: str | None) -> str | None:
    """Return a sender's id of its signal as `clean_optional` does; it may be longer."""
    return None if name is None else clean_name(field, name, most_bytes=_LONGEST_EXTERNAL_ID_BYTES)


def clean_notes(field: str, text: object) -> str | None:
    """Return notes as they are stored, None for blank ones. Raises the errors of `clean_text`."""
    if text is None or (isinstance(text, str) and not text.strip()):
        return None
    return clean_text(field, text)


def clean_json(field: str, value: Any) -> Any:
    """Return any value as it is stored: JSON content, deeply frozen.

    Raises:
        ValueError: a text in it holds a NUL character, or all texts together are too long; the message names the field.
    """
    plain = json_form(value)
    if not _check_content(field, plain):
        # Hints and signals are compared with stored ones, so both must have the same escapes.
        plain = json.loads(storable_json(json.dumps(plain)))
    return freeze(field, redact(plain))


def clean_data(field: str, value: Any) -> Any:
    """Return a mapping as it is stored; empty for None.

    Raises:
        ValueError: it is not a mapping, or `clean_json` refuses it; the message names the field.
    """
    if value is None:
        return FrozenDict()
    return clean_json(field, check_mapping(field, value))


def clean_actions(actions: Iterable[Any]) -> tuple[Any, ...]:
    """Return actions as they are stored.

    Raises:
        ValueError: they are not a list, or `clean_json` refuses them.
    """
    return tuple(clean_json("actions", list_items("actions", actions)))


def check_limit(limit: int) -> int:
    """Return a limit that databases accept.

    Raises:
        ValueError: it is not an integer, or is below 1.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"limit must be a whole number from 1 up, not {show(limit)}")
    return min(limit, _MOST_ASKED)


def _check_content(field: str, value: Any) -> bool:
    """Raise an error for content that cannot be stored; return whether all texts can be stored unchanged."""
    count, is_storable = 0, True
    for text in (one for one in list_scalars(value) if isinstance(one, str)):
        if "\0" in text:
            raise ValueError(f"{field} holds a NUL character; remove it")
        count += len(text)
        is_storable = is_storable and storable(text) == text
    if count > _MOST_CHARACTERS:
        raise ValueError(
            f"{field} has {count:,} characters, and more than {_MOST_CHARACTERS:,} are not kept; say where the rest is"
        )
    return is_storable
