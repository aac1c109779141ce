from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.model import ExtractedPlan, Memory, MemoryHit, ProductionOutcome
from pytest_golden.learning.outcomes import write_training_example

if TYPE_CHECKING:
    from tests.learning.conftest import MakeOutcome

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
MOMENTS = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(
    result=JSON,
    path=st.lists(st.text(), max_size=5),
    error=st.none() | st.text(),
    seconds=st.none() | st.floats(min_value=0, max_value=1e9),
    moment=MOMENTS,
    context=st.dictionaries(st.text(), JSON, max_size=3),
    success=st.booleans(),
)
def test_outcome_comes_back_from_its_dict_form(
    result: Any,
    path: list[str],
    error: str | None,
    seconds: float | None,
    moment: datetime,
    context: dict[str, Any],
    success: bool,
) -> None:
    outcome = ProductionOutcome(
        task_description="task",
        agent_name="agent",
        execution_path=tuple(path),
        result=result,
        success=success,
        error_message=error,
        execution_time=seconds,
        timestamp=moment,
        context=context,
    )
    plain = json.loads(json.dumps(outcome.to_dict()))
    assert ProductionOutcome.from_dict({**plain, "further": 1}) == outcome
    assert plain["schema_version"] == 1
    assert plain["execution_path"] == path


def test_plan_comes_back_from_its_dict_form() -> None:
    plan = ExtractedPlan(
        outcome_id="outcome_1",
        strategy_description="Sequential execution: a → b",
        reasoning_pattern="direct_implementation",
        tools_sequence=("a", "b"),
        key_decisions=("Started with a",),
        success_factors=("fast",),
        failure_factors=("long",),
        confidence=0.8,
    )
    assert ExtractedPlan.from_dict({**json.loads(json.dumps(plan.to_dict())), "new": 1}) == plan
    assert plan.to_dict()["tools_sequence"] == ["a", "b"]


def test_ids_follow_from_the_outcome(make_outcome: MakeOutcome) -> None:
    outcome = make_outcome()
    assert outcome.outcome_id.startswith("outcome_")
    assert len(outcome.outcome_id) == len("outcome_") + 26
    assert make_outcome().outcome_id != outcome.outcome_id
    plan = ExtractedPlan(outcome_id=outcome.outcome_id, strategy_description="s", reasoning_pattern="p")
    assert plan.plan_id == f"plan_{outcome.outcome_id}"
    (example,) = write_training_example(outcome, plan)
    assert set(example["value"]) == {"training_id", "outcome", "plan", "created_at"}
    assert example["key"] == example["value"]["training_id"] == f"training_{plan.plan_id}"
    json.dumps(example["value"])


def test_what_is_given_is_copied_and_frozen(make_outcome: MakeOutcome) -> None:
    result: dict[str, Any] = {"rows": [1]}
    context: dict[str, Any] = {}
    path = ["a"]
    outcome = make_outcome(result=result, context=context, execution_path=path)
    result["rows"].append(2)
    context["x"] = 1
    path.append("b")
    assert (outcome.result, outcome.context, outcome.execution_path) == ({"rows": [1]}, {}, ("a",))
    with pytest.raises(TypeError):
        outcome.result["rows"].append(3)
    with pytest.raises(AttributeError):
        outcome.success = False  # type: ignore[misc]
    outcome.to_dict()["result"]["rows"].append(4)
    assert outcome.result == {"rows": [1]}


@pytest.mark.parametrize("result", [None, True, 3, 2.5, "text", [1, [2]], {"a": {"b": None}}, (1, 2)])
def test_any_json_content_is_a_result(make_outcome: MakeOutcome, result: object) -> None:
    assert make_outcome(result=result).to_dict()["result"] == (list(result) if isinstance(result, tuple) else result)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("task_description", None, "must be text"),
        ("task_description", "x" * 10_001, "10,001 characters; at most 10,000"),
        ("agent_name", " \t", "not blank"),
        ("agent_name", None, "not blank"),
        ("execution_path", "load", "sequence of texts"),
        ("execution_path", 3, "sequence of texts"),
        ("execution_path", ["a", 3], "texts only, not 3"),
        ("execution_path", ["a"] * 1_001, "1,001 items; at most 1,000"),
        ("result", object(), "cannot be written as JSON"),
        ("result", float("nan"), "cannot be written as JSON"),
        ("result", {"a": b"x"}, "cannot be written as JSON"),
        ("result", "x" * 1_048_576, "at most 1,048,576"),
        ("success", "yes", "True or False"),
        ("error_message", 3, "text or None"),
        ("execution_time", -1, "0 or more"),
        ("execution_time", float("inf"), "finite"),
        ("execution_time", True, "number of seconds"),
        ("execution_time", "1", "number of seconds"),
        ("timestamp", datetime(2026, 1, 1), "aware"),  # noqa: DTZ001
        ("context", ["a"], "must be a mapping"),
        ("context", {"a": object()}, "cannot be written as JSON"),
        ("outcome_id", "", "not blank"),
    ],
)
def test_outcome_refuses_and_names_the_field(make_outcome: MakeOutcome, field: str, value: object, told: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field} .*{told}"):
        make_outcome(**{field: value})


def test_limits_themselves_are_allowed(make_outcome: MakeOutcome) -> None:
    outcome = make_outcome(
        task_description="x" * 10_000, execution_path=["a"] * 1_000, result="x" * 1_048_574, execution_time=0
    )
    assert outcome.execution_time == 0.0
    assert len(outcome.execution_path) == 1_000


def test_a_value_that_holds_itself_is_refused(make_outcome: MakeOutcome) -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(ValueError, match=r"^result cannot be written as JSON"):
        make_outcome(result=cycle)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("outcome_id", ""),
        ("strategy_description", " "),
        ("reasoning_pattern", None),
        ("tools_sequence", "a"),
        ("key_decisions", [1]),
        ("success_factors", None),
        ("failure_factors", 3),
        ("confidence", 1.1),
        ("confidence", -0.1),
        ("confidence", None),
        ("timestamp", "2026-01-01"),
        ("plan_id", "  "),
    ],
)
def test_plan_refuses_and_names_the_field(field: str, value: object) -> None:
    plain: dict[str, Any] = {"outcome_id": "o", "strategy_description": "s", "reasoning_pattern": "p"}
    with pytest.raises(ValueError, match=f"^{field} "):
        ExtractedPlan(**{**plain, field: value})


@pytest.mark.parametrize("kind", [ProductionOutcome, ExtractedPlan])
def test_dict_form_of_a_newer_program_is_refused(kind: type[ProductionOutcome | ExtractedPlan]) -> None:
    for version in (2, "1", True, None):
        with pytest.raises(ValueError, match=r"schema_version .* upgrade"):
            kind.from_dict({"schema_version": version})


def test_missing_key_of_a_dict_form_is_named(make_outcome: MakeOutcome) -> None:
    plain = make_outcome().to_dict()
    del plain["agent_name"]
    with pytest.raises(ValueError, match=r"^agent_name is missing"):
        ProductionOutcome.from_dict(plain)
    with pytest.raises(ValueError, match=r"^timestamp must be ISO-8601"):
        ProductionOutcome.from_dict({**make_outcome().to_dict(), "timestamp": "yesterday"})


def test_time_is_kept_in_utc(make_outcome: MakeOutcome) -> None:
    moment = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert make_outcome(timestamp=moment).to_dict()["timestamp"] == "2026-01-01T10:00:00.000000Z"


def test_values_can_be_put_in_sets(make_outcome: MakeOutcome) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    memory = Memory(("a",), "k", {"x": 1}, 1, ("t",), None, moment, moment)
    hit = MemoryHit(memory, 1.5)
    assert len({make_outcome(outcome_id="o"), make_outcome(outcome_id="o", timestamp=moment), memory, hit}) == 4
    assert json.loads(json.dumps(hit.to_dict()))["memory"] == {
        "namespace": ["a"],
        "key": "k",
        "value": {"x": 1},
        "version": 1,
        "tags": ["t"],
        "provenance": None,
        "created_at": "2026-01-01T00:00:00.000000Z",
        "updated_at": "2026-01-01T00:00:00.000000Z",
    }


@pytest.mark.parametrize("kind", [ProductionOutcome, ExtractedPlan, SkillMemory])
@pytest.mark.parametrize("foreign", [None, [], "text", 5])
def test_dict_form_that_is_no_mapping_is_refused(kind: Any, foreign: object) -> None:
    with pytest.raises(ValueError, match="a mapping"):
        kind.from_dict(foreign)


def test_number_too_large_for_a_float_is_refused_as_any_other(make_outcome: MakeOutcome) -> None:
    with pytest.raises(ValueError, match="execution_time must be a finite number of seconds"):
        make_outcome(execution_time=10**400)
    for kind in (ExtractedPlan, SkillMemory):
        texts = {"outcome_id": "o", "strategy_description": "s", "reasoning_pattern": "r"}
        given: Any = {"lesson": "use it"} if kind is SkillMemory else texts
        for confidence in (10**400, -1):
            with pytest.raises(ValueError, match="confidence must be a number from 0 to 1"):
                kind(**given, confidence=confidence)
