"""Runs a prepared project's commands in order: `before`, the pipeline, `after`. Gives raw facts; keeps and shows nothing."""

from __future__ import annotations

import errno
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.gateway.model import Ending, Problem
from pytest_golden.gateway.output import OUTCOME_SHARE_BYTES, keep_output, last_lines
from pytest_golden.gateway.process import Exit, Launch, Supervisor
from pytest_golden.gateway.seal import without_idle_covers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from pytest_golden.gateway.preparation import Prepared


@dataclass(frozen=True, slots=True)
class Executed:
    """How the commands of one project went. `exit` is the pipeline's, or that of the command that kept it from running.

    `message` is raw output in part: redact it before it is shown.
    """

    exit: Exit
    stdout: Path
    stderr: Path
    started_at: datetime
    problem: Problem | None = None
    message: str = ""


def execute(prepared: Prepared, argv: Sequence[str], supervisor: Supervisor, *, after: bool = True) -> Executed:
    """Run everything of one project to its end; `after=False` leaves `after:` out.

    Raises:
        GatewayError: the supervisor broke down.
    """
    config = prepared.project.config
    for number, command in enumerate(config.before, 1):
        step = _run(prepared, command, f"before-{number}", supervisor)
        if not _is_good(step.exit):
            return _blame(step, Problem.BEFORE_FAILED, "before", command, sealed=prepared.is_sealed)
    main = _explained(_run(prepared, argv, "main", supervisor), argv, sealed=prepared.is_sealed)
    if main.exit.ending is not Ending.EXITED:
        return main
    for number, command in enumerate(config.after if after else (), 1):
        step = _run(prepared, command, f"after-{number}", supervisor)
        if not _is_good(step.exit):
            failed = _blame(step, Problem.AFTER_FAILED, "after", command, sealed=prepared.is_sealed)
            # A Ctrl-C ends the gate, wherever in the project it comes.
            stopped = failed.exit.ending is Ending.INTERRUPTED
            ended = replace(main.exit, ending=Ending.INTERRUPTED) if stopped else main.exit
            return Executed(ended, main.stdout, main.stderr, main.started_at, failed.problem, failed.message)
    return main


def _run(prepared: Prepared, argv: Sequence[str], name: str, supervisor: Supervisor) -> Executed:
    stdout, stderr = prepared.folder / f"{name}.out", prepared.folder / f"{name}.err"
    started_at = utc_now()
    while True:
        ended = supervisor.run(_launch(prepared, argv, stdout, stderr), prepared.handover)
        if prepared.handover is not None and prepared.handover.take_failure():
            ended = replace(ended, ending=Ending.NOT_STARTED, exit_code=None)
        if ended.ending is not Ending.NOT_STARTED or not prepared.is_sealed or not stderr.exists():
            break
        # A server that went away between our look and the launch must not cost the run.
        prefix = without_idle_covers(prepared.prefix, stderr.read_bytes())
        if prefix == prepared.prefix:
            break
        prepared = replace(prepared, prefix=prefix)
        stdout.unlink()
        stderr.unlink()
    return Executed(ended, stdout, stderr, started_at)


def _launch(prepared: Prepared, argv: Sequence[str], stdout: Path, stderr: Path) -> Launch:
    config = prepared.project.config
    return Launch(
        argv=prepared.wrap(argv),
        cwd=prepared.host_folder,
        environment=prepared.environment,
        stdout=str(stdout),
        stderr=str(stderr),
        sealed=prepared.is_sealed,
        timeout_seconds=config.timeout,
        memory_limit_bytes=config.memory_limit,
        cpu_limit_seconds=config.cpu_limit,
    )


def _is_good(ended: Exit) -> bool:
    return ended.ending is Ending.EXITED and ended.exit_code == 0


def _blame(step: Executed, problem: Problem, key: str, command: Sequence[str], *, sealed: bool) -> Executed:
    """Say which command of `before:` or `after:` failed, how, and the last it said."""
    if step.exit.ending is Ending.NOT_STARTED:
        message = f"`{key}:` command `{shlex.join(command)}`: {_explained(step, command, sealed=sealed).message}"
        return Executed(step.exit, step.stdout, step.stderr, step.started_at, problem, message)
    how = f"exit code {step.exit.exit_code}"
    if step.exit.ending is not Ending.EXITED:
        how = step.exit.ending.value.replace("_", " ")
    said = last_lines(_text(step.stderr) or _text(step.stdout), 5) or step.exit.message
    message = f"`{key}:` command `{shlex.join(command)}` failed ({how})" + (f":\n{said}" if said else "")
    return Executed(step.exit, step.stdout, step.stderr, step.started_at, problem, message)


def _explained(main: Executed, argv: Sequence[str], *, sealed: bool) -> Executed:
    """Give a pipeline that never started its reason: from the system, or from what the sandbox said."""
    if main.exit.ending is not Ending.NOT_STARTED:
        return main
    said = last_lines(_text(main.stderr), 3) if sealed else main.exit.message
    problem = _find_problem(main.exit.errno, said)
    words = {
        Problem.COMMAND_NOT_FOUND: f"`{argv[0]}` was not found inside the view",
        Problem.PERMISSION_DENIED: f"`{argv[0]}` may not be executed: permission denied",
        Problem.SANDBOX_UNAVAILABLE: "the sandbox could not be set up",
        Problem.SCRATCH_FULL: "there is no space left for the output; free some, or set TMPDIR to a larger disk",
        Problem.HARNESS: f"`{argv[0]}` could not be started",
    }
    return Executed(main.exit, main.stdout, main.stderr, main.started_at, problem, f"{words[problem]} ({said})")


def _find_problem(number: int | None, said: str) -> Problem:
    if number == errno.ENOENT or ("execvp" in said and "No such file" in said):
        return Problem.COMMAND_NOT_FOUND
    if number in {errno.EACCES, errno.EPERM} or ("execvp" in said and "Permission denied" in said):
        return Problem.PERMISSION_DENIED
    if number in {errno.ENOSPC, errno.EDQUOT}:
        return Problem.SCRATCH_FULL
    if number is None and "execvp" not in said:
        return Problem.SANDBOX_UNAVAILABLE
    return Problem.HARNESS


def _text(path: Path) -> str:
    return keep_output(path, OUTCOME_SHARE_BYTES, str).text()
