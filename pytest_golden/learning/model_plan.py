"""The plan that a language model reads out of an outcome: what it is asked, and whether its answer can be believed. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from pytest_golden.learning.language_model.prompting import write_prompt
from pytest_golden.learning.model import ExtractedPlan
from pytest_golden.learning.rules import PATTERNS, extract_plan_by_rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.learning.model import ProductionOutcome

CHECKED_CONFIDENCE = 0.95
_TASK = """\
Read back the plan that this piece of work followed, so that it can be followed again for a task like it.
- strategy_description: one or two sentences on what was done and why it worked.
- reasoning_pattern: direct_implementation, iterative_refinement or complex_multi_step.
- tools_sequence: the steps that mattered, in order, each exactly as it is written among the steps taken.
- key_decisions, success_factors, failure_factors: short sentences, each on what the data show.
Name no step that was not taken. Where a sentence names a step, put its name in backticks, exactly as it is written."""
_MOST_OF_BLOCK = 6_000
_QUOTED = re.compile(r"`([^`\n]+)`")
_ARROW = re.compile(r"\s*(?:\u2192|->|=>)\s*")

_Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
_Sentences = Annotated[tuple[_Sentence, ...], Field(max_length=20)]
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]


class PlanReply(BaseModel):
    """What a model must answer."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    strategy_description: _Text
    tools_sequence: Annotated[tuple[str, ...], Field(min_length=1, max_length=1_000)]
    reasoning_pattern: str = ""
    key_decisions: _Sentences = ()
    success_factors: _Sentences = ()
    failure_factors: _Sentences = ()


def write_plan_prompt(outcome: ProductionOutcome) -> str:
    """Ask for the plan of an outcome; what the agent said in it is data, without its secrets."""
    data = {
        "Task": outcome.task_description,
        "Steps taken, in order": list(outcome.execution_path),
        "Result": outcome.result,
        "Ending": _tell_ending(outcome),
        "Context": outcome.context,
    }
    return write_prompt(_TASK, data, most_of_block=_MOST_OF_BLOCK)


def check_plan_reply(outcome: ProductionOutcome, reply: PlanReply | None) -> ExtractedPlan | None:
    """Return the plan of a reply; None when it names a step that the outcome does not have, by itself or in a sentence."""
    if reply is None or not outcome.execution_path:
        return None
    by_rules = extract_plan_by_rules(outcome)
    sentences = (
        reply.strategy_description,
        *reply.key_decisions,
        *reply.success_factors,
        *reply.failure_factors,
    )
    named = {*reply.tools_sequence, *_find_named(sentences)}
    if not named <= set(outcome.execution_path):
        return None
    is_known = reply.reasoning_pattern in PATTERNS
    return ExtractedPlan(
        outcome_id=outcome.outcome_id,
        strategy_description=reply.strategy_description,
        reasoning_pattern=reply.reasoning_pattern if is_known else by_rules.reasoning_pattern,
        tools_sequence=reply.tools_sequence,
        key_decisions=reply.key_decisions or by_rules.key_decisions,
        success_factors=reply.success_factors or by_rules.success_factors,
        failure_factors=reply.failure_factors or by_rules.failure_factors,
        confidence=CHECKED_CONFIDENCE,
        timestamp=outcome.timestamp,
    )


def _tell_ending(outcome: ProductionOutcome) -> str:
    told = "success" if outcome.success else "failure"
    took = "" if outcome.execution_time is None else f" after {outcome.execution_time:g} s"
    return f"{told}{took}{f': {outcome.error_message}' if outcome.error_message else ''}"


def _find_named(sentences: Iterable[str]) -> set[str]:
    """Find the steps that sentences name: in backticks, or between arrows (`first: a -> b`)."""
    named: set[str] = set()
    for sentence in sentences:
        named.update(_QUOTED.findall(sentence))
        parts = _ARROW.split(sentence)
        if len(parts) > 1:
            first = parts[0].rpartition(": ")[2]
            named.update(part.strip(" .`'\"") for part in (first, *parts[1:]))
    return named
