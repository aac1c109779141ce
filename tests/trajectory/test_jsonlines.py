from __future__ import annotations

import json
import os
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.trajectory.jsonlines import iter_steps, read_trajectory, write_trajectory
from pytest_golden.trajectory.model import Trajectory

if TYPE_CHECKING:
    from pathlib import Path


def _trajectory() -> Trajectory:
    trajectory = Trajectory.new({"project": "sales"}).add_step("action", "load é\ud800", duration_ms=1)
    parent = trajectory.steps[0].id
    trajectory = trajectory.add_step("observation", {"rows": [1, None]}, parent_step_id=parent, importance="high")
    return trajectory.add_snapshot({"n": 1}, step_id=parent).filter("low").complete("failure", "boom")


def test_what_is_written_reads_back_as_an_equal_value(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for trajectory in (_trajectory(), _trajectory().reopen(), Trajectory.new()):
        write_trajectory(path, trajectory)
        assert read_trajectory(str(path)) == trajectory
        assert tuple(iter_steps(path)) == trajectory.steps
    assert [file.name for file in tmp_path.iterdir()] == ["t.jsonl"]


def test_a_failing_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_trajectory(tmp_path / "folder", Trajectory.new())
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_a_file_torn_anywhere_gives_its_whole_records_and_stays_open(tmp_path: Path) -> None:
    whole, torn = tmp_path / "whole.jsonl", tmp_path / "torn.jsonl"
    trajectory = _trajectory()
    write_trajectory(whole, trajectory)
    content = whole.read_bytes()
    for end in range(len(content) - 1):
        torn.write_bytes(content[:end])
        read = read_trajectory(torn)
        assert read.steps == trajectory.steps[: len(read.steps)]
        assert tuple(iter_steps(torn)) == read.steps
        assert (read.outcome, read.is_completed) == (None, False)
        assert len(read.steps) + len(read.state_snapshots) >= content[:end].count(b"\n") - 1


def test_steps_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write_trajectory(path, _trajectory())
    steps = iter_steps(path)
    assert next(steps).content == "load é\ud800"
    steps.close()  # type: ignore[attr-defined]
    with pytest.raises(FileNotFoundError):
        next(iter_steps(tmp_path / "absent"))


def test_wrong_records_in_the_middle_cost_only_themselves(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t.jsonl"
    write_trajectory(path, _trajectory())
    lines = path.read_text().splitlines()
    first, second, snapshot, end = lines[1:5]
    early = json.dumps({**json.loads(second), "id": "early", "timestamp": "2001-01-01T00:00:00Z"})
    bad_type = first.replace('"action"', '"act"')
    path.write_text(
        "\n".join(
            [lines[0], bad_type, "5", '{"record": "later"}', second, early, snapshot, '{"record": "snapshot"}', end]
        )
    )
    read = read_trajectory(path)
    assert [(step.content, step.parent_step_id) for step in read.steps] == [({"rows": [1, None]}, None)]
    assert read.state_snapshots == ()
    assert read.outcome == "failure"
    assert caplog.records[0].__dict__["lost"] == 5


def test_a_step_after_the_completion_opens_it_again(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write_trajectory(path, _trajectory())
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1], lines[4], lines[2]]))
    assert not read_trajectory(path).is_completed


@pytest.mark.parametrize(
    "content", ["hello", "hello\n", "[]\n", '{"a": 1}\n', '{"record": "step"}\n', '{"record": "traj\n']
)
def test_another_kind_of_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other"
    path.write_text(content)
    with pytest.raises(GoldenError, match="is not a trajectory"):
        read_trajectory(path)
    with pytest.raises(GoldenError, match="is not a trajectory"):
        next(iter_steps(path))


def test_a_newer_or_broken_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"record": "trajectory", "schema_version": 99, "id": "t", "started_at": "2026-01-01T00:00:00Z"}\n')
    with pytest.raises(GoldenError, match="schema_version 99"):
        read_trajectory(path)
    path.write_text(
        '{"record": "trajectory", "id": "t", "started_at": "2026-01-01T00:00:00Z"}\n{"record": "completion", "outcome": "won"}\n'
    )
    with pytest.raises(GoldenError, match="outcome 'won'"):
        read_trajectory(path)


def test_an_endless_line_is_left_out_and_not_held(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write_trajectory(path, Trajectory.new().add_step("action", "first").add_step("action", "second"))
    lines = path.read_bytes().splitlines(keepends=True)
    with path.open("wb") as file:
        file.writelines(lines[:2])
        file.write(b'{"record": "step", "content": "')
        file.seek(320 << 20, os.SEEK_CUR)
        file.write(b"\n" + lines[2])
    tracemalloc.start()
    assert [step.content for step in iter_steps(path)] == ["first", "second"]
    assert len(read_trajectory(path).steps) == 2
    assert tracemalloc.get_traced_memory()[1] < 300 << 20
    tracemalloc.stop()
    path.write_bytes(lines[0] + b"[" * (65 << 20))
    assert len(read_trajectory(path).steps) == 0
