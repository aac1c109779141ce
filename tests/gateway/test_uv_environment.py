"""Environments that uv makes of a lock file: of a wheel that is made here, so that nothing is fetched."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import PosixPath
from typing import TYPE_CHECKING, Any, Self
from zipfile import ZipFile

import pytest

from pytest_golden.gateway import uv_environment
from pytest_golden.gateway.model import Ending, Problem
from pytest_golden.gateway.uv_environment import find_environment, read_locked
from tests.gateway.conftest import run_guarded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_golden.gateway.service import ExecutionGateway
    from tests.gateway.conftest import MakeProject

_PROJECT = """
[project]
name = "shop"
version = "0"
requires-python = ">=3.11"
dependencies = ["tiny-demo"]
[tool.uv]
# It starts the environment's interpreter.
compile-bytecode = true
[[tool.uv.index]]
name = "here"
url = "{wheels}"
format = "flat"
default = true
"""


class Homeless(PosixPath):
    """As for a user who is in no list of users."""

    @classmethod
    def home(cls) -> Self:
        raise RuntimeError


@pytest.fixture
def locked(workspace: Path) -> Path:
    """A uv project with a lock file; its one package runs code in every interpreter that loads it, and names a folder."""
    wheels = workspace / "wheels"
    wheels.mkdir()
    about = "tiny_demo-1.5.dist-info"
    with ZipFile(wheels / "tiny_demo-1.5-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_demo.py", "NUMBER = 15\n")
        wheel.writestr(
            "tiny.pth", f"import os; open({str(workspace / 'ran')!r}, 'w')\n{workspace.parent / 'elsewhere'}\n"
        )
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-demo\nVersion: 1.5\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    (workspace / "pyproject.toml").write_text(_PROJECT.format(wheels=wheels))
    uv: Any = import_module("uv")
    command = (uv.find_uv_bin(), "lock", "--offline", "--quiet", "--python", sys.executable)
    subprocess.run(command, cwd=workspace, check=True)
    return workspace


def test_the_environment_is_made_once_and_runs_only_in_the_seal(
    locked: Path, make_project: MakeProject, open_gateway: Callable[..., ExecutionGateway], sealing: None
) -> None:
    elsewhere = locked.parent / "elsewhere"
    elsewhere.mkdir()
    project = make_project(
        f"import os, sys, tiny_demo\nprint(tiny_demo.NUMBER, sys.prefix, os.path.exists({str(elsewhere)!r}))",
        venv="uv:.",
    )
    environment = find_environment(locked, sys.executable)
    for _ in range(2):
        outcome = run_guarded(open_gateway(), project)
        assert (outcome.stdout, outcome.ending) == (f"15 {environment} False\n", Ending.EXITED), outcome.message
    assert not (locked / "ran").exists()
    assert not (locked / ".venv").exists()


def test_another_lock_is_another_environment_and_half_of_one_is_made_anew(
    locked: Path, make_project: MakeProject, open_gateway: Callable[..., ExecutionGateway]
) -> None:
    project = make_project("import tiny_demo", venv="uv:.")
    environment = find_environment(locked, sys.executable)
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").write_text("#!/bin/sh\nexit 3\n")
    assert run_guarded(open_gateway(), project).exit_code == 0
    assert read_locked(locked) == {"shop": "0", "tiny-demo": "1.5"}
    (locked / "uv.lock").write_text((locked / "uv.lock").read_text() + "\n")
    assert find_environment(locked, sys.executable) != environment


def test_an_environment_that_no_run_has_named_for_a_month_is_removed(
    locked: Path, make_project: MakeProject, open_gateway: Callable[..., ExecutionGateway]
) -> None:
    project = make_project("import tiny_demo", venv="uv:.")
    made = []
    for days in (31, 29, 0):
        (locked / "uv.lock").write_text((locked / "uv.lock").read_text() + "\n")
        made.append(find_environment(locked, sys.executable))
        assert run_guarded(open_gateway(), project).exit_code == 0
        past = time.time() - days * 86_400
        os.utime(made[-1] / "made-by-golden", (past, past))
    assert [one.exists() for one in made] == [False, True, True]


@pytest.mark.parametrize(
    ("lock", "problem", "told"),
    [
        (None, Problem.PATH_NOT_FOUND, "uv.lock cannot be read: No such file or directory; `uv lock` writes it"),
        ("version = 1", Problem.HARNESS, "venv uv:.: `uv sync` failed: "),
    ],
)
def test_a_lock_that_cannot_be_used_is_told_in_a_sentence(
    lock: str | None,
    problem: Problem,
    told: str,
    locked: Path,
    make_project: MakeProject,
    open_gateway: Callable[..., ExecutionGateway],
) -> None:
    (locked / "uv.lock").unlink()
    if lock is not None:
        (locked / "uv.lock").write_text(lock)
    outcome = run_guarded(open_gateway(), make_project("true", venv="uv:."))
    assert (outcome.ending, outcome.problem) == (Ending.NOT_STARTED, problem)
    assert told in outcome.message
    assert "\n" not in outcome.message
    assert read_locked(locked) == {}


def test_without_uv_it_is_said_how_to_get_it(
    locked: Path,
    make_project: MakeProject,
    open_gateway: Callable[..., ExecutionGateway],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    gateway = open_gateway(python=sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = run_guarded(gateway, make_project("true", venv="uv:."))
    assert outcome.problem is Problem.COMMAND_NOT_FOUND
    assert outcome.message.startswith("venv uv:.: uv is not installed: get it (`python -m pip install uv`)")


def test_what_may_not_be_written_or_read_is_told(
    locked: Path,
    home: Path,
    make_project: MakeProject,
    open_gateway: Callable[..., ExecutionGateway],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (home / ".cache" / "pytest-golden").write_text("no folder")
    outcome = run_guarded(open_gateway(), make_project("true", venv="uv:."))
    assert "cannot be written" in outcome.message
    with monkeypatch.context() as patch:
        patch.setattr(uv_environment, "Path", Homeless)
        assert "there is no HOME" in run_guarded(open_gateway(), make_project("true", venv="uv:.")).message
    (locked / "uv.lock").unlink()
    (locked / "uv.lock").symlink_to("/dev/zero")
    assert "uv.lock cannot be read" in run_guarded(open_gateway(), make_project("true", venv="uv:.")).message
