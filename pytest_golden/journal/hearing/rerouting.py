"""Routes orphans again, however many there are: it looks first, and writes only what has found a place, some at once.

A look at tens of thousands takes seconds, in which others are not to wait for their turn to write. Whoever looks often
says what was there the last time: what came since is all that can find a place, or be one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pytest_golden.journal.hearing.orphans import find_place, has_anchor, route_again
from pytest_golden.journal.hearing.store import find_new_anchors, list_orphans_after, list_orphans_since

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.journal.hearing.store import LastNumbers, Orphan
    from pytest_golden.journal.swept_store import SweptStore

_READ_AT_ONCE = 500
_TAKEN_AT_ONCE = 100


def reroute_orphans(swept: SweptStore, moment: datetime, since: LastNumbers | None = None) -> int:
    """Give open expectations the orphans that fit their hints, as those are that came by an import; give how many.

    What is due at the moment is resolved before. With `since` only those pairs are looked at of which one is newer.

    Raises:
        StorageError: the store cannot be read or written.
    """
    fitting = _find_fitting(swept, since)
    taken = 0
    for start in range(0, max(len(fitting), 1), _TAKEN_AT_ONCE):
        some = fitting[start : start + _TAKEN_AT_ONCE]
        taken += swept.after_sweep(moment, partial(route_again, ids=some, rules=swept.rules))
    return taken


def _find_fitting(swept: SweptStore, since: LastNumbers | None) -> list[str]:
    """Give the ids of the orphans that fit an expectation at their moment, the oldest first."""
    fitting: list[Orphan] = []
    last = -1
    if since is not None:
        last = since.signal
        with swept.store.read() as connection:
            fitting += _find_answers(connection, since)
    while True:
        with swept.store.read() as connection:
            orphans = list_orphans_after(connection, last, _READ_AT_ONCE)
            fitting += (one for one in orphans if find_place(connection, one).taken is not None)
        if len(orphans) < _READ_AT_ONCE:
            fitting.sort(key=lambda one: (one.signal.created_at, one.number))
            return [one.signal.id for one in fitting]
        last = orphans[-1].number


def _find_answers(connection: Connection, since: LastNumbers) -> list[Orphan]:
    """Give the orphans of that time that fit an expectation which came after it."""
    anchors, beginning = find_new_anchors(connection, since.expectation)
    if beginning is None:
        return []
    known = (one for one in list_orphans_since(connection, beginning) if one.number <= since.signal)
    return [one for one in known if has_anchor(one, anchors) and find_place(connection, one).taken is not None]
