"""Plans and outcomes for others to learn from: starting trajectories for a search, and training examples as JSON Lines."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pytest_golden.errors import GoldenError
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import ExtractedPlan
from pytest_golden.learning.outcomes import EVERYBODY, PLANS
from pytest_golden.learning.training_store import iter_training_examples
from pytest_golden.redaction.redactor import redact
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.vocabulary import StepType
from pytest_golden.values.checking import check_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from pytest_golden.learning.model import Memory
    from pytest_golden.storage.store import Store

OPERATOR = "production_learned"


def trajectories_for(problem: str, agent: str, limit: int = 5, *, store: MemoryStore | Store) -> tuple[Trajectory, ...]:
    """Return the plans that bear on a problem as trajectories that are not completed, one step for each of a plan's tools.

    The agent's own plans come first, then everybody's, each best first. `metadata` has `operator` (`production_learned`),
    `plan_id`, `outcome_id`, `problem`, `strategy_description`, `reasoning_pattern` and `confidence`.

    Args:
        problem: words; a plan with any of them, or for a task with any of them, is found.
        agent: whose plans come first.
        limit: how many at most.
        store: where the plans are kept.

    Raises:
        StorageError: the store cannot be read.
        ValueError: the limit is below 1, the agent's name is blank, or the problem is no text.
    """
    check_text("agent", agent)
    if not isinstance(problem, str):
        raise ValueError(f"problem must be text, not {problem!r:.100}")  # noqa: TRY004 - one kind of refusal
    memories = store if isinstance(store, MemoryStore) else MemoryStore(store)
    found: dict[str, Memory] = {}
    for place in dict.fromkeys((agent, EVERYBODY)):
        for hit in memories.search_memories((PLANS, place), problem, limit):
            found.setdefault(hit.memory.key, hit.memory)
    plans = filter(None, map(_read_plan, found.values()))
    return tuple(_begin(plan, problem) for plan in plans)[:limit]


def _read_plan(memory: Memory) -> ExtractedPlan | None:
    """Read a plan; None for a value that is no plan, or that a newer program wrote."""
    try:
        return ExtractedPlan.from_dict(memory.value)
    except ValueError:
        return None


def _begin(plan: ExtractedPlan, problem: str) -> Trajectory:
    trajectory = Trajectory.new(
        {
            "operator": OPERATOR,
            "plan_id": plan.plan_id,
            "outcome_id": plan.outcome_id,
            "problem": redact(problem),
            "strategy_description": plan.strategy_description,
            "reasoning_pattern": plan.reasoning_pattern,
            "confidence": plan.confidence,
        }
    )
    for tool in plan.tools_sequence:
        trajectory = trajectory.add_step(StepType.ACTION, tool, metadata={"planned": True})
    return trajectory


def export_training_examples(store: MemoryStore | Store, path: str | os.PathLike[str], agent: str | None = None) -> int:
    """Write the training examples, oldest first and one per line, and return their number; memory use stays constant.

    A line is `{training_id, outcome, plan, created_at}`, without secrets, in ASCII. The file is replaced at once, so that
    a reader never sees half of it; what a link leads to is replaced, and a device or a pipe (`/dev/stdout`) is written to
    as it is.

    Args:
        store: where they are kept.
        path: the file.
        agent: those of this agent alone.

    Raises:
        GoldenError: the file cannot be written.
        StorageError: the store cannot be read.
        ValueError: the agent's name is blank.
    """
    if agent is not None:
        check_text("agent", agent)
    target = Path(path)
    opened = store.store if isinstance(store, MemoryStore) else store
    if opened.path is not None and target.exists() and target.samefile(opened.path):
        raise GoldenError(f"{target} is the store itself; name another file")
    with opened.read() as connection:
        try:
            return _write_to(target, iter_training_examples(connection, agent))
        except OSError as error:
            message = f"{target} cannot be written ({error.strerror}); name a file in a folder that you may write to"
            raise GoldenError(message) from error


def _write_to(target: Path, values: Iterable[Mapping[str, Any]]) -> int:
    if target.exists() and not target.is_file() and not target.is_dir():
        with target.open("w", encoding="ascii", newline="\n") as file:
            return _write_lines(file, values)
    return _replace(target.resolve(), values)


def _replace(target: Path, values: Iterable[Mapping[str, Any]]) -> int:
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".training-")
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii", newline="\n") as file:
            count = _write_lines(file, values)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return count


def _write_lines(file: TextIO, values: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    for count, value in enumerate(values, 1):  # noqa: B007 - how many there were
        file.write(f"{json.dumps(value, allow_nan=False)}\n")
    return count
