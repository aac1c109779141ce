"""Prune a store: remove trees of closed entries beyond the limits, in many small transactions.

Lessons and memories stay, and so does everything that the next gate run is compared with.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, and_, delete, exists, func, or_, select

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import SettingsError
from pytest_golden.history.past_store import list_projects, split
from pytest_golden.journal.rules import rules_of
from pytest_golden.learning.gate_learning import learn_from_results
from pytest_golden.regression.model import ResultStatus, was_interrupted
from pytest_golden.regression.slowdown import MOST_PASSES
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.integrity import give_back
from pytest_golden.storage.schema import (
    documents,
    entries,
    entry_history,
    expectations,
    gate_results,
    gate_runs,
    signals,
    trajectories,
)
from pytest_golden.storage.shared_documents import IGNORED_DIGEST, INPUTS_DIGEST
from pytest_golden.storage.statements import json_member, json_member_text
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_golden.journal.rules import Rules
    from pytest_golden.storage.store import Store


_ROOTS_AT_ONCE = 50
# One write removes this many entries. Other writers wait for about a tenth of a second.
_ENTRIES_AT_ONCE = 200
_LEARNING_SECONDS = 10.0
# A pause in which others can write: a process that waits for SQLite's lock only tries it now and then.
_PAUSE_SECONDS = 0.02
# At most this many unfinished results or failures are searched for the needed one.
_MOST_READ = 50
_FAILURES = tuple(status.value for status in ResultStatus if status.is_failure)
_PASSED = gate_results.c.status == ResultStatus.PASSED.value
_REASONS = json_member(gate_results.c.result, "reasons")
_INPUTS = json_member_text(gate_results.c.result, INPUTS_DIGEST)
_IGNORED = json_member_text(gate_runs.c.facts, IGNORED_DIGEST, may_be_damaged=True)

_CHUNK = 500
_PARENT = entries.alias("parent")
_MEMBER = (entries.c.id, entries.c.number, entries.c.agent_id, entries.c.closed_at)
# An entry whose parent is not in the store is a root too.
_IS_ROOT = or_(entries.c.parent_id.is_(None), ~exists(select(_PARENT.c.id).where(_PARENT.c.id == entries.c.parent_id)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneReport(Shape):
    """What was removed, or would be; `freed_bytes` is None if the space was not to be given back to the system."""

    entries: int = 0
    trajectories: int = 0
    documents: int = 0
    freed_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneOrder:
    """A request, for all agents or for one. `is_trial` only counts.

    It keeps what was closed after a timestamp, and a number of each agent's newest closed entries. Without either, the agents'
    rules say how much to keep.
    """

    closed_after: datetime | None = None
    kept_entries: int | None = None
    agent_id: str | None = None
    is_trial: bool = False
    gives_back: bool = False


class Member(NamedTuple):
    """One entry of a tree; timestamps are in milliseconds since the epoch, and a `closed_at` of None means that it is open."""

    id: str
    number: int
    agent_id: str
    closed_at: int | None


#: An entry and all that are below it, the entry first.
Tree: TypeAlias = tuple[Member, ...]


class Limit(NamedTuple):
    """What may be pruned of one agent: entries closed up to a timestamp, and entries up to a number; None: no such limit."""

    closed_by: int | None = None
    last_number: int | None = None


def prune_store(
    store: Store, order: PruneOrder, rules: Mapping[str, Rules], now: datetime, *, progress: Callable[[int], None]
) -> PruneReport:
    """Remove what is beyond the limits, and return what was removed. `progress` receives the number of checked entries.

    Raises:
        SettingsError: nothing says how much to keep.
        StorageError: the store cannot be written; what was removed before stays removed.
    """
    with store.read() as connection:
        agents = list_agents(connection) if order.agent_id is None else (order.agent_id,)
        # All limits are computed at the same time, so what a gate adds meanwhile is newer than anything that is removed.
        limits = {
            agent_id: Limit(
                # A millisecond less: what was closed exactly then stays.
                None if closed_after is None else to_ms(closed_after) - 1,
                None if kept_entries is None else find_last_beyond(connection, agent_id, kept_entries),
            )
            for agent_id, (closed_after, kept_entries) in _choose_kept(agents, order, rules, now).items()
        }
        needed = find_needed_runs(connection)
    if not order.is_trial:
        # What a result teaches must be learned before the result is removed.
        learn_from_results(store, budget_seconds=_LEARNING_SECONDS)
    pruner = _Pruner(store, needed, progress, is_trial=order.is_trial)
    for agent_id, limit in limits.items():
        pruner.prune(agent_id, limit)
    return pruner.finish(gives_back=order.gives_back)


def _choose_kept(
    agents: tuple[str, ...], order: PruneOrder, rules: Mapping[str, Rules], now: datetime
) -> dict[str, tuple[datetime | None, int | None]]:
    ordered = (order.closed_after, order.kept_entries)
    if ordered != (None, None):
        return dict.fromkeys(agents, ordered)
    found = {}
    for agent_id in agents:
        retention = rules_of(agent_id, rules).retention
        closed_after = None if retention.days is None else now - timedelta(days=retention.days)
        if (closed_after, retention.entries) != (None, None):
            found[agent_id] = (closed_after, retention.entries)
    if not found:
        raise SettingsError(
            "say how much to keep: give --older-than 90d or --keep 10000, or agents a retention in the rules"
        )
    return found


class _Pruner:
    """One pruning, and what it has removed so far."""

    def __init__(
        self, store: Store, needed: frozenset[str], progress: Callable[[int], None], *, is_trial: bool
    ) -> None:
        self._store = store
        self._needed = needed
        self._progress = progress
        self._is_trial = is_trial
        self._entries = self._trajectories = self._looked_at = 0

    def prune(self, agent_id: str, limit: Limit) -> None:
        """Remove an agent's trees that are beyond the limit."""
        after: Member | None = None
        while limit != Limit():
            # Reading blocks nobody; the write that removes a tree checks it again.
            with self._store.read() as connection:
                roots = list_roots(connection, agent_id, after, _ROOTS_AT_ONCE)
                going = self._choose(connection, roots, limit)
            for batch in _divide(going):
                self._remove(batch, limit)
            if len(roots) < _ROOTS_AT_ONCE:
                return
            after = roots[-1]
            self._progress(self._looked_at)

    def finish(self, *, gives_back: bool) -> PruneReport:
        """Remove what nothing refers to any more, and return the report."""
        return PruneReport(
            entries=self._entries,
            trajectories=self._trajectories,
            documents=0 if self._is_trial else self._remove_documents(),
            freed_bytes=give_back(self._store) if gives_back and not self._is_trial else None,
        )

    def _choose(self, connection: Connection, roots: tuple[Member, ...], limit: Limit) -> list[Tree]:
        trees = read_trees(connection, [root.id for root in roots])
        self._looked_at += sum(map(len, trees))
        going = [tree for tree in trees if may_go(tree, limit, self._needed)]
        if self._is_trial:
            ids = [member.id for tree in going for member in tree]
            self._entries += len(ids)
            self._trajectories += count_trajectories(connection, ids)
            return []
        return going

    def _remove(self, trees: list[Tree], limit: Limit) -> None:
        with self._store.write() as connection:
            began = monotonic_seconds()
            present = read_trees(connection, [tree[0].id for tree in trees])
            going = [member.id for tree in present if may_go(tree, limit, self._needed) for member in tree]
            trajectories = delete_entries(connection, going)
        self._entries += len(going)
        self._trajectories += trajectories
        # Leave the store to others for as long as they had to wait.
        time.sleep(max(_PAUSE_SECONDS, monotonic_seconds() - began))

    def _remove_documents(self) -> int:
        with self._store.read() as connection:
            unused = find_unused_documents(connection)
        for digests in split(unused.digests, _CHUNK):
            with self._store.write() as connection:
                delete_documents(connection, unused, digests)
            time.sleep(_PAUSE_SECONDS)
        return len(unused.digests)


def _divide(trees: Iterable[Tree]) -> Iterator[list[Tree]]:
    """Divide trees into batches that one write removes: up to so many entries, or one larger tree."""
    batch: list[Tree] = []
    for tree in trees:
        if batch and sum(map(len, batch)) + len(tree) > _ENTRIES_AT_ONCE:
            yield batch
            batch = []
        batch.append(tree)
    if batch:
        yield batch


class UnusedDocuments(NamedTuple):
    """Digests of documents that nothing referred to, and the last run and result at that time."""

    digests: tuple[str, ...]
    last_run: int
    last_result: int


def find_needed_runs(connection: Connection) -> frozenset[str]:
    """Return the runs that the next one is judged by.

    These are the last run, and for each project the last result, the last one that ran to its end, the last pass and the
    first failure since. If durations are judged, they also include the passes that say how long the project takes.
    """
    last = select(gate_runs.c.entry_id).order_by(gate_runs.c.number.desc()).limit(1)
    needed = set(connection.scalars(last))
    for project in list_projects(connection):
        needed |= _find_needed_of_project(connection, project)
    return frozenset(needed)


def delete_entries(connection: Connection, ids: Sequence[str]) -> int:
    """Delete entries with everything that belongs to them; return how many trajectories were deleted."""
    removed = 0
    for part in split(ids, _CHUNK):
        connection.execute(delete(gate_results).where(gate_results.c.entry_id.in_(part)))
        connection.execute(delete(gate_results).where(gate_results.c.run_id.in_(part)))
        connection.execute(delete(gate_runs).where(gate_runs.c.entry_id.in_(part)))
        removed += connection.execute(delete(trajectories).where(trajectories.c.entry_id.in_(part))).rowcount
        for table in (expectations, signals, entry_history):
            connection.execute(delete(table).where(table.c.entry_id.in_(part)))
        connection.execute(delete(entries).where(entries.c.id.in_(part)))
    return removed


def count_trajectories(connection: Connection, ids: Sequence[str]) -> int:
    """Count the trajectories of entries."""
    counted = select(func.count()).select_from(trajectories)
    parts = split(ids, _CHUNK)
    return sum(connection.scalar(counted.where(trajectories.c.entry_id.in_(part))) or 0 for part in parts)


def find_unused_documents(connection: Connection) -> UnusedDocuments:
    """Find the documents that no run and no result refers to."""
    unused = documents.c.digest.not_in(select(gate_runs.c.environment_digest)) & documents.c.digest.not_in(
        select(gate_results.c.declaration_digest)
    )
    found = set(connection.scalars(select(documents.c.digest).where(unused)))
    for named in (_INPUTS, _IGNORED) if found else ():
        found.difference_update(connection.scalars(select(named), execution_options={"yield_per": _CHUNK}))
    last = [connection.scalar(select(func.max(table.c.number))) or 0 for table in (gate_runs, gate_results)]
    return UnusedDocuments(tuple(sorted(found)), *last)


def delete_documents(connection: Connection, unused: UnusedDocuments, digests: Iterable[str]) -> None:
    """Remove some of the unused documents, except those that a newer run or result refers to."""
    new_runs, new_results = gate_runs.c.number > unused.last_run, gate_results.c.number > unused.last_result
    named = [
        *((column, new_runs) for column in (gate_runs.c.environment_digest, _IGNORED)),
        *((column, new_results) for column in (gate_results.c.declaration_digest, _INPUTS)),
    ]
    used = {digest for column, is_new in named for digest in connection.scalars(select(column).where(is_new))}
    connection.execute(delete(documents).where(documents.c.digest.in_(set(digests) - used)))


def _find_needed_of_project(connection: Connection, project: str) -> set[str]:
    results = select(gate_results.c.run_id, gate_results.c.number, gate_results.c.status, _REASONS)
    results = results.where(gate_results.c.project == project)
    newest = results.order_by(gate_results.c.number.desc())
    last = connection.execute(newest.limit(_MOST_READ)).all()
    passed = connection.execute(newest.where(_PASSED).limit(1)).one_or_none()
    needed = [last[0].run_id, _find_whole(last)]
    if passed is not None:
        since = results.where(gate_results.c.number > passed.number).where(gate_results.c.status.in_(_FAILURES))
        failed = connection.execute(since.order_by(gate_results.c.number).limit(_MOST_READ)).all()
        needed += [passed.run_id, _find_whole(failed), *_find_timed(connection, project)]
    return {run_id for run_id in needed if run_id is not None}


def _find_timed(connection: Connection, project: str) -> Iterable[str]:
    """Find the passes that durations are judged by, if the last result's declaration asks for it."""
    of_project = gate_results.c.project == project
    declared = select(json_member(documents.c.body, "max_slowdown"))
    declared = declared.join(gate_results, gate_results.c.declaration_digest == documents.c.digest).where(of_project)
    if connection.execute(declared.order_by(gate_results.c.number.desc()).limit(1)).scalar() is None:
        return ()
    timed = select(gate_results.c.run_id).where(of_project, _PASSED)
    return connection.scalars(timed.order_by(gate_results.c.number.desc()).limit(MOST_PASSES))


def _find_whole(rows: Iterable[Any]) -> str | None:
    """Find the first run in which the project ran to its end."""
    return next(
        (row.run_id for row in rows if row.status != ResultStatus.SKIPPED and not was_interrupted(row.reasons)), None
    )


def may_go(tree: Tree, limit: Limit, kept: Collection[str]) -> bool:
    """Tell whether a tree may be pruned: all of it is beyond a limit, of one agent, closed, and not needed."""
    if len({member.agent_id for member in tree}) > 1 or any(member.id in kept for member in tree):
        return False
    closed = [member.closed_at for member in tree if member.closed_at is not None]
    if len(closed) < len(tree):
        return False
    is_old = limit.closed_by is not None and max(closed) <= limit.closed_by
    is_too_many = limit.last_number is not None and max(member.number for member in tree) <= limit.last_number
    return is_old or is_too_many


def list_roots(connection: Connection, agent_id: str, after: Member | None, limit: int) -> tuple[Member, ...]:
    """Return the next roots of an agent's closed trees, oldest first."""
    query = select(*_MEMBER).where(entries.c.agent_id == agent_id, _IS_ROOT)
    query = query.where(entries.c.closed_at.is_not(None)).order_by(entries.c.number).limit(limit)
    if after is not None:
        query = query.where(entries.c.number > after.number)
    return tuple(Member(*row) for row in connection.execute(query))


def read_trees(connection: Connection, root_ids: Sequence[str]) -> list[Tree]:
    """Return each of these entries that still exists, with its current state, and all entries below it."""
    roots = select(entries.c.id, entries.c.id.label("root_id")).where(entries.c.id.in_(root_ids))
    found = roots.cte("found", recursive=True)
    found = found.union(select(entries.c.id, found.c.root_id).join(found, entries.c.parent_id == found.c.id))
    rows = connection.execute(select(found.c.root_id, *_MEMBER).join(found, entries.c.id == found.c.id))
    trees: dict[str, list[Member]] = defaultdict(list)
    for root_id, *values in rows:
        member = Member(*values)
        trees[root_id].insert(0 if member.id == root_id else len(trees[root_id]), member)
    return list(map(tuple, trees.values()))


def find_last_beyond(connection: Connection, agent_id: str, kept: int) -> int | None:
    """Return the number of an agent's newest closed entry that is not among its `kept` newest ones."""
    closed = and_(entries.c.agent_id == agent_id, entries.c.closed_at.is_not(None))
    query = select(entries.c.number).where(closed).order_by(entries.c.number.desc()).offset(kept).limit(1)
    number: int | None = connection.scalar(query)
    return number


def list_agents(connection: Connection) -> tuple[str, ...]:
    """Return the agents that have an entry, sorted."""
    return tuple(sorted(connection.scalars(select(entries.c.agent_id).distinct())))
