"""Export a journal into a file, and import such a file.

The same copies of entries give the same journal in any order. A signal has one place: if copies have routed it, or what its
source has said under one id, to different places, one with an entry comes before an orphan, and then the earliest. Orphans
are not routed again here: that depends on what else is recorded, and is left to the heartbeat.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import IO, TYPE_CHECKING, Any

from pytest_golden.errors import JournalError
from pytest_golden.journal.rules import Rules, rules_of
from pytest_golden.journal.transfer import lines
from pytest_golden.journal.transfer import store as stored
from pytest_golden.journal.transfer.entry_merging import Copy, Row, leave_out, merge, settle_alone
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.storage.store import Store

_LINES_BETWEEN_REPORTS = 1000


def export_journal(
    store: Store, file: str | Path | IO[Any], *, progress: Callable[[int], None] = lambda _: None
) -> ExportReport:
    """Write all entries and orphans of one consistent read; equal journals give equal files. One entry at a time is in memory.

    Raises:
        JournalError: something else than an earlier export has the path.
        OSError: it cannot be written.
        StorageError: the store cannot be read.
    """
    with store.read() as connection, lines.open_lines_to_write(file) as write:
        report = ExportReport(**dict(zip(("entries", "orphans"), stored.count_lines(connection), strict=True)))
        write(lines.write_header(report.to_dict()))
        for number, copy in enumerate(stored.read_copies(connection), 1):
            write(lines.write_entry(copy))
            if number % _LINES_BETWEEN_REPORTS == 0:
                progress(number)
        for signal in stored.read_orphans(connection):
            write(lines.write_orphan(signal))
    return report


def import_journal(
    store: Store,
    file: str | Path | IO[Any],
    rules: Mapping[str, Rules],
    *,
    with_checks: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> ImportReport:
    """Import all that a file holds, or nothing. Known entries are merged by the rules of `entry_merging.py`.

    Raises:
        JournalError: what is wrong with the file, and in which line.
        OSError: it cannot be read.
        StorageError: the store cannot be written.
    """
    try:
        with lines.open_to_read(file) as stream, store.write() as connection:
            intake = Intake(connection, rules, with_checks=with_checks)
            _read_into(intake, stream, progress)
            return intake.finish()
    except ValueError as error:
        raise JournalError(f"{lines.name_file(file)}: {error}; nothing was imported") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport(Shape):
    """What an export wrote: entries with everything that belongs to them, and signals without an entry."""

    entries: int = 0
    orphans: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport(Shape):
    """What an import did: the entries that it added, merged and left unchanged, and the orphans that it added."""

    added: int = 0
    merged: int = 0
    unchanged: int = 0
    orphans: int = 0

    @property
    def is_change(self) -> bool:
        """Tell whether the import changed the journal."""
        return bool(self.added or self.merged or self.orphans)


def _read_into(intake: Intake, stream: IO[bytes], progress: Callable[[int], None]) -> None:
    """Import line after line, and compare their number with what the first line announces; an error names its line."""
    announced: Mapping[str, int] | None = None
    seen = {"entries": 0, "orphans": 0}
    for number, line, is_whole in lines.read_lines(stream):
        try:
            given = lines.parse(line, is_whole=is_whole)
            if announced is None:
                announced = lines.read_header(given)
            else:
                seen[_take(intake, lines.read_line(given))] += 1
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if number % _LINES_BETWEEN_REPORTS == 0:
            progress(number)
    if announced is None:
        raise ValueError("it is empty: not even the first line of an export is there")
    for name, amount in announced.items():
        if seen[name] != amount:
            raise ValueError(
                f"the first line announces {amount:,} {name}, and the file has {seen[name]:,}: the file is cut off, or lines "
                f"were taken out; to import those that are there, take {name} out of the first line"
            )


def _take(intake: Intake, read: Copy | Row) -> str:
    """Import what a line holds, and return the name under which the first line counts it."""
    if isinstance(read, Copy):
        intake.take(read)
        return "entries"
    intake.take_orphan(read)
    return "orphans"


class Intake:
    """Imports copies of entries inside the caller's transaction; `finish` ends the import and reports what was done.

    With `with_checks`, a heartbeat may run the checks of expectations that are new here.
    """

    def __init__(self, connection: Connection, rules: Mapping[str, Rules], *, with_checks: bool = False) -> None:
        self._with_checks = with_checks
        self._connection = connection
        self._rules = rules
        self._entry_times, self._expectation_times = map(_Times, stored.find_latest(connection))
        self.added = self.merged = self.unchanged = self.orphans = 0

    def take(self, copy: Copy) -> None:
        """Import an entry with all that belongs to it.

        Raises:
            ValueError: it is not a copy of the entry with the same id here, or its parts belong to other entries.
        """
        entry_id = copy.entry["id"]
        self._check_expectations(copy)
        copy = self._place_signals(copy)
        present = stored.find_copy(self._connection, entry_id)
        if present is None:
            stored.insert_copy(
                self._connection, settle_alone(copy, self._get_rules(copy)), with_checks=self._with_checks
            )
            self._entry_times.note(copy.entry["created_at"], is_equal_late=True)
            self._note_expectations(copy.expectations)
            self.added += 1
        elif self._rewrite(present, copy):
            self.merged += 1
        else:
            self.unchanged += 1

    def take_orphan(self, signal: Row) -> None:
        """Import a signal that has no entry."""
        own = stored.Place(signal["id"], None, signal["created_at"])
        places = stored.find_places(self._connection, signal)
        if any(place.order <= own.order for place in places):
            return
        for place in places:
            stored.delete_signal(self._connection, place.id)
        stored.insert_orphan(self._connection, signal)
        self.orphans += not places

    def finish(self) -> ImportReport:
        """Renumber rows that came after newer ones in the order of time, and report what was done."""
        if self._entry_times.oldest_late is not None:
            stored.number_entries(self._connection, self._entry_times.oldest_late)
        if self._expectation_times.oldest_late is not None:
            stored.number_expectations(self._connection, self._expectation_times.oldest_late)
        return ImportReport(added=self.added, merged=self.merged, unchanged=self.unchanged, orphans=self.orphans)

    def _rewrite(self, present: Copy, copy: Copy) -> bool:
        if lines.write_entry(copy) == lines.write_entry(present):
            return False
        merged = merge(lines.read_again(present), copy, self._get_rules(copy))
        if lines.write_entry(merged) == lines.write_entry(present):
            return False
        stored.rewrite_copy(self._connection, present, merged, with_checks=self._with_checks)
        # All expectations from the first new one on have new numbers.
        known = [row["id"] for row in present.expectations]
        kept = [row["id"] for row in merged.expectations]
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(known, kept, strict=False)))
        self._note_expectations(merged.expectations[same:])
        return True

    def _get_rules(self, copy: Copy) -> Rules:
        return rules_of(copy.entry["agent_id"], self._rules)

    def _note_expectations(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._expectation_times.note(row["created_at"])

    def _check_expectations(self, copy: Copy) -> None:
        for expectation in copy.expectations:
            entry_id = stored.find_entry_of_expectation(self._connection, expectation["id"])
            if entry_id not in {None, copy.entry["id"]}:
                raise ValueError(f"expectation {expectation['id']} is one of the entry {entry_id} here")

    def _place_signals(self, copy: Copy) -> Copy:
        """Leave out the signals that belong to other entries, and remove from other entries those that belong here."""
        entry_id = copy.entry["id"]
        elsewhere = set()
        for signal in copy.signals:
            own = stored.Place(signal["id"], entry_id, signal["created_at"])
            others = [place for place in stored.find_places(self._connection, signal) if place.entry_id != entry_id]
            if any(place.order < own.order for place in others):
                elsewhere.add(signal["id"])
                continue
            for place in others:
                self._take_out(place)
        return leave_out(copy, elsewhere, self._get_rules(copy)) if elsewhere else copy

    def _take_out(self, place: stored.Place) -> None:
        if place.entry_id is None:
            stored.delete_signal(self._connection, place.id)
            return
        present = stored.find_copy(self._connection, place.entry_id)
        assert present is not None
        stored.rewrite_copy(self._connection, present, leave_out(present, {place.id}, self._get_rules(present)))


class _Times:
    """Checks whether rows come in the order of time; `oldest_late` is the earliest that came after a later one."""

    def __init__(self, last: int | None) -> None:
        self._last = last
        self.oldest_late: int | None = None

    def note(self, timestamp: int, *, is_equal_late: bool = False) -> None:
        if self._last is None:
            self._last = timestamp
            return
        if timestamp < self._last or (is_equal_late and timestamp == self._last):
            self.oldest_late = timestamp if self.oldest_late is None else min(timestamp, self.oldest_late)
        self._last = max(timestamp, self._last)
