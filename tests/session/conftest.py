from __future__ import annotations

from importlib import import_module

import pytest

from pytest_golden.gate import teaching as learning
from tests.patience import PATIENCE_SECONDS, wait_for_git
from tests.session.recorded import Recorded
from tests.session.workspace import Workspace

# pytester forgets what a session imported. What is here already need not be imported again by each, and SQLAlchemy,
# being compiled in part, cannot be.
for module in (
    "compare.examination",
    "gate.fixes",
    "gate.known",
    "gate.run_record",
    "gate.service",
    "gate.store",
    "gateway.service",
    "history.trends",
    "regression.floor",
    "report.gate_report",
    "report.github",
    "report.html_page",
    "report.junit",
    "session.owner",
    "session.run_recording",
    "session.start",
    "storage.upgrading",
    "trajectory.insight.figures",
):
    import_module(f"pytest_golden.{module}")


@pytest.fixture
def workspace(pytester: pytest.Pytester) -> Workspace:
    return Workspace(pytester)


@pytest.fixture
def recorded(workspace: Workspace) -> Recorded:
    return Recorded(workspace.path / ".golden" / "golden.db")


@pytest.fixture(autouse=True)
def no_summary_of_an_inner_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the gates that these tests run out of the summary of the job that runs the tests."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


@pytest.fixture(autouse=True)
def time_to_learn_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let inner sessions ask git, and learn at their ends, for as long as that takes; usually it is a twentieth of a second."""
    wait_for_git(monkeypatch)
    for name in ("GATE_SECONDS", "LEAST_SECONDS"):
        monkeypatch.setattr(learning, name, PATIENCE_SECONDS)
