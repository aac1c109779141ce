"""Recorded gate runs and results, read from their rows: lists in pages, single ones, and the newest of many projects.

Each function works on an open connection and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, func, literal_column, or_, select

from pytest_golden.clock import iso_utc
from pytest_golden.history import past_store
from pytest_golden.history.changes import PastResult, read_verdict
from pytest_golden.history.recorded_model import (
    ListedResult,
    ListedRun,
    PastDifference,
    ProjectHistory,
    ProjectTrend,
    RecordedResult,
    read_differences,
)
from pytest_golden.history.run_environment import ENVIRONMENT, MANIFEST_DIGEST, SHARD, VERDICT
from pytest_golden.history.trends import ENOUGH
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus, was_interrupted
from pytest_golden.regression.verdict import RegressionCheckResult, RunStatus, RunVerdict, Weakening, judge_run
from pytest_golden.storage.columns import from_ms
from pytest_golden.storage.schema import entries, gate_results, gate_runs
from pytest_golden.storage.shared_documents import is_own_place, is_own_run, read_document
from pytest_golden.storage.statements import json_member, json_member_text
from pytest_golden.trajectory.store import find_dict_form
from pytest_golden.values.checking import DAMAGE, as_mapping

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy import Connection, Row, Select

    from pytest_golden.manifest.model import GoldenProjectConfig

_LEAST_OF_ID = 10
_SURROUNDINGS = ("python", "implementation", "platform", "golden")
# The fields that a listed run and its row share.
_ALIKE = ("entry_id", "commit", "branch", "dirty", "manifest", "host")
_LISTED_RUN = (*_ALIKE, "number", "started_at", "finished_at", "final_status", "workspace_root")
_EXPECTED = (entries.c.open_count, entries.c.met_count, entries.c.unmet_count, entries.c.expired_count)
_LISTED_RESULT = (
    *("number", "entry_id", "project", "status", "is_regression", "exit_code", "execution_time_seconds", "attempts"),
    *("is_flaky", "regression_kind", "pass_streak", "created_at"),
)
_MESSAGE = json_member_text(gate_results.c.result, "error_message")
_QUARANTINED = json_member_text(gate_results.c.result, "quarantined")
_FACTS = (json_member(gate_runs.c.facts, VERDICT), json_member(gate_runs.c.facts, "require"))
# Results without a difference failed for other reasons, such as an exit code; this many are looked through.
_MOST_LOOKED_AT = 50
# Written out, so that the index of those that did not pass is known to hold them.
_NOT_PASSED = gate_results.c.status != literal_column("'PASSED'")
_REASONS = json_member(gate_results.c.result, "reasons")
_ENVIRONMENT = json_member(gate_runs.c.facts, ENVIRONMENT)
_RUN_OF_RESULT = (gate_runs.c.workspace_root, gate_runs.c.environment_digest, _ENVIRONMENT)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A gate run: `gate` are the facts of its report. Without `finished_at` it is still running, or was killed.

    `entry_ids` are those of the results, in their order. Runs of equal `manifest_digest` had the same manifest.
    """

    check: RegressionCheckResult
    verdict: RunVerdict
    gate: Mapping[str, Any]
    weakened_floor: tuple[Weakening, ...]
    entry_ids: tuple[str, ...] = ()
    manifest_digest: str | None = None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts and the weakened floor of a gate run, without its results."""

    gate: Mapping[str, Any]
    weakened_floor: tuple[Weakening, ...]


def read_run(connection: Connection, entry: str | None = None, *, has_steps: bool = True) -> RecordedRun | None:
    """Read the run with this entry, or with a result of this entry; without an entry, the last run of people.

    The beginning of an entry's id is enough if it names one run. None: there is no such run. `has_steps` tells whether the results
    have their steps and trajectories, which are long.
    """
    row = _find_run(connection, entry)
    if row is None:
        return None
    found = _read_results(connection, row.entry_id, has_steps=has_steps)
    facts = _read_facts(connection, row)
    skips_fail = facts.gate["require"]
    verdict = read_verdict(row.final_status, row.facts)
    verdict = verdict or judge_run(found.values(), skips_fail=skips_fail, is_running=True)
    check = RegressionCheckResult(tuple(found.values()))
    digest = as_mapping(row.facts).get(MANIFEST_DIGEST)
    return RecordedRun(check, verdict, facts.gate, facts.weakened_floor, tuple(found), digest)


def read_run_facts(connection: Connection, run_id: str) -> RunFacts | None:
    """Read the facts of the run with exactly this entry, without its results; None: there is no such run."""
    row = connection.execute(select(gate_runs).where(gate_runs.c.entry_id == run_id)).one_or_none()
    return None if row is None else _read_facts(connection, row)


def read_result(connection: Connection, row: Row[Any], *, has_steps: bool = True) -> GoldenProjectResult:
    """Return a result from its row, with the steps of its trajectory if they are there and readable."""
    told = {"name": row.project, "path": "", "status": row.status, **as_mapping(row.result)}
    result = GoldenProjectResult.from_dict(told)
    if not has_steps or row.trajectory_id is None:
        return result
    try:
        about = find_dict_form(connection, row.trajectory_id)
    except DAMAGE as error:
        return replace(result, warnings=(*result.warnings, f"its steps cannot be read: {error}"))
    if about is None:
        return result
    return replace(result, steps=tuple(about.pop("steps")), trajectory=about)


def _read_facts(connection: Connection, row: Row[Any]) -> RunFacts:
    facts = row.facts or {}
    weakened = tuple(map(Weakening.from_dict, facts.get("weakened_floor") or ()))
    return RunFacts(_describe_gate(connection, row, facts), weakened)


def _find_run(connection: Connection, entry: str | None) -> Row[Any] | None:
    query = select(gate_runs)
    if entry is None:
        own_last = query.where(is_own_run()).order_by(gate_runs.c.number.desc()).limit(1)
        return connection.execute(own_last).one_or_none()
    if not (entry.isascii() and entry.isprintable()):
        # No id looks like that, and a database may not even accept it as text.
        return None
    own = select(gate_results.c.run_id).where(gate_results.c.entry_id == entry)
    found = connection.execute(query.where(or_(gate_runs.c.entry_id == entry, gate_runs.c.entry_id.in_(own)))).first()
    if found is not None or len(entry) < _LEAST_OF_ID:
        return found
    begins = gate_runs.c.entry_id.startswith(entry, autoescape=True)
    rows = connection.execute(query.where(begins).limit(2)).all()
    return rows[0] if len(rows) == 1 else None


def _describe_gate(connection: Connection, row: Row[Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    surroundings = read_document(connection, row.environment_digest) or {}
    environment = {name: surroundings[name] for name in _SURROUNDINGS if surroundings.get(name)}
    return {
        "entry_id": row.entry_id,
        "commit": row.commit,
        "branch": row.branch,
        "dirty": row.dirty,
        "manifest": row.manifest,
        "mode": facts.get("mode", ""),
        "require": facts.get("require") is True,
        "command_line": row.command_line,
        "environment": {**environment, "host": row.host},
        "started_at": iso_utc(from_ms(row.started_at)),
        "finished_at": None if row.finished_at is None else iso_utc(from_ms(row.finished_at)),
        "interrupted": row.final_status == RunStatus.INTERRUPTED,
        "shard": facts.get(SHARD),
        "deselected": facts.get("deselected") or [],
        "not_run": facts.get("not_run") or [],
        "floor_base": facts.get("floor_base"),
        "floor_accepted": facts.get("floor_accepted") is True,
    }


def _read_results(connection: Connection, run_id: str, *, has_steps: bool) -> dict[str, GoldenProjectResult]:
    """Return the results by their entries, in the order of their expectations, which is that of their declaration."""
    order = {name: place for place, name in enumerate(past_store.list_expected(connection, run_id))}
    columns = (gate_results.c[name] for name in ("entry_id", "project", "status", "result", "trajectory_id"))
    query = select(*columns).where(gate_results.c.run_id == run_id).order_by(gate_results.c.number)
    rows = sorted(connection.execute(query).all(), key=lambda row: order.get(row.project, len(order)))
    return {row.entry_id: read_result(connection, row, has_steps=has_steps) for row in rows}


def list_runs(
    connection: Connection, *, before: int | None, limit: int, own_only: bool
) -> tuple[tuple[int, ListedRun], ...]:
    """Return the newest runs with their numbers, newest first; with `before`, those that were recorded before this number."""
    query = _select_runs().order_by(gate_runs.c.number.desc()).limit(limit)
    if before is not None:
        query = query.where(gate_runs.c.number < before)
    if own_only:
        query = query.where(is_own_run())
    rows = connection.execute(query).all()
    so_far = _judge_so_far(connection, [row for row in rows if row.final_status is None])
    return tuple((row.number, _read_listed_run(row, so_far)) for row in rows)


def find_listed_run(connection: Connection, run_id: str) -> ListedRun | None:
    """Return the run with exactly this entry; None: there is no such run."""
    row = connection.execute(_select_runs().where(gate_runs.c.entry_id == run_id)).one_or_none()
    return None if row is None else _read_listed_run(row, _judge_so_far(connection, [row]))


def list_results_of(
    connection: Connection, run_id: str, *, after: tuple[bool, int] | None, limit: int
) -> tuple[tuple[int, ListedResult], ...]:
    """Return a run's results with their numbers, those that fail the gate first, then in the order of recording.

    `after` tells whether the last result of the page before fails, and its number.
    """
    number, fails = gate_results.c.number, gate_results.c.is_regression
    wanted = [gate_results.c.run_id == run_id]
    if after is not None:
        later = and_(fails.is_(after[0]), number > after[1])
        wanted.append(or_(later, fails.is_(False)) if after[0] else later)
    # First choose the numbers, then read the rows: sorting long rows is slow.
    chosen = select(number).where(*wanted).order_by(fails.desc(), number).limit(limit).subquery("chosen")
    columns = (*(gate_results.c[name] for name in _LISTED_RESULT), _MESSAGE, _QUARANTINED)
    query = select(*columns).join(chosen, chosen.c.number == number).order_by(fails.desc(), number)
    return tuple((row.number, _read_listed_result(row)) for row in connection.execute(query))


def _select_runs() -> Any:
    columns = (*(gate_runs.c[name] for name in _LISTED_RUN), *_FACTS, *_EXPECTED)
    return select(*columns).join(entries, entries.c.id == gate_runs.c.entry_id)


def _judge_so_far(connection: Connection, runs: Sequence[Row[Any]]) -> dict[str, RunVerdict]:
    """Judge unfinished runs by their results so far. Equal results are counted by the database."""
    kinds = (gate_results.c.run_id, gate_results.c.status, gate_results.c.is_regression, gate_results.c.is_flaky)
    is_of_them = gate_results.c.run_id.in_([run.entry_id for run in runs])
    query = select(*kinds, func.count().label("amount")).where(is_of_them).group_by(*kinds)
    results: dict[str, list[GoldenProjectResult]] = {}
    for row in connection.execute(query):
        results.setdefault(row.run_id, []).extend([_make_equivalent(row)] * row.amount)
    skips_fail = {run.entry_id: bool(run.require) for run in runs}
    return {
        run_id: judge_run(found, skips_fail=skips_fail[run_id], is_running=True) for run_id, found in results.items()
    }


def _make_equivalent(row: Row[Any]) -> GoldenProjectResult:
    """Return a result that counts like those of a row. A failed result that is not a regression is quarantined."""
    status = ResultStatus(row.status)
    is_skip = status is ResultStatus.SKIPPED
    reasons = (Reason(ReasonKind.NEED_NOT_PASSED, ""),) if is_skip and row.is_regression else ()
    is_held = not row.is_regression and status.is_failure
    quarantined = "" if is_held else None
    return GoldenProjectResult("", "", status, reasons=reasons, is_flaky=row.is_flaky, quarantined=quarantined)


def _read_listed_run(row: Row[Any], so_far: Mapping[str, RunVerdict]) -> ListedRun:
    verdict = read_verdict(row.final_status, {VERDICT: row.verdict})
    verdict = verdict or so_far.get(row.entry_id) or judge_run((), is_running=True)
    return ListedRun(
        **{name: getattr(row, name) for name in _ALIKE},
        started_at=from_ms(row.started_at),
        finished_at=None if row.finished_at is None else from_ms(row.finished_at),
        verdict=verdict,
        selected_count=max(row.open_count + row.met_count + row.unmet_count + row.expired_count, verdict.total),
        is_own=is_own_place(row.workspace_root),
    )


def _read_listed_result(row: Row[Any]) -> ListedResult:
    fields = {name: getattr(row, name) for name in _LISTED_RESULT if name not in {"project", "created_at"}}
    fields |= {"name": row.project, "status": ResultStatus(row.status), "created_at": from_ms(row.created_at)}
    return ListedResult(**fields, message=row.error_message, quarantined=row.quarantined)


def find_result(connection: Connection, entry_id: str) -> RecordedResult | None:
    """Return the result of this entry, without looking for its log; None: there is no such result."""
    row = connection.execute(
        select(gate_results, *_RUN_OF_RESULT)
        .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
        .where(gate_results.c.entry_id == entry_id)
    ).one_or_none()
    run = None if row is None else read_run_facts(connection, row.run_id)
    if row is None or run is None:
        return None
    surroundings = read_document(connection, row.environment_digest) or {}
    return RecordedResult(
        entry_id=row.entry_id,
        run_id=row.run_id,
        created_at=from_ms(row.created_at),
        pass_streak=row.pass_streak,
        is_own=is_own_place(row.workspace_root),
        result=read_result(connection, row),
        gate=run.gate,
        environment={**as_mapping(row.environment), **as_mapping(run.gate.get("environment"))},
        distributions=as_mapping(surroundings.get("distributions")),
        declaration=read_document(connection, row.declaration_digest) or {},
        previous_entry_id=_find_neighbour(connection, row, is_next=False),
        next_entry_id=_find_neighbour(connection, row, is_next=True),
    )


def find_last_entry(connection: Connection, project: str) -> str | None:
    """Return the entry of a project's last result in people's own runs; None if there is none."""
    query = _select_own_results(gate_results.c.entry_id).where(gate_results.c.project == project)
    entry_id: str | None = connection.scalar(query.order_by(gate_results.c.number.desc()).limit(1))
    return entry_id


def find_last_difference(connection: Connection, project: str) -> PastDifference | None:
    """Return the last result of a project whose outputs differed, with the differences; None if none is known."""
    query = _select_own_results(*(gate_results.c[name] for name in ("entry_id", "run_id", "created_at")), _REASONS)
    query = query.where(gate_results.c.project == project, _NOT_PASSED)
    for row in connection.execute(query.order_by(gate_results.c.number.desc()).limit(_MOST_LOOKED_AT)):
        reasons = [Reason.from_dict(one) for one in row.reasons or () if isinstance(one, dict) and "kind" in one]
        differences = tuple(read_differences(reasons))
        if differences:
            return PastDifference(row.entry_id, row.run_id, from_ms(row.created_at), differences)
    return None


def _find_neighbour(connection: Connection, row: Row[Any], *, is_next: bool) -> str | None:
    number = gate_results.c.number
    beyond, order = (number > row.number, number) if is_next else (number < row.number, number.desc())
    query = _select_own_results(gate_results.c.entry_id).where(gate_results.c.project == row.project, beyond)
    entry_id: str | None = connection.scalar(query.order_by(order).limit(1))
    return entry_id


def _select_own_results(*columns: Any) -> Select[Any]:
    return select(*columns).join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id).where(is_own_run())


def list_recent_results(
    connection: Connection, projects: Collection[str], limit: int
) -> dict[str, tuple[PastResult, ...]]:
    """Return the last results of many projects in people's own runs, by project, newest first, without messages.

    `is_accepted` is read only if results on one commit differ, since it matters only then.
    """
    found: dict[str, list[Row[Any]]] = {}
    for names in past_store.split(sorted(projects)):
        asked = past_store.name_projects(names)
        query = past_store.select_results().join(
            asked, gate_results.c.number.in_(past_store.select_newest(asked, limit))
        )
        for row in connection.execute(query).all():
            found.setdefault(row.project, []).append(row)
    # Reading the JSON of a result costs more than all the rest.
    mixed = [row.number for rows in found.values() if _differ_on_a_commit(rows) for row in rows]
    failed = [row.number for rows in found.values() for row in rows if row.status == ResultStatus.ERROR.value]
    interrupted, accepted = _find_interrupted(connection, failed), past_store.find_accepted(connection, mixed)
    return {
        name: tuple(
            past_store.read_past_result(row, None, row.number in interrupted, is_accepted=row.number in accepted)
            for row in rows
        )
        for name, rows in found.items()
    }


def _differ_on_a_commit(rows: Sequence[Row[Any]]) -> bool:
    """Tell whether results on one commit differ: only then does it matter what a person accepted in between."""
    known: dict[str, str] = {}
    clean = [(row.commit, row.status) for row in rows if row.commit is not None and row.dirty is False]
    return any(known.setdefault(commit, status) != status for commit, status in clean)


def _find_interrupted(connection: Connection, numbers: Sequence[int]) -> frozenset[int]:
    rows = past_store.select_by(connection, gate_results.c.number, numbers, _REASONS)
    return frozenset(row.number for row in rows if was_interrupted(row.reasons))


def read_history(connection: Connection, name: str, limit: int) -> ProjectHistory:
    """Read the last `limit` results in people's own runs, without the trend; there may be none."""
    recent = past_store.list_results(connection, name, max(limit, ENOUGH))
    return ProjectHistory(name, recent[:limit], recent)


def read_trend(connection: Connection, name: str, project: GoldenProjectConfig | None) -> ProjectTrend:
    """Read the trend in the environment of the project's last pass. `project` is its declaration, None if it is gone."""
    factor = None if project is None else project.max_slowdown
    facts = past_store.find_last_environment(connection, name)
    if facts is None:
        return ProjectTrend(None, factor)
    trends = past_store.read_trends(connection, {name: None if project is None else project.venv}, facts)
    return ProjectTrend(trends.get(name), factor)
