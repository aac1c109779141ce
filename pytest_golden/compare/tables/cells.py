"""Cells and names of a table in the form that may be shown: without secrets, then shortened, in one line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_golden.compare.showing import cut, cut_pair, show
from pytest_golden.redaction.rule import MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.compare.showing import Redact

LONGEST_VALUE = 48
# A shortened secret may not be recognized, so cells come with more characters than are shown, for redaction only.
_LOOKED_AT = 2000
_LONGEST_NAME = 200
_SAMPLE = "7341902856"


@dataclass(frozen=True, slots=True)
class Cells:
    """Removes secrets from values; the name of a column can mark its values as secret."""

    redact: Redact

    def hide(self, name: str, value: str | None) -> str | None:
        """Return a value without secrets, before it is shortened."""
        if value is None:
            return None
        named = json.dumps({name: value}, ensure_ascii=False)
        hidden = self.redact(named)
        if hidden == named:
            return self.redact(value)[:_LOOKED_AT]
        try:
            shown = json.loads(hidden)[name]
        except (ValueError, LookupError, TypeError):
            return MARK
        return shown[:_LOOKED_AT] if isinstance(shown, str) and shown != value else MARK

    def hides(self, name: str) -> bool:
        """Tell whether the name alone makes its values secret, so that not even their bounds may be shown."""
        return self.hide(name, _SAMPLE) != _SAMPLE

    def hide_all(self, names: Sequence[str], values: Sequence[str | None]) -> tuple[str | None, ...]:
        """Return a row's values without secrets."""
        return tuple(self.hide(name, value) for name, value in zip(names, values, strict=True))

    def name(self, name: str) -> str:
        """Return a column's name as it may be kept."""
        return cut(_encodable(self.redact(name)), _LONGEST_NAME)

    def cut(self, name: str, value: str | None, longest: int) -> str | None:
        """Return a value as it may be kept, shortened at its end."""
        hidden = self.hide(name, value)
        return None if hidden is None else cut(_encodable(hidden), longest)

    def pair(self, name: str, before: str | None, after: str | None, longest: int) -> tuple[str | None, str | None]:
        """Return two values as they may be kept, shortened so that their first difference is kept."""
        was, now = self.hide(name, before), self.hide(name, after)
        if was is None or now is None:
            return self.cut(name, before, longest), self.cut(name, after, longest)
        one, other = cut_pair(_encodable(was), _encodable(now), longest)
        return one, other

    def place(self, names: Sequence[str], values: Sequence[str | None]) -> tuple[str | None, ...]:
        """Return the values that identify a row, as they may be kept."""
        return tuple(self.cut(name, value, 2 * LONGEST_VALUE) for name, value in zip(names, values, strict=True))

    def show(self, name: str, value: str | None) -> str:
        """Write one value as part of a sentence."""
        return show_value(self.hide(name, value))


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def show_value(value: str | None) -> str:
    """Write a value in one line: NULL, or a shortened text."""
    return "NULL" if value is None else cut(quote_text(value), LONGEST_VALUE)


def quote_text(text: str) -> str:
    """Quote a text that could otherwise be overlooked or read as NULL."""
    shown = show(text)
    return f"'{shown}'" if not text or text != text.strip() or text == "NULL" else shown


def side_by_side(before: str | None, after: str | None) -> tuple[str, str]:
    """Write two values so that their difference can be seen."""
    if before is None or after is None:
        return show_value(before), show_value(after)
    was, now = cut_pair(before, after, LONGEST_VALUE)
    return quote_text(was), quote_text(now)
