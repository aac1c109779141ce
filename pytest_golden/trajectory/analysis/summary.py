"""What happened in a trajectory as text, in three lengths. Deterministic; no language model writes it.

brief is one line, normal tells the findings, detailed also the steps. Each is longer than the one before it and bounded:
400, 4,000 and 16,000 characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.trajectory.analysis.analyzing import analyze_trajectory
from pytest_golden.trajectory.analysis.model import Detail
from pytest_golden.trajectory.analysis.telling import count_of, one_line, title_of
from pytest_golden.trajectory.vocabulary import check_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.trajectory.analysis.model import FailurePoint, TrajectoryAnalysis
    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import Step

MOST_CHARACTERS = {Detail.BRIEF: 400, Detail.NORMAL: 4_000, Detail.DETAILED: 16_000}
_MOST_FINDINGS = {Detail.NORMAL: 5, Detail.DETAILED: 15}
_FIRST_STEPS, _LAST_STEPS = 40, 15


def summarize_trajectory(t: Trajectory, *, detail: Detail | str = "normal") -> str:
    """Tell what happened, what failed and what went well.

    Raises:
        ValueError: unknown detail.
    """
    level = check_word("detail", detail, Detail)
    told = describe_analysis(analyze_trajectory(t), level)
    if level is not Detail.DETAILED:
        return told
    counts = ", ".join(f"{count:,} {kind.value}" for kind, count in t.statistics().step_types.items())
    lines = (told, f"Steps: {counts or 'none'}", *_step_lines(t.steps))
    return cut_lines(lines, MOST_CHARACTERS[level])


def describe_analysis(analysis: TrajectoryAnalysis, detail: Detail) -> str:
    """Tell what was found, within the bound of the detail."""
    if detail is Detail.BRIEF:
        return cut_lines([_headline(analysis)], MOST_CHARACTERS[detail])
    most = _MOST_FINDINGS[detail]
    lines = [f"Trajectory {one_line(analysis.trajectory_id, 80)}", _headline(analysis)]
    lines += _section("Failure points", [*_failure_lines(analysis.failure_points, detail)], most)
    issues = [f"[{x.severity.value}] {x.type.value}: {x.evidence}" for x in analysis.reasoning_issues]
    lines += _section("Reasoning issues", issues, most)
    lines += _section(
        "Success indicators", [f"{x.type.value}: {x.description}" for x in analysis.success_indicators], most
    )
    return cut_lines(lines, MOST_CHARACTERS[detail])


def cut_lines(lines: Iterable[str], limit: int) -> str:
    """Join lines as far as they fit, and say that there is more."""
    text = "\n".join(lines)
    if len(text) <= limit:
        return text
    mark = "\n... (cut here)"
    return f"{text[: limit - len(mark)]}{mark}"


def _headline(analysis: TrajectoryAnalysis) -> str:
    outcome = "open" if analysis.outcome is None else analysis.outcome.value
    duration = "" if analysis.duration_ms is None else f" in {analysis.duration_ms:,.0f} ms"
    severe = sorted(analysis.failure_points, key=lambda point: -point.severity.rank)
    worst = f"; {severe[0].description}" if severe else ""
    steps = count_of(analysis.step_count, "step")
    return one_line(f"{outcome}, quality {analysis.quality.value}, {steps}{duration}{worst}", 390)


def _section(title: str, lines: Sequence[str], most: int) -> Iterator[str]:
    yield f"{title}: {len(lines):,}" if lines else f"{title}: none"
    yield from (f"- {line}" for line in lines[:most])
    if len(lines) > most:
        yield f"- and {len(lines) - most:,} more"


def _failure_lines(points: Sequence[FailurePoint], detail: Detail) -> Iterator[str]:
    for point in points:
        line = f"[{point.severity.value}] {point.category.value}: {point.description}"
        before = point.context.get("previous_step") if detail is Detail.DETAILED else None
        yield f"{line} (after '{before}')" if before else line


def _step_lines(steps: Sequence[Step]) -> Iterator[str]:
    left_out = len(steps) - _FIRST_STEPS - _LAST_STEPS
    for index, step in enumerate(steps):
        if left_out > 0 and index == _FIRST_STEPS:
            yield f"... {count_of(left_out, 'step')} left out"
        if left_out <= 0 or not _FIRST_STEPS <= index < _FIRST_STEPS + left_out:
            yield _step_line(index, step)


def _step_line(index: int, step: Step) -> str:
    duration = "" if step.duration_ms is None else f" ({step.duration_ms:,.0f} ms)"
    return f"{index + 1}. {step.type.value}: {title_of(step, 120)}{duration}{' FAILED' if step.has_error else ''}"
