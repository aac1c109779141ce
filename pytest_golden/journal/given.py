"""What a caller gives the journal, checked and made fit to be kept: without secrets, frozen, in forms that can be stored."""

from __future__ import annotations

from typing import Any

from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.text import storable
from pytest_golden.trajectory.freezing import freeze
from pytest_golden.trajectory.json_form import json_form
from pytest_golden.trajectory.vocabulary import check_text


def clean_text(field: str, text: object) -> str:
    """Give a text as it is kept.

    Raises:
        ValueError: it is blank, no text, or holds a NUL character; the message names the field.
    """
    checked = check_text(field, text)
    _refuse_nul(field, checked)
    return storable(redact(checked))


def clean_name(field: str, text: object) -> str:
    """Give a name that is looked up later, as it is: hiding a part of it would make two names one.

    Raises:
        ValueError: it is blank, no text, or holds a NUL character or half a character; the message names the field.
    """
    checked = check_text(field, text)
    _refuse_nul(field, checked)
    if storable(checked) != checked:
        raise ValueError(f"{field} {checked!r} holds half a character; remove it")
    return checked


def clean_notes(field: str, text: object) -> str | None:
    """Give a text that may be blank or None as it is kept; refuses as `clean_text` does."""
    if text is None or (isinstance(text, str) and not text.strip()):
        return None
    return clean_text(field, text)


def clean_json(field: str, value: Any) -> Any:
    """Give any value as it is kept: JSON content, deeply frozen.

    Raises:
        ValueError: a text in it holds a NUL character; the message names the field.
    """
    plain = json_form(value)
    _refuse_nul(field, plain)
    return freeze(field, redact(plain))


def _refuse_nul(field: str, value: Any) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError(f"{field} holds a NUL character; remove it")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_nul(field, key)
            _refuse_nul(field, item)
    elif isinstance(value, list):
        for item in value:
            _refuse_nul(field, item)
