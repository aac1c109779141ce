"""Read earlier gate runs and results from their rows: results, last passes, durations, and what each project last ran on.

Each function works on an open connection and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Text, and_, func, literal, select, union_all

from pytest_golden.errors import GoldenError
from pytest_golden.history.changes import PastPass, PastResult
from pytest_golden.history.checkout import Checkout
from pytest_golden.history.inputs import IgnoredThen, RunInputs
from pytest_golden.history.run_environment import ACCEPTS, ENVIRONMENT, describe_environment, describe_run_environment
from pytest_golden.regression.model import ResultStatus, was_interrupted
from pytest_golden.regression.slowdown import MOST_PASSES, SlowdownJudge, describe_durations
from pytest_golden.storage.columns import from_ms
from pytest_golden.storage.schema import documents, expectations, gate_results, gate_runs, trajectories
from pytest_golden.storage.shared_documents import IGNORED_DIGEST, INPUTS_DIGEST, is_own_run, read_document
from pytest_golden.storage.statements import json_member, json_member_text
from pytest_golden.values.checking import as_mapping

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Column, ColumnElement, Connection, Row, Select, Subquery

    from pytest_golden.gateway.model import GatewayAbilities
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.slowdown import DurationTrend
    from pytest_golden.storage.store import Store

# So many interrupted ones in a row before a failure are not looked through.
_MOST_FAILURES_READ = 20
_MESSAGE = json_member_text(gate_results.c.result, "error_message").label("message")
_REASONS = json_member(gate_results.c.result, "reasons")
_ACCEPTED = json_member(gate_results.c.result, "accepted")
OF_INPUTS = (json_member_text(gate_results.c.result, INPUTS_DIGEST), json_member(gate_results.c.result, "write_set"))
_RESULT_COLUMNS = (
    *("entry_id", "run_id", "project", "status", "exit_code", "execution_time_seconds", "attempts"),
    *("is_flaky", "is_regression", "is_narrowed", "pass_streak", "created_at", "trajectory_id"),
)
T = TypeVar("T")
# In a shared store, passes in other environments stand between.
_MOST_LOOKED_AT = 60
# SQLite takes no more than 500 parts of one union.
_MOST_ASKED = 250
#: The results of a project in the subquery of `select_newest`.
EARLIER = gate_results.alias("earlier")


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
    query = select_results(_MESSAGE, _REASONS, _ACCEPTED).where(gate_results.c.project == project, is_own_run())
    rows = connection.execute(query.limit(limit))
    return tuple(
        read_past_result(row, row.message, was_interrupted(row.reasons), is_accepted=row.accepted is not None)
        for row in rows
    )


def find_last_pass(connection: Connection, project: str) -> PastPass | None:
    """Return a project's last pass and what it ran in, or None: one of people's own runs, where there is one."""
    about_run = (gate_runs.c.dirty_files, gate_runs.c.environment_digest)
    query = select_results(_MESSAGE, _REASONS, gate_results.c.declaration_digest, *OF_INPUTS, *about_run)
    passed = and_(gate_results.c.project == project, gate_results.c.status == ResultStatus.PASSED.value)
    own, any_pass = query.where(passed, is_own_run()).limit(1), query.where(passed).limit(1)
    row = connection.execute(own).one_or_none() or connection.execute(any_pass).one_or_none()
    if row is None:
        return None
    return PastPass(
        read_past_result(row, row.message, was_interrupted(row.reasons)),
        row.dirty_files,
        declaration=read_document(connection, row.declaration_digest) or {},
        surroundings=read_document(connection, row.environment_digest) or {},
        first_failure=_find_first_failure(connection, project, row.number),
        inputs=read_inputs(connection, row),
    )


def read_written(connection: Connection, names: Collection[str]) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return what the last whole pass of each project that has one created or changed, and the tables that no output named."""
    query = select(OF_INPUTS[1], json_member(gate_results.c.result, "unwatched"))
    query = query.where(gate_results.c.status == ResultStatus.PASSED.value, gate_results.c.is_narrowed.is_(False))
    query = query.order_by(gate_results.c.number.desc()).limit(1)
    found: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for name in names:
        row = connection.execute(query.where(gate_results.c.project == name)).one_or_none()
        if row is not None:
            written = as_mapping(row[0])
            paths = tuple(str(path) for how in ("created", "changed") for path in written.get(how) or ())
            found[name] = paths, _as_paths(row[1]) or ()
    return found


def read_inputs(connection: Connection, row: Row[Any]) -> RunInputs:
    """Read the inputs of a result from a row with the columns `OF_INPUTS`."""
    digest = row.inputs_digest
    return RunInputs.read(None if digest is None else read_document(connection, digest), row.write_set)


def _find_first_failure(connection: Connection, project: str, after: int) -> Checkout | None:
    rows = connection.execute(
        select(_REASONS, gate_runs.c.commit, gate_runs.c.branch, gate_runs.c.dirty, gate_runs.c.dirty_files)
        .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
        .where(gate_results.c.project == project, gate_results.c.number > after)
        .where(gate_results.c.status.in_([status.value for status in ResultStatus if status.is_failure]), is_own_run())
        .order_by(gate_results.c.number)
        .limit(_MOST_FAILURES_READ)
    )
    failed = next((row for row in rows if not was_interrupted(row.reasons)), None)
    return None if failed is None else Checkout(failed.commit, failed.branch, failed.dirty, failed.dirty_files)


def select_results(*more: Any) -> Select[Any]:
    """Select results, the newest first: their numbers, the columns that `read_past_result` reads, and more."""
    columns = [gate_results.c[name] for name in (*_RESULT_COLUMNS, "number")]
    return (
        select(*columns, gate_runs.c.commit, gate_runs.c.branch, gate_runs.c.dirty, *more)
        .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
        .order_by(gate_results.c.number.desc())
    )


def read_past_result(
    row: Row[Any], message: str | None, is_interrupted: bool, *, is_accepted: bool = False
) -> PastResult:
    """Return the result of a row of `select_results`, with what its JSON says."""
    fields = {name: getattr(row, name) for name in (*_RESULT_COLUMNS, "commit", "branch", "dirty")}
    fields |= {"status": ResultStatus(row.status), "created_at": from_ms(row.created_at), "message": message}
    return PastResult(**fields, is_interrupted=is_interrupted, is_accepted=is_accepted)


def read_trends(
    connection: Connection, venvs: Mapping[str, str | None], facts: Mapping[str, Any]
) -> dict[str, DurationTrend]:
    """Return the trend of each project's last passes in the environment of `facts`; projects without any are left out.

    Passes before one that a person accepted do not count, and neither do those in worktrees made for another commit.

    Args:
        connection: an open one.
        venvs: the projects' names, each with its `venv:`.
        facts: what `describe_run_environment` returned for this run or an earlier one.
    """
    rows = list(_list_passes(connection, venvs))
    runs = _read_facts(connection, {row.run_id for row in rows})
    accepted = find_accepted(connection, [row.number for row in rows if runs[row.run_id].get(ACCEPTS)])
    found: dict[str, list[float]] = {name: [] for name in venvs}
    ended: set[str] = set()
    wanted = {name: describe_environment(facts, venv) for name, venv in venvs.items()}
    for row in rows:
        name = row.project
        there = runs[row.run_id].get(ENVIRONMENT)
        if name in ended or not there or describe_environment(there, venvs[name]) != wanted[name]:
            continue
        found[name].append(row.execution_time_seconds)
        if row.number in accepted or len(found[name]) == MOST_PASSES:
            ended.add(name)
    trends = {name: describe_durations(seconds) for name, seconds in found.items()}
    return {name: trend for name, trend in trends.items() if trend is not None}


def read_slowdown_judge(
    store: Store | None,
    projects: Collection[GoldenProjectConfig],
    workspace_root: Path,
    abilities: GatewayAbilities | None,
    *,
    workers: int = 1,
) -> SlowdownJudge:
    """Return what judges the projects that declare `max_slowdown`; where none does, nothing is read.

    A store that cannot be read, or None, leaves them unjudged, which each result says.
    """
    judged = {project.name: project.venv for project in projects if project.max_slowdown is not None}
    if not judged or store is None:
        return SlowdownJudge(trouble="no earlier run is known" if store is None else "")
    facts = describe_run_environment(projects, workspace_root, abilities, workers=workers)
    try:
        with store.read() as connection:
            return SlowdownJudge(read_trends(connection, judged, facts))
    except GoldenError as error:
        return SlowdownJudge(trouble=f"earlier runs cannot be read: {error}")


def read_medians(connection: Connection, projects: Collection[str]) -> dict[str, float]:
    """Return the median seconds of each project's last passes, wherever they ran; one without any is left out."""
    passes: dict[str, list[float]] = {}
    for row in _list_passes(connection, projects):
        seconds = passes.setdefault(row.project, [])
        if len(seconds) < MOST_PASSES:
            seconds.append(row.execution_time_seconds)
    return {name: median(seconds) for name, seconds in passes.items()}


def find_last_environment(connection: Connection, project: str) -> Mapping[str, Any] | None:
    """Return what is known of where a project passed last; None without a pass, or of a run that did not keep it."""
    facts = connection.scalar(
        select(gate_runs.c.facts)
        .join(gate_results, gate_results.c.run_id == gate_runs.c.entry_id)
        .where(gate_results.c.project == project, gate_results.c.status == ResultStatus.PASSED.value, is_own_run())
        .order_by(gate_results.c.number.desc())
        .limit(1)
    )
    return as_mapping(as_mapping(facts).get(ENVIRONMENT)) or None


def _list_passes(connection: Connection, names: Collection[str]) -> Iterator[Row[Any]]:
    """Yield the last passes of each project that ran all of it, newest first."""
    columns = (gate_results.c[name] for name in ("number", "project", "run_id", "execution_time_seconds"))
    query = select(*columns).order_by(gate_results.c.number.desc())
    for some in split(sorted(names)):
        asked = name_projects(some)
        whole = (EARLIER.c.status == ResultStatus.PASSED.value, EARLIER.c.is_narrowed.is_(False))
        newest = select_newest(asked, _MOST_LOOKED_AT, *whole)
        yield from connection.execute(query.select_from(asked.join(gate_results, gate_results.c.number.in_(newest))))


def name_projects(names: Sequence[str]) -> Subquery:
    """Return a subquery with these names in its column `name`, of at most so many as `split` leaves together."""
    return union_all(*(select(literal(name, Text).label("name")) for name in names)).subquery("asked")


def select_newest(asked: Subquery, limit: int, *wanted: ColumnElement[bool]) -> Select[Any]:
    """Select the numbers of the newest results of each named project in people's own runs; `wanted` are conditions on `EARLIER`."""
    numbers = select(EARLIER.c.number).join(gate_runs, gate_runs.c.entry_id == EARLIER.c.run_id)
    numbers = numbers.where(EARLIER.c.project == asked.c.name, is_own_run(), *wanted)
    return numbers.order_by(EARLIER.c.number.desc()).limit(limit).correlate(asked)


def split(items: Sequence[T], most: int = _MOST_ASKED) -> Iterator[Sequence[T]]:
    """Divide items into parts that one statement takes."""
    return (items[start : start + most] for start in range(0, len(items), most))


def select_by(connection: Connection, key: Column[Any], values: Iterable[Any], *columns: Any) -> Iterator[Row[Any]]:
    """Yield the rows whose key is one of these values, however many: the key and these columns."""
    for some in split(sorted(values)):
        yield from connection.execute(select(key, *columns).where(key.in_(some)))


def _read_facts(connection: Connection, runs: Collection[str]) -> dict[str, Mapping[str, Any]]:
    rows = select_by(connection, gate_runs.c.entry_id, runs, gate_runs.c.facts)
    return {**{run: {} for run in runs}, **{row.entry_id: as_mapping(row.facts) for row in rows}}


def find_accepted(connection: Connection, numbers: Sequence[int]) -> frozenset[int]:
    """Find those of these results that a person accepted."""
    rows = select_by(connection, gate_results.c.number, numbers, _ACCEPTED)
    return frozenset(row.number for row in rows if row.accepted is not None)


@dataclass(frozen=True, slots=True)
class LastResult:
    """A project's newest result that is not SKIPPED. `checkout` is shared by all results of one run, which began at `started_at`.

    `where` are the machine and the workspace that it ran in. `reads` are the files of the checkout outside its own
    folder that it read, `reads_inside` those in it, `ignored` those that git ignored when it began; None where that is not known.
    """

    status: ResultStatus
    checkout: Checkout
    declaration: Mapping[str, Any]
    surroundings: Mapping[str, Any]
    started_at: int
    where: tuple[str, str] = ("", "")
    reads: tuple[str, ...] | None = None
    ignored: IgnoredThen | None = None
    reads_inside: tuple[str, ...] | None = None


def read_last_results(
    connection: Connection, names: Collection[str], *, with_reads: bool = False
) -> dict[str, LastResult]:
    """Return the last result of each project that has one, `with_reads` also the files that it read."""
    rows = [row for some in split(sorted(names)) for row in _ask_last(connection, some)]
    digests = {one for row in rows for one in (row.declaration_digest, row.environment_digest, row.ignored_digest)}
    told = _read_documents(connection, filter(None, digests))
    reads = _read_reads(connection, {row.trajectory_id for row in rows if row.trajectory_id}) if with_reads else {}
    checkouts: dict[str, Checkout] = {}
    ignored: dict[str, IgnoredThen | None] = {}
    for row in rows:
        if row.run_id not in checkouts:
            checkouts[row.run_id] = Checkout(row.commit, row.branch, row.dirty, row.dirty_files)
            ignored[row.run_id] = IgnoredThen.read(told.get(row.ignored_digest))
    return {
        row.project: LastResult(
            ResultStatus(row.status),
            checkouts[row.run_id],
            told.get(row.declaration_digest, {}),
            told.get(row.environment_digest, {}),
            row.started_at,
            (row.host, row.workspace_root),
            reads.get(row.trajectory_id, (None, None))[0],
            ignored[row.run_id],
            reads.get(row.trajectory_id, (None, None))[1],
        )
        for row in rows
    }


def _ask_last(connection: Connection, names: Sequence[str]) -> Iterator[Row[Any]]:
    asked = name_projects(names)
    newest = (
        select(EARLIER.c.number)
        .where(EARLIER.c.project == asked.c.name, EARLIER.c.status != ResultStatus.SKIPPED.value)
        .order_by(EARLIER.c.number.desc())
        .limit(1)
        .correlate(asked)
        .scalar_subquery()
    )
    of_result = ("project", "run_id", "status", "declaration_digest", "trajectory_id")
    of_run = ("commit", "branch", "dirty", "dirty_files", "environment_digest", "started_at", "host", "workspace_root")
    ignored = json_member_text(gate_runs.c.facts, IGNORED_DIGEST, may_be_damaged=True)
    columns = (*(gate_results.c[name] for name in of_result), *(gate_runs.c[name] for name in of_run), ignored)
    joined = asked.join(gate_results, gate_results.c.number == newest)
    runs = joined.join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
    yield from connection.execute(select(*columns).select_from(runs))


def _read_documents(connection: Connection, digests: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    rows = select_by(connection, documents.c.digest, digests, documents.c.body)
    return {row.digest: row.body for row in rows if isinstance(row.body, dict)}


def read_own_reads(connection: Connection, names: Collection[str]) -> dict[str, tuple[str, ...] | None]:
    """Return what the last run of each project read of the checkout, its own folder included; None where that is not known."""
    last = read_last_results(connection, names, with_reads=True)
    return {name: _join(one.reads, one.reads_inside) for name, one in last.items()}


def _join(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if one is None or other is None else (*one, *other)


def _read_reads(
    connection: Connection, ids: Iterable[str]
) -> dict[str, tuple[tuple[str, ...] | None, tuple[str, ...] | None]]:
    """Return the files that runs read, outside of the projects' own folders and in them."""
    rows = select_by(connection, trajectories.c.id, ids, json_member(trajectories.c.body, "metadata"))
    noted = ((row.id, as_mapping(row.metadata)) for row in rows)
    return {number: (_as_paths(told.get("reads")), _as_paths(told.get("reads_inside"))) for number, told in noted}


def _as_paths(given: Any) -> tuple[str, ...] | None:
    return tuple(map(str, given)) if isinstance(given, list) else None
