from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.trajectory.building import settle_dict_form
from pytest_golden.trajectory.model import Trajectory

if TYPE_CHECKING:
    from collections.abc import Callable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def written(*, snapshots: bool = False) -> dict[str, Any]:
    """Return the dict form of three steps as a database gives it back."""
    trajectory = Trajectory.new({"runner": "python"}, started_at=NOON)
    trajectory = trajectory.add_step("reasoning", {"plan": [1, None, "ä"]}, timestamp=NOON)
    trajectory = trajectory.add_step(
        "tool_call", None, timestamp=NOON, duration_ms=5, metadata={"error": "boom"}, importance="high", context=[1.5]
    )
    trajectory = trajectory.add_step(
        "action", "load", timestamp=NOON + timedelta(seconds=1), parent_step_id=trajectory.steps[1].id
    )
    if snapshots:
        trajectory = trajectory.add_snapshot({"rows": 3}, step_id=trajectory.steps[0].id)
    form: dict[str, Any] = json.loads(json.dumps(trajectory.complete("failure", "boom").to_dict()))
    return form


@pytest.mark.parametrize("snapshots", [False, True])
def test_form_that_was_written_is_given_as_it_is(snapshots: bool) -> None:
    body = written(snapshots=snapshots)
    settled = settle_dict_form(body)
    assert settled == body == Trajectory.from_dict(body).to_dict()
    assert list(settled) == list(body)


def test_steps_that_were_written_are_not_made_anew() -> None:
    body = written()
    assert settle_dict_form(body)["steps"] is body["steps"]


def test_steps_of_another_writer_are_settled() -> None:
    body = written()
    body["steps"] = [
        {"id": "a", "type": "action", "content": 1, "timestamp": "2026-01-01T13:00:00+01:00", "duration_ms": 3},
        {"id": "b", "type": "action", "content": 2, "timestamp": "2026-01-01T12:00:00Z", "of_a_newer_one": True},
    ]
    assert settle_dict_form(body) == Trajectory.from_dict(body).to_dict()


@pytest.mark.parametrize(
    "damage",
    [
        lambda steps: steps[0].update(id=" "),
        lambda steps: steps[0].update(id=7),
        lambda steps: steps[1].update(id=steps[0]["id"]),
        lambda steps: steps[0].update(type="act"),
        lambda steps: steps[0].update(type=[]),
        lambda steps: steps[0].update(importance="urgent"),
        lambda steps: steps[0].update(timestamp="2026-02-30T12:00:00.000000Z"),
        lambda steps: steps[0].update(timestamp=None),
        lambda steps: steps[0].update(timestamp="2027-01-01T12:00:00.000000Z"),
        lambda steps: steps[0].update(duration_ms=-1.0),
        lambda steps: steps[0].update(duration_ms=float("nan")),
        lambda steps: steps[0].update(metadata=[1]),
        lambda steps: steps[0].update(parent_step_id=steps[2]["id"]),
        lambda steps: steps[0].update(parent_step_id=3),
        lambda steps: steps[0].pop("content"),
        lambda steps: steps.insert(0, "a step"),
    ],
)
def test_damage_is_told_as_it_is_elsewhere(damage: Callable[[list[Any]], object]) -> None:
    body = written()
    damage(body["steps"])
    with pytest.raises((ValueError, AttributeError, TypeError)) as expected:
        Trajectory.from_dict(body)
    with pytest.raises(expected.type) as told:
        settle_dict_form(body)
    assert str(told.value) == str(expected.value)


@pytest.mark.parametrize("change", [{"schema_version": 99}, {"id": ""}, {"outcome": "fine"}, {"steps": None}])
def test_damage_beside_the_steps_is_told_too(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        settle_dict_form({**written(), **change})
