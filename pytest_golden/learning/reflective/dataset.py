"""What was recorded of failures and passes, as a dataset that a language model rewrites texts by. Nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError
from pytest_golden.learning.limits import check_limit
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import ProductionOutcome
from pytest_golden.learning.reflective.known import find_known
from pytest_golden.learning.reflective.records import check_names, join_lines, make_record
from pytest_golden.learning.reflective.store import list_latest_outcomes, read_results
from pytest_golden.learning.signature import cause_of, error_signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Connection

    from pytest_golden.storage.store import Store

_MOST_LOOKED_AT = 5_000


def reflective_dataset(
    store: MemoryStore | Store,
    components: Mapping[str, str] | Iterable[str],
    *,
    project: str | None = None,
    agent: str | None = None,
    limit: int = 20,
) -> dict[str, list[dict[str, Any]]]:
    """Give recorded outcomes as records for each component: what GEPA's `StatelessReflectionLM.reflect` takes.

    Failures come first, newest first, each kind of failure once before any is repeated, with the lesson and the fix where
    they are known; then what succeeded. An outcome does not say which text was to blame, so that every component gets
    the same outcomes. The values are plain and redacted; what a pipeline or an agent said is marked as data.

    Args:
        store: where outcomes were recorded, by the gate or by agents.
        components: names of texts, or a mapping of name to path.
        project: take the outcomes of this golden project alone.
        agent: take the outcomes of this agent alone; the gate's own is `golden`.
        limit: how many records for each component at most.

    Raises:
        ValueError: the limit is below 1.
        GoldenError: a name is none, or no outcome was recorded, so that the components would have no records.
        StorageError: the store cannot be read.
    """
    names = check_names(components)
    check_limit(limit)
    paths = components if isinstance(components, Mapping) else {}
    own = store.store if isinstance(store, MemoryStore) else store
    with own.read() as connection:
        chosen = _choose(_list_outcomes(connection, project, agent), limit)
        if not chosen:
            raise GoldenError(_explain_none(names, project, agent))
        told = _tell(connection, chosen)
    return {name: [_record(one, name, paths.get(name)) for one in told] for name in names}


def _list_outcomes(connection: Connection, project: str | None, agent: str | None) -> Iterator[ProductionOutcome]:
    for memory in islice(list_latest_outcomes(connection, agent), _MOST_LOOKED_AT):
        try:
            outcome = ProductionOutcome.from_dict(memory.value)
        except (TypeError, ValueError):
            continue  # Somebody else's value under this name.
        if project is None or outcome.context.get("project") == project:
            yield outcome


def _choose(outcomes: Iterable[ProductionOutcome], limit: int) -> list[ProductionOutcome]:
    """Take failures before successes, and of each the different ones before those that repeat a newer one."""
    ranks: dict[tuple[bool, bool], list[ProductionOutcome]] = {}
    met: set[tuple[str, str]] = set()
    for outcome in outcomes:
        text = outcome.error_message or outcome.task_description
        kind = (outcome.task_description if outcome.success else "", error_signature(cause_of(text)))
        ranks.setdefault((outcome.success, kind in met), []).append(outcome)
        met.add(kind)
    return [outcome for rank in sorted(ranks) for outcome in ranks[rank]][:limit]


class _Told:
    """An outcome with what is known beside it: what the gate recorded, and what is known of the error."""

    def __init__(self, outcome: ProductionOutcome, result: Mapping[str, Any], known: str) -> None:
        self.outcome, self.result, self.known = outcome, result, known


def _tell(connection: Connection, outcomes: Sequence[ProductionOutcome]) -> list[_Told]:
    entries = [str(outcome.context["entry"]) for outcome in outcomes if outcome.context.get("entry")]
    results = read_results(connection, entries)
    return [
        _Told(outcome, results.get(str(outcome.context.get("entry")), {}), _find_known(connection, outcome))
        for outcome in outcomes
    ]


def _find_known(connection: Connection, outcome: ProductionOutcome) -> str:
    if outcome.success or not outcome.error_message:
        return ""
    return find_known(connection, outcome.error_message, outcome.context.get("project"))


def _record(told: _Told, name: str, path: object) -> dict[str, Any]:
    outcome, result = told.outcome, told.result
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
        "known of this error": told.known,
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
