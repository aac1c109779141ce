"""Servers outside the seal whose sockets lie in the file system, where a read-only mount alone keeps nobody out."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.execution import execute
from pytest_golden.gateway.seal import find_sockets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.gateway.process import Supervisor
    from tests.gateway.conftest import RunInView

    Run = Callable[..., PipelineOutcome]

pytestmark = pytest.mark.usefixtures("sealing")
in_both_views = pytest.mark.parametrize("view", ["overlay", "copy"])

CONNECT = """
    import socket, sys
    for path in {paths!r}:
        try:
            socket.socket(socket.AF_UNIX).connect(path)
            print("connected")
        except OSError as error:
            print("refused")
"""


@contextmanager
def listening(path: Path, kind: int = socket.SOCK_STREAM) -> Iterator[str]:
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(str(path))
        if kind == socket.SOCK_STREAM:
            server.listen()
        yield str(path)


@in_both_views
@pytest.mark.parametrize("name", ["s", "with a space", "two\nlines\n0", "back\\slash"])
def test_server_beside_the_project_cannot_be_reached(view: str, name: str, run: Run, workspace: Path) -> None:
    with listening(workspace / name) as path:
        assert path in find_sockets()
        assert run(CONNECT.format(paths=[path]), view=view).stdout == "refused\n"


@in_both_views
def test_server_in_the_project_and_in_what_is_withheld_of_it_cannot_be_reached(
    view: str, run: Run, project_dir: Path
) -> None:
    (project_dir / ".git").mkdir()
    with listening(project_dir / "s") as one, listening(project_dir / ".git" / "s") as other:
        assert run(CONNECT.format(paths=[one, other]), view=view).stdout == "refused\nrefused\n"


def test_server_without_connections_cannot_be_sent_anything(run: Run, workspace: Path) -> None:
    with listening(workspace / "s", socket.SOCK_DGRAM) as path:
        script = f"""
            import socket
            try:
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", {path!r})
                print("sent")
            except OSError:
                print("refused")
        """
        assert run(script).stdout == "refused\n"


def test_server_reached_by_a_link_is_covered_where_it_lies(run: Run, workspace: Path) -> None:
    (workspace / "real").mkdir()
    (workspace / "link").symlink_to("real")
    with listening(workspace / "link" / "s") as path:
        paths = [path, str(workspace / "real" / "s")]
        assert run(CONNECT.format(paths=paths)).stdout == "refused\nrefused\n"


@in_both_views
def test_server_in_a_declared_mount_can_be_reached(view: str, run: Run, workspace: Path) -> None:
    (workspace / "mysql").mkdir()
    with listening(workspace / "mysql" / "s") as path, listening(workspace / "other") as other:
        outcome = run(CONNECT.format(paths=[path, other]), view=view, mounts=[{"path": str(workspace / "mysql")}])
        assert outcome.stdout == "connected\nrefused\n"


def test_neighbours_of_a_covered_socket_stay_readable(run: Run, workspace: Path) -> None:
    (workspace / "data.txt").write_text("data\n")
    with listening(workspace / "s"):
        assert run(f"cat {workspace}/data.txt").stdout == "data\n"


@in_both_views
def test_server_that_goes_away_before_the_launch_costs_nothing(
    view: str, run_in_view: RunInView, workspace: Path, supervisor: Supervisor
) -> None:
    with listening(workspace / "stays") as stays, listening(workspace / "goes") as goes:
        script = CONNECT.format(paths=[stays, goes])
        first = run_in_view(view, script, before=["echo before"])
        assert first.stdout == "refused\nrefused\n"
        (workspace / "goes").unlink()
        again = execute(first.prepared, (sys.executable, "{path}"), supervisor)
    assert (again.exit.exit_code, again.problem, again.message) == (0, None, "")
    assert first.stderr == ""


def test_more_sockets_than_are_covered_break_nothing(run: Run, workspace: Path) -> None:
    with ExitStack() as stack:
        for number in range(260):
            stack.enter_context(listening(workspace / f"s{number:03}"))
        paths = [str(workspace / "s000"), str(workspace / "s100")]
        outcome = run(CONNECT.format(paths=paths))
    assert (outcome.stdout, outcome.problem) == ("refused\nrefused\n", None)
