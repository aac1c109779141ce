"""An entry with all that belongs to it, as columns: what travels between journals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Writes a line: pure ASCII, in which half a character is an escape.
write_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_write_sorted = json.JSONEncoder(allow_nan=False, sort_keys=True, separators=(",", ":")).encode
#: Columns by name; moments are milliseconds since the epoch.
Row = dict[str, Any]


class Copy(NamedTuple):
    """One journal's knowledge of an entry: its own columns, and the rows that belong to it in the order of recording.

    What can be told from the rest is not in it: counts, and what expectations are found by.
    """

    entry: Row
    expectations: tuple[Row, ...] = ()
    signals: tuple[Row, ...] = ()
    history: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What an export has written: entries with all that belongs to them, and signals that have no entry."""

    entries: int = 0
    orphans: int = 0

    def to_dict(self) -> dict[str, int]:
        """Return both counts under their names."""
        return {"entries": self.entries, "orphans": self.orphans}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import has done: entries that are new, that were known otherwise, that were known, and orphans that are new."""

    added: int = 0
    merged: int = 0
    unchanged: int = 0
    orphans: int = 0

    @property
    def is_change(self) -> bool:
        """Tell whether the journal is another than before."""
        return bool(self.added or self.merged or self.orphans)

    def to_dict(self) -> dict[str, int]:
        """Return all counts under their names."""
        return {"added": self.added, "merged": self.merged, "unchanged": self.unchanged, "orphans": self.orphans}


def write_content(value: Any) -> str:
    """Write JSON content so that equal content gives equal text, whatever the order of its keys; pure ASCII."""
    return _write_sorted(value)


def differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two rows are different content; 1, 1.0 and true are."""
    return one != other or write_content(one) != write_content(other)
