"""Checks of a caller's values: each returns the value as it is kept, or raises a `ValueError` that names the field."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum, StrEnum
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80
Word = TypeVar("Word", bound=StrEnum)


class Missing(Enum):
    """The default of arguments for which None is a valid value or deserves its own error message."""

    MISSING = "missing"


def show(value: object) -> str:
    """Return a short form of any value for a message, even if its class raises an error."""
    try:
        return _SHORT.repr(value)
    except Exception:  # a foreign class may raise anything
        return f"<{type(value).__name__} that cannot be shown>"


def check_mapping(what: str, value: Any) -> Mapping[str, Any]:
    """Return the mapping. Raise a `ValueError` that names `what` for anything else."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} must be a mapping (a dict), not {show(value)}")  # noqa: TRY004 - one kind of refusal
    return value


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a value that was read from JSON if it is an object, else an empty one: another program may have written it."""
    return value if isinstance(value, dict) else {}


def list_items(field: str, items: Any) -> list[Any]:
    """Return the items as a list. Raise a `ValueError` that names the field for text, a mapping, or anything not iterable."""
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise ValueError(f"{field} must be a list, not {show(items)}")  # noqa: TRY004 - one kind of refusal
    return list(items)


def check_word(field: str, word: Any, words: type[Word]) -> Word:
    """Return the enumeration member for a plain word.

    Raises:
        ValueError: the word is missing or unknown; the message names the field and the allowed words.
    """
    if isinstance(word, words):
        return word
    # Only text is looked up: for any other value the enumeration's own message would contain its repr, of any size.
    if isinstance(word, str):
        with suppress(ValueError):
            return words(word)
    told = "is missing" if word is None or word is Missing.MISSING else f"{show(word)} is unknown"
    raise ValueError(f"{field} {told}: give one of {', '.join(words)}")


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def check_text(field: str, text: object) -> str:
    """Return the text. Raise a `ValueError` that names the field for blank text or anything else."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{field} must be text that is not blank, not {show(text)}")
    return text


def find_amount(number: object) -> float | None:
    """Return a finite number, 0 or more, as a float; None for anything else, True and False too."""
    if isinstance(number, bool) or not isinstance(number, Real):
        return None
    try:
        amount = float(number)
    except OverflowError:
        return None
    return amount if math.isfinite(amount) and amount >= 0 else None


def check_seconds(field: str, seconds: object) -> float | None:
    """Return seconds as a float, None for unknown. Raise a `ValueError` for anything but a finite number, 0 or more."""
    amount = find_amount(seconds)
    if amount is None and seconds is not None:
        allowed = "must be a finite number of seconds, 0 or more, or None when unknown"
        raise ValueError(f"{field} {allowed}, not {show(seconds)}")
    return amount


def check_timeout(seconds: object, field: str = "timeout_seconds") -> float:
    """Return the seconds that a call may take. Raise a `ValueError` for anything but a finite number above 0."""
    amount = find_amount(seconds)
    if not amount:
        raise ValueError(f"{field} must be a number above 0, not {show(seconds)}")
    return amount


def check_count(field: str, count: object, least: int = 0) -> int:
    """Return a whole number, `least` or more. Raise a `ValueError` for anything else."""
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise ValueError(f"{field} must be a whole number, {least} or more, not {show(count)}")
    return count


def check_flag(field: str, flag: object) -> bool:
    """Return True or False. Raise a `ValueError` for anything else."""
    if not isinstance(flag, bool):
        raise ValueError(f"{field} must be True or False, not {show(flag)}")  # noqa: TRY004 - one kind of refusal
    return flag


def check_any_text(field: str, text: object) -> str:
    """Return a text, which may be blank. Raise a `ValueError` for anything else."""
    if not isinstance(text, str):
        raise ValueError(f"{field} must be text, not {show(text)}")  # noqa: TRY004 - one kind of refusal
    return text


def check_optional_text(field: str, text: object) -> str | None:
    """Return a text, which may be blank, or None. Raise a `ValueError` for anything else."""
    if text is not None and not isinstance(text, str):
        raise ValueError(f"{field} must be text or None, not {show(text)}")
    return text


#: Errors that a row written by another program can cause.
DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def check_time(field: str, moment: object) -> datetime:
    """Return the timestamp in UTC. Raise a `ValueError` that names the field for anything but an aware datetime."""
    if type(moment) is datetime and moment.tzinfo is UTC:
        return moment
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise ValueError(f"{field} must be an aware datetime (one with a time zone), not {show(moment)}")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{field} {moment!r} lies outside the years 1 to 9999 in UTC") from None


def parse_time(field: str, text: Any) -> datetime:
    """Read ISO-8601 text with an offset or `Z`, as `to_dict` writes it. Raise a `ValueError` that names the field."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError(f"{field} must be ISO-8601 text such as 2026-01-31T12:00:00Z, not {show(text)}") from None
    return check_time(field, moment)


_CHECK = "check"


class Checked:
    """What a frozen dataclass derives from whose fields name their checks by `checked`; each field is kept as its check returns it."""

    __slots__ = ()

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, check in _list_checks(kind):
            object.__setattr__(self, name, check(name, getattr(self, name)))


def checked(check: Callable[[str, Any], Any]) -> Mapping[str, Any]:
    """Return the `metadata` of a dataclass field: `check` is called with its name and value, and returns the value to keep."""
    return {_CHECK: check}


def optional(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Return a check that also allows None."""
    return lambda name, value: None if value is None else check(name, value)


@cache
def _list_checks(kind: Any) -> tuple[tuple[str, Callable[[str, Any], Any]], ...]:
    return tuple((one.name, one.metadata[_CHECK]) for one in fields(kind) if _CHECK in one.metadata)
