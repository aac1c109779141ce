"""What the gateway leaves for people: logs, kept views, a shell in a view."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GatewayError
from pytest_golden.gateway.model import AgentRole, Permissions
from tests.gateway.conftest import run_guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.gateway.service import ExecutionGateway
    from tests.gateway.conftest import MakeProject


def test_logs_are_kept_by_attempt(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, tmp_path: Path
) -> None:
    gateway = open_gateway(log_folder=tmp_path / "logs")
    project = make_project("echo hello")
    first, second = run_guarded(gateway, project), run_guarded(gateway, project)
    assert (first.log_path, second.log_path) == (str(tmp_path / "logs/sales.log"), str(tmp_path / "logs/sales.2.log"))
    assert "hello" in (tmp_path / "logs" / "sales.log").read_text()
    assert run_guarded(gateway, make_project("true")).log_path is None


def test_log_that_cannot_be_written_costs_the_log_and_not_the_result(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, tmp_path: Path
) -> None:
    (tmp_path / "logs").touch()
    outcome = run_guarded(open_gateway(log_folder=tmp_path / "logs"), make_project("echo hello"))
    assert (outcome.exit_code, outcome.log_path, outcome.stdout) == (0, None, "hello\n")


def test_views_are_kept_for_people_when_asked(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, workspace: Path
) -> None:
    gateway = open_gateway(keep_if=lambda _, outcome: outcome.exit_code != 0)
    kept = run_guarded(gateway, make_project("echo x > out; exit 1"))
    assert kept.kept_view == str(workspace / ".golden" / "kept" / "sales")
    assert (workspace / ".golden" / "kept" / "sales" / "out").read_text() == "x\n"
    assert run_guarded(gateway, make_project("true")).kept_view is None
    again = run_guarded(gateway, make_project("echo y > other; exit 1"))
    assert [path.name for path in Path(str(again.kept_view)).iterdir()] == ["other"]


def test_view_that_cannot_be_kept_is_a_warning(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, workspace: Path
) -> None:
    (workspace / ".golden").touch()
    outcome = run_guarded(open_gateway(keep_if=lambda *_: True), make_project("true"))
    assert (outcome.exit_code, outcome.kept_view) == (0, None)
    assert "its view could not be kept" in outcome.warnings[0]


@pytest.mark.usefixtures("sealing")
def test_shell_opens_in_the_view_with_the_seal_around_it(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, tmp_path: Path, project_dir: Path
) -> None:
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\npwd; cat seed; echo x > out; echo $TERM\ntouch /etc/golden 2>/dev/null; exit 7\n")
    shell.chmod(0o755)
    environ = {**os.environ, "SHELL": str(shell), "TERM": "vt100"}
    gateway = open_gateway(environ=environ, roots=[tmp_path])
    said: list[object] = []
    code = gateway.open_shell(
        make_project("true", before=["sh -c 'echo seed > seed'"], after=["touch after"]),
        role=AgentRole.USER,
        permissions=Permissions(),
        announce=lambda argv, folder: said.extend([argv[-1], folder]),
    )
    assert code == 7
    assert said == [str(project_dir / "pipeline.sh"), str(project_dir)]
    assert [path.name for path in project_dir.iterdir()] == ["pipeline.sh"]


def test_shell_is_not_opened_when_before_fails(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    project = make_project("true", before=["sh -c 'echo no seed; exit 1'"])
    with pytest.raises(GatewayError, match="no seed"):
        open_gateway().open_shell(project, role=AgentRole.USER, permissions=Permissions(), announce=lambda *_: None)


SHELL_IN_A_TERMINAL = """
import os, pty, sys
code = '''
import sys
from pytest_golden.gateway.model import *
from pytest_golden.gateway.service import *
from pytest_golden.manifest.model import GoldenProjectConfig
with ExecutionGateway(sys.argv[1]) as gateway:
    sys.exit(gateway.open_shell(GoldenProjectConfig("a", "project/pipeline.sh"), role=AgentRole.USER,
        permissions=Permissions(), announce=lambda *_: None))
'''
sys.exit(os.waitstatus_to_exitcode(pty.spawn([sys.executable, "-c", code, sys.argv[1]])))
"""


@pytest.mark.usefixtures("sealing")
def test_shell_has_the_terminal_and_an_interrupt_reaches_what_runs_in_it(
    make_project: MakeProject, workspace: Path
) -> None:
    make_project("true")
    shell = workspace / "shell"
    shell.write_text(
        "#!/bin/sh\ntest -t 0 && echo terminal\ntrap 'echo interrupted; exit 5' INT\nsleep 0.3; kill -INT 0\n"
    )
    shell.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", SHELL_IN_A_TERMINAL, str(workspace)],
        env={**os.environ, "SHELL": str(shell)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (5, ["terminal", "interrupted"])
