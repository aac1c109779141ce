from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.clock import new_id
from pytest_golden.cycle.cycle_runner import CycleRunner
from pytest_golden.cycle.model import CycleConfig
from pytest_golden.cycle.worktree import CycleWorktree
from pytest_golden.gateway.model import Ending, PipelineOutcome
from tests.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_golden.cycle.model import CycleEvent, CycleState, CycleStep
    from pytest_golden.manifest.model import GoldenProjectConfig


class InstantGateway:
    """A plugged-in gateway whose pipelines end at once, with the exit codes that are told."""

    def __init__(self, codes: Mapping[str, int] | None = None) -> None:
        self.codes = dict(codes or {})
        self.ran: list[str] = []

    def run_pipeline(self, project: GoldenProjectConfig, **_: Any) -> PipelineOutcome:
        self.ran.append(project.name)
        return PipelineOutcome(ending=Ending.EXITED, exit_code=self.codes.get(project.name, 0))


class Cycle:
    """A cycle with steps that tell that they were called, and whatever else it is given."""

    def __init__(self, root: Path, gateway: InstantGateway) -> None:
        self.root = root
        self.gateway = gateway
        self.called: list[str] = []
        self.events: list[CycleEvent] = []
        self.answers: dict[str, Any] = {
            "project_selection": None,
            "user_execution": None,
            "observation": None,
            "improvement": {"proposal": "a better lib.py"},
            "review": {"approved": True},
        }

    def make(self, *, clock: Any = None, store: str | None = "none", **config: Any) -> CycleRunner:
        told: dict[str, Any] = {"golden_projects": "etl:etl.py", "max_improvements": 1, **config}
        steps = {name: self._step(name) for name in self.answers}
        return CycleRunner(
            CycleConfig(self.root, **told),
            steps=steps,
            on_event=self.events.append,
            gateway=self.gateway,
            clock=clock,
            store=store,
        )

    def run(self, **config: Any) -> CycleState:
        return self.make(**config).run()

    def _step(self, name: str) -> Any:
        if self.answers[name] is Missing:
            return None

        def call(state: CycleState) -> Any:
            self.called.append(name)
            answer = self.answers[name]
            if callable(answer):
                return answer(state)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return call


class Missing:
    """Stands for a step that is given as None."""


@pytest.fixture
def gateway() -> InstantGateway:
    return InstantGateway()


@pytest.fixture
def cycle(tmp_path: Path, gateway: InstantGateway) -> Cycle:
    return Cycle(tmp_path, gateway)


def reasons(state: CycleState) -> dict[CycleStep, tuple[str, str]]:
    """Return status and reason of each step; of one that was walked again, the last."""
    return {record.step: (str(record.status), record.reason) for record in state.steps}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with one commit; folders for temporary files are this test's own."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    folder = tmp_path / "repository"
    folder.mkdir()
    made = Repository(folder)
    made.declare("works")
    made.script("works", "echo fine\n")
    made.write(lib__py="x = 1\n")
    made.commit("base")
    return made


@pytest.fixture
def tree(repository: Repository) -> Iterator[CycleWorktree]:
    made = CycleWorktree(repository.folder, new_id("cycle"), repository.git("rev-parse", "HEAD"), "golden/cycle-test")
    made.open()
    yield made
    made.close()
