"""Take copies of entries into a journal, one after another, in the caller's transaction. Executes nothing.

The same copies give the same journal in any order. A signal has one place: where copies have routed it, or what its source
has said under one id, to different places, one with an entry comes before an orphan, and then the earliest.
Orphans are not routed again: that depends on what is there at the time, and is for the heartbeat.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from pytest_golden.journal.rules import DEFAULT_RULES
from pytest_golden.journal.transfer.lines import read_again, write_entry
from pytest_golden.journal.transfer.merging import leave_out, merge, settle_alone
from pytest_golden.journal.transfer.model import ImportReport
from pytest_golden.journal.transfer.store import (
    Place,
    delete_signal,
    find_copy,
    find_entry_of_expectation,
    find_latest,
    find_latest_expectation,
    find_places,
    insert_copy,
    insert_orphan,
    number_entries,
    number_expectations,
    rewrite_copy,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from pytest_golden.journal.rules import Rules
    from pytest_golden.journal.transfer.model import Copy, Row


class _Times:
    """Whether what comes in is in the order of time: `oldest_late` is the time of the oldest that came after a younger one."""

    def __init__(self, last: int | None) -> None:
        self._last = last
        self.oldest_late: int | None = None

    def note(self, moment: int, *, is_equal_late: bool = False) -> None:
        if self._last is None:
            self._last = moment
            return
        if moment < self._last or (is_equal_late and moment == self._last):
            self.oldest_late = moment if self.oldest_late is None else min(moment, self.oldest_late)
        self._last = max(moment, self._last)


class Intake:
    """Takes in what another journal has; `finish` ends it and tells what was done.

    `with_checks` lets a heartbeat run the checks of expectations that are new here.
    """

    def __init__(self, connection: Connection, rules: Mapping[str, Rules], *, with_checks: bool = False) -> None:
        self._with_checks = with_checks
        self._connection = connection
        self._rules = rules
        self._entry_times = _Times(find_latest(connection))
        self._expectation_times = _Times(find_latest_expectation(connection))
        self.added = self.merged = self.unchanged = self.orphans = 0

    def take(self, copy: Copy) -> None:
        """Take in an entry with all that belongs to it.

        Raises:
            ValueError: it is no copy of the entry that is there under its id, or its parts belong to other entries.
        """
        entry_id = copy.entry["id"]
        self._check_expectations(copy)
        copy = self._place_signals(copy)
        present = find_copy(self._connection, entry_id)
        if present is None:
            insert_copy(self._connection, settle_alone(copy, self._get_rules(copy)), with_checks=self._with_checks)
            self._entry_times.note(copy.entry["created_at"], is_equal_late=True)
            self._note_expectations(copy.expectations)
            self.added += 1
        elif self._rewrite(present, copy):
            self.merged += 1
        else:
            self.unchanged += 1

    def take_orphan(self, signal: Row) -> None:
        """Take in a signal that has no entry."""
        own = Place(signal["id"], None, signal["created_at"])
        places = find_places(self._connection, signal)
        if any(place.order <= own.order for place in places):
            return
        for place in places:
            delete_signal(self._connection, place.id)
        insert_orphan(self._connection, signal)
        self.orphans += not places

    def finish(self) -> ImportReport:
        """Let what is older and has come in after what is younger be numbered by time, and tell what was done."""
        if self._entry_times.oldest_late is not None:
            number_entries(self._connection, self._entry_times.oldest_late)
        if self._expectation_times.oldest_late is not None:
            number_expectations(self._connection, self._expectation_times.oldest_late)
        return ImportReport(added=self.added, merged=self.merged, unchanged=self.unchanged, orphans=self.orphans)

    def _rewrite(self, present: Copy, copy: Copy) -> bool:
        if write_entry(copy) == write_entry(present):
            return False
        merged = merge(read_again(present), copy, self._get_rules(copy))
        if write_entry(merged) == write_entry(present):
            return False
        rewrite_copy(self._connection, present, merged, with_checks=self._with_checks)
        # From the first one that is new here on, all have new numbers.
        known = [row["id"] for row in present.expectations]
        kept = [row["id"] for row in merged.expectations]
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(known, kept, strict=False)))
        self._note_expectations(merged.expectations[same:])
        return True

    def _get_rules(self, copy: Copy) -> Rules:
        return self._rules.get(copy.entry["agent_id"], DEFAULT_RULES)

    def _note_expectations(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._expectation_times.note(row["created_at"])

    def _check_expectations(self, copy: Copy) -> None:
        for expectation in copy.expectations:
            entry_id = find_entry_of_expectation(self._connection, expectation["id"])
            if entry_id not in {None, copy.entry["id"]}:
                raise ValueError(f"expectation {expectation['id']} is one of the entry {entry_id} here")

    def _place_signals(self, copy: Copy) -> Copy:
        """Leave out the signals whose place is another, and take those out of other places whose place is here."""
        entry_id = copy.entry["id"]
        elsewhere = set()
        for signal in copy.signals:
            own = Place(signal["id"], entry_id, signal["created_at"])
            others = [place for place in find_places(self._connection, signal) if place.entry_id != entry_id]
            if any(place.order < own.order for place in others):
                elsewhere.add(signal["id"])
                continue
            for place in others:
                self._take_out(place)
        return leave_out(copy, elsewhere, self._get_rules(copy)) if elsewhere else copy

    def _take_out(self, place: Place) -> None:
        if place.entry_id is None:
            delete_signal(self._connection, place.id)
            return
        present = find_copy(self._connection, place.entry_id)
        assert present is not None
        rewrite_copy(self._connection, present, leave_out(present, {place.id}, self._get_rules(present)))
