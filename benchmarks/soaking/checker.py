"""What gates have acknowledged, and whether a store has all of it, once, and nothing that contradicts itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from pytest_golden.storage.schema import entries, expectations, gate_results, gate_runs, signals
from pytest_golden.storage.store import Store
from soaking.gates import RESULT_LINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection

    from soaking.gates import Gate
    from soaking.places import Place

_SAID_LOST = ("it is not recorded", "this run is not recorded")
_ASSESSED = {"PASSED": "success", "FAILED": "failure", "ERROR": "failure", "SKIPPED": "expired"}


@dataclass(frozen=True)
class Acknowledged:
    """What one gate has said: the results that must be in the store, those it said are lost, and its end if it told one.

    `said` is all that it printed.
    """

    number: int
    results: dict[str, str]
    said_lost: int
    final_status: str | None
    contradictions: tuple[str, ...]
    said: str


@dataclass
class Found:
    """What a look into a store has shown."""

    present: int = 0
    missing: int = 0
    twice: int = 0
    problems: list[str] = field(default_factory=list)
    differing: set[int] = field(default_factory=set)


def read_acknowledged(gate: Gate) -> Acknowledged:
    """Read from a gate's lines and report what it has acknowledged.

    A result counts from its line on. Once a gate has said that neither store nor spool takes anything, what it prints counts only
    when its report names the run's entry.
    """
    told: dict[str, str] = {}
    lost: dict[str, str] = {}
    contradictions = []
    is_lost = False
    for line in gate.lines:
        is_lost = is_lost or any(words in line for words in _SAID_LOST)
        found = RESULT_LINE.match(line)
        if found is None:
            continue
        status, name = found.groups()
        if (told | lost).setdefault(name, status) != status:
            contradictions.append(f"gate {gate.number} says two things of {name}")
        if name not in told:
            (lost if is_lost else told).setdefault(name, status)
    report = _read_report(gate)
    if report is not None:
        all_results = {one["name"]: one["status"] for one in report["results"]}
        contradictions += [
            f"gate {gate.number}: report and line differ for {name}"
            for name, status in (told | lost).items()
            if all_results.get(name) != status
        ]
        if report["gate"]["entry_id"] is not None:
            told, lost = all_results, {}
        else:
            # It names no entry: the run, or its end, is in no store and no spool.
            report = None
    final_status = None if report is None else report["final_status"]
    return Acknowledged(gate.number, told, len(lost), final_status, tuple(contradictions), "".join(gate.lines))


def check_place(place: Place, said: Iterable[Acknowledged]) -> Found:
    """Look whether the place's store holds what was acknowledged. No gate may run there, and what waited must be taken in."""
    found = Found()
    found.problems += [f"{path} still waits" for path in place.list_spool()]
    with Store.open(place.location) as store, store.read() as connection:
        runs = _list_runs(connection, str(place.folder))
        results = _list_results(connection)
        for one in said:
            _compare(found, one, runs.get(one.number, []), results)
        found.problems += _find_contradictions(connection, str(place.folder), results)
    return found


def check_whole(place: Place) -> list[str]:
    """Return what `golden store check` has to say against the place's store."""
    command = [sys.executable, "-m", "pytest_golden", "store", "check", "--store", place.location]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    return [f"golden store check: {checked.stdout}{checked.stderr}"] if checked.returncode else []


def _read_report(gate: Gate) -> dict[str, Any] | None:
    try:
        report: dict[str, Any] = json.loads(gate.report.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return report


def _list_runs(connection: Connection, folder: str) -> dict[int, list[Any]]:
    """Return the runs of a workspace by the number that their command lines name."""
    runs: dict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(select(gate_runs).where(gate_runs.c.workspace_root == folder)):
        for word in row.command_line:
            if word.startswith("--golden-json=reports/gate-"):
                runs[int(word[-11:-5])].append(row)
    return runs


def _list_results(connection: Connection) -> dict[str, dict[str, list[str]]]:
    results: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in connection.execute(select(gate_results.c.run_id, gate_results.c.project, gate_results.c.status)):
        results[row.run_id][row.project].append(row.status)
    return results


def _compare(found: Found, one: Acknowledged, runs: list[Any], results: dict[str, dict[str, list[str]]]) -> None:
    name = f"gate {one.number}"
    if len(runs) > 1:
        found.twice += len(one.results)
        found.problems.append(f"{name}: its run is there {len(runs)} times")
        return
    there = results.get(runs[0].entry_id, {}) if runs else {}
    for project, status in one.results.items():
        recorded = there.get(project, [])
        found.present += recorded == [status]
        found.missing += not recorded
        found.twice += len(recorded) > 1
        if recorded != [status]:
            found.differing.add(one.number)
            found.problems.append(f"{name}: {project} was {status}, the store has {recorded or 'nothing'}")
    if runs and one.final_status is not None and runs[0].final_status != one.final_status:
        found.differing.add(one.number)
        found.problems.append(f"{name}: ended as {one.final_status}, the store says {runs[0].final_status}")


def _find_contradictions(
    connection: Connection, folder: str, results: dict[str, dict[str, list[str]]]
) -> Iterator[str]:
    of_place = select(gate_runs.c.entry_id).where(gate_runs.c.workspace_root == folder)
    for run, projects in results.items():
        yield from (f"{run}: {project} {len(all_)} times" for project, all_ in projects.items() if len(all_) > 1)
    still = connection.scalars(of_place.where(gate_runs.c.finished_at.is_(None)))
    yield from (f"{run} is open for ever" for run in still)
    is_open = expectations.c.entry_id.in_(of_place) & (expectations.c.status == "open")
    yield from (
        f"expectation {one} is open for ever" for one in connection.scalars(select(expectations.c.id).where(is_open))
    )
    chosen = (
        select(
            gate_results.c.entry_id,
            gate_results.c.run_id,
            gate_results.c.status,
            entries.c.assessment,
            entries.c.parent_id,
        )
        .outerjoin(entries, entries.c.id == gate_results.c.entry_id)
        .where(gate_results.c.run_id.in_(of_place))
    )
    rows = connection.execute(chosen).all()
    heard = Counter({row[0]: row[1] for row in connection.execute(_count_signals(of_place))})
    for row in rows:
        if (row.assessment, row.parent_id) != (_ASSESSED[row.status], row.run_id):
            yield f"{row.entry_id}: its result is {row.status}, its entry {row.assessment} of {row.parent_id}"
        if heard[row.entry_id] != 1:
            yield f"{row.entry_id}: {heard[row.entry_id]} signals tell of it"
    told = connection.scalar(
        select(func.count()).where(entries.c.parent_id.in_(of_place), entries.c.intent_type == "golden_run")
    )
    if told != len(rows):
        yield f"{told} entries of results, {len(rows)} results"


def _count_signals(of_place: Any) -> Any:
    counted = select(signals.c.external_id, func.count()).where(
        signals.c.source == "golden", signals.c.entry_id.in_(of_place)
    )
    return counted.where(signals.c.external_id.is_not(None)).group_by(signals.c.external_id)
