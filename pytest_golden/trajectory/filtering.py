"""Which steps and snapshots a filter keeps, and how they hang together afterwards. Pure rules over steps.

A kept step whose parent goes is re-parented to its nearest kept ancestor. A snapshot whose step goes moves to that
step's nearest kept ancestor, else to the last kept step before it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.vocabulary import Importance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_golden.trajectory.step import StateSnapshot, Step


def keep_steps(steps: Sequence[Step], min_importance: Importance, *, preserve_first_last: bool) -> tuple[Step, ...]:
    """Give the steps at or above the level, in order and re-parented, and the first and last ones when asked."""
    ends = {steps[0].id, steps[-1].id} if preserve_first_last and steps else set()
    levels = {level for level in Importance if level.rank >= min_importance.rank}
    kept_ids = {step.id for step in steps if step.importance in levels or step.id in ends}
    standins = _nearest_kept_ancestors(steps, kept_ids)
    return tuple(_reparented(step, standins) for step in steps if step.id in kept_ids)


def follow_steps(
    snapshots: Sequence[StateSnapshot], steps: Sequence[Step], kept: Sequence[Step]
) -> tuple[StateSnapshot, ...]:
    """Give all snapshots, those of a step that went pointing to the one that stands in for it."""
    kept_ids = {step.id for step in kept}
    standins = _nearest_kept_ancestors(steps, kept_ids)
    last_kept: str | None = None
    for step in steps:
        last_kept = step.id if step.id in kept_ids else last_kept
        standins[step.id] = standins[step.id] or last_kept
    return tuple(
        replace(snapshot, step_id=standins[snapshot.step_id]) if snapshot.step_id else snapshot
        for snapshot in snapshots
    )


def describe_filter(
    metadata: Mapping[str, Any], settings: Mapping[str, Any], removed_steps: int, removed_snapshots: int
) -> dict[str, Any]:
    """Give the metadata with `filter_settings` as given and one more line of `filter_history`, counts in it."""
    earlier = metadata.get("filter_history")
    entry = {"settings": settings, "removed_steps": removed_steps, "removed_snapshots": removed_snapshots}
    history = [*earlier, entry] if isinstance(earlier, list) else [entry]
    return {**metadata, "filter_settings": settings, "filter_history": history}


def _nearest_kept_ancestors(steps: Sequence[Step], kept_ids: set[str]) -> dict[str, str | None]:
    """Give for each step itself when kept, else its nearest kept ancestor. Parents come before their children."""
    nearest: dict[str, str | None] = {}
    for step in steps:
        above = nearest.get(step.parent_step_id) if step.parent_step_id else None
        nearest[step.id] = step.id if step.id in kept_ids else above
    return nearest


def _reparented(step: Step, standins: Mapping[str, str | None]) -> Step:
    if step.parent_step_id is None or standins[step.parent_step_id] == step.parent_step_id:
        return step
    return replace(step, parent_step_id=standins[step.parent_step_id])
