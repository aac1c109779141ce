"""What differs between two tables, as a person reads it. Pure text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_golden.compare.model import Side
from pytest_golden.compare.showing import count_of, cut, cut_pair, show
from pytest_golden.redaction.rule import MARK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_golden.compare.showing import Redact
    from pytest_golden.compare.tables.model import DifferingRow, KeyRepeatedError, RowDifferences

_LONGEST_VALUE = 48
_LONGEST_NAME = 40
# Cells come cut, and a cut can make a secret unrecognizable: what is behind this is for redaction alone.
_LOOKED_AT = 2000
_MOST_NAMES = 10
_MOST_LINES = 24


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

    def hide_all(self, names: Sequence[str], values: Sequence[str | None]) -> tuple[str | None, ...]:
        """Return what may be shown of a row's values."""
        return tuple(self.hide(name, value) for name, value in zip(names, values, strict=True))


def describe_repeated(error: KeyRepeatedError, cells: Cells) -> tuple[str, tuple[str, ...]]:
    """Say whose key is not unique, and below it how often some of them stand."""
    whose = "has" if error.side is Side.OUTPUT else "has a baseline with"
    told = ((cells.hide_all(error.names, row[:-1]), row[-1]) for row in error.repeated)
    examples = tuple(f"  {describe_place(error.names, place)} stands {times:,} times" for place, times in told)
    return f"{whose} a key that is not unique: {quote_names(error.names)}", examples


def describe_rows(found: RowDifferences) -> str:
    """Say in one sentence how many rows differ."""
    amounts = [
        (found.differing, "differs", "differ"),
        (found.only_here, "is only here", "are only here"),
        (found.only_baseline, "is only in the baseline", "are only in the baseline"),
    ]
    parts = [f"{count_of(amount, 'row')} {one if amount == 1 else many}" for amount, one, many in amounts if amount]
    if found.at_least and found.differing:
        parts[0] = f"at least {parts[0]}"
    return ", ".join(parts)


def list_differences(found: RowDifferences, rows_here: int, rows_baseline: int, cells: Cells) -> Iterator[str]:
    """Return the lines below that sentence; values are redacted before they are cut."""
    yield f"rows: {rows_here:,} here, {rows_baseline:,} in the baseline"
    if found.by_column:
        counted = [f"{quote_name(name)} ({count_of(count, 'row')})" for name, count in found.by_column[:_MOST_NAMES]]
        shown = f", the first {len(counted)} of {len(found.by_column)}" if len(counted) < len(found.by_column) else ""
        yield f"columns that differ{shown}: {', '.join(counted)}"
    yield from found.notes
    if found.samples:
        yield from _table(found.places, found.samples, found.differing, cells)
    for samples, count, where in (
        (found.here_samples, found.only_here, "only here"),
        (found.baseline_samples, found.only_baseline, "only in the baseline"),
    ):
        yield from _list_only(found.places, [cells.hide_all(found.places, one) for one in samples], count, where)


def _table(places: Sequence[str], samples: Sequence[DifferingRow], differing: int, cells: Cells) -> Iterator[str]:
    yield f"the first {len(samples)} of them:" if differing > len(samples) else "they are:"
    lines = [("  " + ", ".join(map(_name, places)), "column", "baseline", "here")]
    each = max(1, _MOST_LINES // len(samples) - 1)
    for sample in samples:
        place = ", ".join(_value(value) for value in cells.hide_all(places, sample.place))
        for at, (name, baseline, here) in enumerate(sample.values[:each]):
            was, now = side_by_side(cells.hide(name, baseline), cells.hide(name, here))
            lines.append(("  " + (place if at == 0 else ""), _name(name), was, now))
        left = len(sample.values) - each
        if left > 0:
            lines.append(("", f"({count_of(left, 'more column')})", "", ""))
    widths = [max(len(line[at]) for line in lines) for at in range(3)]
    for line in lines:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]]).rstrip()


def _list_only(
    places: Sequence[str], samples: Sequence[tuple[str | None, ...]], count: int, where: str
) -> Iterator[str]:
    if not samples:
        return
    yield f"{where}{f', the first {len(samples)}' if count > len(samples) else ''}:"
    for sample in samples[: _MOST_NAMES // 2 if len(places) > 1 else _MOST_NAMES]:
        yield f"  {describe_place(places, sample)}"


def describe_place(places: Sequence[str], values: Sequence[str | None]) -> str:
    """Write where a row is: `id=5, day=2024-01-01`."""
    return ", ".join(f"{_name(name)}={_value(value)}" for name, value in zip(places, values, strict=True))


def side_by_side(baseline: str | None, here: str | None) -> tuple[str, str]:
    """Write two values so that what is different between them can be seen."""
    if baseline is None or here is None:
        return _value(baseline), _value(here)
    was, now = cut_pair(baseline, here, _LONGEST_VALUE)
    return _quoted(was), _quoted(now)


def quote_name(name: str) -> str:
    """Write a column's name within a sentence."""
    return f"`{_name(name)}`"


def quote_names(names: Sequence[str]) -> str:
    """Write some columns' names within a sentence."""
    return _and_more([quote_name(name) for name in names[:_MOST_NAMES]], len(names))


def _and_more(shown: list[str], count: int) -> str:
    left = count - len(shown)
    return ", ".join(shown) + (f" and {left:,} more" if left else "")


def _name(name: str) -> str:
    return cut(show(name), _LONGEST_NAME)


def _value(value: str | None) -> str:
    return "NULL" if value is None else cut(_quoted(value), _LONGEST_VALUE)


def _quoted(text: str) -> str:
    """Quote a text that would else be overlooked or taken for NULL."""
    shown = show(text)
    return f"'{shown}'" if not text or text != text.strip() or text == "NULL" else shown
