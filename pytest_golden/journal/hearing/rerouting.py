"""Routes all orphans again, however many there are: it looks first, and writes only what has found a place, some at once.

A look at tens of thousands takes seconds, in which others are not to wait for their turn to write.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pytest_golden.journal.hearing.orphans import find_place, route_again
from pytest_golden.journal.hearing.store import list_orphans_after

if TYPE_CHECKING:
    from datetime import datetime

    from pytest_golden.journal.hearing.store import Orphan
    from pytest_golden.journal.swept_store import SweptStore

_READ_AT_ONCE = 500
_TAKEN_AT_ONCE = 100


def reroute_orphans(swept: SweptStore, moment: datetime) -> int:
    """Give open expectations the orphans that fit their hints, as those are that came by an import; give how many.

    What is due at the moment is resolved before.

    Raises:
        StorageError: the store cannot be read or written.
    """
    fitting = _find_fitting(swept)
    taken = 0
    for start in range(0, max(len(fitting), 1), _TAKEN_AT_ONCE):
        some = fitting[start : start + _TAKEN_AT_ONCE]
        taken += swept.after_sweep(moment, partial(route_again, ids=some, rules=swept.rules))
    return taken


def _find_fitting(swept: SweptStore) -> list[str]:
    """Give the ids of the orphans that fit an expectation at their moment, the oldest first."""
    fitting: list[Orphan] = []
    last = -1
    while True:
        with swept.store.read() as connection:
            orphans = list_orphans_after(connection, last, _READ_AT_ONCE)
            fitting += (one for one in orphans if find_place(connection, one).taken is not None)
        if len(orphans) < _READ_AT_ONCE:
            fitting.sort(key=lambda one: (one.signal.created_at, one.number))
            return [one.signal.id for one in fitting]
        last = orphans[-1].number
