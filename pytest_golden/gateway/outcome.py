"""The outcome of a run, from its raw facts: redacted output, write set, trajectory, the expected error, findings on outputs."""

from __future__ import annotations

import errno
import marshal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import utc_now
from pytest_golden.errors import GatewayError, GoldenError
from pytest_golden.gateway.content import find_texts
from pytest_golden.gateway.execution import LOG_SHARE_BYTES, OUTCOME_SHARE_BYTES, keep_streams, write_log
from pytest_golden.gateway.model import Ending, OutputFinding, PatternVerdict, PipelineOutcome, Problem, WriteSet
from pytest_golden.gateway.own_network import explain_refused
from pytest_golden.gateway.scratch import explain_full
from pytest_golden.gateway.write_set import MOST_HOLES_BYTES, UNREAD, WrittenFiles
from pytest_golden.manifest.units import ExpectedKind
from pytest_golden.trajectory.building import build_trajectory
from pytest_golden.trajectory.readers.golden_steps import read_golden_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from pytest_golden.gateway.execution import Executed
    from pytest_golden.gateway.preparation import Prepared
    from pytest_golden.gateway.view import View
    from pytest_golden.gateway.write_set import Examine
    from pytest_golden.redaction.redactor import Redactor
    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.readers.model import StepDraft, StepReader, StepReading


SEARCH_SECONDS = 10.0

_SEARCH_SCRIPT = Path(__file__).with_name("pattern_search_child.py")
_MOST_NAMED = 5
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Keeping:
    """What becomes of a run's output: how it is redacted, and where its log goes (None: nowhere).

    `noted` is for the trajectory's metadata, and redacted too.
    """

    redactor: Redactor
    log_file: Path | None
    noted: Mapping[str, Any] = field(default_factory=dict)


def build_outcome(
    prepared: Prepared, executed: Executed, command: Sequence[str], readers: Sequence[StepReader], keeping: Keeping
) -> PipelineOutcome:
    """Gather the facts of a run that was launched."""
    redact = keeping.redactor.text
    streams = keep_streams(executed, OUTCOME_SHARE_BYTES, redact)
    ended = executed.exit
    write_set = prepared.view.take_write_set()
    problem, message = executed.problem, executed.message
    if problem is None and (unread := _explain_unread(write_set)):
        problem, message = Problem.HARNESS, unread
    outcome = PipelineOutcome(
        ending=ended.ending,
        exit_code=None if ended.ending is Ending.NOT_STARTED else ended.exit_code,
        started_at=executed.started_at,
        duration_seconds=ended.duration_seconds,
        cpu_seconds=ended.cpu_seconds,
        peak_memory_bytes=ended.peak_memory_bytes,
        disk_bytes=ended.disk_bytes,
        stdout=streams["stdout"].text(),
        stderr=streams["stderr"].text(),
        coloured_lines={**streams["stdout"].coloured_lines, **streams["stderr"].coloured_lines},
        stdout_bytes=streams["stdout"].total_bytes,
        stderr_bytes=streams["stderr"].total_bytes,
        write_set=write_set,
        message=redact(message),
        problem=problem,
        sealed=prepared.is_sealed,
        command=tuple(redact(argument) for argument in command),
    )
    outcome = replace(outcome, log_path=_write_log(executed, keeping))
    missed: tuple[str, ...] = ()
    if outcome.exit_code:
        missed = prepared.hidden.explain_missing_files(outcome.stdout, outcome.stderr)
        missed += explain_full(prepared.folder.parent.parent)
        missed += explain_refused(outcome.stdout, outcome.stderr) if prepared.own_loopback else ()
    readings = [read_golden_steps(prepared.steps_file)]
    if readers:
        from pytest_golden.trajectory.readers.engine_reports import read_all

        told = keep_streams(executed, LOG_SHARE_BYTES, redact)
        whole = replace(outcome, stdout=told["stdout"].text(), stderr=told["stderr"].text())
        readings += read_all(readers, prepared.view, whole)
    return replace(
        outcome,
        write_set=_redacted_write_set(outcome.write_set, redact),
        pattern_verdict=_search_expected(prepared, executed, readings),
        found_texts=_find_texts(prepared, executed),
        trajectory=trace(outcome, readings, keeping.redactor, keeping.noted),
        warnings=tuple(map(redact, (*missed, *(warning for reading in readings for warning in reading.warnings)))),
    )


def _explain_unread(write_set: WriteSet) -> str:
    """Say which files were not read, and what to do about them; empty when all were."""
    unread = [file for file in write_set.files.values() if file.sha256 == UNREAD]
    if not unread:
        return ""
    named = ", ".join(f"{file.path!r} of {file.size_bytes:,} bytes" for file in unread[:_MOST_NAMED])
    more = f" and {len(unread) - _MOST_NAMED} more" if len(unread) > _MOST_NAMED else ""
    return (
        f"it left sparse files with more than {MOST_HOLES_BYTES >> 30} GiB of holes, too many to hash: {named}{more};"
        " make them smaller, remove them in `after:`, or write files that are not outputs below $TMPDIR"
    )


def _redacted_write_set(write_set: WriteSet, redact: Callable[[str], str]) -> WriteSet:
    """Take secrets out of file names, once the readers have found their files by the real ones."""
    created, changed, removed = (
        tuple(map(redact, paths)) for paths in (write_set.created, write_set.changed, write_set.removed)
    )
    files = {redact(path): replace(file, path=redact(path)) for path, file in write_set.files.items()}
    return WriteSet(created, changed, removed, files)


def outcome_not_started(
    problem: Problem, message: str, redactor: Redactor, started_at: datetime | None = None
) -> PipelineOutcome:
    """Return the outcome of a project that could not be launched; it leaves a trajectory too."""
    outcome = PipelineOutcome(
        ending=Ending.NOT_STARTED, started_at=started_at or utc_now(), problem=problem, message=redactor.text(message)
    )
    return replace(outcome, trajectory=trace(outcome, (), redactor))


def explain_os_error(error: OSError) -> tuple[Problem, str]:
    """Say what kept a project from being prepared, and what to do about it."""
    where = f": {error.filename}" if error.filename else ""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return Problem.SCRATCH_FULL, f"no space left for scratch{where}; free some, or set TMPDIR to a larger disk"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return Problem.PERMISSION_DENIED, f"permission denied{where}; the gate must be able to read the whole project"
    return Problem.HARNESS, f"{error.strerror or error}{where}"


def trace(
    outcome: PipelineOutcome,
    readings: Sequence[StepReading],
    redactor: Redactor,
    noted: Mapping[str, Any] | None = None,
) -> Trajectory:
    """Build the trajectory of a run; one that could not start has a critical observation saying why."""
    if outcome.ending is Ending.EXITED:
        traced_as = "success" if outcome.exit_code == 0 else "failure"
    else:
        traced_as = "timeout" if outcome.ending is Ending.TIMEOUT else "error"
    # The message of a failed `after:` does not explain why the pipeline failed.
    is_beside = outcome.problem is Problem.AFTER_FAILED and traced_as == "failure"
    return build_trajectory(
        [_redact_reading(reading, redactor) for reading in readings],
        started_at=outcome.started_at,
        completed_at=outcome.started_at + timedelta(seconds=outcome.duration_seconds),
        outcome=traced_as,
        error=None if is_beside else outcome.message or None,
        metadata={
            "command": list(outcome.command),
            "exit_code": outcome.exit_code,
            **redactor.value(dict(noted or {})),
        },
    )


def _redact_reading(reading: StepReading, redactor: Redactor) -> StepReading:
    steps = tuple(_redact_draft(step, redactor) for step in reading.steps)
    return replace(reading, steps=steps, warnings=tuple(map(redactor.text, reading.warnings)))


def _redact_draft(step: StepDraft, redactor: Redactor) -> StepDraft:
    given = {name: getattr(step, name) for name in ("content", "context", "id", "parent_step_id")}
    given["metadata"] = dict(step.metadata)
    redacted = {name: redactor.value(held) for name, held in given.items()}
    # Most steps hold no secret, and comparing a step costs less than making a new one.
    return step if redacted == given else replace(step, **redacted)


def _search_expected(prepared: Prepared, executed: Executed, readings: Sequence[StepReading]) -> PatternVerdict | None:
    """Search the whole raw output, and the errors of the steps, for the error that is expected."""
    expected = prepared.project.config.expected
    if expected.kind is not ExpectedKind.SPECIFIC_ERROR or expected.pattern is None:
        return None
    if executed.exit.ending is not Ending.EXITED or executed.exit.exit_code == 0:
        return None
    steps = (step for reading in readings for step in reading.steps)
    errors = (str(step.metadata["error"]) for step in steps if step.metadata.get("error"))
    return search(expected.pattern, [executed.stderr, executed.stdout], errors)


def _find_texts(prepared: Prepared, executed: Executed) -> dict[str, tuple[str, ...]] | None:
    """Search the whole raw output for the texts that rules name."""
    config = prepared.project.config
    found = {}
    for name, rules in (("stdout", config.stdout), ("stderr", config.stderr)):
        if rules is not None:
            with getattr(executed, name).open("rb") as stream:
                chunks = iter(partial(stream.read, _CHUNK_BYTES), b"")
                found[name] = tuple(sorted(find_texts(chunks, (*rules.contains, *rules.not_contains))))
    return found or None


def _write_log(executed: Executed, keeping: Keeping) -> str | None:
    """Write the log; a path that cannot be written costs the log and not the result."""
    if keeping.log_file is None:
        return None
    streams = keep_streams(executed, LOG_SHARE_BYTES, keeping.redactor.text)
    try:
        return str(keeping.log_file) if write_log(keeping.log_file, streams) else None
    except OSError:
        return None


def search(
    pattern: str, files: Iterable[Path], texts: Iterable[str], *, timeout_seconds: float = SEARCH_SECONDS
) -> PatternVerdict:
    """Search whole files and texts with `re.search` and `re.MULTILINE`, in a process that can be killed.

    The time limit is for all of them together.

    Raises:
        GatewayError: the search itself broke down.
    """
    command = [sys.executable, "-I", "-S", str(_SEARCH_SCRIPT), pattern, *map(str, files)]
    told = marshal.dumps([text.encode("utf-8", "backslashreplace").decode() for text in texts if text])
    try:
        done = subprocess.run(command, input=told, capture_output=True, timeout=timeout_seconds, check=False, cwd="/")
    except subprocess.TimeoutExpired:
        return PatternVerdict.TIMED_OUT
    except (OSError, ValueError) as error:
        raise GatewayError(f"the search for {pattern!r} could not be run: {error}") from error
    if done.returncode not in {0, 1} or done.stderr:
        raise GatewayError(
            f"the search for {pattern!r} broke down: {done.stderr.decode(errors='replace').strip()[-400:]}"
        )
    return PatternVerdict.FOUND if done.returncode == 0 else PatternVerdict.ABSENT


def add_findings(examine: Examine | None, view: View, outcome: PipelineOutcome, redactor: Redactor) -> PipelineOutcome:
    """Examine the written files of a run that was started, and return the outcome with the findings.

    If the examination fails, that is the harness's problem, and the facts of the run stay.
    """
    if examine is None or outcome.ending is Ending.NOT_STARTED:
        return outcome
    try:
        written = WrittenFiles(
            *view.find_written(), redactor.text, view.project_dir, redactor.known, find_file=view.find_file
        )
        found = tuple(examine(outcome, written))
    except KeyboardInterrupt:
        told = "interrupted while its outputs were examined"
        return replace(outcome, ending=Ending.INTERRUPTED, problem=None, message=told)
    except Exception as error:
        told = f"its outputs could not be examined: {error if isinstance(error, GoldenError) else repr(error)}"
        message = outcome.message or redactor.text(told)
        return replace(outcome, problem=outcome.problem or Problem.HARNESS, message=message)
    return replace(outcome, output_findings=tuple(_redact_finding(one, redactor.text) for one in found))


def _redact_finding(finding: OutputFinding, redact: Callable[[str], str]) -> OutputFinding:
    path = None if finding.path is None else redact(finding.path)
    return replace(finding, message=redact(finding.message), path=path)
