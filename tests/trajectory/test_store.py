from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from pytest_golden.errors import StorageError
from pytest_golden.storage.schema import trajectories
from pytest_golden.storage.store import Store
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.store import find_dict_form, find_trajectory, insert_trajectory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(location: str | Path) -> Iterator[Store]:
    with Store.open(location) as opened:
        yield opened


def a_trajectory() -> Trajectory:
    trajectory = Trajectory.new({"runner": "python"}, started_at=NOON).add_step(
        "action", "lo\ud800ad\x00", timestamp=NOON
    )
    return trajectory.complete("failure", "boom", NOON.replace(minute=1))


@pytest.mark.parametrize("as_dict", [False, True])
def test_what_is_kept_is_found_again(store: Store, as_dict: bool) -> None:
    trajectory = a_trajectory()
    given = json.loads(json.dumps(trajectory.to_dict())) if as_dict else trajectory
    with store.write() as connection:
        insert_trajectory(connection, given, entry_id="entry_1", project="sales", agent_id="golden")
    with store.read() as connection:
        found = find_trajectory(connection, trajectory.id)
        # A lone surrogate and NUL, which no database takes, are kept as visible escapes.
        assert found is not None
        assert [step.content for step in found.steps] == ["lo\\ud800ad\\x00"]
        assert replace(found, steps=trajectory.steps) == trajectory
        assert find_trajectory(connection, "traj_other") is None
        row = connection.execute(select(trajectories)).one()
    assert (row.entry_id, row.project, row.agent_id, row.outcome) == ("entry_1", "sales", "golden", "failure")
    assert (row.completed_at - row.started_at, row.duration_ms, row.steps_total) == (60_000, 60_000.0, 1)
    assert row.started_at == 1_767_268_800_000


def test_dict_form_is_the_one_that_was_kept(store: Store) -> None:
    trajectory = Trajectory.new({"runner": "python"}, started_at=NOON).add_step("reasoning", {"plan": [1, None]})
    trajectory = trajectory.add_step("action", "load", duration_ms=5, parent_step_id=trajectory.steps[0].id)
    trajectory = trajectory.add_snapshot({"rows": 3}, step_id=trajectory.steps[0].id).complete("failure", "boom")
    with store.write() as connection:
        insert_trajectory(connection, trajectory)
    with store.read() as connection:
        found = find_dict_form(connection, trajectory.id)
        assert found == trajectory.to_dict()
        assert list(found) == list(trajectory.to_dict())
        assert find_dict_form(connection, "traj_other") is None


@pytest.mark.parametrize(
    "change", [{"schema_version": 99}, {"id": ""}, {"outcome": "fine"}, {"steps": None}, {"steps": ["load"]}]
)
def test_damaged_dict_form_is_refused(store: Store, change: dict[str, object]) -> None:
    trajectory = a_trajectory()
    with store.write() as connection:
        insert_trajectory(connection, trajectory)
        connection.execute(trajectories.update().values(body={**trajectory.to_dict(), **change}))
    with store.read() as connection, pytest.raises(ValueError):  # noqa: PT011 - each has its own words
        find_dict_form(connection, trajectory.id)


def test_open_one_that_belongs_to_nothing_can_be_kept(store: Store) -> None:
    trajectory = Trajectory.new()
    with store.write() as connection:
        insert_trajectory(connection, trajectory)
    with store.read() as connection:
        assert find_trajectory(connection, trajectory.id) == trajectory


def test_same_one_is_not_kept_twice(store: Store) -> None:
    trajectory = a_trajectory()
    with store.write() as connection:
        insert_trajectory(connection, trajectory)
    with pytest.raises(StorageError), store.write() as connection:
        insert_trajectory(connection, trajectory)


def test_what_is_no_trajectory_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="started_at"), store.write() as connection:
        insert_trajectory(connection, {"id": "traj_1"})
