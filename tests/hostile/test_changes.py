"""Changes that weaken the floor or reach for the judge, and honest ones: `tests/hostile/changes` holds them as data."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import tests.session.conftest  # noqa: F401 - loads what a session in this process must not load again
from pytest_golden.cli.main import main
from tests.repository import Repository
from tests.session.workspace import Workspace

# It cannot be loaded twice by one process, and pytester forgets what a session has loaded.
importlib.import_module("duckdb")
HERE = Path(__file__).parent / "changes"
BASE: dict[str, str] = yaml.safe_load((HERE / "base.yaml").read_text(encoding="utf-8"))
ATTACKS: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "attacks.yaml").read_text(encoding="utf-8"))
BREAKS = {"sales/orders.csv": "id,amount\n1,9.99\n2,4.00\n"}
HONEST: dict[str, Any] = yaml.safe_load((HERE / "honest.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def shop(pytester: pytest.Pytester) -> Workspace:
    workspace = Workspace(pytester)
    (workspace.path / "tox.ini").unlink()
    repository = Repository(workspace.path)
    write(workspace.path, BASE)
    repository.commit("base")
    return workspace


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8", newline="")


def apply(root: Path, change: dict[str, Any]) -> None:
    for source, target in change.get("copy", {}).items():
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (root / source).is_dir() else shutil.copyfile
        copy(root / source, root / target)
    if "move" in change:
        source, target = change["move"]
        (root / source).rename(root / target)
    for name, (old, new) in change.get("edit", {}).items():
        text = (root / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} is not once in {name}"
        write(root, {name: text.replace(old, new)})
    write(root, {name: text + (root / name).read_text() for name, text in change.get("prepend", {}).items()})
    write(root, {name: (root / name).read_text() + text for name, text in change.get("append", {}).items()})
    write(root, change.get("write", {}))


def test_there_are_as_many_as_promised() -> None:
    assert sum(map(len, ATTACKS.values())) >= 80
    assert len(HONEST) >= 60


@pytest.mark.parametrize("name", ATTACKS["floor"])
def test_change_that_weakens_the_floor_is_red_and_told(shop: Workspace, name: str) -> None:
    change = ATTACKS["floor"][name]
    apply(shop.path, change)
    result = shop.run("--golden-base=main", "--golden-store=none")
    assert result.ret == 1, result.stdout.str()
    assert change["told"] in result.stdout.str()
    assert "floor weakened" in result.stdout.str()


@pytest.mark.parametrize("name", ATTACKS["judge"])
def test_change_that_reaches_for_the_judge_is_told_by_name(shop: Workspace, name: str) -> None:
    change = ATTACKS["judge"][name]
    write(shop.path, BREAKS)
    apply(shop.path, change)
    result = shop.run_apart("--golden-base=main", "--golden-store=none")
    assert change["told"] in result.stdout.str() + result.stderr.str()


def test_none_of_them_reaches_the_judge_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    repository = Repository(tmp_path)
    write(tmp_path, BASE)
    repository.commit("base")
    write(tmp_path, BREAKS)
    for change in ATTACKS["judge"].values():
        apply(tmp_path, change)
    assert main(["verify", "--base", "main", "--repeat", "1", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    verdicts = {project["name"]: project["verdict"] for project in found["projects"]}
    assert verdicts == {"sales": "new_regression", "refuses": "ok", "stock": "new_regression"}


@pytest.mark.parametrize("name", HONEST)
def test_honest_change_is_green(shop: Workspace, name: str) -> None:
    apply(shop.path, HONEST[name])
    result = shop.run("--golden-base=main", "--golden-store=none")
    assert "weakened floor" not in result.stdout.str()
    assert result.ret == 0, result.stdout.str()
