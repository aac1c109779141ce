"""The cycles that a store has recorded, the state of their branches in git, and the commits that reverted them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.cycle.worktree import name_branch
from pytest_golden.errors import GoldenError, JournalError
from pytest_golden.gate.events import GATE_AGENT
from pytest_golden.gate.store import CYCLE_TYPE
from pytest_golden.gateway.git import run_git
from pytest_golden.journal.model import ExpectationStatus, SignalType
from pytest_golden.redaction.redactor import redact
from pytest_golden.values.checking import parse_time
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pytest_golden.journal.model import JournalEntry
    from pytest_golden.journal.service import Journal

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_REVERTS = "^This reverts commit [0-9a-f]{7,64}"
_REVERTED = re.compile(r"(?m)^This reverts commit ([0-9a-f]{7,64})\b")
_MOST_LOOKED_AT, _MOST_NAMED = 100, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCycle(Shape):
    """A recorded cycle. `result` is how it ended, and `why`; None while it has not.

    `branch_state` is `open`, `merged` (into what is checked out) or `gone`; `commit` is that of the branch, else what was checked last.
    `steps` have `step`, `status`, `reason` and `seconds` (None: not known); `projects` says of each golden project whether it passes.
    `merge` is the status of the expectation that GitHub merges the branch (None: not expected), `reverted_by` a later commit that
    says so, and its subject. `cost_usd` is what the commands told of their cost (None: nothing), `run_id` the entry of the last gate run.
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
    cost_usd: float | None
    run_id: str | None
    merge: str | None
    reverted_by: str | None = None


@dataclass(frozen=True, slots=True)
class CycleDetails(Shape):
    """A recorded cycle and its changes, as `git diff --stat` shows them; "" if git no longer has them."""

    cycle: PastCycle = field(metadata=form(merged=True))
    changes: str


class Revert(NamedTuple):
    """A commit that reverts the work of a cycle."""

    cycle: PastCycle
    commit: str
    subject: str


def list_cycles(journal: Journal, checkout: Path, *, limit: int) -> tuple[PastCycle, ...]:
    """Return the newest cycles.

    Raises:
        StorageError: the store cannot be read.
    """
    branches = _read_branches(checkout)
    entries = journal.review_journal(intent_type=CYCLE_TYPE, limit=limit)
    cycles = _find_merged(checkout, [_read_cycle(entry, branches) for entry in entries])
    reverted = {
        one.cycle.cycle_id: f"{one.commit[:12]} {one.subject}" for one in _list_reverts(journal, checkout, cycles)
    }
    return tuple(replace(one, reverted_by=reverted.get(one.cycle_id)) for one in cycles)


def record_merges_and_reverts(journal: Journal, checkout: Path) -> None:
    """Record what git shows of the cycles, once: a merge that was expected, and each revert as a signal against its cycle.

    Raises:
        StorageError: the store cannot be read or written.
    """
    cycles = list_cycles(journal, checkout, limit=_MOST_LOOKED_AT)
    for one in cycles:
        if one.merge == ExpectationStatus.OPEN and one.branch_state == "merged":
            told = {"event": "pull_request", "branch": one.branch, "conclusion": "merged"}
            _tell(journal, one, SignalType.POSITIVE, f"{one.branch} is merged", told, f"merged:{one.cycle_id}")
    for revert in _list_reverts(journal, checkout, cycles):
        summary = f"reverted by {revert.commit[:12]}: {revert.subject}"
        told = {"event": "revert", "sha": revert.commit, "cycle": revert.cycle.cycle_id}
        name = f"revert:{revert.cycle.cycle_id}:{revert.commit}"
        _tell(journal, revert.cycle, SignalType.NEGATIVE, summary, told, name)


def _tell(
    journal: Journal, cycle: PastCycle, says: SignalType, summary: str, told: Mapping[str, str], name: str
) -> None:
    journal.add_signal(
        GATE_AGENT,
        says,
        redact(summary),
        data=told,
        external_id=name,
        agent_id=GATE_AGENT,
        entry_id=cycle.entry_id,
    )


def get_cycle(journal: Journal, checkout: Path, cycle_id: str | None) -> CycleDetails:
    """Return the cycle with this id or entry id, with its changes; None stands for the newest.

    Raises:
        JournalError: the cycle does not exist.
        StorageError: the store cannot be read.
    """
    newest = list_cycles(journal, checkout, limit=1 if cycle_id is None else _MOST_NAMED)
    found = next((one for one in newest if cycle_id in {None, one.cycle_id, one.entry_id}), None)
    if found is None:
        named = "no cycle" if cycle_id is None else f"no cycle {cycle_id!r:.100} among the newest {_MOST_NAMED}"
        raise JournalError(f"the journal has {named}; see: golden cycle list")
    return CycleDetails(found, _describe_changes(checkout, found))


def _describe_changes(checkout: Path, cycle: PastCycle) -> str:
    if cycle.commit is None:
        return ""
    # A text that is not a commit's name could be an option of git.
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


def _find_merged(checkout: Path, cycles: Sequence[PastCycle]) -> list[PastCycle]:
    """Mark the cycles that were merged although their branch is gone: their commit is in the current history."""
    gone = [one for one in cycles if one.branch_state == "gone" and one.commit is not None]
    if not gone:
        return list(cycles)
    since = _begin_of(gone)
    try:
        present = run_git(checkout, "rev-list", f"--since={since}", "--max-count=100000", "HEAD", "--").stdout.split()
    except GoldenError:
        return list(cycles)
    known = set(present)
    merged = {one.cycle_id for one in gone if one.commit in known}
    return [replace(one, branch_state="merged") if one.cycle_id in merged else one for one in cycles]


def _read_cycle(entry: JournalEntry, branches: Mapping[str, tuple[str, bool]]) -> PastCycle:
    note = entry.actions[0] if entry.actions and isinstance(entry.actions[0], Mapping) else {}
    cycle_id = str(entry.session_key)
    branch = str(note.get("branch") or name_branch(cycle_id))
    commit, is_merged = branches.get(branch, (None, False))
    has_ended = bool(note)
    # An imported journal may lack any of these.
    steps = [{"step": "", "status": "", "reason": "", **one} for one in _list_mappings(note.get("steps"))]
    checked = _find_last(steps, "commit")
    return PastCycle(
        cycle_id=cycle_id,
        entry_id=entry.id,
        task=entry.intent,
        started_at=entry.created_at,
        ended_at=_read_time(note.get("ended_at")) or entry.closed_at,
        result=entry.immediate_notes if has_ended else None,
        verdict=str(note["verdict"]) if has_ended else None,
        branch=branch,
        branch_state="gone" if commit is None else "merged" if is_merged else "open",
        commit=commit or (checked if checked and _COMMIT.fullmatch(checked) else None),
        base=None if note.get("base") is None else str(note["base"]),
        steps=tuple(steps),
        why=entry.assessment_notes,
        projects=tuple(
            f"{one.description}: {one.status}" for one in entry.expectations if "project" in (one.match_hint or {})
        ),
        weakened_floor=_list_mappings(note.get("weakened_floor")),
        warnings=tuple(map(str, note.get("warnings") or ())),
        cost_usd=sum_costs(steps),
        run_id=_find_last(steps, "run_id"),
        merge=next((str(one.status) for one in entry.expectations if "branch" in (one.match_hint or {})), None),
    )


def sum_costs(steps: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the total cost of steps; None if no step reported any."""
    costs = [one["cost_usd"] for one in steps if isinstance(one.get("cost_usd"), int | float)]
    return math.fsum(costs) if costs else None


def _read_time(told: Any) -> datetime | None:
    try:
        return parse_time("ended_at", told)
    except ValueError:
        return None


def _begin_of(cycles: Iterable[PastCycle]) -> str:
    """Return a time before all of their commits: git only knows seconds."""
    return (min(one.started_at for one in cycles) - timedelta(minutes=1)).isoformat()


def _find_last(steps: Sequence[Mapping[str, Any]], name: str) -> str | None:
    return next((str(one[name]) for one in reversed(steps) if one.get(name)), None)


def _list_reverts(journal: Journal, checkout: Path, cycles: Iterable[PastCycle]) -> list[Revert]:
    """Find the commits in the current history and in the remotes' that revert a cycle's work, oldest first."""
    known = [one for one in cycles if one.commit is not None and _COMMIT.fullmatch(one.commit)]
    if not known:
        return []
    since = _begin_of(known)
    asked = ("log", "HEAD", "--remotes", "--reverse", f"--since={since}", "--extended-regexp", f"--grep={_REVERTS}")
    try:
        told = run_git(checkout, *asked, "--format=%H%x00%s%x00%B%x01").stdout
    except GoldenError:
        return []
    reverts = [record.strip().split("\0") for record in told.split("\1") if record.strip()]
    named = [(commit, subject, _REVERTED.findall(body)) for commit, subject, body in reverts]
    work = {one.cycle_id: _list_work(journal, checkout, one) for one in known} if named else {}
    return [
        Revert(one, commit, subject)
        for commit, subject, reverted in named
        for one in known
        if any(_is_of(checkout, sha, work[one.cycle_id]) for sha in reverted)
    ]


def _list_work(journal: Journal, checkout: Path, cycle: PastCycle) -> frozenset[str]:
    """Return a cycle's commits, and the commits by which GitHub merged them."""
    try:
        base = cycle.base if cycle.base and _COMMIT.fullmatch(cycle.base) else f"{cycle.commit}^"
        listed = run_git(checkout, "rev-list", "--max-count=1000", f"{base}..{cycle.commit}", "--").stdout.split()
    except GoldenError:
        listed = []
    merged = (signal.data.get("merge_sha") for signal in journal.get(cycle.entry_id).signals)
    return frozenset((str(cycle.commit), *listed, *(str(sha) for sha in merged if sha)))


def _is_of(checkout: Path, commit: str, work: frozenset[str]) -> bool:
    """Tell whether a commit is a cycle's work, or merged it."""
    if any(one.startswith(commit) for one in work):
        return True
    try:
        parents = run_git(checkout, "rev-list", "--parents", "--max-count=1", commit, "--").stdout.split()[2:]
    except GoldenError:
        return False
    return not work.isdisjoint(parents)


def _list_mappings(value: Any) -> tuple[Mapping[str, Any], ...]:
    rows: Sequence[Any] = value if isinstance(value, list | tuple) else ()
    return tuple(row for row in rows if isinstance(row, Mapping))
