from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import PermissionDeniedError
from pytest_golden.gateway.model import AgentRole, Ending, Permissions, PipelineOutcome
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.journal.checks.heartbeat import run_command
from tests.requirement import require

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_golden.manifest.model import GoldenProjectConfig


_CONNECT = """python3 -c 'import socket, sys
number = socket.socket().connect_ex(("192.0.2.1", 80))
sys.exit("no network" if number == 101 else 9)'"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[ExecutionGateway]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "data.txt").write_text("42\n")
    with ExecutionGateway(workspace) as gateway:
        require(gateway.describe().seal == "namespaces", "user namespaces: commands are run without a network")
        yield gateway


def test_a_command_sees_the_workspace_and_leaves_nothing(gateway: ExecutionGateway) -> None:
    answer = run_command(gateway, ("sh", "-c", "grep -q 42 data.txt && echo 43 > data.txt && echo x > new.txt"), 30)
    assert answer.signal_type == "positive"
    assert [path.name for path in gateway.workspace_root.iterdir()] == ["data.txt"]
    assert (gateway.workspace_root / "data.txt").read_text() == "42\n"


@pytest.mark.parametrize(
    ("script", "kind", "told"),
    [
        ("echo first; echo no such row >&2; exit 3", "negative", "(exit code 3): no such row"),
        ("echo token ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2; false", "negative", "REDACTED"),
        ("kill -9 $$", "neutral", "signal 9 ended it"),
        ("sleep 60", "neutral", "it took too long"),
        ("nosuchprogram", "neutral", "a program was not found"),
        (_CONNECT, "negative", "(exit code 1): no network"),
    ],
)
def test_a_command_tells_by_its_end(gateway: ExecutionGateway, script: str, kind: str, told: str) -> None:
    answer = run_command(gateway, ("sh", "-c", script), 3)
    assert answer.signal_type == kind
    assert told in answer.summary


def test_a_program_that_is_not_there_is_no_answer(gateway: ExecutionGateway) -> None:
    answer = run_command(gateway, ("nosuchprogram",), 5)
    assert answer[:2] == ("neutral", "the check could not be run: its program was not found here")


class Plugged:
    def __init__(self, gives: PipelineOutcome | Exception) -> None:
        self.gives = gives

    def run_pipeline(
        self, project: GoldenProjectConfig, *, role: AgentRole, permissions: Permissions
    ) -> PipelineOutcome:
        assert (role, permissions) == ("environment", Permissions(can_execute_tasks=True, can_edit_source=False))
        assert not project.network
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


def test_a_gateway_that_refuses_is_no_answer() -> None:
    answer = run_command(Plugged(PermissionDeniedError("not you")), ("true",), 5)
    assert answer[:2] == ("neutral", "the check could not be run: not you")


def test_a_command_that_cannot_be_declared_is_no_answer() -> None:
    answer = run_command(Plugged(PipelineOutcome(Ending.EXITED, 0)), ("",), 5)
    assert answer.signal_type == "neutral"
    assert "its command cannot be declared" in answer.summary


def test_a_command_that_was_interrupted_ends_the_beat() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_command(Plugged(PipelineOutcome(Ending.INTERRUPTED)), ("true",), 5)
