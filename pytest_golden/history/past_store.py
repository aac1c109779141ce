"""Read earlier gate runs and results from their rows. Each function works on an open connection and decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, func, select

from pytest_golden.history.changes import FirstFailure, PastPass, PastResult
from pytest_golden.history.inputs import RunInputs
from pytest_golden.regression.model import ReasonKind, ResultStatus
from pytest_golden.storage.columns import from_ms
from pytest_golden.storage.schema import expectations, gate_results, gate_runs
from pytest_golden.storage.shared_documents import is_own_run, read_document
from pytest_golden.storage.statements import json_member, json_member_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection, Row, Select

# So many interrupted ones in a row before a failure are not looked through.
_MOST_FAILURES_READ = 20
#: The member of a result's JSON that names the document of its inputs.
INPUTS_DIGEST = "inputs_digest"
#: What a run's facts tell of the files that git ignored when it began, and the member that names the document of it instead.
IGNORED = "ignored"
IGNORED_DIGEST = "ignored_digest"
_REASONS = json_member(gate_results.c.result, "reasons")
_ACCEPTED = json_member(gate_results.c.result, "accepted")
OF_INPUTS = (json_member_text(gate_results.c.result, INPUTS_DIGEST), json_member(gate_results.c.result, "write_set"))
_RESULT_COLUMNS = (
    "entry_id",
    "run_id",
    "project",
    "status",
    "exit_code",
    "execution_time_seconds",
    "attempts",
    "is_flaky",
    "is_regression",
    "pass_streak",
    "created_at",
    "trajectory_id",
)


def list_expected(connection: Connection, run_id: str) -> tuple[str, ...]:
    """List the projects that a run was meant to run, in declaration order."""
    of_run = expectations.c.entry_id == run_id
    hints = connection.scalars(select(expectations.c.match_hint).where(of_run).order_by(expectations.c.number))
    names = ((hint or {}).get("project") for hint in hints)
    return tuple(name for name in names if isinstance(name, str))


def list_projects(connection: Connection, *, after: str | None = None, limit: int | None = None) -> tuple[str, ...]:
    """Return the names of all projects with a result, sorted; with `after`, of those behind this name."""
    # The index holds the names in order: each look skips to the next one, however many results a project has.
    first = select(func.min(gate_results.c.project).label("name"))
    names = (first if after is None else first.where(gate_results.c.project > after)).cte("names", recursive=True)
    later = select(func.min(gate_results.c.project)).where(gate_results.c.project > names.c.name).scalar_subquery()
    names = names.union_all(select(later).where(names.c.name.is_not(None)))
    found = connection.scalars(select(names.c.name).where(names.c.name.is_not(None)).limit(limit))
    return tuple(sorted(found))


def list_results(connection: Connection, project: str, limit: int) -> tuple[PastResult, ...]:
    """Return a project's last results in people's own runs, newest first."""
    query = _past_results(_ACCEPTED).where(gate_results.c.project == project, is_own_run())
    rows = connection.execute(query.limit(limit))
    return tuple(_past_result(row, is_accepted=row.accepted is not None) for row in rows)


def find_last_pass(connection: Connection, project: str) -> PastPass | None:
    """Return a project's last pass and what it ran in, or None: one of people's own runs, where there is one."""
    about_run = (gate_runs.c.dirty_files, gate_runs.c.environment_digest)
    query = _past_results(gate_results.c.number, gate_results.c.declaration_digest, *OF_INPUTS, *about_run)
    passed = and_(gate_results.c.project == project, gate_results.c.status == ResultStatus.PASSED.value)
    own, any_pass = query.where(passed, is_own_run()).limit(1), query.where(passed).limit(1)
    row = connection.execute(own).one_or_none() or connection.execute(any_pass).one_or_none()
    if row is None:
        return None
    return PastPass(
        _past_result(row),
        row.dirty_files,
        declaration=read_document(connection, row.declaration_digest) or {},
        surroundings=read_document(connection, row.environment_digest) or {},
        first_failure=_find_first_failure(connection, project, row.number),
        inputs=read_inputs(connection, row),
    )


def read_inputs(connection: Connection, row: Row[Any]) -> RunInputs:
    """Read the inputs of a result from a row with the columns `OF_INPUTS`."""
    digest = row.inputs_digest
    return RunInputs.read(None if digest is None else read_document(connection, digest), row.write_set)


def _find_first_failure(connection: Connection, project: str, after: int) -> FirstFailure | None:
    rows = connection.execute(
        select(_REASONS, gate_runs.c.commit, gate_runs.c.branch, gate_runs.c.dirty, gate_runs.c.dirty_files)
        .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
        .where(gate_results.c.project == project, gate_results.c.number > after)
        .where(gate_results.c.status.in_([status.value for status in ResultStatus if status.is_failure]), is_own_run())
        .order_by(gate_results.c.number)
        .limit(_MOST_FAILURES_READ)
    )
    failed = next((row for row in rows if not _was_interrupted(_list_kinds(row.reasons))), None)
    return None if failed is None else FirstFailure(failed.commit, failed.branch, failed.dirty, failed.dirty_files)


def _past_results(*more: Any) -> Select[Any]:
    columns = [gate_results.c[name] for name in _RESULT_COLUMNS]
    message = json_member_text(gate_results.c.result, "error_message").label("message")
    return (
        select(*columns, message, _REASONS, gate_runs.c.commit, gate_runs.c.branch, gate_runs.c.dirty, *more)
        .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
        .order_by(gate_results.c.number.desc())
    )


def _past_result(row: Row[Any], *, is_accepted: bool = False) -> PastResult:
    fields = {name: getattr(row, name) for name in (*_RESULT_COLUMNS, "commit", "branch", "dirty", "message")}
    fields |= {"status": ResultStatus(row.status), "created_at": from_ms(row.created_at)}
    is_interrupted = _was_interrupted(_list_kinds(row.reasons))
    return PastResult(**fields, is_interrupted=is_interrupted, is_accepted=is_accepted)


def _list_kinds(reasons: Any) -> Iterable[Any]:
    """Return the kinds of a result's reasons, of those at least that are what the gate writes."""
    return [reason.get("kind") for reason in reasons or () if isinstance(reason, dict)]


def _was_interrupted(kinds: Iterable[Any]) -> bool:
    return ReasonKind.INTERRUPTED in kinds
