"""The checker of the soak: a difference that it would not find would never be one. The soak itself is `benchmarks/soak.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import delete, update

from pytest_golden.gate.store import record_event
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.schema import entries, gate_results, gate_runs
from pytest_golden.storage.store import Store
from tests.gate.gate_events import begin, end, judge

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LINES = ["PASSED  steady0  0.0s\n", "FAILED  broken  0.0s  exit code 3, expected 0\n"]
REPORT = {
    "final_status": "passed",
    "gate": {"entry_id": "entry_0"},
    "results": [{"name": "steady0", "status": "PASSED"}, {"name": "broken", "status": "FAILED"}],
}


@pytest.fixture
def checker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from soaking import checker  # type: ignore[import-not-found]  # noqa: PLC0415 - found only now

    # Found by name while other modules of the folder are not: nobody else is to find it.
    for name in [name for name in sys.modules if name.partition(".")[0] == "soaking"]:
        monkeypatch.delitem(sys.modules, name)
    return checker


def make_gate(folder: Path, lines: list[str], report: dict[str, Any] | None = None) -> Any:
    path = folder / "gate-000007.json"
    if report is not None:
        path.write_text(json.dumps(report))
    return SimpleNamespace(number=7, lines=lines, report=path)


def make_place(folder: Path) -> Any:
    return SimpleNamespace(folder=folder, location=str(folder / "golden.db"), list_spool=list)


def record_gate(folder: Path) -> None:
    command = ("pytest", "--golden-json=reports/gate-000007.json")
    begun = begin("steady0", "broken", workspace_root=str(folder), command_line=command)
    events = (begun, judge(begun, "steady0"), judge(begun, "broken", ResultStatus.FAILED), end(begun, "failure"))
    with Store.open(folder / "golden.db") as store, store.write() as connection:
        for event in events:
            record_event(connection, event)


def test_store_that_has_all_is_found_whole(tmp_path: Path, checker: Any) -> None:
    record_gate(tmp_path)
    found = checker.check_place(make_place(tmp_path), [checker.read_acknowledged(make_gate(tmp_path, LINES, REPORT))])
    assert found.problems == []
    assert (found.present, found.missing, found.twice) == (2, 0, 0)


def lose_result(connection: Connection) -> None:
    connection.execute(delete(gate_results).where(gate_results.c.project == "broken"))


def turn_result(connection: Connection) -> None:
    connection.execute(update(gate_results).where(gate_results.c.project == "broken").values(status="PASSED"))


def reopen_run(connection: Connection) -> None:
    connection.execute(update(gate_runs).values(finished_at=None))


def end_otherwise(connection: Connection) -> None:
    connection.execute(update(gate_runs).values(final_status="interrupted"))


def contradict_entry(connection: Connection) -> None:
    of_result = (entries.c.intent_type == "golden_run") & (entries.c.intent == "run golden project broken")
    connection.execute(update(entries).where(of_result).values(assessment="success"))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lose_result, "gate 7: broken was FAILED, the store has nothing"),
        (turn_result, "gate 7: broken was FAILED, the store has ['PASSED']"),
        (reopen_run, "is open for ever"),
        (end_otherwise, "gate 7: ended as passed, the store says interrupted"),
        (contradict_entry, "its result is FAILED, its entry success"),
    ],
)
def test_store_that_differs_is_found(
    tmp_path: Path, checker: Any, spoil: Callable[[Connection], None], told: str
) -> None:
    record_gate(tmp_path)
    with Store.open(tmp_path / "golden.db") as store, store.write() as connection:
        spoil(connection)
    gate = checker.read_acknowledged(make_gate(tmp_path, LINES, REPORT))
    assert any(told in problem for problem in checker.check_place(make_place(tmp_path), [gate]).problems)


def test_what_a_gate_said_is_lost_is_not_acknowledged(tmp_path: Path, checker: Any) -> None:
    lost = "golden: WARNING: no room; unless the store accepts this run at its end, it is not recorded\n"
    killed = checker.read_acknowledged(make_gate(tmp_path, [LINES[0], lost, LINES[1]]))
    assert (killed.results, killed.said_lost) == ({"steady0": "PASSED"}, 1)
    ended = checker.read_acknowledged(make_gate(tmp_path, [LINES[0], lost, LINES[1]], REPORT))
    assert (set(ended.results), ended.said_lost) == ({"steady0", "broken"}, 0)
    unkept = {**REPORT, "gate": {"entry_id": None}}
    cut_off = checker.read_acknowledged(make_gate(tmp_path, [LINES[0], lost, LINES[1]], unkept))
    assert (cut_off.results, cut_off.said_lost, cut_off.final_status) == ({"steady0": "PASSED"}, 1, None)


def test_report_that_differs_from_a_line_is_found(tmp_path: Path, checker: Any) -> None:
    report: dict[str, Any] = {**REPORT, "results": [{"name": "steady0", "status": "PASSED"}]}
    assert checker.read_acknowledged(make_gate(tmp_path, LINES, report)).contradictions
