from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.clock import new_id, utc_now
from pytest_golden.cycle.cycle_record import CycleFile, Walk, find_unfinished
from pytest_golden.cycle.model import CYCLE_ORDER, CycleState, CycleStep, StepRecord, StepStatus
from pytest_golden.errors import GoldenError
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIELDS = {
    *("cycle_id", "completed", "interrupted", "exit_status", "improvements_approved", "improvements_rejected"),
    *("regressions_detected", "steps", "regression_check", "verdict", "started_at", "finished_at", "warnings"),
}


@pytest.fixture
def file(tmp_path: Path) -> CycleFile:
    return CycleFile(tmp_path, new_id("cycle"), makes=True)


def make_walk(file: CycleFile, **changes: Any) -> Walk:
    return Walk(CycleState(file.cycle_id, started_at=utc_now()), **changes)


@given(
    st.lists(st.builds(StepRecord, st.sampled_from(CycleStep), st.sampled_from(StepStatus), st.text()), max_size=3),
    st.lists(st.text(), max_size=3),
    st.sampled_from(ResultStatus),
    st.booleans(),
)
def test_a_state_comes_back_from_json_as_it_was(
    steps: list[StepRecord], warnings: list[str], status: ResultStatus, has_check: bool
) -> None:
    check = RegressionCheckResult((GoldenProjectResult("etl", "etl.py", status),)) if has_check else None
    state = CycleState(steps=tuple(steps), warnings=tuple(warnings), regression_check=check, started_at=utc_now())
    plain = state.to_dict()
    assert set(plain) == FIELDS
    assert CycleState.from_dict(json.loads(json.dumps(plain))) == state


def test_what_was_kept_comes_back(file: CycleFile) -> None:
    walk = make_walk(file, position=CycleStep.REVIEW, seen=("a",), elapsed_seconds=2.5, notes={"a": [1]})
    file.write(walk)
    assert file.read() == walk
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert not list(file.path.parent.glob("*.new"))


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def do(content: bytes) -> bytes:
        plain = json.loads(content)
        change(plain)
        return json.dumps(plain).encode()

    return do


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda content: content[:-20], "damaged or was edited"),
        (lambda _: b"\xff\x00", "damaged or was edited"),
        (lambda _: b"[" * 100_000, "damaged or was edited"),
        (lambda _: b"[]", "is of version None"),
        (edit(lambda plain: plain.update(version=2)), "is of version 2, and this program reads 1"),
        (edit(lambda plain: plain["cycle"]["state"].update(improvements_approved=1)), "damaged or was edited"),
        (edit(lambda plain: plain["cycle"].update(position="exit")), "damaged or was edited"),
        (edit(lambda plain: plain.pop("digest")), "damaged or was edited"),
        (edit(lambda plain: plain.pop("cycle")), "damaged or was edited"),
    ],
)
def test_a_state_that_is_no_longer_what_a_cycle_left_is_refused(
    file: CycleFile, change: Callable[[bytes], bytes], told: str
) -> None:
    file.write(make_walk(file))
    file.path.write_bytes(change(file.path.read_bytes()))
    with pytest.raises(GoldenError, match=told):
        file.read()


def test_a_state_under_another_cycles_name_is_refused(file: CycleFile, tmp_path: Path) -> None:
    file.write(make_walk(file))
    other = CycleFile(tmp_path, new_id("cycle"))
    other.path.write_bytes(file.path.read_bytes())
    with pytest.raises(GoldenError, match="damaged or was edited"):
        other.read()


def test_an_unknown_cycle_and_what_is_no_id_are_refused(file: CycleFile, tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match="there is no cycle"):
        file.read()
    for wrong in ("../../etc/passwd", "cycle_1", ""):
        with pytest.raises(GoldenError, match="is not a cycle's id"):
            CycleFile(tmp_path, wrong)


def test_two_processes_do_not_walk_one_cycle(file: CycleFile, tmp_path: Path) -> None:
    with (
        file.hold(),
        pytest.raises(GoldenError, match="being run by another"),
        CycleFile(tmp_path, file.cycle_id).hold(),
    ):
        pass
    with file.hold():
        pass


def test_the_newest_cycle_that_has_not_ended_is_found(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match="no cycle in"):
        find_unfinished(tmp_path)
    older, newer, ended = (CycleFile(tmp_path, f"cycle_{'0' * 25}{digit}", makes=True) for digit in "123")
    older.write(make_walk(older))
    newer.write(make_walk(newer))
    ended.write(make_walk(ended, position=None))
    assert find_unfinished(tmp_path) == newer.cycle_id
    newer.path.write_text("edited")
    assert find_unfinished(tmp_path) == older.cycle_id


def test_a_state_that_cannot_be_written_is_said(file: CycleFile) -> None:
    file.path.mkdir()
    with pytest.raises(GoldenError, match="cannot be written"):
        file.write(make_walk(file))


def test_the_ten_steps_have_an_order() -> None:
    assert [str(step) for step in CYCLE_ORDER] == [
        *("env_validation", "project_selection", "user_execution", "observation", "improvement", "review"),
        *("regression_checks", "memory_persistence", "summary", "exit"),
    ]
