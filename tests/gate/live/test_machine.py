from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_golden.gate.live_model import describe_machine, has_process


def test_machine_is_the_same_for_all_its_processes() -> None:
    code = "from pytest_golden.gate.live_model import describe_machine; print(describe_machine())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == describe_machine()


@pytest.mark.skipif(sys.platform == "win32", reason="nothing asks there")
def test_process_is_there_until_it_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    assert has_process(child.pid)
    assert has_process(os.getpid())
    child.wait()
    assert not has_process(child.pid)


def test_pid_that_none_can_be_is_of_no_process_or_says_nothing() -> None:
    assert has_process(0)
    assert sys.platform == "win32" or not has_process(2**63)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="may signal every process")
def test_process_of_another_user_is_there() -> None:
    assert has_process(1)
