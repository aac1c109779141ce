"""The supervisor as a process of its own: what becomes of a pipeline when whoever asked for it is gone."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway import process
from pytest_golden.gateway.model import Ending
from tests.gateway.conftest import VIEWS, processes_with, run_guarded, wait_until
from tests.requirement import lack

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_golden.gateway.service import ExecutionGateway
    from tests.gateway.conftest import MakeProject, RunInView


DAEMON = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("{ready}", "w").close()
        while True:
            time.sleep(1)
    os._exit(0)
os.wait()
while not os.path.exists("{ready}"):
    time.sleep(0.001)
print("left a daemon")
"""


@pytest.mark.parametrize("view", VIEWS)
def test_twenty_of_twenty_daemons_with_their_own_session_are_gone(
    view: str, run_in_view: RunInView, tmp_path: Path
) -> None:
    for number in range(20):
        done = run_in_view(view, DAEMON.format(ready=f"ready-{number}"))
        assert done.executed.exit.exit_code == 0, done.stderr
        assert done.executed.exit.left_behind == 0
        assert done.stdout == "left a daemon\n"
    assert processes_with(str(tmp_path)) == []


def test_pipeline_dies_with_the_gate_that_is_killed(workspace: Path, make_project: MakeProject) -> None:
    mark = f"orphan-{time.monotonic_ns()}"
    make_project(f"""
        trap '' INT TERM HUP
        setsid sh -c 'trap "" TERM; while :; do sleep 0.1; done # {mark}' &
        touch "$TMPDIR/ready"
        sh -c 'while :; do sleep 0.1; done # {mark}'
    """)
    code = (
        "import sys; from pytest_golden.gateway.model import *; from pytest_golden.gateway.service import *; from pytest_golden.manifest.model import GoldenProjectConfig\n"
        "with ExecutionGateway(sys.argv[1], view=sys.argv[2]) as gateway:\n"
        "    gateway.run_pipeline(GoldenProjectConfig('a', 'project/pipeline.sh'), role='regression_guard',"
        " permissions=Permissions())\n"
    )
    for view in ("auto", "copy"):
        gate = subprocess.Popen([sys.executable, "-c", code, workspace, view])
        assert wait_until(lambda: len(processes_with(mark)) >= 2)
        gate.kill()
        gate.wait()
        assert wait_until(lambda: not processes_with(mark))


def test_supervisor_ends_when_its_socket_closes_and_kills_what_runs(tmp_path: Path) -> None:
    mark = f"unsealed-{time.monotonic_ns()}"
    script = (
        f"trap '' INT TERM; setsid sh -c 'while :; do sleep 0.1; done # {mark}' & while :; do sleep 0.1; done # {mark}"
    )
    ours, theirs = socket.socketpair()
    child = subprocess.Popen([sys.executable, *process.SUPERVISOR], stdin=theirs.fileno())
    theirs.close()
    ours.sendall(_request(script, tmp_path))
    assert wait_until(lambda: len(processes_with(mark)) >= 2)
    # What a terminal or an impatient person sends to everything is none of its business.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        child.send_signal(number)
    assert child.poll() is None
    ours.close()
    assert child.wait(60) == 0
    assert processes_with(mark) == []


def test_interrupt_without_a_run_changes_nothing(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    child = subprocess.Popen([sys.executable, *process.SUPERVISOR], stdin=theirs.fileno())
    theirs.close()
    with ours:
        ours.sendall(b'{"op": "interrupt"}\n' + _request("exit 7", tmp_path))
        answer = json.loads(ours.recv(65536))
    assert (answer["ending"], answer["exit_code"]) == ("exited", 7)
    assert child.wait(60) == 0


def _request(script: str, folder: Path) -> bytes:
    request: dict[str, Any] = {
        "op": "run",
        "argv": ["sh", "-c", script],
        "cwd": "/",
        "environment": {"PATH": "/usr/bin:/bin"},
        "stdout": str(folder / "out"),
        "stderr": str(folder / "err"),
        "sealed": False,
        "filter": "",
        "timeout_seconds": None,
        "memory_limit_bytes": None,
        "cpu_limit_seconds": None,
        "process_limit": None,
        "disk_limit_bytes": None,
        "control_groups": "",
        "interrupt_grace_seconds": 1.0,
        "terminate_grace_seconds": 1.0,
    }
    return json.dumps(request).encode() + b"\n"


@pytest.mark.usefixtures("sealing")
def test_sandbox_that_is_killed_is_a_death_by_signal(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    mark = f"victim-{time.monotonic_ns()}"

    def kill_the_sandbox() -> None:
        assert wait_until(lambda: len(processes_with(mark)) >= 3)
        os.kill(min(processes_with(mark)), signal.SIGKILL)

    thread = threading.Thread(target=kill_the_sandbox)
    thread.start()
    command = ["sh", "-c", f"while :; do sleep 0.1; done # {mark}"]
    outcome = run_guarded(open_gateway(), make_project("true", command=command, timeout=120))
    thread.join()
    assert (outcome.ending, outcome.exit_code) == (Ending.SIGNALLED, -9)
    assert wait_until(lambda: not processes_with(mark))


KEYRINGS = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
def ask(operation, *arguments):
    return libc.syscall(KEYCTL, operation, *arguments)
def find_key():
    return ask(10, -3, b"user", b"golden-secret", 0)
"""
GATE_WITH_A_KEY = """
if ask(1, None) <= 0:
    sys.exit(77)  # forbidden here, as in many containers
assert libc.syscall(ADD_KEY, b"user", b"golden-secret", b"hidden", ctypes.c_size_t(6), -3) > 0
assert find_key() > 0
from pytest_golden.gateway.process import Launch, Supervisor
supervisor = Supervisor()
supervisor.run(Launch((sys.executable, "pipeline.py"), sys.argv[1], {}, f"{sys.argv[1]}/out", f"{sys.argv[1]}/err", sealed=False))
supervisor.close()
print(ask(0, -3, 0))
assert find_key() > 0
"""


@pytest.mark.skipif(sys.platform != "linux", reason="keyrings are Linux's")
def test_pipeline_without_a_seal_has_a_keyring_of_its_own(tmp_path: Path) -> None:
    keyctl, add_key = {"x86_64": (250, 248), "aarch64": (219, 217)}[os.uname().machine]
    code = KEYRINGS.replace("KEYCTL", str(keyctl)).lstrip()
    (tmp_path / "pipeline.py").write_text(code + "print(ask(0, -3, 0), find_key())")
    gate = [sys.executable, "-c", code + GATE_WITH_A_KEY.replace("ADD_KEY", str(add_key)), str(tmp_path)]
    done = subprocess.run(gate, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 77:
        lack("this machine forbids keyrings")
    assert done.returncode == 0, done.stderr
    own = int(done.stdout)
    seen, key = map(int, (tmp_path / "out").read_text().split())
    assert seen > 0
    assert seen != own
    assert key == -1
