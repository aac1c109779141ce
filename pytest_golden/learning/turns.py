"""Turns: a project passes after it failed, or fails after it passed. Noted for whoever can ask git what changed.

A note is a memory that exists until somebody has learned from it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from pytest_golden.learning.gate_results import EarlierResult
from pytest_golden.learning.gate_results_store import MOST_EARLIER, list_earlier, list_learned
from pytest_golden.learning.memories import MemoryDraft
from pytest_golden.learning.store import delete_memory, find_memory, insert_all_new, list_keys, rewrite_memory
from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

    from pytest_golden.learning.gate_results import RecordedResult
    from pytest_golden.storage.store import Store

#: Namespaces that begin with this hold pending work of this store; they are not merged from other stores.
OWN_WORK = "learning"
TURNS = (OWN_WORK, "turns")
PROGRESS = (OWN_WORK, "progress")
_OLD_TURNS_KEY = "old turns"


def note_turns(connection: Connection, recorded: Sequence[RecordedResult], moment: int) -> None:
    """Note which of these results end differently from their project's previous result."""
    turns = [one for one in recorded if is_turn(one, list_earlier(connection, one.project, one.number))]
    drafts = [MemoryDraft(TURNS, one.occasion.entry, {"project": one.project}) for one in turns]
    insert_all_new(connection, drafts, moment)


def is_turn(result: RecordedResult | EarlierResult, earlier: Sequence[EarlierResult]) -> bool:
    """Tell whether a result differs from the previous one (`earlier`: newest first), that of its own branch if there is one."""
    ran = [one for one in earlier if one.status != ResultStatus.SKIPPED]
    before = next((one for one in ran if one.branch == result.branch), ran[0] if ran else None)
    return before is not None and (before.status == ResultStatus.PASSED) != (result.status == ResultStatus.PASSED)


def list_turns(connection: Connection) -> tuple[str, ...]:
    """Return the entries of turns that nobody has learned from yet, oldest first."""
    return list_keys(connection, TURNS)


def take_turn(connection: Connection, entry_id: str) -> bool:
    """Remove a turn; return False when somebody else has already taken it."""
    return delete_memory(connection, TURNS, entry_id)


def note_old_turns(store: Store, moment: int) -> int:
    """Note the turns among results that were learned from before turns were noted; return their number. Runs once per store.

    What they have taught is not learned twice: each lesson's id follows from its result.

    Raises:
        StorageError: the store cannot be read or written.
    """
    with store.read() as connection:
        if find_memory(connection, PROGRESS, _OLD_TURNS_KEY) is not None:
            return 0
        drafts = list(_find_turns(connection))
    with store.write() as connection:
        insert_all_new(connection, drafts, moment)
        rewrite_memory(connection, MemoryDraft(PROGRESS, _OLD_TURNS_KEY, {"count": len(drafts)}), moment)
    return len(drafts)


def _find_turns(connection: Connection) -> Iterator[MemoryDraft]:
    earlier: dict[str, deque[EarlierResult]] = {}
    for entry_id, project, status, branch in list_learned(connection):
        result = EarlierResult(status, branch)
        before = earlier.setdefault(project, deque(maxlen=MOST_EARLIER))
        if status != ResultStatus.SKIPPED and is_turn(result, before):
            yield MemoryDraft(TURNS, entry_id, {"project": project})
        before.appendleft(result)
