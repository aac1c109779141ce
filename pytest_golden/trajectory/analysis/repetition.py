"""Loops: stretches of steps in which nothing happens that had not happened before. Pure.

Running the same tests after each of three different changes is no loop, since the changes are new. Steps are the same
when type, words and metadata are, but for times, ids of a run and counts of attempts; of a thought the words alone count.
Actions that work may be repeated: that is what batches are. A span of OpenTelemetry's GenAI conventions says in its name
which model was asked, not what it thought, so one that works is never part of a loop.
"""

from __future__ import annotations

import json
from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.analysis.model import ReasoningIssue, ReasoningIssueType, Severity
from pytest_golden.trajectory.analysis.statements import words_of
from pytest_golden.trajectory.analysis.telling import bounded_ids, text_of, title_of
from pytest_golden.trajectory.difference import is_fleeting
from pytest_golden.trajectory.json_form import json_form
from pytest_golden.trajectory.vocabulary import StepType, TrajectoryOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import Step

# Words that say no more than that something is done once more.
_FILLER_WORDS = "again once more also just now then still let me us try another time so ok okay"
_FILLERS = frozenset(_FILLER_WORDS.split())
_ATTEMPT_WORDS = frozenset({"attempt", "attempts", "retry", "retries", "try", "iteration", "turn"})
# The first one, and two more with nothing new around them.
_FEWEST_REPEATS = 2


def find_loops(trajectory: Trajectory) -> Iterator[ReasoningIssue]:
    """Give one issue for each stretch in which a thought, a tool call or a failing action comes back twice or more."""
    steps = trajectory.steps
    first: dict[bytes, int] = {}
    stretch: list[tuple[int, bytes]] = []
    for index, step in enumerate(steps):
        key = _key(step)
        if key in first:
            stretch.append((index, key))
            continue
        yield from _close(trajectory, first, stretch)
        stretch = []
        first[key] = index
    yield from _close(trajectory, first, stretch)


def _close(
    trajectory: Trajectory, first: Mapping[bytes, int], stretch: Sequence[tuple[int, bytes]]
) -> Iterator[ReasoningIssue]:
    counts = Counter(key for index, key in stretch if _may_loop(trajectory.steps[index]))
    repeated = {key: count for key, count in counts.items() if count >= _FEWEST_REPEATS}
    if not repeated:
        return
    thoughts = {
        key: count for key, count in repeated.items() if trajectory.steps[first[key]].type is StepType.REASONING
    }
    shown, count = max((thoughts or repeated).items(), key=lambda item: (item[1], -first[item[0]]))
    involved = sorted({*(first[key] for key in repeated), *(index for index, _key in stretch)})
    yield ReasoningIssue(
        type=ReasoningIssueType.CIRCULAR_REASONING if thoughts else ReasoningIssueType.REPEATED_ACTION,
        severity=_severity(trajectory, stretch[-1][0], is_thought=bool(thoughts)),
        evidence=f"'{title_of(trajectory.steps[first[shown]], 140)}' {count + 1:,} times, with nothing new in between",
        step_ids=bounded_ids(trajectory.steps[index] for index in involved),
    )


def _may_loop(step: Step) -> bool:
    if step.has_error or _is_genai_span(step):
        return step.has_error
    if step.type is StepType.REASONING:
        # One word, such as "Thinking...", stands for a thought that is not told.
        return len(words_of(text_of(step.content))) > 1
    return step.type is StepType.TOOL_CALL


def _is_genai_span(step: Step) -> bool:
    return any(str(key).startswith("gen_ai.") for key in step.metadata)


def _severity(trajectory: Trajectory, last_index: int, *, is_thought: bool) -> Severity:
    if trajectory.outcome is TrajectoryOutcome.SUCCESS:
        return Severity.MEDIUM if is_thought else Severity.LOW
    was_never_left = last_index == len(trajectory.steps) - 1
    return Severity.HIGH if was_never_left else Severity.MEDIUM


def _key(step: Step) -> bytes:
    text = text_of(step.content)
    if step.type is StepType.REASONING and not _is_genai_span(step):
        words = [word for word in words_of(text) if word not in _FILLERS]
        told: Any = words or text
    else:
        told = [text, json_form(step.context), _lasting(step.metadata)]
    form = json.dumps([step.type.value, told], sort_keys=True)
    return blake2b(form.encode(), digest_size=16).digest()


def _lasting(metadata: Mapping[Any, Any]) -> Any:
    return json_form(
        {key: value for key, value in metadata.items() if not is_fleeting(str(key)) and key not in _ATTEMPT_WORDS}
    )
