"""What others see of a gate while it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from pytest_golden.gate.live_store import LiveGates
from pytest_golden.storage.schema import gate_live
from pytest_golden.storage.store import Store
from tests.patience import wait_until
from tests.session.workspace import OPTIONS

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.gate.live import RunningProject
    from tests.session.recorded import Recorded
    from tests.session.workspace import Workspace

STEP = 'echo \'{"name": "load token=%s"}\' >> "$GOLDEN_STEPS"; sleep 600'
TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
GATEWAY = """
import json
from pytest_golden import Ending, PipelineOutcome
from pytest_golden.storage.store import Store
from sqlalchemy import text
from tests.patience import wait_until

class Watching:
    def __init__(self, config):
        self.config = config

    def present_step(self):
        return {step}

    def run_pipeline(self, project, *, role, permissions):
        recording = self.config.pluginmanager.get_plugin("golden_recording")
        {work}
        return PipelineOutcome(Ending.EXITED, 0)

def pytest_golden_gateway(config):
    return Watching(config)
"""
LOOK = """
        def look():
            with Store.open(".golden/golden.db") as store, store.read() as connection:
                return connection.execute(text("SELECT running, total_count, pid FROM gate_live")).all()
        wait_until(lambda: [1 for row in look() if project.name in row.running])
        ((running, total, pid),) = look()
        with open("seen.jsonl", "a") as file:
            print(json.dumps([json.loads(running), total, pid]), file=file)
"""
LOCK = """
        import sqlite3
        missed = recording._get_opened().live.missed_count
        connection = sqlite3.connect(".golden/golden.db", isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        wait_until(lambda: recording._get_opened().live.missed_count > missed)
        connection.close()
"""

FORKING = """
import os, threading

def names():
    return {thread.name for thread in threading.enumerate()} & {"golden-store", "golden-live-row"}

def test_fork():
    assert names()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert not names()

def test_next():
    assert names() == {"golden-live-row"}
"""


def plug_in(workspace: Workspace, work: str, step: str = "None") -> None:
    workspace.pytester.makeconftest(GATEWAY.format(work=work.strip(), step=step))


def rows(path: Path) -> int:
    with Store.open(path) as store, store.read() as connection:
        return len(connection.execute(select(gate_live)).all())


def test_row_tells_what_runs_and_goes_with_the_end(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one"}, {"name": "two"})
    plug_in(workspace, LOOK, step=f"'load token={TOKEN}' + 'x' * 500")
    result = workspace.run()
    assert result.ret == 0
    assert rows(recorded.path) == 0
    seen = (workspace.path / "seen.jsonl").read_text()
    assert TOKEN not in seen
    assert seen.count(f", 2, {os.getpid()}]") == 2
    assert '"project": "two", "since": "20' in seen


@pytest.mark.parametrize("step", ["1 / 0", "5"])
def test_gateway_that_tells_no_step_as_it_should_costs_nothing(
    workspace: Workspace, recorded: Recorded, step: str
) -> None:
    workspace.declare({"name": "one"})
    work = LOOK if step == "5" else "wait_until(lambda: recording._get_opened().live.missed_count)"
    plug_in(workspace, work, step=step)
    result = workspace.run()
    assert result.ret == 0
    assert "WARNING" not in result.stdout.str()
    assert recorded.results() == {"one": "PASSED"}


def test_locked_store_is_not_waited_for_and_nothing_is_said(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one"})
    plug_in(workspace, LOCK)
    result = workspace.run()
    assert result.ret == 0
    assert "WARNING" not in result.stdout.str()
    assert recorded.results() == {"one": "PASSED"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_test_that_forks_beside_the_gate_meets_no_thread_of_it(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makepyfile(test_other=FORKING)
    result = workspace.run("-W", "ignore:This process", "test_other.py")
    result.assert_outcomes(passed=3)


def test_without_a_store_nothing_is_told(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    plug_in(
        workspace, "import threading; assert 'golden-live-row' not in map(lambda one: one.name, threading.enumerate())"
    )
    assert workspace.run("--golden-store=none").ret == 0


@pytest.mark.parametrize("more", [[], pytest.param(["-n2"], marks=pytest.mark.xdist)], ids=["plain", "xdist"])
def test_killed_gate_is_seen_while_it_runs_and_not_afterwards(
    workspace: Workspace, recorded: Recorded, more: list[str]
) -> None:
    workspace.declare({"name": "one"}, {"name": "two", "script": STEP % TOKEN})
    command = [sys.executable, "-m", "pytest", "--golden", *OPTIONS, *more]
    gate = subprocess.Popen(
        command, cwd=workspace.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    wait_until(recorded.path.exists)
    wait_until(lambda: recorded.past("one"))
    with Store.open(recorded.path) as store:
        gates = LiveGates(store, least_seconds=0.0)

        def running() -> tuple[RunningProject, ...]:
            return tuple(one for gate in gates.look().gates for one in gate.running)

        wait_until(lambda: [one for one in running() if one.step])
        (seen,) = gates.look().gates
        assert [(one.name, one.step) for one in seen.running] == [("two", "load token=[REDACTED]")]
        assert [one.name for one in seen.finished] == ["one"]
        assert seen.pid == gate.pid

        os.killpg(gate.pid, signal.SIGKILL)
        gate.wait(60)
        assert gates.look().gates == ()
        (over,) = gates.look().ended
        assert (over.run_id, over.final_status, over.is_interrupted) == (seen.run_id, None, True)
    assert rows(recorded.path) == 1
    workspace.declare({"name": "one"})
    assert workspace.run().ret == 0
    assert rows(recorded.path) == 0
