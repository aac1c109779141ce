"""Make an outcome from an agent's report, cut it to the size that is stored, read its plan, and write both as memories. Pure.

A mark shows each cut, and JSON stays JSON. Nothing is stored here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.clock import iso_utc, utc_now
from pytest_golden.learning import memories
from pytest_golden.learning.model import ExtractedPlan, ProductionOutcome
from pytest_golden.storage.columns import write_namespace
from pytest_golden.values import checking
from pytest_golden.values.checking import Checked, check_mapping, check_text, checked, optional
from pytest_golden.values.json_form import json_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime


_MOST_OF_MARK = 64
_MOST_OF_KEY = 200
_SMALLEST = 96
_LEFT_OUT = "[cut]"
# Made once: `json.dumps` with arguments makes one for each call.
_ENCODER = json.JSONEncoder(separators=(",", ":"))
CUT_FIELDS = "cut_fields"
_MOST_ERROR_CHARACTERS = 10_000
_MOST_PATH_BYTES = 64 * 1024
# An outcome is also stored in a training example, which repeats its path as the plan's strategy, tools and decisions. The
# second constant is the room for everything else in it.
_PATHS_OF_EXAMPLE = 4
_BYTES_AROUND = 8 * 1024
_BYTES_OF_ARROW = 8
_MOST_NAME_BYTES = 2_000
# Smaller reports take a few milliseconds.
_FEW_VALUES, _CHARACTERS_OF_VALUE = 2_000, 100
_TEXTS, _CONTAINERS = frozenset({str, bytes, bytearray}), frozenset({dict, list, tuple})
OUTCOMES, PLANS, TRAINING, EVERYBODY = "outcomes", "plans", "training", "global"
_MOST_OF_TASK = 2_000


@dataclass(frozen=True, slots=True)
class Report(Checked):
    """The report of an agent, unchanged.

    Raises:
        ValueError: an argument is of a wrong kind, or the agent's name is blank or too long to be looked up.
    """

    task: str = field(metadata=checked(checking.check_any_text))
    result: Any
    success: bool = field(metadata=checked(checking.check_flag))
    execution_path: Iterable[str] = field(metadata=checked(memories.check_texts))
    agent_name: str = field(metadata=checked(lambda _, name: check_agent_name(name)))
    execution_time: float | None = field(default=None, metadata=checked(checking.check_seconds))
    error_message: str | None = field(default=None, metadata=checked(checking.check_optional_text))
    context: Mapping[str, Any] | None = field(default=None, metadata=checked(optional(check_mapping)))
    timestamp: datetime = field(default_factory=utc_now)

    @property
    def is_small(self) -> bool:
        """Return whether its outcome can be made quickly enough in the caller's thread."""
        return _count_values([self.result, self.context, self.execution_path]) < _FEW_VALUES


def make_outcome(report: Report) -> ProductionOutcome:
    """Return the outcome, small enough to be stored with its plan; `context["cut_fields"]` names the cut fields."""
    error = report.error_message
    parts = {
        "task_description": cut_text(report.task, memories.MOST_TASK_CHARACTERS),
        "execution_path": cut_steps(tuple(report.execution_path), memories.MOST_STEPS, _MOST_PATH_BYTES),
        "error_message": Cut(None, False) if error is None else cut_middle(error, _MOST_ERROR_CHARACTERS),
    }
    path = parts["execution_path"].kept
    room = memories.MOST_BYTES - _BYTES_AROUND - _PATHS_OF_EXAMPLE * measure(path) - _BYTES_OF_ARROW * len(path)
    room -= measure(parts["task_description"].kept) + measure(parts["error_message"].kept)
    parts |= _share_room(room, report.result, report.context)
    kept = {name: cut.kept for name, cut in parts.items()}
    missing = [name for name, cut in parts.items() if cut.is_cut]
    if missing:
        kept["context"] = {**kept["context"], CUT_FIELDS: missing}
    return ProductionOutcome(
        **kept,
        success=report.success and not says_failure(report.result),
        agent_name=report.agent_name,
        execution_time=report.execution_time,
        timestamp=report.timestamp,
    )


def says_failure(result: Any) -> bool:
    """Tell whether a result says that the work failed: by its `status`, or by a `success` that is False."""
    if not isinstance(result, Mapping):
        return False
    return str(result.get("status")).lower() in _FAILURE_WORDS or result.get("success") is False


def _share_room(room: int, result: Any, context: Mapping[str, Any] | None) -> dict[str, Cut]:
    """Share the room: the context gets up to half of it, the result the rest."""
    kept_context = Cut({}, False) if context is None else cut_json(context, room // 2)
    if not isinstance(kept_context.kept, dict):
        kept_context = Cut({"context": kept_context.kept}, kept_context.is_cut)
    kept_result = cut_json(result, room - measure(kept_context.kept))
    return {"result": kept_result, "context": kept_context}


def check_agent_name(agent_name: str) -> str:
    """Return the name. Raise a `ValueError` for a blank one, and for one that is too long for a namespace."""
    size = len(write_namespace([check_text("agent_name", agent_name)]))
    if size > _MOST_NAME_BYTES:
        raise ValueError(
            f"agent_name has {size:,} bytes, percent-encoded as a URL, and at most {_MOST_NAME_BYTES:,} are looked up; "
            "give a shorter one"
        )
    return agent_name


def _count_values(values: list[Any]) -> int:
    """Return the number of values, where a long text counts as several; stop counting at 2,000."""
    count = 0
    while values and count < _FEW_VALUES:
        value = values.pop()
        count += 1
        kind = type(value)  # `isinstance` may run any code of a foreign class
        if kind in _TEXTS:
            count += len(value) // _CHARACTERS_OF_VALUE
        elif kind in _CONTAINERS:
            if len(value) >= _FEW_VALUES:
                return _FEW_VALUES
            values.extend(value.values() if kind is dict else value)
    return count


def write_outcome(outcome: ProductionOutcome) -> tuple[Mapping[str, Any], ...]:
    """Return the arguments of `MemoryStore.save_memories` for an outcome."""
    tags = ("production", "outcome", "success" if outcome.success else "failure")
    return (_memory((OUTCOMES, outcome.agent_name), outcome.outcome_id, outcome.to_dict(), tags),)


def write_plan(plan: ExtractedPlan, outcome: ProductionOutcome) -> tuple[Mapping[str, Any], ...]:
    """Return the same for a plan, which is stored for the agent and for everybody.

    A plan does not name its task, so the task's words are added to those that a search finds it by, and its agent is the last tag.
    """
    value = plan.to_dict()
    tags = ("production", "plan", outcome.agent_name)
    words = outcome.task_description[:_MOST_OF_TASK]
    return tuple(
        {**_memory((PLANS, owner), plan.plan_id, value, tags), "words": words}
        for owner in dict.fromkeys((outcome.agent_name, EVERYBODY))
    )


def write_training_example(outcome: ProductionOutcome, plan: ExtractedPlan) -> tuple[Mapping[str, Any], ...]:
    """Return the same for a training example; an outcome that is too large beside its plan is cut."""
    key, plain = f"training_{plan.plan_id}", outcome.to_dict()
    value = {
        "training_id": key,
        "outcome": plain,
        "plan": plan.to_dict(),
        "created_at": iso_utc(outcome.timestamp),
    }
    for name in ("result", "context"):
        excess = measure(value) - memories.MOST_BYTES
        if excess > 0:
            plain[name] = cut_json(plain[name], measure(plain[name]) - excess).kept
    tags = ("se_darwin", "training", "production_learning")
    return (_memory((TRAINING, outcome.agent_name), key, value, tags),)


def _memory(namespace: tuple[str, ...], key: str, value: Mapping[str, Any], tags: tuple[str, ...]) -> Mapping[str, Any]:
    return {"namespace": namespace, "key": key, "value": value, "tags": tags}


class Cut(NamedTuple):
    """The kept value, and whether a part of it was cut."""

    kept: Any
    is_cut: bool


def cut_text(text: str, most_characters: int) -> Cut:
    """Keep the beginning of a text, and say at its end how much was cut."""
    if len(text) <= most_characters:
        return Cut(text, False)
    kept = text[: max(0, most_characters - _MOST_OF_MARK)]
    return Cut(f"{kept} [cut: {len(text) - len(kept):,} characters]", True)


def cut_middle(text: str, most_characters: int) -> Cut:
    """Keep both ends of a text, and say between them how much was cut: the cause of an error may be at either end."""
    if len(text) <= most_characters:
        return Cut(text, False)
    half = max(1, (most_characters - _MOST_OF_MARK) // 2)
    return Cut(f"{text[:half]} [cut: {len(text) - 2 * half:,} characters] {text[-half:]}", True)


def cut_steps(steps: tuple[str, ...], most_steps: int, most_bytes: int) -> Cut:
    """Keep the first and the last steps, with a mark that counts the others, and shorten names that are too long.

    Args:
        steps: their names, in order.
        most_steps: the most steps that are kept.
        most_bytes: the most bytes that all of them have as JSON.
    """
    kept = steps
    if len(steps) > most_steps:
        head = most_steps // 2
        tail = most_steps - head - 1
        kept = (*steps[:head], f"[cut: {len(steps) - head - tail:,} steps]", *steps[-tail:])
    if sum(map(len, kept)) <= most_bytes and measure(kept) <= most_bytes:
        return Cut(kept, kept is not steps)
    share = most_bytes // len(kept)
    return Cut(tuple(_shorten(step, share) for step in kept), True)


def cut_json(value: Any, most_bytes: int) -> Cut:
    """Keep as much of a value as fits, as JSON content.

    Of a mapping the small members are kept whole and the large ones in part; of a list, the beginning of its JSON text.
    `most_bytes` is counted in ASCII, as it is stored; fewer than 96 count as 96, which is room for a mark.
    """
    if isinstance(value, (bytes, bytearray)):
        value = value[: most_bytes + 1]  # each byte is one of text, or more
    try:
        content = json_form(value)
    except Exception:  # a foreign class may raise anything
        content = f"<{type(value).__name__} that cannot be shown>"
    return _cut_content(content, most_bytes)


def _cut_content(content: Any, most_bytes: int) -> Cut:
    text = _write_beginning(content, most_bytes)
    if len(text) <= most_bytes:
        return Cut(content, False)
    room = max(_SMALLEST, most_bytes)
    if isinstance(content, dict):
        return Cut(_fit_mapping(content, room), True)
    return Cut(_shorten(content, room) if isinstance(content, str) else _shorten(text, room, "the rest"), True)


def _write_beginning(content: Any, most_bytes: int) -> str:
    """Return the JSON text of a content, and no more than its beginning if it is longer: it may be endless by repetition."""
    pieces, left = [], most_bytes
    for piece in _ENCODER.iterencode(content):
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            break
    return "".join(pieces)


def measure(value: Any) -> int:
    """Return the bytes of JSON content in ASCII, as it is stored."""
    return len(_ENCODER.encode(value))


def _shorten(text: str, most_bytes: int, left_out: str | None = None) -> str:
    """Keep the beginning of a text, so that its JSON fits into these bytes with quotes and mark."""
    room = max(1, most_bytes - 4)
    kept = text[:room]
    while (size := measure(kept)) > room and len(kept) > 1:
        kept = kept[: max(1, min(len(kept) - 1, len(kept) * room // size))]
    if len(kept) == len(text):
        return text
    if most_bytes < 2 * _MOST_OF_MARK:
        return f"{kept[: max(1, len(kept) - 4)]} ..."
    mark = f" [cut: {left_out or f'{len(text) - len(kept):,} characters'}]"
    return kept[: max(1, len(kept) - len(mark))] + mark


def _fit_mapping(mapping: Mapping[str, Any], room: int) -> dict[str, Any]:
    """Keep the small members whole, and share the rest of the room equally among the large ones; the order stays.

    Of very many members only the first ones are kept.
    """
    left = room - _MOST_OF_MARK - 2
    parts: dict[str, Any] = {}
    sizes = {key: len(_write_beginning(mapping[key], left)) for key in islice(mapping, left // _SMALLEST + 1)}
    for number, key in enumerate(sorted(sizes, key=sizes.__getitem__)):
        beside = measure(key) + 2
        size, share = sizes[key], left // (len(sizes) - number) - beside
        if len(key) > _MOST_OF_KEY or share < min(size, _SMALLEST):
            continue
        parts[key] = _cut_content(mapping[key], share).kept
        left -= beside + min(size, share)
    kept = {key: parts[key] for key in mapping if key in parts}
    if len(kept) < len(mapping):
        kept[_LEFT_OUT] = f"{len(mapping) - len(kept):,} members"
    return kept


#: Every `reasoning_pattern`, by rising number of steps.
PATTERNS = ("direct_implementation", "iterative_refinement", "complex_multi_step")
_FAST_SECONDS, _SLOW_SECONDS = 5.0, 30.0
_DIRECT_STEPS, _SHORT_STEPS, _LONG_STEPS = 2, 5, 10
_FAILURE_WORDS = frozenset(
    {"failure", "failed", "fail", "error", "errored", "crashed", "aborted", "timeout", "timed_out"}
)
_SUCCESS_WORDS = frozenset({"success", "succeeded", "passed", "ok"})
_MOST_OF_ERROR = 500


def extract_plan_by_rules(outcome: ProductionOutcome) -> ExtractedPlan:
    """Return the plan of an outcome, a failed one as well; its time is the outcome's."""
    path = outcome.execution_path
    return ExtractedPlan(
        outcome_id=outcome.outcome_id,
        strategy_description=f"Sequential execution: {' → '.join(path) or '(no steps known)'}",
        reasoning_pattern=PATTERNS[0 if len(path) <= _DIRECT_STEPS else 1 if len(path) <= _SHORT_STEPS else 2],
        tools_sequence=path,
        key_decisions=tuple(_find_decisions(path)),
        success_factors=tuple(_find_success_factors(outcome)),
        failure_factors=tuple(_find_failure_factors(outcome)),
        confidence=0.8 if path else 0.5,
        timestamp=outcome.timestamp,
    )


def _find_decisions(path: tuple[str, ...]) -> Iterator[str]:
    if path:
        yield f"Started with {path[0]}"
    repeated = next((step for step, following in pairwise(path) if step == following), None)
    if repeated is not None:
        yield f"Repeated {repeated}"
    if len(path) > 1:
        yield f"Ended with {path[-1]}"


def _find_success_factors(outcome: ProductionOutcome) -> Iterator[str]:
    if outcome.execution_time is not None and outcome.execution_time < _FAST_SECONDS:
        yield "Fast execution (< 5 s)"
    if len(outcome.execution_path) <= _SHORT_STEPS:
        yield "Short execution path (<= 5 steps)"
    result = outcome.result
    if isinstance(result, Mapping) and str(result.get("status")).lower() in _SUCCESS_WORDS:
        yield "Explicit success status"


def _find_failure_factors(outcome: ProductionOutcome) -> Iterator[str]:
    if outcome.error_message:
        yield f"Error: {outcome.error_message[:_MOST_OF_ERROR]}"
    if outcome.execution_time is not None and outcome.execution_time > _SLOW_SECONDS:
        yield "Slow execution (> 30 s)"
    if len(outcome.execution_path) > _LONG_STEPS:
        yield "Long execution path (> 10 steps)"
