"""How collections of values become one. Whatever the order, grouping or repetition of what is joined, it gives the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_golden.frozen import FrozenDict
from pytest_golden.trajectory.json_form import json_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.trajectory.metrics.measurement import Measurement


def join_measurements(groups: Iterable[Iterable[Measurement]]) -> list[Measurement]:
    """Give each value once, where it first came; of two under one id that differ, the later one."""
    kept: dict[str, Measurement] = {}
    for group in groups:
        for one in group:
            other = kept.get(one.id)
            if other is None or (other is not one and _preference(one) > _preference(other)):
                kept[one.id] = one
    return list(kept.values())


def in_order(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Sort by time, and within one time by id, which is the order of adding."""
    return sorted(measurements, key=lambda one: (one.timestamp, one.id))


def join_metadata(mappings: Iterable[Mapping[str, Any]]) -> FrozenDict:
    """Give all keys; of values that differ under one, the one whose JSON text comes first."""
    joined: dict[str, Any] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            joined[key] = min(joined[key], value, key=_sorted_text) if key in joined else value
    return FrozenDict(joined)


def _preference(one: Measurement) -> tuple[object, ...]:
    return one.timestamp, one.metric, one.value, one.task_id or "", _sorted_text(one.metadata)


def _sorted_text(value: Any) -> tuple[str, str]:
    # Values that differ may have one JSON form: a tuple and a list.
    return json.dumps(json_form(value), sort_keys=True), repr(value)
