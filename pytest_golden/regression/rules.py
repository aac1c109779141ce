"""The rules that turn the outcome of one execution into a result.

They are pure, but for one step: a search for the expected error that the gateway has not made runs in a process of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import GatewayError
from pytest_golden.gateway.model import Ending, PatternVerdict, Problem
from pytest_golden.manifest.units import ExpectedKind
from pytest_golden.regression import wording
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.gateway.model import OutputFinding, PipelineOutcome
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.manifest.units import ExpectedOutcome

_MOST_FILES_NAMED = 50
_NO_NEWS = frozenset({ReasonKind.PROJECT_CHANGED, ReasonKind.PATTERN_TIMED_OUT})
_READ_ONLY_SIGNS = ("Read-only file system", "EROFS")
_READ_ONLY_ADVICE = (
    "It tried to write outside its project_dir, which is read-only for it: write below project_dir, or declare the "
    "folder in `mounts:`."
)
#: Separates the reason of a skip from the setting that makes it fail the gate.
SKIP_FAILS = "; a skipped project fails the gate because "


def judge(project: GoldenProjectConfig, outcome: PipelineOutcome) -> GoldenProjectResult:
    """Judge one execution by what the project declares.

    If the gateway has not searched the output for the expected error, search the part that the outcome kept, in a
    process that is killed after 10 seconds.
    """
    if wants_pattern_search(project, outcome):
        outcome = _with_search(project, outcome)
    return assess_outcome(project, outcome)


def wants_pattern_search(project: GoldenProjectConfig, outcome: PipelineOutcome) -> bool:
    """Tell whether the judgement needs a search for the expected error that has not been made yet."""
    return (
        outcome.pattern_verdict is None
        and outcome.ending is Ending.EXITED
        and outcome.exit_code not in {None, 0}
        and project.expected.kind is ExpectedKind.SPECIFIC_ERROR
    )


def assess_outcome(project: GoldenProjectConfig, outcome: PipelineOutcome) -> GoldenProjectResult:
    """Judge one execution from its facts alone. ERROR wins over FAILED; the most important reason comes first."""
    findings = tuple(_find_all(project, outcome))
    reasons = tuple(finding.reason for finding in findings)
    trajectory = {} if outcome.trajectory is None else outcome.trajectory.to_dict()
    steps = trajectory.pop("steps", ())
    summary = wording.summarize_output(
        outcome.stdout, outcome.stderr, stdout_bytes=outcome.stdout_bytes, stderr_bytes=outcome.stderr_bytes
    )
    coloured = outcome.coloured_lines
    return GoldenProjectResult(
        name=project.name,
        path=str(project.path),
        status=_worst(findings),
        exit_code=None if outcome.ending is Ending.NOT_STARTED else outcome.exit_code,
        output_summary=summary,
        output_colours={line: coloured[line] for line in summary.split("\n") if line in coloured} if coloured else {},
        error_message=_first_message(reasons),
        execution_time_seconds=outcome.duration_seconds,
        prepare_seconds=outcome.prepare_seconds,
        compare_seconds=outcome.compare_seconds,
        reasons=reasons,
        attempts=0 if outcome.ending is Ending.NOT_STARTED and outcome.problem is Problem.SKIP_IF_MISSING else 1,
        steps_total=len(steps),
        steps=tuple(steps),
        write_set=outcome.write_set,
        log_path=outcome.log_path,
        kept_view=outcome.kept_view,
        warnings=(*outcome.warnings, *_unexpected_warnings(project, outcome)),
        command=outcome.command,
        trajectory=trajectory or None,
    )


def ran_as_expected(project: GoldenProjectConfig, outcome: PipelineOutcome) -> bool:
    """Tell whether a run ended as its project declares, whatever files it wrote. Only then its files say anything."""
    return all(finding.reason.kind == ReasonKind.UNEXPECTED_FILE for finding in _find_all(project, outcome))


def blame_setting_for_skip(result: GoldenProjectResult, setting: str) -> GoldenProjectResult:
    """Add to the first reason of a skipped project which setting makes skips fail. `setting` is empty if none does.

    Results that fail without a setting, or never fail, stay unchanged. Calling it twice changes nothing more.
    """
    told = f"{SKIP_FAILS}{setting} is set"
    is_plain = result.status is ResultStatus.SKIPPED and not (result.is_regression or result.is_left_out_as_unchanged)
    if not setting or not is_plain or not result.reasons or result.reasons[0].message.endswith(told):
        return result
    first = replace(result.reasons[0], message=result.reasons[0].message + told)
    reasons = (first, *result.reasons[1:])
    return replace(result, reasons=reasons, error_message=_first_message(reasons))


class Finding(NamedTuple):
    """A reason against a pass, and the status that follows from it."""

    status: ResultStatus
    reason: Reason


def _with_search(project: GoldenProjectConfig, outcome: PipelineOutcome) -> PipelineOutcome:
    from pytest_golden.gateway.outcome import search

    steps = outcome.trajectory.steps if outcome.trajectory is not None else ()
    errors = (step.metadata.get("error") for step in steps)
    texts = [outcome.stderr, outcome.stdout, *(str(error) for error in errors if error)]
    try:
        verdict = search(str(project.expected.pattern), (), texts)
    except GatewayError as error:
        return replace(outcome, problem=outcome.problem or Problem.HARNESS, message=outcome.message or str(error))
    return replace(outcome, pattern_verdict=verdict)


def _find_all(project: GoldenProjectConfig, outcome: PipelineOutcome) -> Iterator[Finding]:
    yield from _find_problems(outcome)
    if outcome.ending is Ending.EXITED:
        if outcome.problem is not Problem.BEFORE_FAILED:
            run = tuple(_judge_run(project.expected, outcome))
            yield from run
            yield from () if run else _judge_texts(project, outcome)
            yield from map(_finding_of_output, outcome.output_findings)
            yield from _find_unexpected_files(project, outcome)
        return
    if outcome.problem is Problem.AFTER_FAILED:
        yield _blame_after(outcome)
    if outcome.ending is not Ending.NOT_STARTED or outcome.problem is None:
        yield _judge_ending(project, outcome)


def _judge_run(expected: ExpectedOutcome, outcome: PipelineOutcome) -> Iterator[Finding]:
    """Judge the pipeline, then `after:`. A failed `after:` turns a pass into an ERROR; after a failure it comes second."""
    own = tuple(_judge_exit(expected, outcome))
    yield from own
    if outcome.problem is Problem.AFTER_FAILED:
        after = _blame_after(outcome)
        yield after._replace(status=_worst(own)) if own else after


def _judge_texts(project: GoldenProjectConfig, outcome: PipelineOutcome) -> Iterator[Finding]:
    """Judge what the pipeline printed; a plugged-in gateway need not have searched the whole of it."""
    for name, rules in (("stdout", project.stdout), ("stderr", project.stderr)):
        if rules is None:
            continue
        texts = (*rules.contains, *rules.not_contains)
        told = getattr(outcome, name)
        found = [text for text in texts if text in told]
        if outcome.found_texts is not None:
            found = list(outcome.found_texts.get(name, ()))
        broken = wording.describe_texts(rules.contains, rules.not_contains, found)
        if broken:
            yield _failed(
                ReasonKind.RULE_BROKEN,
                f"{name} breaks {'a rule' if len(broken) == 1 else 'rules'}: {'; '.join(broken)}",
            )


def _blame_after(outcome: PipelineOutcome) -> Finding:
    message = outcome.message or "a command of `after:` failed"
    # The pipeline's own output must not lead to advice about this command.
    return _error(ReasonKind.AFTER_FAILED, _with_advice(message, replace(outcome, stdout="", stderr="")))


def _find_problems(outcome: PipelineOutcome) -> Iterator[Finding]:
    problem = outcome.problem
    if problem is Problem.SKIP_IF_MISSING:
        message = outcome.message or "a program that it needs is missing"
        yield Finding(ResultStatus.SKIPPED, Reason(ReasonKind.SKIP_IF_MISSING, message))
    elif problem not in {None, Problem.PROJECT_CHANGED, Problem.AFTER_FAILED}:
        message = outcome.message or str(problem).replace("_", " ")
        ran = problem is Problem.BEFORE_FAILED
        yield _error(ReasonKind(str(problem)), _with_advice(message, outcome) if ran else message)
    if outcome.changed_underneath or problem is Problem.PROJECT_CHANGED:
        yield _error(ReasonKind.PROJECT_CHANGED, _describe_change(outcome))


def _describe_change(outcome: PipelineOutcome) -> str:
    if not outcome.changed_underneath:
        return outcome.message or "the project's files changed while it ran"
    named = wording.name_some([*map(wording.show_path, outcome.changed_underneath)], 10)
    return f"the project's files changed while it ran, by this run or by someone else: {named}"


def _judge_ending(project: GoldenProjectConfig, outcome: PipelineOutcome) -> Finding:
    """Return the ERROR for a run that did not end with an exit code."""
    match outcome.ending:
        case Ending.TIMEOUT:
            return _error(ReasonKind.TIMEOUT, _describe_timeout(project.timeout, outcome.duration_seconds))
        case Ending.MEMORY_LIMIT:
            limit = wording.format_size(project.memory_limit or 0)
            used = wording.format_size(outcome.peak_memory_bytes)
            return _error(ReasonKind.MEMORY_LIMIT, f"used {used} of memory (memory_limit: {limit})")
        case Ending.CPU_LIMIT:
            limit = wording.format_duration(project.cpu_limit or 0)
            return _error(ReasonKind.CPU_LIMIT, f"used {outcome.cpu_seconds:.1f}s of CPU time (cpu_limit: {limit})")
        case Ending.PROCESS_LIMIT:
            limit = f"more than {project.process_limit} processes and threads at once"
            return _error(ReasonKind.PROCESS_LIMIT, f"ran {limit} (process_limit: {project.process_limit})")
        case Ending.DISK_LIMIT:
            limit, used = wording.format_size(project.disk_limit or 0), wording.format_size(outcome.disk_bytes)
            return _error(ReasonKind.DISK_LIMIT, f"wrote {used} to the disk (disk_limit: {limit})")
        case Ending.SIGNALLED:
            return _error(ReasonKind.SIGNALLED, f"ended by {wording.describe_signal(-(outcome.exit_code or 0))}")
        case Ending.INTERRUPTED:
            told = outcome.message if outcome.problem is None else ""
            return _error(ReasonKind.INTERRUPTED, told or "interrupted before it ended")
        case _:
            return _error(
                ReasonKind.HARNESS, outcome.message or "it could not be started, and the gateway did not say why"
            )


def _describe_timeout(limit: float, took: float) -> str:
    message = f"timed out after {wording.format_duration(limit)}"
    late = round(took - limit, 1)
    more = f", and took {wording.format_duration(late)} more to end when it was interrupted"
    return message if late < 0.5 else message + more


def _judge_exit(expected: ExpectedOutcome, outcome: PipelineOutcome) -> Iterator[Finding]:
    exit_code = outcome.exit_code
    if exit_code is None:
        yield _error(ReasonKind.HARNESS, "the gateway reported an end without an exit code")
    elif expected.kind is ExpectedKind.EXIT_CODE and exit_code == expected.exit_code:
        return
    elif outcome.sealed and (number := wording.find_sealed_signal(exit_code)) is not None:
        message = (
            f"ended by {wording.describe_signal(number)} (exit code {exit_code}; a seal cannot tell the two apart)"
        )
        yield _error(ReasonKind.SIGNALLED, message)
    elif expected.kind is ExpectedKind.SPECIFIC_ERROR:
        yield from _judge_specific_error(expected, exit_code, outcome)
    elif exit_code != (expected.exit_code or 0):
        message = f"{wording.describe_exit(exit_code)}, expected {expected.exit_code or 0}"
        yield _failed(ReasonKind.EXIT_CODE, _with_advice(_with_cause(message, outcome), outcome))


def _judge_specific_error(expected: ExpectedOutcome, exit_code: int, outcome: PipelineOutcome) -> Iterator[Finding]:
    wanted = wording.quote_pattern(str(expected.pattern))
    if exit_code == 0:
        yield _failed(ReasonKind.UNEXPECTED_SUCCESS, f"the pipeline passed, but {wanted} was expected")
    elif outcome.pattern_verdict is PatternVerdict.TIMED_OUT:
        message = f"the search for {wanted} took too long: the pattern backtracks without end, make it simpler"
        yield _error(ReasonKind.PATTERN_TIMED_OUT, message)
    elif outcome.pattern_verdict is PatternVerdict.ABSENT:
        # What happened comes first: it must survive when the line is cut at its end.
        happened = _with_cause(wording.describe_exit(exit_code), outcome)
        message = f"{happened}, but {wanted} was expected and is not in the output"
        yield _failed(ReasonKind.PATTERN_ABSENT, _with_advice(message, outcome))
    elif outcome.pattern_verdict is None:
        yield _error(ReasonKind.HARNESS, f"the output was not searched for {wanted}")


def _finding_of_output(found: OutputFinding) -> Finding:
    """Return a finding about an output: ERROR if the comparison itself was not possible, else FAILED."""
    status = ResultStatus.ERROR if found.kind in _NO_NEWS else ResultStatus.FAILED
    return Finding(status, Reason(ReasonKind(found.kind), found.message, found.path, found.table))


def _find_unexpected_files(project: GoldenProjectConfig, outcome: PipelineOutcome) -> Iterator[Finding]:
    if project.unexpected_files != "fail":
        return
    paths = _unexpected_paths(project, outcome)
    for path in paths[:_MOST_FILES_NAMED]:
        message = f"wrote {wording.show_path(path)}, which no pattern of `writes:` or `outputs:` names"
        yield Finding(ResultStatus.FAILED, Reason(ReasonKind.UNEXPECTED_FILE, message, path))
    if len(paths) > _MOST_FILES_NAMED:
        message = f"wrote {len(paths) - _MOST_FILES_NAMED} more files that no pattern of `writes:` or `outputs:` names"
        yield _failed(ReasonKind.UNEXPECTED_FILE, message)


def _unexpected_warnings(project: GoldenProjectConfig, outcome: PipelineOutcome) -> Iterator[str]:
    if project.unexpected_files == "warn" and (paths := _unexpected_paths(project, outcome)):
        named = wording.name_some([*map(wording.show_path, paths)], 10)
        yield f"wrote files that no pattern of `writes:` or `outputs:` names: {named}"


def _unexpected_paths(project: GoldenProjectConfig, outcome: PipelineOutcome) -> tuple[str, ...]:
    from pytest_golden.regression.unexpected import find_unexpected

    written = sorted({*outcome.write_set.created, *outcome.write_set.changed})
    outputs = (output.path for output in project.outputs if output.path)
    return find_unexpected(written, (*project.writes, *outcome.engine_files, *outputs))


def _with_cause(message: str, outcome: PipelineOutcome) -> str:
    from pytest_golden.regression.cause import find_cause

    cause = find_cause(outcome)
    return message if cause is None else f"{message}: {cause}"


def _with_advice(message: str, outcome: PipelineOutcome) -> str:
    """Add what to do when the pipeline ran into the seal."""
    texts = (outcome.stderr, outcome.stdout, outcome.message)
    hit = outcome.sealed and any(sign in text for sign in _READ_ONLY_SIGNS for text in texts)
    return f"{message}. {_READ_ONLY_ADVICE}" if hit else message


def _worst(findings: tuple[Finding, ...]) -> ResultStatus:
    worst_first = (ResultStatus.ERROR, ResultStatus.FAILED, ResultStatus.SKIPPED)
    statuses = {finding.status for finding in findings}
    return next((status for status in worst_first if status in statuses), ResultStatus.PASSED)


def _first_message(reasons: tuple[Reason, ...]) -> str | None:
    if not reasons:
        return None
    more = len(reasons) - 1
    return reasons[0].headline + (f" (and {more} more reason{'s' if more > 1 else ''})" if more else "")


def _error(kind: ReasonKind, message: str) -> Finding:
    return Finding(ResultStatus.ERROR, Reason(kind, message))


def _failed(kind: ReasonKind, message: str) -> Finding:
    return Finding(ResultStatus.FAILED, Reason(kind, message))
