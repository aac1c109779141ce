from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.quality import check_lesson, find_specifics, generalise
from pytest_golden.learning.signature import error_signature, find_causes
from tests.learning.lessons.advice import EMPTY_TALK, GENERAL, SPECIFIC
from tests.patience import without_hanging


def reasons(lesson: str, confidence: float = 0.8) -> tuple[str, ...]:
    return check_lesson(SkillMemory(lesson=lesson, confidence=confidence))


@pytest.mark.parametrize("lesson", GENERAL)
def test_general_lesson_is_good(lesson: str) -> None:
    assert reasons(lesson) == ()


@pytest.mark.parametrize("lesson", SPECIFIC)
def test_lesson_about_one_task_alone_is_refused(lesson: str) -> None:
    (reason,) = reasons(lesson)
    assert reason.startswith("it is about one task alone: ")


@pytest.mark.parametrize("lesson", EMPTY_TALK)
def test_lesson_that_says_nothing_is_refused(lesson: str) -> None:
    (reason,) = reasons(lesson)
    assert "task" not in reason


def test_tables_are_large_enough_to_tell_precision_both_ways() -> None:
    assert min(len(set(GENERAL)), len(set(SPECIFIC))) >= 40


@pytest.mark.parametrize(("confidence", "is_kept"), [(0.0, False), (0.69, False), (0.7, True), (1.0, True)])
def test_confidence_of_seven_tenths_is_enough(confidence: float, is_kept: bool) -> None:
    assert (reasons("Pin pandas below 2.2", confidence) == ()) is is_kept


def test_each_reason_is_told() -> None:
    told = reasons("Read /home/ann/x.csv " + "and then some more " * 50, 0.1)
    assert len(told) == 3
    assert [word in " ".join(told) for word in ("confidence", "characters", "/home/ann/x.csv")] == [True] * 3


def test_named_tool_is_something_to_act_on() -> None:
    assert reasons("When `A` fails, use `B` instead") == ()
    assert reasons("When one fails, use another instead") != ()


def test_only_the_first_parts_are_named() -> None:
    (reason,) = reasons("Read /a/b/c.csv, /a/b/d.csv, /a/b/e.csv and /a/b/f.csv")
    assert "/a/b/e.csv" in reason
    assert "/a/b/f.csv" not in reason


def test_general_form_has_marks_in_place_of_what_belongs_to_one_task() -> None:
    text = (
        "load /data/x.csv of 2026-03-01 for ann@shop.com from https://db7.shop.com/v1 as run 01ARZ3NDEKTSV4RRFFQ69G5FAV"
    )
    assert generalise(text) == "load <path> of <date> for <e-mail> from <url> as run <id>"
    assert generalise("nothing special") == "nothing special"


NASTY = (
    "10.0.17.55:5432",
    "connect to 10.0.17.55:99999 failed",
    "1.2.3.4/99",
    "256.256.256.256:1",
    "[::1]:5432",
    "fe80::1%eth0",
    "http://[bad",
    "http://[::1",
    "http://host:99999999/x",
    "http://:@/",
    "file://",
    "2026-13-45",
    "2026-02-31T25:61:61+99:99",
    "31.02.2026",
    "9" * 3_999,
    "1e999999",
    "0x" + "f" * 500,
    "\u0661\u0662\u0663.\u0664.\u0665.\u0666:\u0667",
    "boom \ud83d",
    "a\0b",
    "C:\\",
    "\\\\host\\",
    "<n>",
    "\U0001f600" * 100,
)


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_no_address_date_or_number_is_too_odd_to_be_read(text: str) -> None:
    for lesson in (text, f"Wait until the database at {text} answers before you load.", text * 3):
        check_lesson(SkillMemory(lesson=lesson))
        generalise(lesson)
        error_signature(lesson)
        find_causes(lesson)


def test_address_with_its_port_is_of_one_task_alone() -> None:
    assert generalise("wait for 10.0.17.55:5432 to answer") == "wait for <address> to answer"
    assert generalise("bind to 127.0.0.1:5432, 0.0.0.0:80") == "bind to 127.0.0.1:5432, 0.0.0.0:80"


@given(st.text(alphabet="aA0129:/\\.-_~@<>[]`'% \n\ud83d\0", max_size=300) | st.text(st.characters(), max_size=100))
def test_any_text_is_read(text: str) -> None:
    error_signature(text)
    found = find_specifics(text)
    assert all(one.start < one.end <= len(text) for one in found)
    assert all(before.end <= after.start for before, after in pairwise(found))
    check_lesson(SkillMemory(lesson=text))


@pytest.mark.parametrize("part", ["a/", "a.", "a,", "0", "/a", "1:", "a@", "\\a", "a-1", "f0", "`", "x " * 3, "a://"])
def test_long_text_is_read_at_once(part: str) -> None:
    text = part * (200_000 // len(part))
    with without_hanging():
        check_lesson(SkillMemory(lesson=text))
        generalise(text)
