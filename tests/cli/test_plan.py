from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_golden.cli.plan import GatePlan, PlannedProject
from tests.repository import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden, GoldenProcess


@pytest.fixture
def repository(folder: Path, golden_process: GoldenProcess) -> Repository:
    """Two projects that passed on the branch main."""
    repository = Repository(folder)
    repository.declare("sales", "stock")
    for name in ("sales", "stock"):
        repository.script(name, f"echo {name} > out.txt\n")
        repository.write(**{f"golden_baselines___{name}___out__txt": f"{name}\n"})
    repository.write(__gitignore=".golden/\n")
    repository.commit("base")
    assert golden_process("gate", "--", "-q").code == 0
    return repository


def plan(golden: Golden, *words: str) -> GatePlan:
    ran = golden("plan", *words, "--json")
    assert ran.code == 0, ran.err
    return GatePlan.from_dict(json.loads(ran.out))


def test_what_changed_runs_and_the_rest_is_left_out(repository: Repository, golden: Golden) -> None:
    nothing = plan(golden, "main")
    assert [(project.name, project.runs) for project in nothing.projects] == [("sales", False), ("stock", False)]
    assert nothing.commit == repository.git("rev-parse", "HEAD")
    repository.script("stock", "echo stock > out.txt # edited\n")
    sales, stock = plan(golden, "main").projects
    assert (sales.runs, sales.why) == (False, "unchanged since main")
    assert stock.runs
    assert stock.why.endswith("changed")
    assert stock.usual_seconds is not None
    told = golden("plan", "main").out
    assert "1 of 2 projects would run, usually" in told


def test_without_a_ref_every_project_runs(repository: Repository, golden: Golden) -> None:
    assert all(project.runs for project in plan(golden).projects)
    repository.write(pytest__ini="[pytest]\n")
    assert all("pytest.ini changed" in project.why for project in plan(golden, "main").projects)


def test_without_a_store_every_project_runs_and_no_duration_is_known(repository: Repository, golden: Golden) -> None:
    planned = plan(golden, "main", "--store", "none").projects
    assert [(project.runs, project.usual_seconds) for project in planned] == [(True, None), (True, None)]
    assert (repository.folder / ".golden" / "golden.db").is_file()


@pytest.mark.parametrize(("ref", "told"), [("no_such_ref", "there is no such commit here"), ("-x", "is not a git ref")])
def test_a_ref_that_cannot_be_used_is_refused(repository: Repository, golden: Golden, ref: str, told: str) -> None:
    ran = golden("plan", "--", ref)
    assert ran.code == 2, repository.folder
    assert told in ran.err
    assert "--golden-changed" not in ran.err


def test_projects_of_unknown_duration_are_counted() -> None:
    projects = (PlannedProject("a", True, "new"), PlannedProject("b", False, "unchanged since main"))
    assert [project.name for project in GatePlan("main", None, projects).running] == ["a"]
