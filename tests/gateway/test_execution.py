from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.execution import _find_problem, execute
from pytest_golden.gateway.model import Ending, Problem
from tests.gateway.conftest import VIEWS

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.gateway.process import Supervisor
    from tests.gateway.conftest import RunInView

in_every_view = pytest.mark.parametrize("view", VIEWS)


@in_every_view
def test_before_and_after_see_the_same_view(view: str, run_in_view: RunInView, project_dir: Path) -> None:
    done = run_in_view(
        view,
        "cat seed; echo 2 >> seed",
        before=["sh -c 'echo 1 > seed'"],
        after=["sh -c 'cp seed checked'", ["cp", "{path}", "the pipeline"]],
    )
    assert (done.executed.exit.exit_code, done.executed.problem, done.stdout) == (0, None, "1\n")
    assert done.write_set.created == ("checked", "seed", "the pipeline")
    assert [path.name for path in project_dir.iterdir()] == ["pipeline.sh"]


@in_every_view
def test_failing_before_keeps_the_pipeline_from_running(view: str, run_in_view: RunInView) -> None:
    done = run_in_view(view, "touch ran", before=["true", "sh -c 'echo no seed here >&2; exit 3'", "touch third"])
    assert done.executed.problem is Problem.BEFORE_FAILED
    assert done.executed.message == (
        "`before:` command `sh -c 'echo no seed here >&2; exit 3'` failed (exit code 3):\nno seed here"
    )
    assert done.write_set.created == ()


@in_every_view
def test_failing_after_does_not_hide_the_pipelines_own_end(view: str, run_in_view: RunInView) -> None:
    done = run_in_view(view, "echo fine; exit 4", after=["sh -c 'echo bad; exit 1'", "touch second"])
    assert (done.executed.exit.exit_code, done.stdout) == (4, "fine\n")
    assert done.executed.problem is Problem.AFTER_FAILED
    assert done.executed.message == "`after:` command `sh -c 'echo bad; exit 1'` failed (exit code 1):\nbad"
    assert done.write_set.created == ()


def test_before_that_takes_too_long_is_said(run_in_view: RunInView) -> None:
    done = run_in_view("unsealed", "true", before=["sleep 300"], timeout=0.2)
    assert done.executed.message == "`before:` command `sleep 300` failed (timeout)"
    assert done.executed.exit.ending is Ending.TIMEOUT


def test_after_is_left_out_when_the_pipeline_was_stopped(run_in_view: RunInView) -> None:
    done = run_in_view("unsealed", "sleep 300", after=["touch after"], timeout=0.2)
    assert (done.executed.exit.ending, done.executed.problem) == (Ending.TIMEOUT, None)
    assert done.write_set.created == ()


def test_after_can_be_left_out(run_in_view: RunInView, supervisor: Supervisor) -> None:
    done = run_in_view("unsealed", "true", after=["touch after"])
    assert list(done.write_set.created) == ["after"]
    again = execute(done.prepared, ("sh", "-c", "rm after"), supervisor, after=False)
    assert (again.exit.exit_code, list(done.write_set.created)) == (0, [])


@in_every_view
@pytest.mark.parametrize(
    ("argv", "problem", "says"),
    [
        (("/no/such/tool",), Problem.COMMAND_NOT_FOUND, "`/no/such/tool` was not found inside the view"),
        (("./plain",), Problem.PERMISSION_DENIED, "`./plain` may not be executed: permission denied"),
        (("./broken",), Problem.COMMAND_NOT_FOUND, "`./broken` was not found inside the view"),
    ],
)
def test_what_cannot_be_started_is_told_in_one_sentence(
    view: str,
    argv: tuple[str, ...],
    problem: Problem,
    says: str,
    run_in_view: RunInView,
    project_dir: Path,
    supervisor: Supervisor,
) -> None:
    (project_dir / "plain").write_text("#!/bin/sh\n")
    (project_dir / "broken").write_text("#!/no/such/interpreter\n")
    (project_dir / "broken").chmod(0o755)
    done = execute(run_in_view(view, "true").prepared, argv, supervisor)
    assert (done.exit.ending, done.problem) == (Ending.NOT_STARTED, problem)
    assert says in done.message


def test_program_of_another_kind_of_machine_is_told_in_one_sentence(
    run_in_view: RunInView, project_dir: Path, supervisor: Supervisor
) -> None:
    (project_dir / "binary").write_bytes(b"\x7fELF nonsense")
    (project_dir / "binary").chmod(0o755)
    done = execute(run_in_view("unsealed", "true").prepared, ("./binary",), supervisor)
    assert (done.exit.ending, done.problem) == (Ending.NOT_STARTED, Problem.HARNESS)
    assert "`./binary` could not be started" in done.message


def test_sandbox_that_breaks_down_is_told_apart_from_the_pipeline(
    run_in_view: RunInView, workspace: Path, supervisor: Supervisor
) -> None:
    (workspace / "lake").mkdir()
    done = run_in_view("overlay", "true", mounts=[{"path": "lake"}])
    (workspace / "lake").rmdir()
    broken = execute(done.prepared, ("true",), supervisor)
    assert (broken.exit.ending, broken.problem) == (Ending.NOT_STARTED, Problem.SANDBOX_UNAVAILABLE)
    assert "the sandbox could not be set up" in broken.message
    assert "lake" in broken.message


@pytest.mark.parametrize(("number", "problem"), [(errno.ENOSPC, Problem.SCRATCH_FULL), (errno.E2BIG, Problem.HARNESS)])
def test_errors_of_the_system_are_told_apart(number: int, problem: Problem) -> None:
    assert _find_problem(number, os.strerror(number)) is problem


@in_every_view
def test_missing_program_in_before_is_explained(view: str, run_in_view: RunInView) -> None:
    done = run_in_view(view, "true", before=[["nonexistent-program"]])
    assert done.executed.problem is Problem.BEFORE_FAILED
    assert "`nonexistent-program` was not found inside the view" in done.executed.message
