from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.lessons.model import Attempt, LessonKind, LessonSource, LessonVerdict, SkillMemory
from pytest_golden.learning.lessons.recalling import is_harmful, may_be_shown
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.readers.model import StepDraft

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"tool": " "}, "tool"),
        ({"arguments": [1]}, "arguments"),
        ({"arguments": {"x": float("nan")}}, "arguments"),
        ({"success": 1}, "success"),
        ({"error_message": 5}, "error_message"),
        ({"plan": 0}, "plan"),
        ({"plan": True}, "plan"),
    ],
)
def test_attempt_refuses_what_it_cannot_be(bad: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Attempt(**{"tool": "a", **bad})


@pytest.mark.parametrize(
    ("content", "metadata", "attempt"),
    [
        ("read_csv", {}, Attempt("read_csv", success=True)),
        ("reads", {"tool": "read_csv", "arguments": {"sep": ","}}, Attempt("read_csv", {"sep": ","}, True)),
        ("x", {"tool": "a", "error": "KeyError: 'b'"}, Attempt("a", {}, False, "KeyError: 'b'")),
        ("it broke", {"tool": "a", "failed": True}, Attempt("a", {}, False, "it broke")),
        ({"sql": "SELECT 1"}, {"error": True}, Attempt('{"sql": "SELECT 1"}', {}, False)),
        ("x", {"tool": "a", "error": {"code": 5}}, Attempt("a", {}, False, '{"code": 5}')),
        (
            "execute_tool run",
            {"gen_ai.tool.name": "run", "gen_ai.tool.call.arguments": '{"n": 1}'},
            Attempt("run", {"n": 1}, True),
        ),
        ("x", {"tool": "a", "arguments": "ls -l"}, Attempt("a", {"input": "ls -l"}, True)),
        ("x", {"tool": "a", "arguments": "[1, 2]"}, Attempt("a", {"input": (1, 2)}, True)),
    ],
)
def test_a_step_is_an_attempt(content: Any, metadata: dict[str, Any], attempt: Attempt) -> None:
    assert Attempt.from_step(StepDraft(content, metadata=metadata)) == attempt


@given(
    st.builds(
        Attempt,
        tool=st.text(min_size=1).filter(str.strip),
        arguments=st.dictionaries(st.text(), st.none() | st.booleans() | st.integers(0, 9) | st.text()),
        success=st.booleans(),
        error_message=st.none() | st.text(min_size=1),
    ).map(lambda one: replace(one, error_message=None) if one.success else one)
)
def test_an_attempt_comes_back_from_its_step(attempt: Attempt) -> None:
    step = attempt.to_step(NOW)
    assert (step.timestamp, step.content, step.has_error) == (NOW, attempt.tool, not attempt.success)
    assert Attempt.from_step(step) == attempt
    assert (
        Attempt.from_step(Trajectory.new().add_step(step.type, step.content, metadata=step.metadata).steps[0])
        == attempt
    )


def test_a_step_without_a_content_is_no_attempt() -> None:
    with pytest.raises(ValueError, match="tool"):
        Attempt.from_step(StepDraft(None))


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"lesson": None}, "lesson"),
        ({"context": 5}, "context"),
        ({"tool_name": 5}, "tool_name"),
        ({"kind": "magic"}, "kind 'magic' is unknown: give one of tool_substitution"),
        ({"source": "oracle"}, "source 'oracle' is unknown: give one of rules, model, agent, person"),
        ({"confidence": 1.1}, "confidence"),
        ({"confidence": None}, "confidence"),
        ({"support": -1}, "support"),
        ({"harm_count": True}, "harm_count"),
        ({"approved": "yes"}, "approved"),
        ({"rejected": 0}, "rejected"),
        ({"evidence": "x"}, "evidence"),
        ({"created_at": datetime(2026, 3, 1)}, "created_at"),  # noqa: DTZ001 - a naive one is refused
        ({"judged_at": "now"}, "judged_at"),
        ({"id": ""}, "id"),
    ],
)
def test_lesson_refuses_what_it_cannot_be(bad: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        SkillMemory(**{"lesson": "x", **bad})


@given(
    st.builds(
        SkillMemory,
        lesson=st.text(),
        kind=st.sampled_from(LessonKind),
        source=st.sampled_from(LessonSource),
        confidence=st.floats(0, 1),
        evidence=st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=3),
        judged_at=st.none() | st.datetimes(timezones=st.just(UTC)),
        rejected=st.booleans(),
    )
)
def test_lesson_is_read_back_from_its_dict_form(skill: SkillMemory) -> None:
    plain = skill.to_dict()
    assert SkillMemory.from_dict({**plain, "unknown": 1}) == skill
    assert hash(SkillMemory.from_dict(plain)) == hash(skill)
    assert plain["schema_version"] == 1


def test_dict_form_without_a_lesson_is_refused() -> None:
    with pytest.raises(ValueError, match="lesson is missing"):
        SkillMemory.from_dict({"context": "x"})


def test_verdict_has_a_dict_form() -> None:
    skill = SkillMemory(lesson="x", id="lesson_1", created_at=NOW)
    assert (
        LessonVerdict(kept=False, reason="y", skill=skill).to_dict()["skill"]["created_at"]
        == "2026-03-01T00:00:00.000000Z"
    )


@pytest.mark.parametrize(
    ("fields", "is_shown"),
    [
        ({}, True),
        ({"approved": False}, False),
        ({"rejected": True}, False),
        ({"superseded_by": "lesson_2"}, False),
        ({"harm_count": 4}, True),
        ({"harm_count": 5}, False),
        ({"harm_count": 50, "success_count": 1}, True),
    ],
)
def test_which_lessons_may_be_shown(fields: dict[str, Any], is_shown: bool) -> None:
    skill = SkillMemory(lesson="x", **fields)
    assert may_be_shown(skill) is is_shown
    assert is_harmful(skill) is (skill.harm_count >= 5 and not skill.success_count)
