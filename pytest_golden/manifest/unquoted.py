"""What YAML 1.1 makes of a word without quotes: text, or a number, date, boolean or nothing that someone meant as text.

The rules are PyYAML's, so that editors and other programs which read the file with it agree. Values only; the file's
structure is read in `composing.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Any

_FIRST = frozenset("0123456789+-.~nNyYtTfFoO")
_NULLS = frozenset({"~", "null", "Null", "NULL"})
_BOOLEANS = {
    form: value
    for words, value in (("yes true on", True), ("no false off", False))
    for word in words.split()
    for form in (word, word.capitalize(), word.upper())
}
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]*(?:[eE][-+][0-9]+)?|\.[0-9]+(?:[eE][-+][0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_ODD = re.compile(
    r"[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?[1-9][0-9_]*|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"
    r"|[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?"
    r"(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?"
)


@dataclass(frozen=True, slots=True)
class Unquoted:
    """A word that YAML does not read as text, as it was written.

    `kind` is `null`, `boolean`, `number` or `date`. `value` is the Python value; None also for a number in a form that
    people read otherwise than YAML 1.1 does (`0x10`, `010`, `1:30`, `1_000`) and for a date with a time or of no day.
    """

    text: str
    kind: str
    value: Any = None


def read_unquoted(text: str) -> str | Unquoted:
    """Tell what a word without quotes is."""
    if not text:
        return Unquoted(text, "null")
    if text[0] not in _FIRST:
        return text
    if text in _NULLS:
        return Unquoted(text, "null")
    if text in _BOOLEANS:
        return Unquoted(text, "boolean", _BOOLEANS[text])
    return _read_number(text) or _read_date(text) or text


def _read_number(text: str) -> Unquoted | None:
    if _DECIMAL.fullmatch(text):
        return Unquoted(text, "number", int(text))
    if _FLOAT.fullmatch(text):
        return Unquoted(text, "number", float(text))
    if _NOT_FINITE.fullmatch(text):
        return Unquoted(text, "number", float(text.replace(".", "")))
    return Unquoted(text, "number") if _ODD.fullmatch(text) else None


def _read_date(text: str) -> Unquoted | None:
    if _DATE.fullmatch(text):
        try:
            return Unquoted(text, "date", date.fromisoformat(text))
        except ValueError:
            return Unquoted(text, "date")
    return Unquoted(text, "date") if _MOMENT.fullmatch(text) else None


def bare(value: Any) -> Any:
    """Give the Python value of a word without quotes, and anything else as it is."""
    return value.value if isinstance(value, Unquoted) else value


def show(value: Any) -> str:
    """Name a value in a sentence for people, short whatever it is."""
    if isinstance(value, Unquoted):
        return value.text or "nothing"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:57]}...")
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None or isinstance(value, bool | int | float):
        told = repr(value)
        return told if len(told) <= 60 else f"{told[:57]}..."
    return f"a value of type {type(value).__name__}"
