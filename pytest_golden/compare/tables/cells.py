"""Cells and names of a table as they may be shown: without secrets, then cut, in one line."""

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
# Cells come cut, and a cut can make a secret unrecognizable: what is behind this is for redaction alone.
_LOOKED_AT = 2000
_LONGEST_NAME = 200
_SAMPLE = "7341902856"


@dataclass(frozen=True, slots=True)
class Cells:
    """Takes what is secret out of values; the name of a value's column can tell that it is a secret."""

    redact: Redact

    def hide(self, name: str, value: str | None) -> str | None:
        """Return what may be shown of a value, before it is cut."""
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
        """Return what may be shown of a row's values."""
        return tuple(self.hide(name, value) for name, value in zip(names, values, strict=True))

    def name(self, name: str) -> str:
        """Return what may be kept of a column's name."""
        return cut(_encodable(self.redact(name)), _LONGEST_NAME)

    def cut(self, name: str, value: str | None, longest: int) -> str | None:
        """Return what may be kept of a value, cut at its end."""
        hidden = self.hide(name, value)
        return None if hidden is None else cut(_encodable(hidden), longest)

    def pair(self, name: str, before: str | None, after: str | None, longest: int) -> tuple[str | None, str | None]:
        """Return what may be kept of two values, cut so that the first difference between them is kept."""
        was, now = self.hide(name, before), self.hide(name, after)
        if was is None or now is None:
            return self.cut(name, before, longest), self.cut(name, after, longest)
        one, other = cut_pair(_encodable(was), _encodable(now), longest)
        return one, other

    def place(self, names: Sequence[str], values: Sequence[str | None]) -> tuple[str | None, ...]:
        """Return what may be kept of the values that a row is found by."""
        return tuple(self.cut(name, value, 2 * LONGEST_VALUE) for name, value in zip(names, values, strict=True))

    def show(self, name: str, value: str | None) -> str:
        """Write one value within a sentence."""
        return show_value(self.hide(name, value))


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def show_value(value: str | None) -> str:
    """Write a value in one line: NULL, or a text that is cut."""
    return "NULL" if value is None else cut(quote_text(value), LONGEST_VALUE)


def quote_text(text: str) -> str:
    """Quote a text that would else be overlooked or taken for NULL."""
    shown = show(text)
    return f"'{shown}'" if not text or text != text.strip() or text == "NULL" else shown


def side_by_side(before: str | None, after: str | None) -> tuple[str, str]:
    """Write two values so that what is different between them can be seen."""
    if before is None or after is None:
        return show_value(before), show_value(after)
    was, now = cut_pair(before, after, LONGEST_VALUE)
    return quote_text(was), quote_text(now)
