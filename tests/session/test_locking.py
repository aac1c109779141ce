from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gate.state_folder import KEPT_GATES, hold_gate_lock
from tests.session.test_running import wait_for
from tests.session.workspace import OPTIONS

if TYPE_CHECKING:
    from tests.session.recorded import Recorded
    from tests.session.workspace import Workspace


@pytest.mark.parametrize("workers", [[], pytest.param(["-n1"], marks=pytest.mark.xdist)])
def test_second_gate_in_a_workspace_says_so_and_waits(workspace: Workspace, workers: list[str]) -> None:
    workspace.declare({"name": "one", "script": "touch ../marks/ran", "mounts": [{"path": "marks", "mode": "write"}]})
    marks = workspace.pytester.mkdir("marks")
    command = [sys.executable, "-m", "pytest", "--golden", *OPTIONS, *workers]
    log = workspace.path / "output.txt"
    with log.open("wb") as output:
        with hold_gate_lock(workspace.path, print):
            gate = subprocess.Popen(command, cwd=workspace.path, stdout=output, stderr=output)
            wait_for(lambda: "is running in this workspace: waiting" in log.read_text())
            assert not (marks / "ran").exists()
        assert gate.wait(timeout=60) == 0
    assert log.read_text().count("waiting") == 1
    assert (marks / "ran").exists()


def test_next_gate_waits_until_the_end_is_recorded(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makeconftest(
        """
        import pathlib
        import filelock
        import pytest

        class Last:
            @pytest.hookimpl(trylast=True)
            def pytest_sessionfinish(self):
                with pytest.raises(filelock.Timeout):
                    filelock.FileLock(".golden/gate.lock").acquire(timeout=0)
                pathlib.Path("held").touch()

        def pytest_collection_finish(session):
            session.config.pluginmanager.register(Last())
        """
    )
    assert workspace.run().ret == 0
    assert (workspace.path / "held").exists()
    assert recorded.results() == {"one": "PASSED"}
    with hold_gate_lock(workspace.path, pytest.fail):
        pass


def test_gate_that_selects_nothing_does_not_wait(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    with hold_gate_lock(workspace.path, print):
        assert workspace.run("-k", "nothing").ret == 5


def test_logs_of_the_oldest_sessions_are_removed(workspace: Workspace) -> None:
    workspace.declare({"name": "one", "script": "echo said"})
    logs = workspace.path / ".golden" / "logs"
    for number in range(KEPT_GATES + 3):
        (logs / f"gate_0000{number:02d}").mkdir(parents=True)
    workspace.run().assert_outcomes(passed=1)
    kept = sorted(path.name for path in logs.iterdir())
    assert len(kept) == KEPT_GATES
    assert kept[0] == "gate_000004"
    assert (logs / kept[-1] / "one.log").exists()


@pytest.mark.parametrize(("keep", "kept"), [("none", []), ("failed", ["broken"]), ("all", ["broken", "fine"])])
def test_views_are_kept_as_asked(workspace: Workspace, keep: str, kept: list[str]) -> None:
    workspace.declare({"name": "fine"}, {"name": "broken", "script": "echo half > half.txt; exit 1"})
    result = workspace.run(f"--golden-keep={keep}")
    folder = workspace.path / ".golden" / "kept"
    assert sorted(path.name for path in folder.iterdir()) == kept if kept else not folder.exists()
    assert any(line.startswith("kept view: ") for line in result.outlines) is bool(kept)
