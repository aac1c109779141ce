"""Outcomes and plans for programs that learn from them.

Plans become starting trajectories for a search, training examples become JSON Lines, and failures and passes become a dataset from
which a language model rewrites texts. Nothing is run. What a pipeline or an agent said stands in a record as data between
marks, since a record is put into a prompt unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.learning.gate_results_store import read_results
from pytest_golden.learning.language_model.prompting import write_data
from pytest_golden.learning.lessons.recalling import recall_lessons
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import ProductionOutcome
from pytest_golden.learning.outcomes import OUTCOMES, TRAINING
from pytest_golden.learning.plans import find_plans, find_stems
from pytest_golden.learning.seen_before import find_seen_before
from pytest_golden.learning.signature import cause_of, error_signature
from pytest_golden.learning.store import iterate_kind
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.folder import replace_file
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.vocabulary import StepType
from pytest_golden.values.checking import check_any_text, check_count, check_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Connection

    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.learning.model import ExtractedPlan
    from pytest_golden.storage.store import Store

OPERATOR = "production_learned"
_MOST_OF_BLOCK = 4_000
# GEPA puts all records into such a fence, which a record must not end.
_FENCE, _NO_FENCE = "```", "'''"
_MOST_LESSONS = 2
_MOST_LOOKED_AT = 5_000
_MOST_WAITING, _MOST_TASKS = 5, 10_000


def trajectories_for(problem: str, agent: str, limit: int = 5, *, store: MemoryStore | Store) -> tuple[Trajectory, ...]:
    """Return the plans that worked for problems like this one, as trajectories that are not completed, with a step for each tool.

    The agent's own plans come first, then everybody's, each best first. `metadata` has `operator` (`production_learned`),
    `plan_id`, `outcome_id`, `problem`, `strategy_description`, `reasoning_pattern`, `confidence`, and `warnings`: what failed for
    such a problem, and why. A plan that failed is not a trajectory.

    Args:
        problem: words; a plan must have half of those that tell anything, two at least, in its task or its steps.
        agent: the agent whose plans come first.
        limit: the most trajectories to return.
        store: the store of the plans.

    Raises:
        StorageError: the store cannot be read.
        ValueError: the limit is below 1, the agent's name is blank, or the problem is not text.
    """
    check_text("agent", agent)
    check_any_text("problem", problem)
    memories = store if isinstance(store, MemoryStore) else MemoryStore(store)
    check_count("limit", limit, least=1)
    with memories.store.read() as connection:
        found = find_plans(connection, problem, agent)
    warnings = [one.warning for one in found if not one.has_worked]
    return tuple(_begin(one.plan, problem, warnings) for one in found if one.has_worked)[:limit]


def _begin(plan: ExtractedPlan, problem: str, warnings: Sequence[str]) -> Trajectory:
    trajectory = Trajectory.new(
        {
            "operator": OPERATOR,
            "plan_id": plan.plan_id,
            "outcome_id": plan.outcome_id,
            "problem": redact(problem),
            "strategy_description": plan.strategy_description,
            "reasoning_pattern": plan.reasoning_pattern,
            "confidence": plan.confidence,
            "warnings": list(warnings),
        }
    )
    for tool in plan.tools_sequence:
        trajectory = trajectory.add_step(StepType.ACTION, tool, metadata={"planned": True})
    return trajectory


def export_training_examples(store: MemoryStore | Store, path: str | os.PathLike[str], agent: str | None = None) -> int:
    """Write the training examples, oldest first and one per line, and return their number; memory use stays constant.

    A line is `{training_id, outcome, plan, created_at}`, without secrets, in ASCII. The file is replaced atomically, so that a
    reader never sees half of it. The target of a link is replaced; a device or a pipe (`/dev/stdout`) is written directly.

    Args:
        store: the store of the examples.
        path: the file.
        agent: write only this agent's examples.

    Raises:
        GoldenError: the file cannot be written.
        StorageError: the store cannot be read.
        ValueError: the agent's name is blank.
    """
    return _write_lines(store, path, agent, lambda found: (one.value for one in iterate_kind(found, TRAINING, agent)))


def export_preferences(store: MemoryStore | Store, path: str | os.PathLike[str], agent: str | None = None) -> int:
    """Write pairs of a success and a failure at the same task, one per line, and return their number; for DPO and the like.

    A line is `{prompt, chosen, rejected, chosen_reward, rejected_reward, rejected_error, agent, chosen_id, rejected_id}`: the task, and
    the steps of both as lines. Tasks are the same if they have the same telling words. A failure is paired with the success before it at
    its task, else with the next one. Arguments and errors are as in `export_training_examples`.
    """
    return _write_lines(store, path, agent, lambda found: _pair(_iterate_outcomes(found, agent)))


def _iterate_outcomes(connection: Connection, agent: str | None) -> Iterator[ProductionOutcome]:
    return (ProductionOutcome.from_dict(one.value) for one in iterate_kind(connection, OUTCOMES, agent))


def _pair(outcomes: Iterable[ProductionOutcome]) -> Iterator[dict[str, Any]]:
    succeeded: dict[tuple[str, frozenset[str]], ProductionOutcome] = {}
    waiting: dict[tuple[str, frozenset[str]], list[ProductionOutcome]] = {}
    for outcome in outcomes:
        task = (outcome.agent_name, find_stems(outcome.task_description))
        if outcome.success:
            # The one of last time counts: it is popped so that the oldest task comes first.
            succeeded.pop(task, None)
            succeeded[task] = outcome
            yield from (_write_pair(outcome, failed) for failed in waiting.pop(task, ()))
        elif task in succeeded:
            yield _write_pair(succeeded[task], outcome)
        else:
            waiting[task] = [*waiting.pop(task, ()), outcome][-_MOST_WAITING:]
        for known in (succeeded, waiting):
            if len(known) > _MOST_TASKS:
                del known[next(iter(known))]


def _write_pair(chosen: ProductionOutcome, rejected: ProductionOutcome) -> dict[str, Any]:
    return {
        "prompt": rejected.task_description,
        "chosen": "\n".join(chosen.execution_path),
        "rejected": "\n".join(rejected.execution_path),
        "chosen_reward": 1.0,
        "rejected_reward": 0.0,
        "rejected_error": rejected.error_message,
        "agent": rejected.agent_name,
        "chosen_id": chosen.outcome_id,
        "rejected_id": rejected.outcome_id,
    }


def _write_lines(
    store: MemoryStore | Store,
    path: str | os.PathLike[str],
    agent: str | None,
    find: Callable[[Connection], Iterable[Mapping[str, Any]]],
) -> int:
    if agent is not None:
        check_text("agent", agent)
    target = Path(path)
    opened = store.store if isinstance(store, MemoryStore) else store
    if opened.path is not None and target.exists() and target.samefile(opened.path):
        raise GoldenError(f"{target} is the store itself; name another file")
    with opened.read() as connection:
        try:
            with replace_file(target, follows_links=True) as file:
                count = 0
                for value in find(connection):
                    file.write(f"{json.dumps(value, allow_nan=False)}\n")
                    count += 1
                return count
        except OSError as error:
            message = f"{target} cannot be written ({error.strerror}); name a file in a folder that you may write to"
            raise GoldenError(message) from error


def reflective_dataset(
    store: MemoryStore | Store,
    components: Mapping[str, str] | Iterable[str],
    *,
    project: str | None = None,
    agent: str | None = None,
    limit: int = 20,
) -> dict[str, list[dict[str, Any]]]:
    """Return recorded outcomes as records for each component, as GEPA's `StatelessReflectionLM.reflect` accepts them.

    Failures come first, newest first, each kind of failure once before any is repeated, with the lesson and the fix where
    they are known; successes follow. An outcome does not say which text caused it, so every component gets the same outcomes.
    The values are plain and redacted; the words of pipelines and agents are marked as data.

    Args:
        store: the store in which the gate or agents recorded outcomes.
        components: names of texts, or a mapping of name to path.
        project: use only the outcomes of this golden project.
        agent: use only the outcomes of this agent; the gate's agent is `golden`.
        limit: the most records for each component.

    Raises:
        ValueError: the limit is below 1.
        GoldenError: a name is invalid, or no outcome was recorded, so that the components would have no records.
        StorageError: the store cannot be read.
    """
    names = check_names(components)
    check_count("limit", limit, least=1)
    paths = components if isinstance(components, Mapping) else {}
    own = store.store if isinstance(store, MemoryStore) else store
    with own.read() as connection:
        chosen = _choose(_list_outcomes(connection, project, agent), limit)
        if not chosen:
            raise GoldenError(_explain_none(names, project, agent))
        cases = list(_read_cases(connection, chosen))
    return {name: [_record(case, name, paths.get(name)) for case in cases] for name in names}


def _list_outcomes(connection: Connection, project: str | None, agent: str | None) -> Iterator[ProductionOutcome]:
    for memory in islice(iterate_kind(connection, OUTCOMES, agent, latest_first=True), _MOST_LOOKED_AT):
        try:
            outcome = ProductionOutcome.from_dict(memory.value)
        except (TypeError, ValueError):
            continue  # The value of another program under this name.
        if project is None or outcome.context.get("project") == project:
            yield outcome


def _choose(outcomes: Iterable[ProductionOutcome], limit: int) -> list[ProductionOutcome]:
    """Return failures before successes, and of each the different ones before those that repeat a newer one."""
    ranks: dict[tuple[bool, bool], list[ProductionOutcome]] = {}
    met: set[tuple[str, str]] = set()
    for outcome in outcomes:
        text = outcome.error_message or outcome.task_description
        kind = (outcome.task_description if outcome.success else "", error_signature(cause_of(text)))
        ranks.setdefault((outcome.success, kind in met), []).append(outcome)
        met.add(kind)
    return [outcome for rank in sorted(ranks) for outcome in ranks[rank]][:limit]


class _Case(NamedTuple):
    """An outcome, its result as the gate recorded it, and what is known of its error."""

    outcome: ProductionOutcome
    result: Mapping[str, Any]
    known: str


def _read_cases(connection: Connection, outcomes: Sequence[ProductionOutcome]) -> Iterator[_Case]:
    entries = [str(outcome.context["entry"]) for outcome in outcomes if outcome.context.get("entry")]
    results = read_results(connection, entries)
    for outcome in outcomes:
        error, project = outcome.error_message, outcome.context.get("project")
        known = find_known(connection, error, project) if error and not outcome.success else ""
        yield _Case(outcome, results.get(str(outcome.context.get("entry")), {}), known)


def _record(case: _Case, name: str, path: object) -> dict[str, Any]:
    outcome, result = case.outcome, case.result
    inputs = {
        "component": name,
        "file": str(path) if isinstance(path, (str, PurePath)) else None,
        "task": outcome.task_description,
        "golden project": outcome.context.get("project"),
        "agent": outcome.agent_name,
    }
    outputs = {
        "steps": " → ".join(outcome.execution_path),
        "result": outcome.result,
        "output": result.get("output_summary"),
    }
    findings = {
        "error": outcome.error_message,
        "further reasons": join_lines(str(reason.get("message")) for reason in (result.get("reasons") or ())[1:]),
        "known of this error": case.known,
    }
    verdict = "It succeeded: keep what makes it succeed." if outcome.success else "It failed."
    return make_record(inputs, outputs, verdict, findings)


def _explain_none(names: Sequence[str], project: str | None, agent: str | None) -> str:
    asked = {"golden project": project, "agent": agent}
    of = " and ".join(f"the {what} {name!r}" for what, name in asked.items() if name is not None)
    return (
        f"no outcome{of and f' of {of}'} was recorded, so that {', '.join(names)} would have no records:"
        " run the gate with --golden-learning=on, or log outcomes, first"
    )


def find_known(connection: Connection, text: str, project: str | None) -> str:
    """Return a line for each lesson about the same error, and one on when it was seen before; empty when nothing is known.

    It is not recorded as a recall: the lessons are not shown, so they are not credited.
    """
    found = recall_lessons(connection, text, project=project, limit=_MOST_LESSONS)
    seen = find_seen_before(connection, text, project=project, limit=1) if project else ()
    return "\n".join([*(_word(one.lesson) for one in found), *map(str, seen)])


def _word(skill: SkillMemory) -> str:
    worked = f" What worked: {skill.what_worked}" if skill.what_worked else ""
    why = f" Why: {skill.why}" if skill.why else ""
    return f"{skill.lesson}{worked}{why}"


def make_record(
    inputs: Mapping[str, str | None], outputs: Mapping[str, object], verdict: str, findings: Mapping[str, object]
) -> dict[str, Any]:
    """Return a record with `Inputs`, `Generated Outputs` and `Feedback`, redacted, without empty values.

    Args:
        inputs: the use of the component, in our own words or the manifest's.
        outputs: the results, in the words of a pipeline or an agent.
        verdict: the judgement, in our own words.
        findings: the reasons of the judgement, in the words of a pipeline or an agent.
    """
    feedback = [verdict, _quote(findings)]
    record: dict[str, Any] = {
        "Inputs": {name: _unfence(text) for name, text in inputs.items() if text},
        "Generated Outputs": _quote(outputs) or "nothing",
        "Feedback": "\n\n".join(part for part in feedback if part),
    }
    redacted: dict[str, Any] = redact(record)
    return redacted


def check_names(components: object) -> tuple[str, ...]:
    """Return the names of components, of a mapping or a sequence.

    Raises:
        GoldenError: there are none, or a name is not plain text or occurs twice.
    """
    is_text = isinstance(components, (str, bytes))
    if is_text or not isinstance(components, Iterable):
        what = "the text " if is_text else ""
        raise GoldenError(f"components must be a mapping or a list of names, not {what}{components!r:.100}")
    names = tuple(components)
    if not names:
        raise GoldenError("no components: name at least one text that is to be improved")
    for name in names:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise GoldenError(f"{name!r:.100} is not a name of a component: give a line of text")
    if len(set(names)) < len(names):
        raise GoldenError(f"a component is named twice: {', '.join(names)}")
    return names


def join_lines(lines: Iterable[object]) -> str:
    """Return the texts that are not empty, one per line."""
    return "\n".join(str(line) for line in lines if line)


def _quote(said: Mapping[str, object]) -> str:
    blocks = {title: _unfence(value) for title, value in said.items() if value is not None and value != ""}
    return write_data(blocks, most_of_block=_MOST_OF_BLOCK)


def _unfence(value: object) -> object:
    return value.replace(_FENCE, _NO_FENCE) if isinstance(value, str) else value
