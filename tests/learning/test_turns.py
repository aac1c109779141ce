from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.learning.gate_learning import is_turn, learn_from_results, list_turns, take_turn
from pytest_golden.learning.model import EarlierResult, Occasion, RecordedResult

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store
    from tests.learning.conftest import GateHistory

PASSED, FAILED, SKIPPED = "PASSED", "FAILED", "SKIPPED"


def result(status: str, branch: str | None = "main") -> RecordedResult:
    fields: dict[str, Any] = {
        "number": 9,
        "project": "sales",
        "status": status,
        "exit_code": 0,
        "execution_time_seconds": 1.0,
        "attempts": 1,
        "is_flaky": False,
        "trajectory_id": None,
        "occasion": Occasion(0, "run", "entry"),
        "branch": branch,
        "result": "{}",
        "learning": "on",
    }
    return RecordedResult(**fields)


@pytest.mark.parametrize(
    ("status", "earlier", "expected"),
    [
        (PASSED, [(FAILED, "main")], True),
        (FAILED, [(PASSED, "main")], True),
        ("ERROR", [(PASSED, "main")], True),
        (PASSED, [(PASSED, "main"), (FAILED, "main")], False),
        (FAILED, [("ERROR", "main")], False),
        (PASSED, [(SKIPPED, "main"), (FAILED, "main")], True),
        (PASSED, [(PASSED, "other"), (FAILED, "main")], True),
        (PASSED, [(FAILED, "other")], True),
        (PASSED, [(FAILED, "other"), (PASSED, "main")], False),
        (PASSED, [(SKIPPED, "main")], False),
        (PASSED, [], False),
    ],
)
def test_turn_ends_otherwise_than_the_last_of_its_branch(
    status: str, earlier: list[tuple[str, str]], expected: bool
) -> None:
    assert is_turn(result(status), [EarlierResult(*one) for one in earlier]) is expected


def test_turns_are_noted_with_what_is_learned_and_taken_once(store: Store, history: GateHistory) -> None:
    history.result(history.run(), "sales")
    broken = history.result(history.run(), "sales", FAILED, message="boom")
    history.result(history.run(), "sales", FAILED, message="boom")
    fixed = history.result(history.run(), "sales")
    history.result(history.run(), "sales", SKIPPED)
    history.result(history.run(), "stock", FAILED, message="boom")
    learn_from_results(store)
    with store.write() as connection:
        assert list_turns(connection) == (broken, fixed)
        assert take_turn(connection, broken)
        assert not take_turn(connection, broken)
    learn_from_results(store)
    with store.read() as connection:
        assert list_turns(connection) == (fixed,)
