from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_golden.learning.memories import MOST_BYTES
from pytest_golden.learning.outcomes import (
    Report,
    check_agent_name,
    make_outcome,
    write_outcome,
    write_plan,
    write_training_example,
)
from pytest_golden.learning.rules import extract_plan_by_rules
from pytest_golden.storage.columns import storable_json

LARGE = "\U0001f600ü\\\"'\n\0" * 400_000


class Odd(dict[Any, Any]):
    def items(self) -> Any:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")


def report(**changed: Any) -> Report:
    said = {"task": "t", "result": None, "success": True, "execution_path": ["a"], "agent_name": "etl"}
    return Report(**{**said, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"task": LARGE, "execution_path": [LARGE] * 2_000, "error_message": LARGE, "result": LARGE},
        {"result": [LARGE], "context": {"a": LARGE, "b": [LARGE] * 100}},
        {"result": {LARGE: LARGE}, "context": {str(number): number for number in range(400_000)}},
        {"execution_path": ["→" * 60] * 1_000, "result": list(range(400_000))},
        {"execution_path": [""] * 1_000, "result": b"\xff" * 3_000_000},
    ],
)
def test_whatever_is_said_the_training_example_has_room(changed: dict[str, Any]) -> None:
    outcome = make_outcome(report(**changed))
    plan = extract_plan_by_rules(outcome)
    memories = (*write_outcome(outcome), *write_plan(plan, outcome), *write_training_example(outcome, plan))
    for memory in memories:
        assert len(json.dumps(memory["value"], separators=(",", ":"))) <= MOST_BYTES
    example = memories[-1]["value"]
    assert example["outcome"] == outcome.to_dict()
    assert outcome.context["cut_fields"]


def test_odd_mappings_are_taken_as_well() -> None:
    outcome = make_outcome(report(result=Odd(a=1), context=Odd(a=1)))
    assert outcome.result == "<Odd that cannot be shown>"
    assert outcome.context == {"context": "<Odd that cannot be shown>"}


def test_the_callers_values_are_copied() -> None:
    result, context, path = {"rows": [1]}, {"day": [1]}, ["a"]
    outcome = make_outcome(report(result=result, context=context, execution_path=path))
    result["rows"].append(2)
    context["day"].append(2)
    path.append("b")
    assert (outcome.result, outcome.context, outcome.execution_path) == ({"rows": [1]}, {"day": [1]}, ("a",))


@pytest.mark.parametrize(
    ("value", "is_small"),
    [
        ({"rows": [1, 2, {"a": ()}]}, True),
        ("x" * 100_000, True),
        ("x" * 1_000_000, False),
        (list(range(10_000)), False),
        ([[0] * 100] * 100, False),
        (object(), True),
    ],
)
def test_what_takes_its_time_is_known_by_a_look(value: Any, is_small: bool) -> None:
    assert report(result=value).is_small is is_small
    assert report(context={"value": value}).is_small is is_small


def test_a_measured_nothing_is_not_unknown() -> None:
    assert make_outcome(report(execution_time=0)).execution_time == 0.0
    assert make_outcome(report()).execution_time is None


def test_names_that_can_be_looked_up_are_given_back() -> None:
    assert check_agent_name("../../etc") == "../../etc"
    with pytest.raises(ValueError, match=r"agent_name has 2,401 bytes"):
        check_agent_name("ü" * 400)


@settings(max_examples=50)
@given(task=st.text(), path=st.lists(st.text(), max_size=20), result=st.dictionaries(st.text(), st.text()))
def test_what_fits_is_kept_as_it_is(task: str, path: list[str], result: dict[str, str]) -> None:
    outcome = make_outcome(report(task=task, execution_path=path, result=result))
    assert (outcome.task_description, outcome.execution_path) == (task, tuple(path))
    assert outcome.result == json.loads(storable_json(json.dumps(result)))
    assert outcome.context == {}
