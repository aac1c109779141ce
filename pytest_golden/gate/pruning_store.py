"""What the gate needs of its past, and the removal of the rest. Each function works on an open connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import delete, func, select

from pytest_golden.gate.merging_store import was_interrupted
from pytest_golden.history.past_store import IGNORED_DIGEST, INPUTS_DIGEST, list_projects
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.slowdown import MOST_PASSES
from pytest_golden.storage.schema import documents, gate_results, gate_runs, trajectories
from pytest_golden.storage.statements import json_member, json_member_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

_CHUNK = 500
# So many results that did not run to their end, or failures, are looked through for the one that is needed.
_MOST_READ = 50
_FAILURES = tuple(status.value for status in ResultStatus if status.is_failure)
_PASSED = gate_results.c.status == ResultStatus.PASSED.value
_REASONS = json_member(gate_results.c.result, "reasons")
_INPUTS = json_member_text(gate_results.c.result, INPUTS_DIGEST)
_IGNORED = json_member_text(gate_runs.c.facts, IGNORED_DIGEST, may_be_damaged=True)


class UnusedDocuments(NamedTuple):
    """Digests of documents that nothing referred to, and the last run and the last result that were there then."""

    digests: tuple[str, ...]
    last_run: int
    last_result: int


def find_needed_runs(connection: Connection) -> frozenset[str]:
    """Return the runs that the next one is judged by.

    They are the last of all, and of each project the last result, the last that ran to its end, the last pass and the
    first failure since; where durations are judged, the passes that tell how long it takes.
    """
    last = select(gate_runs.c.entry_id).order_by(gate_runs.c.number.desc()).limit(1)
    needed = set(connection.scalars(last))
    for project in list_projects(connection):
        needed |= _find_needed_of_project(connection, project)
    return frozenset(needed)


def delete_gate_rows(connection: Connection, ids: Sequence[str]) -> int:
    """Remove what the gate and its trajectories keep of entries; return how many trajectories were removed."""
    removed = 0
    for start in range(0, len(ids), _CHUNK):
        part = ids[start : start + _CHUNK]
        connection.execute(delete(gate_results).where(gate_results.c.entry_id.in_(part)))
        connection.execute(delete(gate_results).where(gate_results.c.run_id.in_(part)))
        connection.execute(delete(gate_runs).where(gate_runs.c.entry_id.in_(part)))
        removed += connection.execute(delete(trajectories).where(trajectories.c.entry_id.in_(part))).rowcount
    return removed


def count_trajectories(connection: Connection, ids: Sequence[str]) -> int:
    """Count the trajectories of entries."""
    count = 0
    for start in range(0, len(ids), _CHUNK):
        of_entries = trajectories.c.entry_id.in_(ids[start : start + _CHUNK])
        count += connection.scalar(select(func.count()).select_from(trajectories).where(of_entries)) or 0
    return count


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
    """Remove some of the unused documents, but those that a run or a result refers to which came since."""
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
    """Find the passes that durations are judged by, where the last result's declaration asks for that."""
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
