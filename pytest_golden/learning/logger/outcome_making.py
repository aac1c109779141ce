"""Makes the outcome of what an agent says it did: of any size, with a result of any kind. Pure; what is cut is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import utc_now
from pytest_golden.learning.limits import MOST_BYTES, MOST_STEPS, MOST_TASK_CHARACTERS, check_seconds, check_texts
from pytest_golden.learning.logger.cutting import Cut, cut_json, cut_middle, cut_steps, cut_text, measure
from pytest_golden.learning.model import ProductionOutcome
from pytest_golden.storage.namespaces import write_namespace
from pytest_golden.trajectory.vocabulary import check_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

CUT_FIELDS = "cut_fields"
_MOST_ERROR_CHARACTERS = 10_000
_MOST_PATH_BYTES = 64 * 1024
# An outcome is also stored as part of a training example, in which its path stands again as the plan's strategy, tools and
# decisions. What is written around all of it has room here, too.
_PATHS_OF_EXAMPLE = 4
_BYTES_AROUND = 8 * 1024
_BYTES_OF_ARROW = 8
_MOST_NAME_BYTES = 2_000
# A few milliseconds of work.
_FEW_VALUES, _CHARACTERS_OF_VALUE = 2_000, 100
_TEXTS, _CONTAINERS = frozenset({str, bytes, bytearray}), frozenset({dict, list, tuple})


@dataclass(frozen=True, slots=True)
class Report:
    """What an agent says that it did, as it says it.

    Raises:
        ValueError: an argument is of a wrong kind, or the agent's name is blank or too long to be looked up.
    """

    task: str
    result: Any
    success: bool
    execution_path: Iterable[str]
    agent_name: str
    execution_time: float | None = None
    error_message: str | None = None
    context: Mapping[str, Any] | None = None
    timestamp: datetime = field(default_factory=utc_now)

    def __post_init__(self) -> None:
        if not isinstance(self.task, str):
            raise ValueError(f"task must be text, not {self.task!r:.100}")  # noqa: TRY004 - one kind of refusal
        if not isinstance(self.success, bool):
            raise ValueError(f"success must be True or False, not {self.success!r:.100}")  # noqa: TRY004
        object.__setattr__(self, "execution_path", check_texts("execution_path", self.execution_path))
        check_agent_name(self.agent_name)
        check_seconds("execution_time", self.execution_time)
        if self.error_message is not None and not isinstance(self.error_message, str):
            raise ValueError(f"error_message must be text or None, not {self.error_message!r:.100}")
        if self.context is not None and not isinstance(self.context, Mapping):
            raise ValueError(f"context must be a mapping (a dict) or None, not {self.context!r:.100}")

    @property
    def is_small(self) -> bool:
        """Tell whether an outcome is made of it in a moment, so that nothing else need do that."""
        return _count_values([self.result, self.context, self.execution_path]) < _FEW_VALUES


def make_outcome(report: Report) -> ProductionOutcome:
    """Give the outcome, small enough to be stored with its plan; `context["cut_fields"]` names what was cut for that."""
    error = report.error_message
    parts = {
        "task_description": cut_text(report.task, MOST_TASK_CHARACTERS),
        "execution_path": cut_steps(tuple(report.execution_path), MOST_STEPS, _MOST_PATH_BYTES),
        "error_message": Cut(None, False) if error is None else cut_middle(error, _MOST_ERROR_CHARACTERS),
    }
    path = parts["execution_path"].kept
    room = MOST_BYTES - _BYTES_AROUND - _PATHS_OF_EXAMPLE * measure(path) - _BYTES_OF_ARROW * len(path)
    room -= measure(parts["task_description"].kept) + measure(parts["error_message"].kept)
    parts |= _share_room(room, report.result, report.context)
    kept = {name: cut.kept for name, cut in parts.items()}
    missing = [name for name, cut in parts.items() if cut.is_cut]
    if missing:
        kept["context"] = {**kept["context"], CUT_FIELDS: missing}
    return ProductionOutcome(
        **kept,
        success=report.success,
        agent_name=report.agent_name,
        execution_time=report.execution_time,
        timestamp=report.timestamp,
    )


def check_agent_name(agent_name: str) -> str:
    """Give the name back; refuse a blank one, and one too long to be part of a namespace, with a `ValueError`."""
    size = len(write_namespace([check_text("agent_name", agent_name)]))
    if size > _MOST_NAME_BYTES:
        raise ValueError(
            f"agent_name has {size:,} bytes, percent-encoded as a URL, and at most {_MOST_NAME_BYTES:,} are looked up; "
            "give a shorter one"
        )
    return agent_name


def _count_values(values: list[Any]) -> int:
    """Count values, and a long text as many, up to what is no longer few."""
    count = 0
    while values and count < _FEW_VALUES:
        value = values.pop()
        count += 1
        kind = type(value)  # a class of somebody's own may do anything when asked
        if kind in _TEXTS:
            count += len(value) // _CHARACTERS_OF_VALUE
        elif kind in _CONTAINERS:
            if len(value) >= _FEW_VALUES:
                return _FEW_VALUES
            values.extend(value.values() if kind is dict else value)
    return count


def _share_room(room: int, result: Any, context: Mapping[str, Any] | None) -> dict[str, Cut]:
    """Give the context up to half of the room, and the result what then is left."""
    kept_context = Cut({}, False) if context is None else cut_json(context, room // 2)
    if not isinstance(kept_context.kept, dict):
        kept_context = Cut({"context": kept_context.kept}, kept_context.is_cut)
    kept_result = cut_json(result, room - measure(kept_context.kept))
    return {"result": kept_result, "context": kept_context}
