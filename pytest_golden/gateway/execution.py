"""Runs the commands of a prepared project in order (`before`, the pipeline, `after`) and keeps what they print.

The raw output stays in scratch. Its head and tail are kept: escaped where they are not UTF-8, and redacted before they are cut.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.gateway.model import Ending, Problem
from pytest_golden.gateway.process import Exit, Launch, Supervisor
from pytest_golden.gateway.seal import without_idle_covers
from pytest_golden.redaction.escapes import find_coloured_lines
from pytest_golden.storage.folder import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from pytest_golden.gateway.preparation import Prepared


#: A quarter of the 10 MiB that a log may have: head and tail of standard output and of standard error.
LOG_SHARE_BYTES = (10 << 20) // 4 - 512
#: Head and tail of each stream in a `PipelineOutcome`.
OUTCOME_SHARE_BYTES = 256 << 10
# Read beyond a cut, so that a secret lying across it is seen whole by the redaction.
_CUT_MARGIN_BYTES = 8 << 10
_STEPS_TAIL_BYTES = 4096


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
            return _blame(step, Problem.BEFORE_FAILED, "before", command, prepared)
    main = _with_reason(_run(prepared, argv, "main", supervisor), argv, prepared)
    if main.exit.ending is not Ending.EXITED:
        return main
    for number, command in enumerate(config.after if after else (), 1):
        step = _run(prepared, command, f"after-{number}", supervisor)
        if not _is_good(step.exit):
            failed = _blame(step, Problem.AFTER_FAILED, "after", command, prepared)
            # A Ctrl-C ends the gate, wherever in the project it comes.
            stopped = failed.exit.ending is Ending.INTERRUPTED
            ended = replace(main.exit, ending=Ending.INTERRUPTED) if stopped else main.exit
            return replace(main, exit=ended, problem=failed.problem, message=failed.message)
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
        # A server that ended between our check and the launch must not cost the run.
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
        filter=prepared.filter.hex(),
        timeout_seconds=config.timeout,
        memory_limit_bytes=config.memory_limit,
        cpu_limit_seconds=config.cpu_limit,
        process_limit=config.process_limit,
        disk_limit_bytes=config.disk_limit,
        disk_folder=str(prepared.folder),
        disk_before_bytes=prepared.disk_before_bytes,
    )


def _is_good(ended: Exit) -> bool:
    return ended.ending is Ending.EXITED and ended.exit_code == 0


def _blame(step: Executed, problem: Problem, key: str, command: Sequence[str], prepared: Prepared) -> Executed:
    """Say which command of `before:` or `after:` failed, how, and what it printed last."""
    if step.exit.ending is Ending.NOT_STARTED:
        message = f"`{key}:` command `{shlex.join(command)}`: {_with_reason(step, command, prepared).message}"
        return replace(step, problem=problem, message=message)
    how = f"exit code {step.exit.exit_code}"
    if step.exit.ending is not Ending.EXITED:
        how = step.exit.ending.value.replace("_", " ")
    said = last_lines(_read_text(step.stderr) or _read_text(step.stdout), 5) or step.exit.message
    message = f"`{key}:` command `{shlex.join(command)}` failed ({how})" + (f":\n{said}" if said else "")
    return replace(step, problem=problem, message=message)


def _with_reason(main: Executed, argv: Sequence[str], prepared: Prepared) -> Executed:
    """Add the reason to a pipeline that never started: from the system, or from what the sandbox said."""
    if main.exit.ending is not Ending.NOT_STARTED:
        return main
    said = last_lines(_read_text(main.stderr), 3) if prepared.is_sealed else main.exit.message
    problem = _find_problem(main.exit.errno, said)
    words = {
        Problem.COMMAND_NOT_FOUND: f"`{argv[0]}` was not found inside the view",
        Problem.PERMISSION_DENIED: f"`{argv[0]}` may not be executed: permission denied",
        Problem.SANDBOX_UNAVAILABLE: "the sandbox could not be set up",
        Problem.SCRATCH_FULL: "there is no space left for the output; free some, or set TMPDIR to a larger disk",
        Problem.HARNESS: f"`{argv[0]}` could not be started",
    }
    message = f"{words[problem]} ({said})"
    if problem is Problem.COMMAND_NOT_FOUND:
        program = argv[0].replace("{path}", prepared.path_inside())
        why = prepared.hidden.explain_missing_program(program, prepared.environment.get("PATH", ""))
        message = message if why is None else f"{words[problem]}: {why} ({said})"
    return replace(main, problem=problem, message=message)


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


def _read_text(path: Path) -> str:
    return keep_output(path, OUTCOME_SHARE_BYTES, str).text()


def keep_streams(executed: Executed, share_bytes: int, redact: Callable[[str], str]) -> dict[str, KeptOutput]:
    """Keep head and tail of what the pipeline printed, by the name of the stream."""
    files = {"stdout": executed.stdout, "stderr": executed.stderr}
    return {name: keep_output(file, share_bytes, redact) for name, file in files.items()}


def read_present_step(steps_file: Path) -> str | None:
    """Return the step that a running pipeline has reached: the name on the last whole line of its steps file, if any."""
    try:
        # Its mode is never changed here: the pipeline still runs, and could replace it by a link meanwhile.
        with open_regular(steps_file) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _STEPS_TAIL_BYTES))
            tail = file.read()
    except OSError:
        return None
    for line in reversed(tail.splitlines()):
        try:
            name = json.loads(line)["name"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        return str(name)
    return None


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """Head and tail of one stream, already redacted; `left_out_bytes` lie between them.

    `coloured_lines` maps the plain form of each line that was printed in colours to the coloured one.
    """

    head: str
    tail: str
    left_out_bytes: int
    total_bytes: int
    coloured_lines: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Join head and tail with a line that says how much is missing."""
        if not self.left_out_bytes:
            return self.head + self.tail
        return f"{self.head}\n[... {self.left_out_bytes:,} bytes left out ...]\n{self.tail}"


def keep_output(path: Path, share_bytes: int, redact: Callable[[str], str]) -> KeptOutput:
    """Keep `share_bytes` of a stream's head and as many of its tail; a missing file counts as empty."""
    try:
        total = path.stat().st_size
    except OSError:
        return KeptOutput("", "", 0, 0)
    with path.open("rb") as file:
        if total <= 2 * share_bytes:
            raw = decode(file.read())
            shown = redact(raw)
            return KeptOutput(shown, "", 0, total, find_coloured_lines(raw, shown))
        head = file.read(share_bytes + _CUT_MARGIN_BYTES)
        file.seek(-(share_bytes + _CUT_MARGIN_BYTES), os.SEEK_END)
        tail = file.read()
    shown_head = _cut_head(redact(decode(head)), share_bytes)
    shown_tail = _cut_tail(redact(decode(tail)), share_bytes)
    coloured = find_coloured_lines(decode(head), shown_head) | find_coloured_lines(decode(tail), shown_tail)
    return KeptOutput(shown_head, shown_tail, total - 2 * share_bytes, total, coloured)


def _cut_head(text: str, share_bytes: int) -> str:
    """Cut the margin off, at the end of a line where there is one in it."""
    cut = min(len(text), share_bytes)
    line_end = text.rfind("\n", cut - _CUT_MARGIN_BYTES, cut)
    return text[: line_end + 1] if line_end >= 0 else text[: max(cut - _CUT_MARGIN_BYTES, 0)]


def _cut_tail(text: str, share_bytes: int) -> str:
    cut = max(len(text) - share_bytes, 0)
    line_end = text.find("\n", cut, cut + _CUT_MARGIN_BYTES)
    return text[line_end + 1 :] if line_end >= 0 else text[cut + _CUT_MARGIN_BYTES :]


def decode(raw: bytes) -> str:
    """Read bytes as UTF-8 and show those that are not as escapes."""
    return raw.decode("utf-8", "backslashreplace")


def next_log_file(folder: Path, name: str) -> Path:
    """Return the file for the log of a project's next attempt."""
    file, attempt = folder / f"{name}.log", 2
    while file.exists():
        file, attempt = folder / f"{name}.{attempt}.log", attempt + 1
    return file


def write_log(path: Path, streams: dict[str, KeptOutput]) -> bool:
    """Write the log of a run with one section for each stream; return False and write nothing when nothing was printed."""
    if not any(kept.total_bytes for kept in streams.values()):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        for name, kept in streams.items():
            file.write(f"--- {name}: {kept.total_bytes:,} bytes ---\n{kept.text()}\n")
    return True


def last_lines(text: str, count: int = 10) -> str:
    """Return the last lines of a text that hold anything."""
    return "\n".join([line for line in text.splitlines() if line.strip()][-count:])
