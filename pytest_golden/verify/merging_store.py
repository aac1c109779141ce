"""Merge stores into one: the journal, the gate's runs and results, trajectories and memories; all of it or nothing."""

from __future__ import annotations

import json
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from sqlalchemy import Text, bindparam, insert, select, update

from pytest_golden.errors import StorageError
from pytest_golden.gate.events import was_found_killed
from pytest_golden.gate.state_folder import LOCK_NAME
from pytest_golden.gate.store import count_streak
from pytest_golden.history.past_store import list_expected
from pytest_golden.history.recorded_store import read_run
from pytest_golden.journal.agent_rules import find_rules, parse_rules
from pytest_golden.journal.transfer.lines import read_again
from pytest_golden.journal.transfer.service import Intake
from pytest_golden.journal.transfer.store import number_by_time, read_copies, read_orphans
from pytest_golden.learning.gate_learning import learn_from_results
from pytest_golden.learning.memory_merging_store import merge_memories
from pytest_golden.regression.model import ResultStatus, was_interrupted
from pytest_golden.storage.folder import STORE_NAME
from pytest_golden.storage.integrity import copy_source
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.schema import documents, gate_results, gate_runs, trajectories
from pytest_golden.storage.shared_documents import keep_document
from pytest_golden.storage.sqlite import list_files
from pytest_golden.storage.statements import json_member
from pytest_golden.storage.store import Store
from pytest_golden.values.shape import Shape
from pytest_golden.verify.shard_plan import GateUnion, LastGate, unite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sqlalchemy import Column, Connection, FromClause

    from pytest_golden.journal.rules import Rules

_TOLD_EACH = 1000
_LEARNING_SECONDS = 10.0
_ROWS_AT_ONCE = 50
_THE_KEY = bindparam("the_key", type_=Text())
_REASONS = json_member(gate_results.c.result, "reasons")
# The key of each kind of row, and the time by which they are numbered.
_RUN = gate_runs.c.entry_id, gate_runs.c.started_at
_RESULT = gate_results.c.entry_id, gate_results.c.created_at
_TRAJECTORY = trajectories.c.id, trajectories.c.started_at


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReport(Shape):
    """What a merge has done: entries that were new, known otherwise and known; and the other rows that were new.

    `gate` is what the last gates of the sources are together; None where no gate was run in any.
    """

    added: int = 0
    merged: int = 0
    unchanged: int = 0
    orphans: int = 0
    runs: int = 0
    results: int = 0
    trajectories: int = 0
    memories: int = 0
    gate: GateUnion | None = None


def merge_stores(
    location: str | Path,
    sources: Sequence[str | Path],
    *,
    rules: Mapping[str, Rules],
    progress: Callable[[int], None],
    learns: bool = True,
) -> MergeReport:
    """Take everything of some stores into one, which is made when it is not there. The sources stay as they are.

    In any order and however often, the result is the same. `rules` are those of the agents by whose copies differ.

    Raises:
        SettingsError: a source is the store itself, or no store can be at its place.
        StorageError: a source is not there, damaged, newer or no store, or the store cannot be written. Nothing is merged.
    """
    target = parse_location(location)
    with TemporaryDirectory(prefix="golden-merge-") as folder, ExitStack() as opened:
        copies = []
        for number, source in enumerate(sources):
            place = Path(folder, str(number))
            place.mkdir()
            copy = copy_source(source, place, target=target.path)
            copies.append((str(source), opened.enter_context(Store.open(copy))))
        store = opened.enter_context(Store.open(location))
        with store.write() as connection:
            report = _Merge(connection, rules, progress).run(copies)
        # Outside the transaction, so that it blocks nobody; the next gate learns what does not fit in its time.
        if learns:
            learn_from_results(store, budget_seconds=_LEARNING_SECONDS)
    return report


def take_in_substitute(location: str | Path, folder: Path) -> int:
    """Merge the store used while `.golden` could not be written, then remove it; return how many runs were new.

    If a gate is using that store, it is left for the next gate to merge.

    Raises:
        SettingsError, StorageError: as `merge_stores`; the store stays where it is.
    """
    source = folder / STORE_NAME
    if source.is_symlink() or not source.is_file():
        return 0
    with suppress(Timeout), FileLock(folder / LOCK_NAME, timeout=0):
        runs = merge_stores(
            location, [source], rules=parse_rules(find_rules()), progress=lambda _: None, learns=False
        ).runs
        # Everything is on the disk now. After a crash before this line it is merged again, which changes nothing.
        for file in list_files(source):
            file.unlink()
        return runs
    return 0


class _Merge:
    """One merge, in one transaction."""

    def __init__(self, target: Connection, rules: Mapping[str, Rules], progress: Callable[[int], None]) -> None:
        self._target = target
        self._intake = Intake(target, rules)
        self._rows = RowMerger(target)
        self._progress = progress
        self._entries = self._memories = 0
        self._gates: list[LastGate] = []

    def run(self, sources: Sequence[tuple[str, Store]]) -> MergeReport:
        for name, source in sources:
            try:
                with source.read() as connection:
                    self._take(connection)
                    gate = read_last_gate(connection, name)
            except (ValueError, TypeError, OverflowError, RecursionError) as error:
                raise StorageError(f"the store {name}: {error}; nothing was merged") from None
            except StorageError as error:
                # A person knows the store, and not its copy.
                raise StorageError(str(error).replace(source.where, name), error.trouble) from None
            self._gates += [] if gate is None else [gate]
        done = self._intake.finish()
        self._rows.finish()
        return MergeReport(
            added=done.added,
            merged=done.merged,
            unchanged=done.unchanged,
            orphans=done.orphans,
            runs=self._rows.runs,
            results=self._rows.results,
            trajectories=self._rows.trajectories,
            memories=self._memories,
            gate=unite(self._gates),
        )

    def _take(self, source: Connection) -> None:
        for copy in read_copies(source):
            self._intake.take(read_again(copy))
            self._entries += 1
            if self._entries % _TOLD_EACH == 0:
                self._progress(self._entries)
        for signal in read_orphans(source):
            self._intake.take_orphan(signal)
        self._rows.take(source)
        self._memories += merge_memories(source, self._target)


class RowMerger:
    """Takes the gate's rows of one store into another, and then orders numbers and streaks by time."""

    def __init__(self, target: Connection) -> None:
        self._target = target
        self._since: dict[tuple[Column[Any], Column[Any]], int] = {}
        self._first_of_project: dict[str, int] = {}
        self.runs = self.results = self.trajectories = 0

    def take(self, source: Connection) -> None:
        """Insert all rows that are new. The entries that they belong to must be there already."""
        for row in _read_rows(source, documents.c.digest):
            keep_document(self._target, row["body"])
        for row in _read_rows(source, gate_runs.c.entry_id):
            self.runs += self._take_run(row)
        for row in _read_rows(source, gate_results.c.entry_id):
            self.results += self._take_result(row)
        for row in _read_rows(source, trajectories.c.id):
            self.trajectories += self._insert_if_new(*_TRAJECTORY, row)

    def finish(self) -> None:
        """Order numbers by time from the first new row on, and count the passes in a row again."""
        for (key, moment), since in self._since.items():
            number_by_time(self._target, moment, key, since)
        for project, since in self._first_of_project.items():
            _count_streaks(self._target, project, since)

    def _take_run(self, row: dict[str, Any]) -> bool:
        found = select(*_columns(gate_runs)).where(gate_runs.c.entry_id == row["entry_id"])
        present = self._target.execute(found).mappings().one_or_none()
        if present is None:
            return self._insert_if_new(*_RUN, row)
        chosen = choose_run(dict(present), row)
        if chosen is row:
            self._target.execute(update(gate_runs).where(gate_runs.c.entry_id == row["entry_id"]).values(row))
        return False

    def _take_result(self, row: dict[str, Any]) -> bool:
        # What it teaches is learned again here: tallies are sums, which are never added twice so.
        is_new = self._insert_if_new(*_RESULT, {**row, "learned_at": None})
        if is_new:
            known = self._first_of_project.get(row["project"], row["created_at"])
            self._first_of_project[row["project"]] = min(known, row["created_at"])
        return is_new

    def _insert_if_new(self, key: Column[Any], moment: Column[Any], row: Mapping[str, Any]) -> bool:
        has = select(key.table.c.number).where(key == _THE_KEY)
        if self._target.execute(has, {"the_key": row[key.name]}).first() is not None:
            return False
        self._target.execute(insert(key.table), row)
        at = row[moment.name]
        self._since[key, moment] = min(at, self._since.get((key, moment), at))
        return True


def _columns(table: FromClause) -> tuple[Any, ...]:
    return tuple(column for column in table.c if column.name != "number")


def choose_run(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row to keep of a gate run: one that ended by itself, then one found interrupted; the earlier first."""
    return min(one, other, key=_rank_run)


def _rank_run(run: Mapping[str, Any]) -> tuple[Any, ...]:
    finished_at = run["finished_at"]
    content = json.dumps(dict(run), sort_keys=True, default=str)
    return finished_at is None, was_found_killed(run["facts"]), finished_at or 0, content


def _read_rows(source: Connection, key: Column[Any]) -> Iterator[dict[str, Any]]:
    """Return a table's rows without their numbers, by key; some are in memory at once."""
    query = select(*_columns(key.table)).order_by(key).limit(_ROWS_AT_ONCE)
    after = query.where(key > _THE_KEY)
    rows = source.execute(query).mappings().all()
    while rows:
        yield from map(dict, rows)
        rows = source.execute(after, {"the_key": rows[-1][key.name]}).mappings().all()


def _count_streaks(connection: Connection, project: str, since: int) -> None:
    of_project = gate_results.c.project == project
    earlier = select(gate_results.c.number, gate_results.c.pass_streak).where(of_project)
    earlier = earlier.where(gate_results.c.created_at < since).order_by(gate_results.c.number.desc()).limit(1)
    last, before = connection.execute(earlier).one_or_none() or (0, None)
    changed = update(gate_results).where(gate_results.c.number == bindparam("the_number"))
    changed = changed.values(pass_streak=bindparam("streak"))
    query = select(gate_results.c.number, gate_results.c.status, gate_results.c.pass_streak, _REASONS)
    query = query.where(of_project).order_by(gate_results.c.number).limit(_ROWS_AT_ONCE)
    while rows := connection.execute(query.where(gate_results.c.number > last)).all():
        found = []
        for row in rows:
            # Of the first result of all, what was counted before it may have been pruned.
            before = (
                row.pass_streak
                if before is None
                else count_streak(before, ResultStatus(row.status), is_interrupted=was_interrupted(row.reasons))
            )
            if before != row.pass_streak:
                found.append({"the_number": row.number, "streak": before})
        if found:
            connection.execute(changed, found)
        last = rows[-1].number


def read_last_gate(connection: Connection, where: str) -> LastGate | None:
    """Read the last gate run in a store that a person ran in an own folder; None if there is none."""
    run = read_run(connection, has_steps=False)
    return None if run is None else LastGate(where, run, list_expected(connection, run.gate["entry_id"]))
