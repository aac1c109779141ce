from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.cli.watched import run_watched

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import GoldenProcess


BASH = {"SHELL": shutil.which("bash") or ""}
needs_bash = pytest.mark.skipif(not BASH["SHELL"], reason="needs bash")


@needs_bash
def test_shell_is_in_the_view_and_keeps_nothing(folder: Path, three_projects: Path) -> None:
    typed = [("to leave", "touch trace; python good.py; echo see''n $(ls); exit 7\n")]
    ran = run_watched(folder, ["run", "good", "--shell"], typed=typed, environment=BASH)
    assert ran.code == 7
    assert "Nothing that is written here is kept" in ran.out
    assert str(folder) in ran.out
    assert "good.py" in ran.out
    assert "all well" in ran.out
    assert "seen bad.py golden_projects.yaml good.py out.txt trace" in ran.out
    assert not (folder / "trace").exists()


@needs_bash
def test_interrupt_is_for_what_runs_in_the_shell(folder: Path, three_projects: Path) -> None:
    typed = [
        # Not bash's own `sleep`: a Ctrl-C that bash catches just before it becomes the sleep is forgotten there.
        ("to leave", """sh -c 'trap "exit 130" INT; echo sleep""ing; while :; do sleep 0.1; done'\n"""),
        ("sleeping", "\x03"),
        ("^C", "echo still he''re; exit 0\n"),
    ]
    ran = run_watched(folder, ["run", "good", "--shell"], typed=typed, environment=BASH)
    assert ran.code == 0
    assert "still here" in ran.out
    assert "Traceback" not in ran.out


def test_shell_needs_a_terminal(golden_process: GoldenProcess, three_projects: Path) -> None:
    ran = golden_process("run", "good", "--shell")
    assert (ran.code, ran.out) == (2, "")
    assert "--shell needs a terminal" in ran.err
    assert ran.err.count("\n") == 1


def test_project_without_a_view_is_a_sentence(folder: Path, three_projects: Path) -> None:
    ran = run_watched(folder, ["run", "gone", "--shell"])
    assert ran.code == 2
    assert "gone/etl.py does not exist" in ran.out
    assert "Traceback" not in ran.out


def test_failing_before_command_is_told(folder: Path) -> None:
    (folder / "etl.py").touch()
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n  - {path: etl.py, before: [\"sh -c 'echo no seed >&2; exit 3'\"]}\n"
    )
    ran = run_watched(folder, ["run", "etl", "--shell"])
    assert ran.code == 2
    assert "no seed" in ran.out
    assert "Traceback" not in ran.out


@needs_bash
def test_shell_has_a_terminal_of_its_own(folder: Path, three_projects: Path) -> None:
    # On the user's own, a program inside could type into the shell outside (TIOCSTI).
    ask = "python -c \"import os; print('device', os.fstat(0).st_rdev, os.isatty(0))\""
    ran = run_watched(folder, ["run", "good", "--shell"], typed=[("to leave", f"{ask}; exit 0\n")], environment=BASH)
    found = re.search(r"device (\d+) True", ran.out)
    assert found is not None
    assert ran.terminal_device is not None
    assert int(found[1]) != ran.terminal_device
