from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.lessons.lesson_wording import find_telling_line, word_changes, word_lesson
from pytest_golden.learning.lessons.model import Attempt, SkillMemory
from pytest_golden.learning.lessons.patterns import find_patterns
from pytest_golden.learning.lessons.quality import check_lesson, find_specifics
from tests.learning.lessons.test_patterns import ATTEMPTS, NO_DUCKDB, failed, worked

DECODE = (
    'Traceback (most recent call last):\n  File "/home/ann/load.py", line 3, in <module>\n'
    "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0"
)


def word(*attempts: Attempt, task: str = "") -> SkillMemory:
    (pattern,) = find_patterns(attempts)
    return word_lesson(pattern, task)


def test_substitution_is_worded_by_error_and_tools() -> None:
    skill = word(failed("read_csv", DECODE, path="/data/x"), worked("read_excel", path="/data/x"))
    assert skill.lesson == "When `read_csv` fails with UnicodeDecodeError, use `read_excel` instead"
    assert skill.what_failed.startswith("`read_csv` failed: UnicodeDecodeError")
    assert (skill.what_worked, skill.tool_name, skill.confidence) == ("`read_excel`", "read_csv", 0.8)
    assert (skill.approved, skill.source, skill.evidence["error"]) == (True, "rules", DECODE)


def test_correction_names_general_values_and_hides_those_of_one_task() -> None:
    skill = word(
        failed("load", encoding="utf-8", path="/data/a.csv", day="2026-03-01", old=1),
        worked("load", encoding="cp1252", path="/data/b.csv", day="2026-03-02", new=True),
    )
    assert (
        "set `encoding` to 'cp1252' instead of 'utf-8', change `path`, change `day` and 2 more"
        in skill.lesson.replace("change 2 more", "and 2 more").replace(", and 2 more", " and 2 more")
    )
    assert check_lesson(skill) == ()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"a": {"to": 1}}, "set `a` to 1"),
        ({"a": {"from": 1}}, "leave out `a`"),
        ({"a": {"from": None, "to": False}}, "set `a` to False instead of None"),
        ({"a": {"from": [1], "to": [2]}}, "change `a`"),
        ({"a": {"to": {"b": 1}}}, "give `a`"),
        ({"a": {"from": "x" * 99, "to": "b"}}, "set `a` to 'b'"),
        ({"/etc/shop/x.ini": {"from": 1, "to": 2}}, "set an argument to 2 instead of 1"),
        ({"a": {"to": 1}, "b": {"to": 2}}, "set `a` to 1 and set `b` to 2"),
        ({}, ""),
    ],
)
def test_changes_are_told_in_words(changes: dict[str, Any], told: str) -> None:
    assert word_changes(changes) == told


@pytest.mark.parametrize(
    ("error", "lesson", "confidence"),
    [
        (NO_DUCKDB, "Install the library `duckdb` before `a` is called where it is missing, or use `b`", 0.9),
        (
            "bash: jq: command not found",
            "Install the command `jq` before `a` is called where it is missing, or use `b`",
            0.9,
        ),
        ("Connection refused", "Make sure of the network before `a` is called where connections fail, or use `b`", 0.8),
        ("Permission denied", "Get the permission that `a` needs where access is denied, or use `b`", 0.8),
        (
            "No space left on device",
            "Make room on the disk before `a` is called where no space is left, or use `b`",
            0.8,
        ),
        ("MemoryError", "Give `a` less at once where the memory runs out, or use `b`", 0.8),
    ],
)
def test_limits_of_the_environment_are_worded(error: str, lesson: str, confidence: float) -> None:
    skill = word(failed("a", error), worked("b"))
    assert (skill.lesson, skill.confidence) == (lesson, confidence)
    assert check_lesson(skill) == ()


def test_limit_without_a_way_around_it_and_one_with_another_argument() -> None:
    assert (
        word(failed("a", NO_DUCKDB)).lesson == "Install the library `duckdb` before `a` is called where it is missing"
    )
    skill = word(failed("a", NO_DUCKDB, engine="x", n=1), worked("a", engine="y", n=1))
    assert skill.lesson.endswith(", or set `engine` to 'y' instead of 'x'")


def test_plans_are_worded() -> None:
    skill = word(failed("a", "KeyError: 'x'"), failed("a", "KeyError: 'x'"), worked("b", 2), worked("c", 2))
    assert skill.lesson == "When `a` has failed twice with KeyError, make a new plan: `b`, then `c` worked"
    assert skill.what_worked == "a new plan: `b`, then `c`"
    lost = word(failed("a", "boom"), failed("b", "boom", 2), failed("b", "boom", 2))
    assert '"boom" of `a` and `b`' in lost.lesson
    assert check_lesson(lost) == ()


def test_failure_without_a_text_is_worded_with_less_confidence() -> None:
    skill = word(failed("a", None), worked("b"))
    assert (skill.lesson, skill.why, skill.confidence) == ("When `a` fails, use `b` instead", "", 0.7)


def test_context_is_the_task_without_what_belongs_to_it_alone() -> None:
    skill = word(
        failed("a"), worked("b"), task="Load /data/x.csv of 2026-03-01\nwith password=hunter2 " + "long " * 200
    )
    assert skill.context.startswith("Load <path> of <date> with password=[REDACTED]")
    assert len(skill.context) <= 300


def test_tool_that_is_a_path_is_not_named() -> None:
    assert word(failed("/opt/shop/run.sh"), worked("b")).lesson.startswith("When the tool fails")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (DECODE, "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0"),
        ("first\nsecond", "first"),
        ("Traceback (most recent call last):\n  x\nodd end", "odd end"),
        (
            "warning\nsqlalchemy.exc.OperationalError: no such table\n[SQL: x]",
            "sqlalchemy.exc.OperationalError: no such table",
        ),
        ("", ""),
        (" \n ", ""),
        ("x" * 900, f"{'x' * 196} ..."),
    ],
)
def test_telling_line_of_an_error(error: str, line: str) -> None:
    assert find_telling_line(error) == line


@given(st.lists(ATTEMPTS, max_size=6), st.text(max_size=50))
def test_any_pattern_is_worded_without_what_belongs_to_one_task(attempts: list[Attempt], task: str) -> None:
    for pattern in find_patterns(attempts):
        skill = word_lesson(pattern, task)
        assert SkillMemory.from_dict(skill.to_dict()) == skill
        assert find_specifics(skill.lesson) == ()
