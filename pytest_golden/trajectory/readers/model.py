"""Define what a step reader receives and returns, as values and protocols."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pytest_golden.trajectory.step import Step, settle_step_fields
from pytest_golden.trajectory.vocabulary import Importance, StepType, cut_content, cut_mapping, freeze_mapping
from pytest_golden.values.checking import check_text, check_time
from pytest_golden.values.json_form import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step as a pipeline left it, before it is part of a trajectory: its time and its id may be unknown.

    `id` and `parent_step_id` are the pipeline's own, valid among the steps of one reading. Content, metadata and
    context over 1 MiB are cut, and `metadata["truncated_bytes"]` says by how much. Fields are checked and frozen as
    those of a `Step`.
    """

    content: Any
    type: StepType = StepType.ACTION
    importance: Importance = Importance.MEDIUM
    duration_ms: float | None = None
    timestamp: datetime | None = None
    id: str | None = None
    parent_step_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict)
    context: Any = None

    def __post_init__(self) -> None:
        settle = object.__setattr__
        content, content_cut = cut_content(self.content)
        context, context_cut = cut_content(self.context)
        metadata, metadata_cut = cut_mapping(freeze_mapping("metadata", self.metadata))
        left_out = content_cut + context_cut + metadata_cut
        if left_out:
            before = metadata.get("truncated_bytes")
            left_out += before if isinstance(before, int) else 0
            settle(self, "content", content)
            settle(self, "context", context)
            settle(self, "metadata", {**metadata, "truncated_bytes": left_out})
        for name in ("id", "parent_step_id"):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name))
        if self.timestamp is not None:
            settle(self, "timestamp", check_time("timestamp", self.timestamp))
        settle_step_fields(self)


@dataclass(frozen=True, slots=True)
class StepReading:
    """The result of one reader: steps in order, the number of lost ones, and warnings for people.

    A reader may give finished `Step` values as well; `steps` holds drafts in any case.
    """

    steps: tuple[StepDraft, ...] = ()
    lost_count: int = 0
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        steps: tuple[StepDraft | Step, ...] = self.steps
        object.__setattr__(self, "steps", tuple(_as_draft(step) for step in steps))
        object.__setattr__(self, "warnings", tuple(self.warnings))


Item = TypeVar("Item")


def order_by_start(items: Iterable[Item], start_of: Callable[[Item], Any], first: Any) -> list[Item]:
    """Sort by start; an item without one stays behind the one before it, or behind `first`."""
    placed: list[tuple[Any, Item]] = []
    for item in items:
        first = start_of(item) or first
        placed.append((first, item))
    return [item for _, item in sorted(placed, key=itemgetter(0))]


class ViewFiles(Protocol):
    """The project's folder as the pipeline left it."""

    @property
    def project_dir(self) -> Path:
        """Return the folder where the pipeline saw it."""

    def find_file(self, relative: str) -> Path | None:
        """Return a host path with the content that the pipeline left at `relative`, or None if there is none."""


class StepReader(Protocol):
    """Turns what a pipeline left behind into steps. Plugged-in readers need no more than this."""

    @property
    def name(self) -> str:
        """Return the reader's name, by which a manifest or a runner asks for it."""

    def read(self, view: ViewFiles, outcome: Any) -> StepReading:
        """Read the steps of this run, whose `PipelineOutcome` is given; never those of an earlier one."""


def _as_draft(step: StepDraft | Step) -> StepDraft:
    if isinstance(step, StepDraft):
        return step
    if not isinstance(step, Step):
        raise ValueError(f"steps must hold Step or StepDraft values, not {step!r}")  # noqa: TRY004 - one kind of refusal
    return StepDraft(**{one.name: getattr(step, one.name) for one in fields(StepDraft)})
