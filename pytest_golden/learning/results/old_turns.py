"""Notes the turns of results that were learned from before turns were: once a store, for whoever then asks git what changed."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from pytest_golden.learning.draft import MemoryDraft
from pytest_golden.learning.results.model import EarlierResult
from pytest_golden.learning.results.store import MOST_EARLIER, list_learned
from pytest_golden.learning.results.turns import PROGRESS, TURNS, is_turn
from pytest_golden.learning.store import find_memory, insert_all_new, rewrite_memory
from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from pytest_golden.storage.store import Store

_KEY = "old turns"


def note_old_turns(store: Store, moment: int) -> int:
    """Note all turns of the results that were learned from, unless that was done before, and give how many there are.

    What they have taught already is not learned anew: each lesson's id follows from its result.

    Raises:
        StorageError: the store cannot be read or written.
    """
    with store.read() as connection:
        if find_memory(connection, PROGRESS, _KEY) is not None:
            return 0
        drafts = list(_find_turns(connection))
    with store.write() as connection:
        insert_all_new(connection, drafts, moment)
        rewrite_memory(connection, MemoryDraft(PROGRESS, _KEY, {"count": len(drafts)}), moment)
    return len(drafts)


def _find_turns(connection: Connection) -> Iterator[MemoryDraft]:
    earlier: dict[str, deque[EarlierResult]] = {}
    for entry_id, project, status, branch in list_learned(connection):
        result = EarlierResult(status, branch)
        before = earlier.setdefault(project, deque(maxlen=MOST_EARLIER))
        if status != ResultStatus.SKIPPED and is_turn(result, before):
            yield MemoryDraft(TURNS, entry_id, {"project": project})
        before.appendleft(result)
