from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.regression.model import ResultStatus
from pytest_golden.verify.gates import BrokenDownError, GatePlace, StartedGate, finish_gate, result_of

if TYPE_CHECKING:
    from pathlib import Path

WHOLE: dict[str, Any] = {
    "results": [{"name": "a", "path": "a.sh", "status": "PASSED"}],
    "weakened_floor": [],
    "gate": {"not_run": [], "deselected": ["b"], "entry_id": "entry_1"},
}


def gate(tmp_path: Path, program: str, report: dict[str, Any] | None = None) -> StartedGate:
    """Start a program in the place of the interpreter that runs a gate."""
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{program}\n")
    script.chmod(0o755)
    if report is not None:
        (tmp_path / "gate.json").write_text(json.dumps(report))
    place = GatePlace(tmp_path / "golden_projects.yaml", os.environ, str(script))
    return StartedGate(place, tmp_path, "gate", ())


def test_report_of_a_gate_is_read(tmp_path: Path) -> None:
    report = finish_gate(gate(tmp_path, "exit 0", WHOLE), "head")
    assert report.results["a"].status is ResultStatus.PASSED
    assert (report.run_id, report.deselected, report.exit_code) == ("entry_1", ("b",), 0)
    assert not report.fails_unexplained
    assert result_of(report, "a").status is ResultStatus.PASSED
    assert result_of(report, "b").status is ResultStatus.SKIPPED


def test_gate_that_fails_although_nothing_failed_is_noticed(tmp_path: Path) -> None:
    assert finish_gate(gate(tmp_path, "exit 1", WHOLE), "head").fails_unexplained
    assert not finish_gate(gate(tmp_path, "exit 1", WHOLE), "head").fails_for_skips
    weaker = {**WHOLE, "weakened_floor": [{"project": "a", "message": "gone"}]}
    assert not finish_gate(gate(tmp_path, "exit 1", weaker), "head").fails_unexplained


@pytest.mark.parametrize(("kind", "fails"), [("skip_if_missing", True), ("unchanged", False)])
def test_gate_that_is_to_fail_for_what_is_skipped_says_so(tmp_path: Path, kind: str, *, fails: bool) -> None:
    skipped = {"name": "a", "path": "a.sh", "status": "SKIPPED", "reasons": [{"kind": kind, "message": "x"}]}
    report = {**WHOLE, "results": [skipped], "gate": {**WHOLE["gate"], "require": True}}
    assert finish_gate(gate(tmp_path, "exit 1", report), "head").fails_for_skips is fails


@pytest.mark.parametrize("code", [3, 4, 137])
def test_gate_that_ends_otherwise_is_broken_and_its_last_words_are_told(tmp_path: Path, code: int) -> None:
    broken = gate(tmp_path, f"echo INTERNALERROR; exit {code}", WHOLE)
    with pytest.raises(BrokenDownError, match=f"the gate of the base ended with exit code {code}: INTERNALERROR"):
        finish_gate(broken, "base")


def test_gate_that_is_killed_is_broken_whatever_it_left(tmp_path: Path) -> None:
    killed = gate(tmp_path, "echo '1 passed'; kill -9 $$", WHOLE)
    told = r"^the gate of the proposal was killed from outside \(SIGKILL\), so that nothing that it found counts$"
    with pytest.raises(BrokenDownError, match=told):
        finish_gate(killed, "proposal")


@pytest.mark.parametrize("report", [{}, {**WHOLE, "results": [{"name": "a"}]}, {**WHOLE, "gate": None}])
def test_gate_whose_report_cannot_be_read_is_broken(tmp_path: Path, report: dict[str, Any]) -> None:
    with pytest.raises(BrokenDownError, match="the gate of the base left a report that cannot be read: "):
        finish_gate(gate(tmp_path, "exit 0", report), "base")


def test_gate_without_a_report_is_broken(tmp_path: Path) -> None:
    with pytest.raises(BrokenDownError, match="exit code 0"):
        finish_gate(gate(tmp_path, "exit 0"), "base")


def test_gate_that_ended_before_a_projects_turn_is_broken(tmp_path: Path) -> None:
    report = {**WHOLE, "gate": {**WHOLE["gate"], "not_run": ["c"]}}
    with pytest.raises(BrokenDownError, match="before the turn of c"):
        finish_gate(gate(tmp_path, "exit 1", report), "base")


def test_interrupted_gate_interrupts(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        finish_gate(gate(tmp_path, "exit 2", WHOLE), "head")
    interrupted = {"name": "a", "path": "a.sh", "status": "ERROR", "reasons": [{"kind": "interrupted", "message": "x"}]}
    with pytest.raises(KeyboardInterrupt):
        finish_gate(gate(tmp_path, "exit 1", {**WHOLE, "results": [interrupted]}), "head")


def test_what_a_gate_prints_is_shown_meanwhile(tmp_path: Path) -> None:
    shown: list[str] = []

    def show(line: str) -> None:
        shown.append(line)
        if line == "two":
            (tmp_path / "go").touch()

    finish_gate(gate(tmp_path, "echo one; echo two; until [ -e go ]; do sleep 0.05; done", WHOLE), "head", show)
    assert shown[-1] == "two"


def test_gate_is_ended_when_waiting_for_it_is_interrupted(tmp_path: Path) -> None:
    running = gate(tmp_path, "exec sleep 300", WHOLE)

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finish_gate(running, "head", interrupt)
    assert running.process.wait() is not None
