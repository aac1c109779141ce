"""Gate runs and their results as rows, and back. Each function works on an open connection and decides nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, update

from pytest_golden.errors import JournalError
from pytest_golden.gate.history import FAILURES
from pytest_golden.gate.input_changes import RunInputs
from pytest_golden.gate.past import FirstFailure, InterruptedRun, PastPass, PastResult
from pytest_golden.regression.model import ReasonKind, ResultStatus
from pytest_golden.storage.documents import keep_document, read_document
from pytest_golden.storage.json_member import json_member, json_member_text
from pytest_golden.storage.moments import from_ms
from pytest_golden.storage.own_runs import is_own_run
from pytest_golden.storage.prepared import Prepared
from pytest_golden.storage.schema import expectations, gate_live, gate_results, gate_runs
from pytest_golden.storage.text import storable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Connection, Row, Select

    from pytest_golden.gate.events import ResultJudged, RunBegun
    from pytest_golden.regression.model import GoldenProjectResult

# So many interrupted ones in a row before a failure are not looked through.
_MOST_FAILURES_READ = 20
_MOST_OF_KNOWN = 32 * 1024
_LONGEST_ABSENCE_MS = 24 * 60 * 60 * 1000
#: The member of a result's JSON that names the document of its inputs.
INPUTS_DIGEST = "inputs_digest"
#: What a run's facts tell of the files that git ignored when it began, and the member that names the document of it instead.
IGNORED = "ignored"
IGNORED_DIGEST = "ignored_digest"
_INSERT_RUN = insert(gate_runs)
_INSERT_RESULT = Prepared(
    insert(gate_results), *(column.name for column in gate_results.c if column.name not in {"number", "learned_at"})
)
_LAST_STREAK = Prepared(
    select(gate_results.c.pass_streak)
    .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
    .where(gate_results.c.project == bindparam("project_name"), is_own_run())
    .order_by(gate_results.c.number.desc())
    .limit(1)
)


def insert_run(connection: Connection, begun: RunBegun) -> None:
    """Keep the facts of a run that begins."""
    checkout, facts = begun.checkout, dict(begun.facts)
    ignored = facts.pop(IGNORED, None)
    if ignored is not None:
        facts[IGNORED_DIGEST] = keep_document(connection, dict(ignored))
    connection.execute(
        _INSERT_RUN,
        {
            "entry_id": begun.run_id,
            "workspace_root": storable(begun.workspace_root),
            "manifest": storable(begun.manifest),
            "command_line": list(begun.command_line),
            "commit": checkout.get("commit"),
            "branch": storable(branch) if (branch := checkout.get("branch")) else None,
            "dirty": checkout.get("dirty"),
            "dirty_files": checkout.get("dirty_files"),
            "environment_digest": keep_document(connection, dict(begun.surroundings)),
            "host": begun.host,
            "pid": begun.pid,
            "started_at": begun.moment,
            "facts": facts,
        },
    )


def finish_run(
    connection: Connection, run_id: str, moment: int, final_status: str, more_facts: Mapping[str, Any]
) -> None:
    """Keep how a run ended; what it was doing is of no interest then."""
    facts = connection.scalar(select(gate_runs.c.facts).where(gate_runs.c.entry_id == run_id)) or {}
    connection.execute(
        update(gate_runs)
        .where(gate_runs.c.entry_id == run_id)
        .values(finished_at=moment, final_status=final_status, facts={**facts, **more_facts})
    )
    connection.execute(delete(gate_live).where(gate_live.c.run_id == run_id))


def update_edits(connection: Connection, run_id: str, dirty_files: Mapping[str, str | None]) -> None:
    """Keep what the checkout had of its own after a run that changed it."""
    of_run = gate_runs.c.entry_id == run_id
    values = {"dirty": bool(dirty_files), "dirty_files": dict(dirty_files)}
    connection.execute(update(gate_runs).where(of_run, gate_runs.c.dirty_files.is_not(None)).values(values))


def find_end(connection: Connection, run_id: str) -> str | None:
    """Give the final status with which a run's end is recorded; None without one.

    Raises:
        JournalError: it was never begun in this store.
    """
    of_run = select(gate_runs.c.finished_at, gate_runs.c.final_status).where(gate_runs.c.entry_id == run_id)
    row = connection.execute(of_run).one_or_none()
    if row is None:
        raise JournalError(f"the gate run {run_id} was never begun in this store")
    return None if row.finished_at is None else str(row.final_status)


def insert_result(connection: Connection, judged: ResultJudged) -> int:
    """Keep a result, and give how many passes in a row there are up to it; a failure ends them."""
    result = judged.result
    streak = _count_streak(connection, result)
    # The steps are in the trajectory.
    plain = {key: value for key, value in result.to_dict().items() if key not in {"steps", "trajectory"}}
    if judged.inputs:
        plain[INPUTS_DIGEST] = keep_document(connection, dict(judged.inputs))
    _INSERT_RESULT.run(
        connection,
        {
            "entry_id": judged.entry_id,
            "run_id": judged.run_id,
            "project": result.name,
            "status": result.status.value,
            "exit_code": result.exit_code,
            "execution_time_seconds": result.execution_time_seconds,
            "attempts": result.attempts,
            "is_flaky": result.is_flaky,
            "is_regression": result.is_regression,
            "regression_kind": result.regression_kind,
            "pass_streak": streak,
            "declaration_digest": keep_document(connection, dict(judged.declaration)),
            "trajectory_id": result.trajectory_id,
            "created_at": judged.moment,
            "result": plain,
        },
    )
    return streak


def list_entries(connection: Connection, run_id: str) -> tuple[str, ...]:
    """Give the entries of a run's results."""
    return tuple(connection.scalars(select(gate_results.c.entry_id).where(gate_results.c.run_id == run_id)))


def update_known(connection: Connection, entry_id: str, known: Iterable[Mapping[str, Any]]) -> None:
    """Keep with a result what was known of its failure, what is for people alone where all of it would be long."""
    told = [dict(one) for one in known]
    if len(json.dumps(told)) > _MOST_OF_KNOWN:
        told = [{key: one[key] for key in ("kind", "lines") if key in one} for one in told]
    of_entry = gate_results.c.entry_id == entry_id
    plain = connection.scalar(select(gate_results.c.result).where(of_entry))
    if plain is not None and len(json.dumps(told)) <= _MOST_OF_KNOWN:
        connection.execute(update(gate_results).where(of_entry).values(result={**plain, "known": told}))


def _count_streak(connection: Connection, result: GoldenProjectResult) -> int:
    is_interrupted = _was_interrupted(reason.kind for reason in result.reasons)
    if result.status in FAILURES and not is_interrupted:
        return 0
    last = _LAST_STREAK.first(connection, {"project_name": result.name})
    before = 0 if last is None else int(last.pass_streak)
    return before + 1 if result.status is ResultStatus.PASSED else before


def list_interrupted(
    connection: Connection, *, run_id: str, workspace_root: str, host: str, moment: int, is_own_store: bool
) -> tuple[InterruptedRun, ...]:
    """Give the runs that can no longer be running although they have no end, oldest first.

    The caller holds its workspace's gate lock: no other run of this workspace lives. In a store of this workspace alone
    that is every other run; in a shared one those of the same machine and folder, and any that began a day ago.
    """
    unfinished = and_(gate_runs.c.finished_at.is_(None), gate_runs.c.entry_id != run_id)
    if not is_own_store:
        here = and_(gate_runs.c.workspace_root == storable(workspace_root), gate_runs.c.host == host)
        unfinished = and_(unfinished, or_(here, gate_runs.c.started_at < moment - _LONGEST_ABSENCE_MS))
    rows = connection.execute(
        select(gate_runs.c.entry_id, gate_runs.c.started_at).where(unfinished).order_by(gate_runs.c.number)
    ).all()
    return tuple(
        InterruptedRun(
            row.entry_id,
            from_ms(row.started_at),
            recorded_count=_count(connection, gate_results.c.run_id, row.entry_id),
            expected_count=_count(connection, expectations.c.entry_id, row.entry_id),
        )
        for row in rows
    )


def list_projects(connection: Connection, *, after: str | None = None, limit: int | None = None) -> tuple[str, ...]:
    """Give the names of all projects with a result, sorted; with `after`, of those behind this name."""
    # The index holds the names in order: each look skips to the next one, however many results a project has.
    first = select(func.min(gate_results.c.project).label("name"))
    names = (first if after is None else first.where(gate_results.c.project > after)).cte("names", recursive=True)
    later = select(func.min(gate_results.c.project)).where(gate_results.c.project > names.c.name).scalar_subquery()
    names = names.union_all(select(later).where(names.c.name.is_not(None)))
    found = connection.scalars(select(names.c.name).where(names.c.name.is_not(None)).limit(limit))
    return tuple(sorted(found))


def list_results(connection: Connection, project: str, limit: int) -> tuple[PastResult, ...]:
    """Give a project's last results in people's own runs, newest first."""
    query = _past_results(_ACCEPTED).where(gate_results.c.project == project, is_own_run())
    rows = connection.execute(query.limit(limit))
    return tuple(_past_result(row, is_accepted=row.accepted is not None) for row in rows)


def find_last_pass(connection: Connection, project: str) -> PastPass | None:
    """Give a project's last pass and what it ran in, or None: one of people's own runs, where there is one."""
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
        .where(gate_results.c.status.in_([status.value for status in FAILURES]), is_own_run())
        .order_by(gate_results.c.number)
        .limit(_MOST_FAILURES_READ)
    )
    failed = next((row for row in rows if not _was_interrupted(_list_kinds(row.reasons))), None)
    return None if failed is None else FirstFailure(failed.commit, failed.branch, failed.dirty, failed.dirty_files)


_REASONS = json_member(gate_results.c.result, "reasons")
_ACCEPTED = json_member(gate_results.c.result, "accepted")
OF_INPUTS = (json_member_text(gate_results.c.result, INPUTS_DIGEST), json_member(gate_results.c.result, "write_set"))


def _past_results(*more: Any) -> Select[Any]:
    columns = [gate_results.c[name] for name in _RESULT_COLUMNS]
    message = json_member_text(gate_results.c.result, "error_message").label("message")
    return (
        select(*columns, message, _REASONS, gate_runs.c.commit, gate_runs.c.branch, gate_runs.c.dirty, *more)
        .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
        .order_by(gate_results.c.number.desc())
    )


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


def _past_result(row: Row[Any], *, is_accepted: bool = False) -> PastResult:
    fields = {name: getattr(row, name) for name in (*_RESULT_COLUMNS, "commit", "branch", "dirty", "message")}
    fields |= {"status": ResultStatus(row.status), "created_at": from_ms(row.created_at)}
    is_interrupted = _was_interrupted(_list_kinds(row.reasons))
    return PastResult(**fields, is_interrupted=is_interrupted, is_accepted=is_accepted)


def _list_kinds(reasons: Any) -> Iterable[Any]:
    """Give the kinds of a result's reasons, of those at least that are what the gate writes."""
    return [reason.get("kind") for reason in reasons or () if isinstance(reason, dict)]


def _was_interrupted(kinds: Iterable[Any]) -> bool:
    return ReasonKind.INTERRUPTED in kinds


def _count(connection: Connection, column: Any, value: str) -> int:
    return connection.scalar(select(func.count()).where(column == value)) or 0
