"""Take copies of entries into a journal, one after another, in the caller's transaction. Executes nothing.

The same copies give the same journal in any order. A signal has one place: where copies have routed it, or what its source
has said under one id, to different places, one with an entry comes before an orphan, and then the earliest.
Orphans are not routed again: that depends on what is there at the time, and is for the heartbeat.
"""

from __future__ import annotations

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
    find_places,
    insert_copy,
    insert_orphan,
    number_entries,
    rewrite_copy,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from pytest_golden.journal.rules import Rules
    from pytest_golden.journal.transfer.model import Copy, Row


class Intake:
    """Takes in what another journal has; `finish` ends it and tells what was done.

    `with_checks` lets a heartbeat run the checks of expectations that are new here.
    """

    def __init__(self, connection: Connection, rules: Mapping[str, Rules], *, with_checks: bool = False) -> None:
        self._with_checks = with_checks
        self._connection = connection
        self._rules = rules
        self._last = find_latest(connection)
        self._oldest_late: int | None = None
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
            self._note_time(copy.entry["created_at"])
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
        """Let entries be numbered by time, where older ones have come in after younger ones, and tell what was done."""
        if self._oldest_late is not None:
            number_entries(self._connection, self._oldest_late)
            self._oldest_late = None
        return ImportReport(added=self.added, merged=self.merged, unchanged=self.unchanged, orphans=self.orphans)

    def _rewrite(self, present: Copy, copy: Copy) -> bool:
        if write_entry(copy) == write_entry(present):
            return False
        merged = merge(read_again(present), copy, self._get_rules(copy))
        if write_entry(merged) == write_entry(present):
            return False
        rewrite_copy(self._connection, present, merged, with_checks=self._with_checks)
        return True

    def _get_rules(self, copy: Copy) -> Rules:
        return self._rules.get(copy.entry["agent_id"], DEFAULT_RULES)

    def _note_time(self, created_at: int) -> None:
        if self._last is not None and created_at <= self._last:
            self._oldest_late = min(created_at, self._oldest_late or created_at)
        self._last = max(created_at, self._last or created_at)

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
