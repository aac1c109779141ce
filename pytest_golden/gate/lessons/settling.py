"""Settles what came of the lessons that were shown for a project's failures, by what its next runs told."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.gate.lessons.pairing import find_ending, is_repeat
from pytest_golden.gate.lessons.store import find_point, list_points_after, list_points_before
from pytest_golden.learning.lessons.crediting import settle
from pytest_golden.learning.lessons.store import list_unsettled, settle_recall
from pytest_golden.storage.moments import to_ms

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.gate.lessons.pairing import Descends
    from pytest_golden.learning.lessons.store import RecallRow
    from pytest_golden.storage.store import Store

_MOST_LATER = 20
_MOST_EARLIER = 5
# Older ones, of failures that nobody came back to, wait for good.
_MOST_RECALLS = 50


class _Ending(NamedTuple):
    """What a failure came to: in which entry, and whether that tells anything of a lesson that was shown."""

    entry_id: str
    passed: bool
    counts: bool


def settle_project(store: Store, project: str, descends: Descends, now: datetime) -> int:
    """Settle what can be, and give how many recalls that were: a pass is a success, the same failure again a harm.

    What the gate or its machine is to blame for, what was skipped and what was interrupted settles nothing. One pass credits
    a lesson once, however often it was shown before; a failure that was only run again charges nothing anew.

    Raises:
        StorageError: the store cannot be read or written.
    """
    endings: dict[str, _Ending | None] = {}
    with store.read() as connection:
        recalls = [one for one in list_unsettled(connection, project)[-_MOST_RECALLS:] if one.entry_id is not None]
        for entry_id in dict.fromkeys(str(one.entry_id) for one in recalls):
            endings[entry_id] = _find_ending(connection, entry_id, descends)
    told = [(one, ending) for one in recalls if (ending := endings[str(one.entry_id)]) is not None]
    if told:
        with store.write() as connection:
            _settle_all(connection, told, now)
    return len(told)


def _find_ending(connection: Connection, entry_id: str, descends: Descends) -> _Ending | None:
    shown = find_point(connection, entry_id)
    if shown is None or not shown.counts:
        return None
    ending = find_ending(shown, list_points_after(connection, shown, _MOST_LATER), descends)
    if ending is None:
        return None
    counts = ending.has_passed or not is_repeat(shown, list_points_before(connection, shown, _MOST_EARLIER))
    return _Ending(ending.entry_id, ending.has_passed, counts)


def _settle_all(connection: Connection, told: list[tuple[RecallRow, _Ending]], now: datetime) -> None:
    done: set[tuple[str, str]] = set()
    for recall, ending in told:
        if ending.counts and (recall.lesson_id, ending.entry_id) not in done:
            settle(connection, recall.id, now, passed=ending.passed)
            done.add((recall.lesson_id, ending.entry_id))
        else:
            settle_recall(connection, recall.id, to_ms(now), passed=ending.passed)
