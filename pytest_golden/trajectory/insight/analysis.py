"""Analyze one trajectory: what failed, what went well, how good it was; and summarize it as text. Pure rules: nothing is guessed from wording.

A failed step that worked later was recovered, as was every failed step of a trajectory that ended in success: its severity is low. A parent that only
passes on the error of a child is not a failure point of its own.

Summaries are deterministic; no language model writes them. `brief` is one line, `normal` lists the findings, `detailed` adds the steps: at most 400,
4,000 and 16,000 characters.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.insight import model
from pytest_golden.trajectory.insight.model import FailureCategory, FailurePoint, Severity, SuccessIndicator
from pytest_golden.trajectory.insight.reasoning import find_reasoning_issues
from pytest_golden.trajectory.vocabulary import ACTING, Importance, StepType, TrajectoryOutcome, freeze_mapping
from pytest_golden.values.checking import check_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import Step

    # Steps, each after its index.
    _Placed = Sequence[tuple[int, Step]]


_CATEGORIES = {
    StepType.TOOL_CALL: FailureCategory.TOOL_FAILURE,
    StepType.ACTION: FailureCategory.TOOL_FAILURE,
    StepType.STATE_CHANGE: FailureCategory.STATE_ERROR,
    StepType.REASONING: FailureCategory.LOGICAL_ERROR,
    StepType.OBSERVATION: FailureCategory.ERROR,
}


def find_failures(trajectory: Trajectory) -> tuple[FailurePoint, ...]:
    """Return the failed steps in their order, then the end of the trajectory if no step explains it."""
    failed = tuple(_failed_steps(trajectory))
    points = _step_points(trajectory, failed)
    end = _end_point(trajectory, failed, points)
    return points if end is None else (*points, end)


def _failed_steps(trajectory: Trajectory) -> Iterator[tuple[int, Step]]:
    failed = {step.id: step for step in trajectory.steps if step.has_error}
    passing_on = {
        step.parent_step_id
        for step in failed.values()
        if step.parent_step_id in failed
        and _is_same_news(model.error_of(failed[step.parent_step_id]), model.error_of(step))
    }
    for index, step in enumerate(trajectory.steps):
        if step.id in failed and step.id not in passing_on:
            yield index, step


def _is_same_news(above: str, below: str) -> bool:
    return above in below or (below != "" and below in above)


def _step_points(trajectory: Trajectory, failed: _Placed) -> tuple[FailurePoint, ...]:
    worked = {_key(step): index for index, step in enumerate(trajectory.steps) if not step.has_error} if failed else {}
    succeeded = trajectory.outcome is TrajectoryOutcome.SUCCESS
    # An observation that only repeats that the time limit was reached is told by the end.
    told = model.one_line(trajectory.error or "") if trajectory.outcome is TrajectoryOutcome.TIMEOUT else None
    return tuple(
        _step_point(trajectory, index, step, recovered=succeeded or worked.get(_key(step), -1) > index)
        for index, step in failed
        if step.type is not StepType.OBSERVATION or model.error_of(step) != told
    )


def _key(step: Step) -> tuple[StepType, str]:
    return step.type, model.one_line(model.text_of(step.content))


def _step_point(trajectory: Trajectory, index: int, step: Step, *, recovered: bool) -> FailurePoint:
    error = model.error_of(step)
    title = model.title_of(step)
    said = f"{title} failed: {error}" if error and error != title else f"{title} failed"
    context: dict[str, Any] = {
        "index": index,
        "step": title,
        "type": step.type.value,
        "error": error or None,
        "previous_step": model.title_of(trajectory.steps[index - 1]) if index else None,
        "recovered": recovered,
        "metadata": model.told_metadata(step),
    }
    return FailurePoint(
        category=_CATEGORIES[step.type],
        severity=Severity.LOW if recovered else Severity(step.importance.value),
        description=f"{said} (recovered)" if recovered else said,
        step_id=step.id,
        context=freeze_mapping("context", context),
    )


def _end_point(trajectory: Trajectory, failed: _Placed, points: Sequence[FailurePoint]) -> FailurePoint | None:
    match trajectory.outcome:
        case TrajectoryOutcome.SUCCESS:
            return None
        case TrajectoryOutcome.TIMEOUT:
            last = trajectory.steps[-1] if trajectory.steps else None
            return _end(trajectory, FailureCategory.TIMEOUT, Severity.HIGH, "the time limit was reached", last)
        case TrajectoryOutcome.PARTIAL:
            return _end(trajectory, FailureCategory.INCOMPLETE, Severity.MEDIUM, "only a part was done")
        case None:
            return _end(trajectory, FailureCategory.INCOMPLETE, Severity.LOW, "it was never completed")
    return _failure_end(trajectory, failed, points)


def _failure_end(trajectory: Trajectory, failed: _Placed, points: Sequence[FailurePoint]) -> FailurePoint | None:
    error = model.one_line(trajectory.error or "")
    if error:
        is_told = any(_is_same_news(told, error) for told in (model.error_of(step) for _index, step in failed) if told)
        # After a failed step the end is its consequence, so it is not worse.
        lasting = [point.severity for point in points if not point.context["recovered"]]
        severity = max(lasting, key=lambda each: each.rank, default=Severity.CRITICAL)
        return None if is_told else _end(trajectory, FailureCategory.ERROR, severity, "it ended in an error")
    if failed:
        return None
    observed = [step for step in trajectory.steps if step.type is StepType.OBSERVATION]
    critical = [step for step in observed if step.importance is Importance.CRITICAL]
    if critical:
        return _end(
            trajectory, FailureCategory.ERROR, Severity.CRITICAL, model.title_of(critical[-1], 200), critical[-1]
        )
    return _end(trajectory, FailureCategory.UNKNOWN, Severity.HIGH, "no step and no error tells why it failed")


def _end(
    trajectory: Trajectory, category: FailureCategory, severity: Severity, said: str, step: Step | None = None
) -> FailurePoint:
    error = model.one_line(trajectory.error or "")
    context: dict[str, Any] = {
        "outcome": None if trajectory.outcome is None else trajectory.outcome.value,
        "error": error or None,
    }
    if step is not None:
        context["step"] = model.title_of(step)
        said = f"{said} at {model.title_of(step)}" if category is FailureCategory.TIMEOUT else said
    return FailurePoint(
        category=category,
        severity=severity,
        description=f"{said}: {error}" if error else said,
        step_id=None if step is None else step.id,
        context=freeze_mapping("context", context),
    )


# A path of fewer steps, in less time, is called efficient.
_MANY_STEPS = 10
_LONG_MS = 5_000.0


def find_successes(
    trajectory: Trajectory, failures: Sequence[FailurePoint], issues: Sequence[model.ReasoningIssue]
) -> tuple[SuccessIndicator, ...]:
    """Return what went well, in the order of `SuccessType`; nothing unless the outcome is success."""
    if trajectory.outcome is not TrajectoryOutcome.SUCCESS:
        return ()
    found = [*_path(trajectory, failures), *_reasoning(trajectory, issues), *_tools(trajectory), *_parts(trajectory)]
    if failures:
        ids = [point.step_id for point in failures if point.step_id is not None]
        said = f"{model.count_of(len(failures), 'failed step')} recovered from"
        found.append(SuccessIndicator(model.SuccessType.EFFECTIVE_RECOVERY, said, tuple(ids[:50])))
    return tuple(found)


def _path(trajectory: Trajectory, failures: Sequence[FailurePoint]) -> Iterator[SuccessIndicator]:
    count, duration_ms = len(trajectory.steps), trajectory.duration_ms
    if 0 < count < _MANY_STEPS and duration_ms is not None and duration_ms < _LONG_MS and not failures:
        said = f"{model.count_of(count, 'step')} in {duration_ms:,.0f} ms, none of them failed"
        yield SuccessIndicator(model.SuccessType.EFFICIENT_PATH, said, model.bounded_ids(trajectory.steps))


def _reasoning(trajectory: Trajectory, issues: Sequence[model.ReasoningIssue]) -> Iterator[SuccessIndicator]:
    thoughts = [step for step in trajectory.steps if step.type is StepType.REASONING]
    if len(thoughts) > 1 and not issues:
        said = f"{model.count_of(len(thoughts), 'reasoning step')} without an issue"
        yield SuccessIndicator(model.SuccessType.CLEAR_REASONING, said, model.bounded_ids(thoughts))


def _tools(trajectory: Trajectory) -> Iterator[SuccessIndicator]:
    actions = [step for step in trajectory.steps if step.type in ACTING]
    if actions and not any(step.has_error for step in actions):
        said = f"actions and tool calls: {len(actions):,}, none of them failed"
        yield SuccessIndicator(model.SuccessType.PROPER_TOOL_USE, said, model.bounded_ids(actions))


def _parts(trajectory: Trajectory) -> Iterator[SuccessIndicator]:
    children = Counter(step.parent_step_id for step in trajectory.steps if step.parent_step_id)
    parents = [step for step in trajectory.steps if children[step.id] > 1]
    if parents:
        said = f"{model.count_of(len(parents), 'step')} taken apart into two or more"
        yield SuccessIndicator(model.SuccessType.GOOD_DECOMPOSITION, said, model.bounded_ids(parents))


_FAILED = frozenset({TrajectoryOutcome.FAILURE, TrajectoryOutcome.ERROR, TrajectoryOutcome.TIMEOUT})


def analyze_trajectory(
    t: Trajectory, *, include_reasoning: bool = True, include_success: bool = True, min_severity: Severity | str = "low"
) -> model.TrajectoryAnalysis:
    """Find failure points, success indicators and reasoning issues, and rate the whole.

    What is excluded or below `min_severity` is left out, but counts for the quality.

    Raises:
        ValueError: unknown severity.
    """
    level = check_word("min_severity", min_severity, Severity).rank
    failures = find_failures(t)
    issues = find_reasoning_issues(t)
    indicators = find_successes(t, failures, issues)
    return model.TrajectoryAnalysis(
        trajectory_id=t.id,
        outcome=t.outcome,
        quality=_rate(t.outcome, failures, issues, indicators),
        step_count=len(t.steps),
        duration_ms=t.duration_ms,
        failure_points=tuple(point for point in failures if point.severity.rank >= level),
        success_indicators=indicators if include_success else (),
        reasoning_issues=tuple(issue for issue in issues if issue.severity.rank >= level) if include_reasoning else (),
    )


def _rate(
    outcome: TrajectoryOutcome | None,
    failures: tuple[FailurePoint, ...],
    issues: tuple[model.ReasoningIssue, ...],
    indicators: tuple[SuccessIndicator, ...],
) -> model.Quality:
    """Rate by the outcome, then by the worst finding; their number does not count."""
    severities = [point.severity for point in failures if point.category is not FailureCategory.INCOMPLETE]
    severities += [issue.severity for issue in issues]
    is_troubled = any(severity is not Severity.LOW for severity in severities)
    if outcome in _FAILED:
        return model.Quality.POOR
    if outcome is not TrajectoryOutcome.SUCCESS:
        return model.Quality.POOR if is_troubled else model.Quality.FAIR
    if is_troubled:
        return model.Quality.FAIR
    return model.Quality.EXCELLENT if indicators and not severities else model.Quality.GOOD


MOST_CHARACTERS = {model.Detail.BRIEF: 400, model.Detail.NORMAL: 4_000, model.Detail.DETAILED: 16_000}
_MOST_FINDINGS = {model.Detail.NORMAL: 5, model.Detail.DETAILED: 15}
_FIRST_STEPS, _LAST_STEPS = 40, 15


def summarize_trajectory(t: Trajectory, *, detail: model.Detail | str = "normal") -> str:
    """Describe what happened, what failed and what went well.

    Raises:
        ValueError: unknown detail.
    """
    level = check_word("detail", detail, model.Detail)
    told = describe_analysis(analyze_trajectory(t), level)
    if level is not model.Detail.DETAILED:
        return told
    counts = ", ".join(f"{count:,} {kind.value}" for kind, count in t.statistics().step_types.items())
    lines = (told, f"Steps: {counts or 'none'}", *_step_lines(t.steps))
    return cut_lines(lines, MOST_CHARACTERS[level])


def describe_analysis(analysis: model.TrajectoryAnalysis, detail: model.Detail) -> str:
    """Describe the findings, within the bound of the detail."""
    if detail is model.Detail.BRIEF:
        return cut_lines([_headline(analysis)], MOST_CHARACTERS[detail])
    most = _MOST_FINDINGS[detail]
    lines = [f"Trajectory {model.one_line(analysis.trajectory_id, 80)}", _headline(analysis)]
    lines += _section("Failure points", [*_failure_lines(analysis.failure_points, detail)], most)
    issues = [f"[{x.severity.value}] {x.type.value}: {x.evidence}" for x in analysis.reasoning_issues]
    lines += _section("Reasoning issues", issues, most)
    lines += _section(
        "Success indicators", [f"{x.type.value}: {x.description}" for x in analysis.success_indicators], most
    )
    return cut_lines(lines, MOST_CHARACTERS[detail])


def cut_lines(lines: Iterable[str], limit: int) -> str:
    """Join lines as far as they fit, and mark the cut."""
    text = "\n".join(lines)
    if len(text) <= limit:
        return text
    mark = "\n... (cut here)"
    return f"{text[: limit - len(mark)]}{mark}"


def _headline(analysis: model.TrajectoryAnalysis) -> str:
    outcome = "open" if analysis.outcome is None else analysis.outcome.value
    duration = "" if analysis.duration_ms is None else f" in {analysis.duration_ms:,.0f} ms"
    severe = sorted(analysis.failure_points, key=lambda point: -point.severity.rank)
    worst = f"; {severe[0].description}" if severe else ""
    steps = model.count_of(analysis.step_count, "step")
    return model.one_line(f"{outcome}, quality {analysis.quality.value}, {steps}{duration}{worst}", 390)


def _section(title: str, lines: Sequence[str], most: int) -> Iterator[str]:
    yield f"{title}: {len(lines):,}" if lines else f"{title}: none"
    yield from (f"- {line}" for line in lines[:most])
    if len(lines) > most:
        yield f"- and {len(lines) - most:,} more"


def _failure_lines(points: Sequence[FailurePoint], detail: model.Detail) -> Iterator[str]:
    for point in points:
        line = f"[{point.severity.value}] {point.category.value}: {point.description}"
        before = point.context.get("previous_step") if detail is model.Detail.DETAILED else None
        yield f"{line} (after '{before}')" if before else line


def _step_lines(steps: Sequence[Step]) -> Iterator[str]:
    left_out = len(steps) - _FIRST_STEPS - _LAST_STEPS
    for index, step in enumerate(steps):
        if left_out > 0 and index == _FIRST_STEPS:
            yield f"... {model.count_of(left_out, 'step')} left out"
        if left_out <= 0 or not _FIRST_STEPS <= index < _FIRST_STEPS + left_out:
            yield _step_line(index, step)


def _step_line(index: int, step: Step) -> str:
    duration = "" if step.duration_ms is None else f" ({step.duration_ms:,.0f} ms)"
    return f"{index + 1}. {step.type.value}: {model.title_of(step, 120)}{duration}{' FAILED' if step.has_error else ''}"
