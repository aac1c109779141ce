"""Turns: a project passes after it failed, or fails after it passed. Noted here, for whoever can ask git what changed.

A note is a memory that is there until somebody has learned from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.learning.draft import MemoryDraft
from pytest_golden.learning.results.store import list_earlier
from pytest_golden.learning.store import delete_memory, insert_all_new, list_keys
from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from pytest_golden.learning.results.model import EarlierResult, RecordedResult

#: Namespaces that begin so hold what is left to be done with this store; no other store's is taken in.
OWN_WORK = "learning"
TURNS = (OWN_WORK, "turns")
PROGRESS = (OWN_WORK, "progress")


def note_turns(connection: Connection, recorded: Sequence[RecordedResult], moment: int) -> None:
    """Note which of these results end otherwise than their project's result before."""
    turns = [one for one in recorded if is_turn(one, list_earlier(connection, one.project, one.number))]
    drafts = [MemoryDraft(TURNS, one.occasion.entry, {"project": one.project}) for one in turns]
    insert_all_new(connection, drafts, moment)


def is_turn(result: RecordedResult | EarlierResult, earlier: Sequence[EarlierResult]) -> bool:
    """Tell whether a result ends otherwise than the one before, newest first: that of its own branch, where there is one."""
    ran = [one for one in earlier if one.status != ResultStatus.SKIPPED]
    before = next((one for one in ran if one.branch == result.branch), ran[0] if ran else None)
    return before is not None and (before.status == ResultStatus.PASSED) != (result.status == ResultStatus.PASSED)


def list_turns(connection: Connection) -> tuple[str, ...]:
    """Give the entries of the results that are turns nobody has learned from yet, oldest first."""
    return list_keys(connection, TURNS)


def take_turn(connection: Connection, entry_id: str) -> bool:
    """Take a turn away; False when somebody else has taken it."""
    return delete_memory(connection, TURNS, entry_id)
