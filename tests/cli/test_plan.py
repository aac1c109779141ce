from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.check import Plan, make_plan
from pytest_golden.manifest.model import GoldenProjectConfig, Quarantine

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def plan(folder: Path, path: str, **keys: Any) -> Plan:
    return make_plan(GoldenProjectConfig("x", path, **keys), folder)


def test_command_is_shown_by_names(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "etl.py").touch()
    made = plan(folder, "deep/etl.py", project_dir=".", args=("--day", "first of May"))
    assert made.runner == "python"
    assert made.shown_command().split(" ", 1)[1] == "deep/etl.py --day 'first of May'"


def test_missing_program_is_a_problem(folder: Path) -> None:
    (folder / "etl.py").touch()
    made = plan(folder, "etl.py", command=("nothing_like_it", "{path}"))
    assert made.problem is not None
    assert made.problem.startswith("`nothing_like_it` is not on PATH")
    assert made.to_dict()["problem"] == made.problem


def test_unknown_runner_may_come_from_a_conftest(folder: Path) -> None:
    (folder / "etl.py").touch()
    made = plan(folder, "etl.py", runner="pyton")
    assert made.runner == "pyton"
    assert made.problem is not None
    assert "did you mean python" in made.problem
    assert "conftest" in made.problem


def test_project_that_would_be_skipped_is_no_problem(folder: Path) -> None:
    (folder / "etl.py").touch()
    made = plan(folder, "etl.py", command=("nothing_like_it",), skip_if_missing=("nothing_like_it",))
    assert made.problem is None
    assert made.notes == ("would be SKIPPED: nothing_like_it not installed here",)


def test_unset_variables_and_quarantine_are_noted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "etl.py").touch()
    monkeypatch.delenv("UNSET_HERE", raising=False)
    monkeypatch.setenv("SET_HERE", "1")
    quarantine = Quarantine(date(2099, 1, 1), "flaky")
    made = plan(folder, "etl.py", pass_env=("UNSET_HERE", "SET_HERE"), quarantine=quarantine)
    assert made.notes == ("not set here, so not passed: UNSET_HERE", "in quarantine until 2099-01-01: flaky")
