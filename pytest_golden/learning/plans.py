"""Find the plans of earlier work that is like a task, those that worked and those that failed."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.learning.model import ExtractedPlan, ProductionOutcome
from pytest_golden.learning.outcomes import EVERYBODY, OUTCOMES, PLANS
from pytest_golden.learning.store import find_by_keys, find_by_pairs, search
from pytest_golden.storage.columns import find_words
from pytest_golden.values.checking import word_set
from pytest_golden.values.json_form import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sqlalchemy import Connection

    from pytest_golden.learning.model import Memory

_MOST_LOOKED_AT = 25
LEAST_LIKENESS, _FEWEST = 0.5, 2
_MOST_OF_ERROR = 300
# These say that something is done, but not to what, or when.
_VAGUE = word_set("""
    fix fixes fixed repair mend make makes add adds update updates change changes run runs do get set use using new task tasks
    problem problems issue issues please need needs should work works working handle implement improve check
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday today yesterday tomorrow day week month year daily weekly monthly
""")
_ENDINGS = re.compile(r"(?:ations?|ings?|ers?|ed|es|s|e)$")
_LEAST_STEM = 3


class FoundPlan(NamedTuple):
    """A plan for work like a task. `outcome` is None if it is not known any more; `likeness` is from 0 to 1."""

    plan: ExtractedPlan
    outcome: ProductionOutcome | None
    likeness: float

    @property
    def has_worked(self) -> bool:
        """Return whether the work succeeded, as far as is known."""
        return self.outcome is None or self.outcome.success

    @property
    def error(self) -> str:
        """Return the first line of the error; empty if the work succeeded, or its error is not known."""
        message = "" if self.outcome is None or self.has_worked else (self.outcome.error_message or "").strip()
        return message.partition("\n")[0][:_MOST_OF_ERROR]

    @property
    def warning(self) -> str:
        """Return what failed, and with which error."""
        return f"{self.plan.strategy_description} failed{f': {self.error}' if self.error else ''}"


def find_plans(
    connection: Connection, task: str, agent: str | None, alike: Mapping[str, float] = FrozenDict()
) -> tuple[FoundPlan, ...]:
    """Find the plans for work like a task, each once: the agent's own first, then everybody's, each by likeness.

    A plan is like a task if it has half of the words that tell anything, and two at least, in its own task or its steps. `alike` are the
    ids of further plans, of which the likeness is known.
    """
    found: dict[str, FoundPlan] = {}
    for owner in dict.fromkeys(one for one in (agent, EVERYBODY) if one is not None):
        plans = [hit.memory for hit in search(connection, (PLANS, owner), task, _MOST_LOOKED_AT)]
        plans += find_by_keys(connection, (PLANS, owner), tuple(alike)) if alike else ()
        outcomes = find_outcomes(connection, plans)
        some = (one for plan in plans for one in _compare(plan, outcomes, task, alike.get(plan.key, 0.0)))
        for one in sorted(some, key=lambda one: -one.likeness):
            found.setdefault(one.plan.plan_id, one)
    return tuple(found.values())


def find_outcomes(connection: Connection, plans: Iterable[Memory]) -> Mapping[str, Memory]:
    """Return what came of plans, by the ids of the outcomes."""
    # The last tag of a plan is its agent.
    pairs = [((OUTCOMES, plan.tags[-1]), str(plan.value.get("outcome_id"))) for plan in plans if plan.tags]
    return {memory.key: memory for memory in find_by_pairs(connection, pairs)}


def _compare(plan: Memory, outcomes: Mapping[str, Memory], task: str, least: float) -> Iterator[FoundPlan]:
    """Yield a plan if it is like the task, `least` or more. `outcomes` are what came of plans, by the ids of the outcomes."""
    outcome = outcomes.get(str(plan.value.get("outcome_id")))
    own = "" if outcome is None else str(outcome.value.get("task_description"))
    tools = plan.value.get("tools_sequence")
    steps = " ".join(map(str, (plan.value.get("strategy_description"), *(tools if isinstance(tools, list) else ()))))
    likeness = max(least, measure_task_likeness(task, own, steps))
    if likeness >= LEAST_LIKENESS:
        with suppress(ValueError):  # another value, or one that a newer program wrote
            came_of_it = None if outcome is None else ProductionOutcome.from_dict(outcome.value)
            yield FoundPlan(ExtractedPlan.from_dict(plan.value), came_of_it, likeness)


def measure_task_likeness(task: str, other: str, more: str = "") -> float:
    """Return how much of the shorter task's telling words the other one, or what it says more, has too, from 0 to 1.

    It is 0 if they have fewer than two words of several in common.
    """
    asked, own = find_stems(task), find_stems(other)
    shared = asked & (own | find_stems(more))
    if not asked or len(shared) < min(_FEWEST, len(asked)):
        return 0.0
    shorter = min(len(asked), max(len(own), _FEWEST)) if own else len(asked)
    return min(1.0, len(shared) / shorter)


def find_stems(text: str) -> frozenset[str]:
    """Return the words of a text that tell something, without their endings; words of a name count one by one."""
    words = find_words(text.replace("_", " "))
    telling = [word for word in words if word not in _VAGUE and not word.isdecimal()] or words
    return frozenset(map(_cut_ending, telling))


def _cut_ending(word: str) -> str:
    stem = _ENDINGS.sub("", word)
    return stem if len(stem) >= _LEAST_STEM else word
