from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from pytest_golden.verify.gates import ChildProcess
from tests.patience import wait_until
from tests.requirement import require

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PARENT = """
import os, sys, time
from pathlib import Path
from pytest_golden.verify.gates import ChildProcess
folder = Path(sys.argv[1])
program = f"echo $$ > {folder}/pid.part && mv {folder}/pid.part {folder}/pid && exec sleep 300"
ChildProcess(["sh", "-c", program], cwd=folder, environment=os.environ, log=folder / "log")
time.sleep(300)
"""


def start(folder: Path, program: str) -> ChildProcess:
    return ChildProcess(["sh", "-c", program], cwd=folder, environment=os.environ, log=folder / "log")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stream:  # noqa: PTH123 - gone the next moment, perhaps
        return stream.read().rpartition(")")[2].split()[0] != "Z"


def test_end_is_waited_for_and_the_last_lines_are_kept(tmp_path: Path) -> None:
    child = start(tmp_path, "seq 1 40; echo last >&2; exit 7")
    assert child.wait() == 7
    lines = child.read_end().splitlines()
    assert lines[-1] == "last"
    assert len(lines) == 15


def test_waiting_may_have_an_end_of_its_own(tmp_path: Path) -> None:
    child = start(tmp_path, "sleep 300")
    assert child.wait(0.01) is None
    child.end()
    assert child.wait() == -signal.SIGINT


def test_child_that_heeds_no_request_is_killed_with_all_of_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_INTERRUPT_SECONDS", "_TERMINATE_SECONDS"):
        monkeypatch.setattr(f"pytest_golden.verify.gates.{name}", 0.05)
    program = "trap '' INT TERM; sleep 300 & echo $! > pid; touch ready; while :; do sleep 300; done"
    child = start(tmp_path, program)
    wait_until((tmp_path / "ready").exists)
    child.end()
    assert child.wait() == -signal.SIGKILL
    wait_until(lambda: not is_alive(int((tmp_path / "pid").read_text())))


def test_what_the_child_leaves_behind_in_its_group_is_ended(tmp_path: Path) -> None:
    child = start(tmp_path, "sleep 300 & echo $! > pid")
    assert child.wait() == 0
    wait_until(lambda: not is_alive(int((tmp_path / "pid").read_text())))


def test_child_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    require(sys.platform == "linux", "the kernel's word of a parent's death")
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)])
    wait_until((tmp_path / "pid").exists)
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_alive(int((tmp_path / "pid").read_text())))
