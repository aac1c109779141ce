"""A step as one line for people, whatever is in it: bounded, visible, coloured by how much it matters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.text import Text

from pytest_golden.cli.screen import print_beside, styled
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.report.history_text import show_moment
from pytest_golden.trajectory.cutting import cut_content
from pytest_golden.trajectory.json_form import json_form
from pytest_golden.trajectory.vocabulary import Importance, TrajectoryOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rich.console import Console

    from pytest_golden.cli.trajectory_source import Source
    from pytest_golden.trajectory.step import Step

_STYLES = {Importance.CRITICAL: "bold red", Importance.HIGH: "yellow", Importance.LOW: "dim"}
_OUTCOME_STYLES = {TrajectoryOutcome.SUCCESS: "green", TrajectoryOutcome.PARTIAL: "yellow", None: "cyan"}
_MOST_OF_TEXT = 160
_MOST_READ = 4096
_TYPE_WIDTH = len("state_change")
# Deeper ones stand where the deepest indentation is.
_DEEPEST = 20


def describe_source(source: Source) -> Iterator[Text]:
    """Give the first lines: which trajectory, how it ended, how much is in it."""
    outline = source.outline
    took = "" if outline.duration_ms is None else f" in {show_duration(outline.duration_ms)}"
    count = f"{source.total_steps:,} step{'' if source.total_steps == 1 else 's'}{took}"
    yield Text.assemble(
        styled(source.project or "trajectory", "bold"),
        ": ",
        styled(outline.outcome or "open", _OUTCOME_STYLES.get(outline.outcome, "bold red")),
        styled(f", {count}, {show_moment(outline.started_at)} UTC, {outline.id}"),
    )
    if outline.error:
        yield styled(f"error: {shorten(outline.error)}", "red")
    lost = outline.metadata.get("lost_steps")
    if lost:
        yield styled(f"lost: {shorten(lost)} steps could not be written or read", "yellow")


def print_step(console: Console, step: Step, number: int, started_at: datetime, *, depth: int = 0) -> None:
    """Print a step's line: number, when, type, content, how long, error; where it folds, it goes on below its content."""
    when = (step.timestamp - started_at).total_seconds()
    first = styled(f"{number:>5} {show_offset(when):>8}  {step.type:<{_TYPE_WIDTH}}", "dim")
    first.append("  " * min(depth, _DEEPEST))
    told = styled(shorten(step.content), _STYLES.get(step.importance, ""))
    if step.duration_ms is not None:
        told.append_text(styled(f"  {show_duration(step.duration_ms)}", "dim"))
    error = step.metadata.get("error") or step.metadata.get("failed")
    if error:
        told.append_text(styled("  failed" if error is True else f"  {shorten(error)}", "red"))
    print_beside(console, first, told)


def shorten(value: Any) -> str:
    """Give any value in one line of bounded length."""
    plain = value if isinstance(value, str) else json_form(value)
    told = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    told = " ".join(str(cut_content(told, _MOST_READ)[0]).split())
    return told if len(told) <= _MOST_OF_TEXT else f"{told[: _MOST_OF_TEXT - 3]}..."


def show_offset(seconds: float) -> str:
    """Write how long after the start something was."""
    return f"+{format_elapsed(max(0.0, seconds))}"


def show_duration(milliseconds: float) -> str:
    """Write how long something took, short things in milliseconds."""
    return f"{milliseconds:.0f}ms" if milliseconds < 1000 else format_elapsed(milliseconds / 1000)
