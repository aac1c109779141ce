from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_golden.learning.memories import MOST_BYTES
from pytest_golden.learning.outcomes import (
    Report,
    check_agent_name,
    cut_json,
    cut_middle,
    cut_steps,
    cut_text,
    extract_plan_by_rules,
    make_outcome,
    measure,
    write_outcome,
    write_plan,
    write_training_example,
)
from pytest_golden.storage.columns import storable_json

if TYPE_CHECKING:
    from tests.learning.conftest import MakeOutcome


LARGE = "\U0001f600ü\\\"'\n\0" * 400_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


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


def test_cutting_keeps_what_fits() -> None:
    assert cut_text("load", 4) == ("load", False)
    assert cut_middle("load", 4) == ("load", False)
    assert cut_steps(("a", "b"), 2, 100) == (("a", "b"), False)
    assert cut_json({"rows": [1, 2.5, None, True]}, 100) == ({"rows": [1, 2.5, None, True]}, False)


def test_long_text_keeps_its_beginning_and_says_how_much_is_gone() -> None:
    kept, is_cut = cut_text("x" * 300, 100)
    assert is_cut
    assert len(kept) <= 100
    assert kept == "x" * 36 + " [cut: 264 characters]"


def test_long_error_keeps_both_ends() -> None:
    kept, is_cut = cut_middle("begin" + "x" * 1000 + "end", 200)
    assert is_cut
    assert len(kept) <= 200
    assert kept.startswith("begin")
    assert kept.endswith("end")
    assert "[cut: 872 characters]" in kept


def test_long_path_keeps_both_ends_and_says_how_many_steps_are_gone() -> None:
    steps = tuple(f"step {number}" for number in range(5_000))
    kept, is_cut = cut_steps(steps, 1_000, 1 << 20)
    assert is_cut
    assert len(kept) == 1_000
    assert (kept[0], kept[500], kept[-1]) == ("step 0", "[cut: 4,001 steps]", "step 4999")


def test_names_of_steps_that_are_too_long_together_are_shortened() -> None:
    kept, is_cut = cut_steps(("a" * 5_000, "ü" * 5_000, "short"), 10, 3_000)
    assert is_cut
    assert measure(kept) <= 3_000
    assert kept[2] == "short"
    assert kept[0].startswith("aaa")
    assert kept[0].endswith("characters]")


def test_small_members_stay_beside_a_large_one() -> None:
    kept, is_cut = cut_json({"rows": "x" * 10_000, "status": "success", "count": 3}, 2_000)
    assert is_cut
    assert (kept["status"], kept["count"]) == ("success", 3)
    assert list(kept) == ["rows", "status", "count"]
    assert 1_500 < measure(kept) <= 2_000
    assert "[cut: " in kept["rows"]


def test_of_a_long_list_the_beginning_of_its_text_is_kept() -> None:
    kept, is_cut = cut_json({"rows": list(range(10_000)), "status": "ok"}, 1_000)
    assert is_cut
    assert (kept["rows"][:6], kept["rows"][-16:], kept["status"]) == ("[0,1,2", " [cut: the rest]", "ok")
    assert measure(kept) <= 1_000


def test_of_very_many_members_the_first_are_kept() -> None:
    kept, is_cut = cut_json({f"key{number}": number for number in range(50_000)}, 10_000)
    assert is_cut
    assert kept["key0"] == 0
    assert kept["[cut]"].endswith("members")
    assert measure(kept) <= 10_000


def test_one_large_text_many_times_over_is_never_written_out() -> None:
    text = "x" * (1 << 20)
    kept, is_cut = cut_json([[text] * 300] * 300, 100_000)
    assert is_cut
    assert measure(kept) <= 100_000


def test_of_bytes_only_those_that_may_be_kept_are_read() -> None:
    kept, is_cut = cut_json(b"\xff" * (50 << 20), 10_000)
    assert is_cut
    assert kept.startswith("\\xff\\xff")
    assert measure(kept) <= 10_000
    assert cut_json(b"plain", 10) == ("plain", False)


class OddValue:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class OddMapping(dict[Any, Any]):
    def items(self) -> Any:
        raise RuntimeError("no")


@dataclasses.dataclass
class Reported:
    rows: int
    by: Any


@pytest.mark.parametrize(
    "value",
    [
        OddValue(),
        OddMapping(a=1),
        {1, 2},
        {(1, 2): OddValue()},
        float("nan"),
        b"\xff\x00",
        Reported(3, OddValue()),
        ValueError("no"),
        iter([1]),
        "\ud800\0",
        [10**5000],
        {"a": {"b": object}},
        type,
    ],
)
def test_strange_values_become_json(value: Any) -> None:
    kept, is_cut = cut_json(value, 10_000)
    assert not is_cut
    json.dumps(kept, allow_nan=False)


def test_what_holds_itself_ends() -> None:
    inner: list[Any] = []
    inner.append(inner)
    assert cut_json(inner, 1_000).kept == ["<cycle>"]


def test_what_is_nested_deeply_is_cut() -> None:
    deep: Any = "x" * 100_000
    for _ in range(90):
        deep = {"in": [deep]}
    kept, is_cut = cut_json(deep, 50_000)
    assert is_cut
    assert measure(kept) <= 50_000


@given(value=JSON, room=st.integers(0, 400))
def test_cut_content_is_json_and_fits(value: Any, room: int) -> None:
    kept, is_cut = cut_json(value, room)
    assert json.loads(json.dumps(kept)) == kept
    if not is_cut:
        assert kept == value
        assert measure(kept) <= room
    else:
        assert measure(kept) <= max(room, 96) + 64


@given(steps=st.lists(st.text(), max_size=40), most=st.integers(4, 20), room=st.integers(400, 900))
def test_cut_paths_are_texts_and_few(steps: list[str], most: int, room: int) -> None:
    kept, is_cut = cut_steps(tuple(steps), most, room)
    assert len(kept) <= max(most, 0)
    assert measure(kept) <= room + 64
    assert is_cut == (kept != tuple(steps))


def test_strategy_names_the_steps_in_order(make_outcome: MakeOutcome) -> None:
    outcome = make_outcome(execution_path=["a", "b", "c"])
    plan = extract_plan_by_rules(outcome)
    assert plan.strategy_description == "Sequential execution: a → b → c"
    assert plan.tools_sequence == ("a", "b", "c")
    assert plan.key_decisions == ("Started with a", "Ended with c")
    assert plan.plan_id == f"plan_{outcome.outcome_id}"
    assert plan.timestamp == outcome.timestamp
    assert extract_plan_by_rules(outcome) == plan


def test_repeated_step_is_a_decision(make_outcome: MakeOutcome) -> None:
    assert "Repeated b" in extract_plan_by_rules(make_outcome(execution_path=["a", "b", "b"])).key_decisions


@pytest.mark.parametrize(
    ("steps", "pattern", "confidence"),
    [
        (0, "direct_implementation", 0.5),
        (1, "direct_implementation", 0.8),
        (2, "direct_implementation", 0.8),
        (3, "iterative_refinement", 0.8),
        (5, "iterative_refinement", 0.8),
        (6, "complex_multi_step", 0.8),
        (1000, "complex_multi_step", 0.8),
    ],
)
def test_pattern_and_confidence_follow_from_the_length(
    make_outcome: MakeOutcome, steps: int, pattern: str, confidence: float
) -> None:
    plan = extract_plan_by_rules(make_outcome(execution_path=["s"] * steps))
    assert (plan.reasoning_pattern, plan.confidence) == (pattern, confidence)


def test_empty_path_says_so(make_outcome: MakeOutcome) -> None:
    plan = extract_plan_by_rules(make_outcome(execution_path=[]))
    assert plan.strategy_description.startswith("Sequential execution: ")
    assert plan.key_decisions == ()


@pytest.mark.parametrize(("seconds", "is_fast"), [(0.0, True), (4.999, True), (5.0, False), (None, False)])
def test_only_a_known_time_below_five_seconds_is_fast(
    make_outcome: MakeOutcome, seconds: float | None, is_fast: bool
) -> None:
    plan = extract_plan_by_rules(make_outcome(execution_time=seconds))
    assert any("Fast" in factor for factor in plan.success_factors) is is_fast


@pytest.mark.parametrize(("seconds", "is_slow"), [(30.0, False), (30.1, True), (None, False)])
def test_more_than_thirty_seconds_is_slow(make_outcome: MakeOutcome, seconds: float | None, is_slow: bool) -> None:
    plan = extract_plan_by_rules(make_outcome(execution_time=seconds))
    assert any("Slow" in factor for factor in plan.failure_factors) is is_slow


@pytest.mark.parametrize(("steps", "is_short", "is_long"), [(5, True, False), (6, False, False), (11, False, True)])
def test_length_of_the_path_is_a_factor(make_outcome: MakeOutcome, steps: int, is_short: bool, is_long: bool) -> None:
    plan = extract_plan_by_rules(make_outcome(execution_path=["s"] * steps))
    assert any("Short" in factor for factor in plan.success_factors) is is_short
    assert any("Long" in factor for factor in plan.failure_factors) is is_long


@pytest.mark.parametrize(
    ("result", "is_explicit"),
    [({"status": "success"}, True), ({"status": "PASSED"}, True), ({"status": "failed"}, False), ("success", False)],
)
def test_explicit_status_is_a_factor(make_outcome: MakeOutcome, result: object, is_explicit: bool) -> None:
    plan = extract_plan_by_rules(make_outcome(result=result))
    assert ("Explicit success status" in plan.success_factors) is is_explicit


def test_error_is_a_failure_factor_and_long_ones_are_cut(make_outcome: MakeOutcome) -> None:
    plan = extract_plan_by_rules(make_outcome(success=False, error_message="no such column" + "x" * 5000))
    (factor,) = plan.failure_factors
    assert factor.startswith("Error: no such column")
    assert len(factor) < 600
