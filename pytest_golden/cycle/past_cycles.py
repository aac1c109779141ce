"""The cycles that a store has recorded, with what git still has of their branches. Nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.cycle.worktree import name_branch
from pytest_golden.errors import GoldenError, JournalError
from pytest_golden.gate.store import CYCLE_TYPE
from pytest_golden.gateway.git import run_git
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_golden.journal.model import JournalEntry
    from pytest_golden.journal.service import Journal

_COMMIT = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCycle(Shape):
    """A recorded cycle. `result` is how it ended, and `why`; None while it has not.

    `branch_state` is `open`, `merged` (into what is checked out) or `gone`; `commit` is that of the branch. `steps` have `step`, `status`,
    `reason` and `seconds` (None: not known); `projects` says of each golden project whether it passes.
    """

    cycle_id: str
    entry_id: str
    task: str
    started_at: datetime
    ended_at: datetime | None
    result: str | None
    verdict: str | None
    why: str | None
    branch: str
    branch_state: str
    commit: str | None
    base: str | None
    steps: tuple[Mapping[str, Any], ...]
    projects: tuple[str, ...]
    weakened_floor: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...]


def list_cycles(journal: Journal, checkout: Path, *, limit: int) -> tuple[PastCycle, ...]:
    """Return the newest cycles.

    Raises:
        StorageError: the store cannot be read.
    """
    branches = _read_branches(checkout)
    entries = journal.review_journal(intent_type=CYCLE_TYPE, limit=limit)
    return tuple(_read_cycle(entry, branches) for entry in entries)


def find_cycle(journal: Journal, checkout: Path, cycle_id: str | None) -> PastCycle:
    """Return the cycle with this id, or that of its entry; None stands for the newest.

    Raises:
        JournalError: there is none.
        StorageError: the store cannot be read.
    """
    found = next(
        (one for one in list_cycles(journal, checkout, limit=500) if cycle_id in {None, one.cycle_id, one.entry_id}),
        None,
    )
    if found is None:
        named = "no cycle" if cycle_id is None else f"no cycle {cycle_id!r:.100} among the newest 500"
        raise JournalError(f"the journal has {named}; see: golden cycle list")
    return found


def describe_changes(checkout: Path, cycle: PastCycle) -> str:
    """Return what the cycle changed, as `git diff --stat` shows it; "" if git has nothing of it any more."""
    if cycle.commit is None:
        return ""
    # What is no commit's name could be an option of git.
    base = cycle.base if cycle.base and _COMMIT.fullmatch(cycle.base) else "HEAD"
    try:
        return run_git(
            checkout, "diff", "--no-ext-diff", "--stat=100", f"{base}...{cycle.commit}", "--"
        ).stdout.rstrip()
    except GoldenError:
        return ""


def _read_branches(checkout: Path) -> dict[str, tuple[str, bool]]:
    """Return the commit of each branch of a cycle, and whether it is merged."""
    listing = ("for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/golden/")
    try:
        every, unmerged = (
            dict(line.split(" ") for line in run_git(checkout, *listing, *more).stdout.splitlines())
            for more in ((), ("--no-merged=HEAD",))
        )
    except GoldenError:
        return {}
    return {name: (commit, name not in unmerged) for name, commit in every.items()}


def _read_cycle(entry: JournalEntry, branches: Mapping[str, tuple[str, bool]]) -> PastCycle:
    note = entry.actions[0] if entry.actions and isinstance(entry.actions[0], Mapping) else {}
    cycle_id = str(entry.session_key)
    branch = str(note.get("branch") or name_branch(cycle_id))
    commit, is_merged = branches.get(branch, (None, False))
    has_ended = bool(note)
    return PastCycle(
        cycle_id=cycle_id,
        entry_id=entry.id,
        task=entry.intent,
        started_at=entry.created_at,
        ended_at=entry.closed_at,
        result=entry.immediate_notes if has_ended else None,
        verdict=str(note["verdict"]) if has_ended else None,
        branch=branch,
        branch_state="gone" if commit is None else "merged" if is_merged else "open",
        commit=commit,
        base=None if note.get("base") is None else str(note["base"]),
        steps=_list_mappings(note.get("steps")),
        why=entry.assessment_notes,
        projects=tuple(
            f"{one.description}: {one.status}" for one in entry.expectations if "project" in (one.match_hint or {})
        ),
        weakened_floor=_list_mappings(note.get("weakened_floor")),
        warnings=tuple(map(str, note.get("warnings") or ())),
    )


def _list_mappings(value: Any) -> tuple[Mapping[str, Any], ...]:
    rows: Sequence[Any] = value if isinstance(value, list | tuple) else ()
    return tuple(row for row in rows if isinstance(row, Mapping))
