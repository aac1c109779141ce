"""`golden init --from-fix` drafts what is red without a fix and green with it, and nothing else."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gate import calibrating
from pytest_golden.manifest.reader import load_manifest
from tests.repository import MANIFEST, Repository
from tests.requirement import require

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

WRONG, RIGHT = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
MORE = '\n\n\n\n\ndef last():\n    return "{}"\n'
CELL = "from sums import add\nopen('total.csv', 'w').write(f'total\\n{add(1, 2)}\\n')"
TEST = "import os, sys\n\nsys.path.insert(0, os.path.dirname(os.path.dirname(__file__)))\n\nfrom sums import add\n\n\ndef test_add():\n    assert add(2, 1) == 3\n"
NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
}


@pytest.fixture
def repository(folder: Path) -> Repository:
    made = Repository(folder)
    made.write(sums__py=WRONG + MORE.format("x"), README__md="sums\n")
    made.commit("first")
    return made


@pytest.fixture
def fixed(repository: Repository) -> str:
    """A fix with a test, and a later change of another place in the same file."""
    repository.write(sums__py=RIGHT + MORE.format("x"), tests___test_sums__py=TEST)
    commit = repository.commit("Fix the sign of sums (#7)")
    repository.write(sums__py=RIGHT + MORE.format("y"))
    repository.commit("another")
    return commit


def test_the_tests_of_a_fix_become_a_project(golden: Golden, fixed: str, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*.py")}
    ran = golden("init", "--from-fix", fixed[:9], "--json")
    assert ran.code == 0, ran.err
    assert [project["name"] for project in ran.json["projects"]] == ["sums"]
    text = (folder / MANIFEST).read_text()
    assert f"# drafted from the fix {fixed[:12]} (Fix the sign of sums (#7)): red without the fix: exit code 1" in text
    (project,) = load_manifest(folder / MANIFEST).projects
    assert project.command == ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_sums.py")
    assert project.path == "tests/test_sums.py"
    assert {path: path.read_bytes() for path in folder.rglob("*.py")} == before
    assert golden("run", "sums").code == 0


def test_a_manifest_is_completed(golden: Golden, fixed: str, folder: Path) -> None:
    (folder / MANIFEST).write_text("golden_projects:\n  - {name: sums, path: README.md, command: [cat, README.md]}\n")
    ran = golden("init", "--add", "--from-fix", fixed)
    assert ran.code == 0, ran.err
    assert [project.name for project in load_manifest(folder / MANIFEST).projects] == ["sums", "sums_2"]


def test_a_pipeline_of_an_engine_is_drafted_with_its_outputs(
    golden: Golden, repository: Repository, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(find_spec("nbclient") is not None, "nbclient")
    # Kernels hang with another time, which calibration then does without.
    monkeypatch.setattr(calibrating, "_HANGS_AFTER_SECONDS", 1)
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "a",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": CELL,
    }
    repository.write(etl___total__ipynb=json.dumps({**NOTEBOOK, "cells": [cell]}), etl___sums__py=WRONG)
    repository.commit("a pipeline")
    repository.write(etl___sums__py=RIGHT)
    fix = repository.commit("Correct the total")
    ran = golden("init", "--from-fix", "HEAD")
    assert ran.code == 0, ran.err
    (project,) = load_manifest(folder / MANIFEST).projects
    assert (project.path, [output.path for output in project.outputs]) == ("etl/total.ipynb", ["total.csv"])
    told = f"# drafted from the fix {fix[:12]} (Correct the total): red without the fix: total.csv"
    assert told in (folder / MANIFEST).read_text()
    again = golden("init", "--add", "--from-fix", fix)
    assert again.code == 2
    assert "no pipeline of an engine that is not declared yet has its programs" in again.err


def test_what_passes_without_the_fix_too_is_not_drafted(golden: Golden, repository: Repository, folder: Path) -> None:
    repository.write(sums__py=RIGHT, test_sums__py="def test_nothing():\n    pass\n")
    fix = repository.commit("Fix the sign")
    ran = golden("init", "--from-fix", "HEAD")
    assert ran.code == 1
    assert f"no draft fails without the fix {fix[:12]} and passes with it, so nothing was written" in ran.out
    assert "sums  it also passes without the fix" in ran.out
    assert not (folder / MANIFEST).exists()
    told = golden("init", "--from-fix", "HEAD", "--json").json
    assert told["fix"]["commit"] == fix
    assert [(one["name"], one["protects"]) for one in told["tried"]] == [("sums", False)]


def test_what_fails_with_the_fix_too_is_not_drafted(golden: Golden, repository: Repository, folder: Path) -> None:
    repository.write(sums__py=RIGHT, test_sums__py="def test_nothing():\n    assert 0\n")
    repository.commit("Fix the sign")
    ran = golden("init", "--from-fix", "HEAD")
    assert ran.code == 1
    assert "sums  it does not pass with the fix: exit code 1" in ran.out
    assert not (folder / MANIFEST).exists()


def test_what_cannot_be_tried_is_a_sentence(golden: Golden, repository: Repository, folder: Path) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.write(README__md="more\n")
    repository.commit("Fix the documentation")
    no_program = golden("init", "--from-fix", "HEAD")
    assert no_program.code == 2
    assert "changed no program below" in no_program.err
    repository.write(sums__py=RIGHT)
    repository.commit("Fix the sign")
    no_test = golden("init", "--from-fix", "HEAD")
    assert no_test.code == 2
    assert (
        "brought no test of Python, and no pipeline of an engine that is not declared yet has its programs"
        in no_test.err
    )
    assert f"{first[:12]} has no parent here" in golden("init", "--from-fix", first).err
    assert "--from-fix nowhere: there is no such commit here" in golden("init", "--from-fix", "nowhere").err
    assert "--from-fix '--help' is not a git ref" in golden("init", "--from-fix=--help").err
    assert "give one of them" in golden("init", "--from-fix", "HEAD", "--from", "true").err
    # Later changes overlap the fix.
    repository.write(sums__py="def add(a, b):\n    return sum((a, b))\n")
    repository.commit("another")
    assert "changed no program below" in golden("init", "--from-fix", "HEAD~1").err
    assert not (folder / MANIFEST).exists()


def test_outside_git_is_a_sentence(golden: Golden, folder: Path) -> None:
    ran = golden("init", "--from-fix", "HEAD")
    assert ran.code == 2
    assert "is not in a git repository" in ran.err


def test_a_fix_below_the_top_folder_is_undone_there(
    golden: Golden, repository: Repository, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write(shop___sums__py=WRONG)
    repository.commit("a shop")
    repository.write(shop___sums__py=RIGHT, shop___tests___test_sums__py=TEST)
    repository.commit("Fix the shop")
    monkeypatch.chdir(folder / "shop")
    ran = golden("init", "--from-fix", "HEAD")
    assert ran.code == 0, ran.err
    assert [project.name for project in load_manifest(folder / "shop" / MANIFEST).projects] == ["sums"]
