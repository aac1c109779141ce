from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.lessons.lesson_wording import learn_from_attempts
from pytest_golden.learning.lessons.model import Attempt, LessonPattern
from pytest_golden.learning.lessons.patterns import find_patterns
from pytest_golden.learning.lessons.quality import Constraint, find_limit
from tests.patience import without_hanging

NO_DUCKDB = "ModuleNotFoundError: No module named 'duckdb'"


def failed(tool: str, error: str | None = "ValueError: bad", plan: int = 1, **arguments: Any) -> Attempt:
    return Attempt(tool, arguments, False, error, plan)


def worked(tool: str, plan: int = 1, **arguments: Any) -> Attempt:
    return Attempt(tool, arguments, True, None, plan)


def kinds(*attempts: Attempt) -> list[str]:
    return [str(pattern.kind) for pattern in find_patterns(attempts)]


def only(*attempts: Attempt) -> LessonPattern:
    (pattern,) = find_patterns(attempts)
    return pattern


def test_tool_that_worked_in_place_of_another_is_a_substitution() -> None:
    pattern = only(failed("read_csv", path="x"), worked("read_excel", path="x"))
    assert pattern.kind == "tool_substitution"
    assert pattern.evidence == {
        "failed_tool": "read_csv",
        "worked_tool": "read_excel",
        "error": "ValueError: bad",
        "shared_arguments": ["path"],
    }


def test_two_tools_that_both_worked_teach_nothing() -> None:
    assert kinds(worked("a"), worked("b")) == []


def test_failures_alone_teach_nothing() -> None:
    assert kinds(failed("a"), failed("b"), failed("a")) == []
    assert kinds() == []


def test_same_call_that_failed_and_then_worked_teaches_nothing() -> None:
    assert kinds(failed("a", x=1), worked("a", x=1)) == []
    assert kinds(failed("a", x=1), worked("b"), worked("a", x=1)) == []
    assert kinds(failed("get", "ConnectionError: Connection refused", x=1), worked("get", x=1)) == []


def test_changed_arguments_of_the_same_tool_are_a_correction() -> None:
    pattern = only(
        failed("read_csv", path="x", encoding="utf-8", skip=1, flag=True),
        worked("read_csv", path="x", encoding="cp1252", flag=1, dtype=None),
    )
    assert pattern.kind == "parameter_correction"
    assert pattern.evidence["changed_arguments"] == {
        "encoding": {"from": "utf-8", "to": "cp1252"},
        "skip": {"from": 1},
        "flag": {"from": True, "to": 1},
        "dtype": {"to": None},
    }


def test_nearest_failure_is_what_a_correction_explains() -> None:
    pattern = only(failed("a", x=1, y=1), failed("a", x=2, y=1), worked("a", x=2, y=2))
    assert pattern.evidence["changed_arguments"] == {"y": {"from": 1, "to": 2}}


def test_correction_may_come_after_a_look_elsewhere() -> None:
    assert kinds(failed("query", sql="a", db="x"), worked("list_columns"), worked("query", sql="b", db="x")) == [
        "parameter_correction"
    ]


def test_later_call_about_something_else_is_no_correction() -> None:
    pattern = only(failed("read", path="a"), worked("fetch", path="a"), worked("read", path="b"))
    assert (pattern.kind, pattern.evidence["worked_tool"]) == ("tool_substitution", "fetch")


@pytest.mark.parametrize(
    ("error", "constraint", "subject"),
    [
        (NO_DUCKDB, "missing library", "duckdb"),
        ("ImportError: libGL.so.1: cannot open shared object file: No such file", "missing library", "libGL.so.1"),
        ("Missing optional dependency 'openpyxl'. Use pip", "missing library", "openpyxl"),
        ("Error: Cannot find module 'left-pad'", "missing library", "left-pad"),
        ("ERROR: No matching distribution found for dbt-snowflake", "missing library", "dbt-snowflake"),
        ("ImportError: something odd", "missing library", ""),
        ("/bin/sh: 1: jq: not found", "missing command", "jq"),
        ("bash: psql: command not found", "missing command", "psql"),
        ("zsh: command not found: rg", "missing command", "rg"),
        ("'make' is not recognized as an internal or external command", "missing command", "make"),
        ("requests.exceptions.ConnectionError: HTTPSConnectionPool: Max retries exceeded with url: /", "network", ""),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "network", ""),
        ("could not connect to server: Connection refused", "network", ""),
        ("ssl.SSLError: CERTIFICATE_VERIFY_FAILED", "network", ""),
        ("PermissionError: [Errno 13] Permission denied: 'x'", "permission", ""),
        ("AccessDenied when calling the PutObject operation", "permission", ""),
        ("OSError: [Errno 28] No space left on device", "disk", ""),
        ("numpy: Unable to allocate 7.45 GiB for an array", "memory", ""),
    ],
)
def test_limit_of_the_environment_wins_over_a_substitution(error: str, constraint: str, subject: str) -> None:
    pattern = only(failed("a", error), worked("b"))
    assert pattern.kind == "environmental_constraint"
    assert (pattern.evidence["constraint"], pattern.evidence["subject"]) == (constraint, subject)
    assert (pattern.evidence["failed_tool"], pattern.evidence["worked_tool"]) == ("a", "b")


@pytest.mark.parametrize(
    "error",
    [
        "KeyError: 'permission'",
        "table orders not found",
        "timeout",
        "ValueError: network must be a str",
        "404 Not Found",
        "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
        "AssertionError: disk is not a cube",
        "",
        None,
    ],
)
def test_error_of_the_call_is_no_limit_of_the_environment(error: str | None) -> None:
    assert find_limit(error) is None


def test_limit_is_learned_once_and_without_a_way_around_it() -> None:
    pattern = only(failed("a", NO_DUCKDB), failed("b", NO_DUCKDB, x=1))
    assert "worked_tool" not in pattern.evidence
    assert pattern.evidence["failed_tool"] == "a"


def test_what_was_put_in_place_before_the_same_call_worked_is_learned() -> None:
    pattern = only(failed("run", NO_DUCKDB), worked("pip_install", name="duckdb"), worked("run"))
    assert (pattern.kind, pattern.evidence["worked_tool"]) == ("environmental_constraint", "pip_install")


def test_wrong_host_is_a_wrong_argument_and_a_missing_library_stays_one() -> None:
    refused = "ConnectionRefusedError: [Errno 111] Connection refused"
    assert kinds(failed("get", refused, host="a", n=1), worked("get", host="b", n=1)) == ["parameter_correction"]
    pattern = only(failed("read", NO_DUCKDB, engine="a", n=1), worked("read", engine="b", n=1))
    assert pattern.kind == "environmental_constraint"
    assert pattern.evidence["changed_arguments"] == {"engine": {"from": "a", "to": "b"}}


def test_new_plan_that_worked_after_several_failures_is_a_replan_success() -> None:
    pattern = only(failed("a"), failed("a", x=1), worked("b", plan=2), worked("c", plan=2))
    assert pattern.kind == "replan_success"
    evidence = pattern.evidence
    assert (evidence["failures"], evidence["failed_plans"], evidence["failed_tools"]) == (2, 1, ["a"])
    assert (evidence["worked_tool"], evidence["worked_tools"]) == ("c", ["b", "c"])


def test_one_failure_before_a_new_plan_is_explained_by_the_tool() -> None:
    assert kinds(failed("a"), worked("b", plan=2)) == ["tool_substitution"]


def test_failures_of_two_plans_count_together() -> None:
    pattern = only(failed("a"), failed("b", plan=2), worked("c", plan=3))
    assert (pattern.kind, pattern.evidence["failed_plans"]) == ("replan_success", 2)


def test_new_plan_with_the_same_tool_tells_what_was_changed() -> None:
    pattern = only(failed("a", x=1), failed("a", x=1), worked("a", plan=2, x=2))
    assert pattern.kind == "replan_success"
    assert pattern.evidence["changed_arguments"] == {"x": {"from": 1, "to": 2}}


def test_plan_that_failed_after_a_failed_plan_is_learned() -> None:
    pattern = only(failed("a"), failed("b", "KeyError: 'x'", plan=2))
    assert pattern.kind == "failed_after_replan"
    assert (pattern.evidence["failed_tool"], pattern.evidence["error"]) == ("b", "KeyError: 'x'")


def test_second_plan_after_one_that_ended_well_is_no_replan() -> None:
    assert kinds(worked("a"), failed("b", plan=2)) == []


def test_secrets_are_taken_out_of_the_evidence() -> None:
    pattern = only(
        failed("login", "no user for s3cr3tVALUE9 here", password="s3cr3tVALUE9", user="a"),
        worked("login", password="0therVALUE77", user="a"),
    )
    assert list(pattern.evidence["changed_arguments"]) == ["password"]
    written = json.dumps(pattern.to_dict())
    assert "s3cr3tVALUE9" not in written
    assert "0therVALUE77" not in written


def test_long_values_are_cut() -> None:
    pattern = only(failed("a", "x" * 50_000, sql="y" * 5_000, n=1), worked("a", sql="z" * 5_000, n=1))
    assert len(json.dumps(pattern.to_dict())) < 25_000


def test_pattern_refuses_what_it_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"kind .* give one of"):
        LessonPattern("magic", {})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="evidence must be a mapping"):
        LessonPattern("correction", [])  # type: ignore[arg-type]


def test_thousands_of_attempts_are_read_at_once() -> None:
    attempts = [failed(f"t{number % 7}", "KeyError: 'a'", n=number) for number in range(5_000)]
    with without_hanging():
        find_patterns([*attempts, worked("x")])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ATTEMPTS = st.builds(
    Attempt,
    tool=st.sampled_from(["a", "b", "/opt/c.sh", "`d`"]),
    arguments=st.dictionaries(st.sampled_from(["x", "y", "password", "`"]), VALUES, max_size=3),
    success=st.booleans(),
    error_message=st.none()
    | st.sampled_from([NO_DUCKDB, "Permission denied", "KeyError: 'x'", "\n"])
    | st.text(max_size=40),
    plan=st.integers(1, 4),
)


@given(st.lists(ATTEMPTS, max_size=8))
def test_any_attempts_are_read(attempts: list[Attempt]) -> None:
    found = find_patterns(attempts)
    assert found == find_patterns(attempts)
    for pattern in found:
        json.dumps(pattern.to_dict(), allow_nan=False)
        assert pattern.evidence["failed_tool"] in {one.tool for one in attempts if not one.success}
    if all(one.success for one in attempts):
        assert found == ()


def test_every_constraint_is_one_word_or_two() -> None:
    assert all(len(one.split()) <= 2 for one in Constraint)


@pytest.mark.parametrize("foreign", [None, 5, "a", [None], [1], [failed("a"), {"tool": "a"}]])
def test_what_is_no_attempt_is_refused(foreign: Any) -> None:
    with pytest.raises(ValueError, match="must be a sequence of Attempt"):
        find_patterns(foreign)


@pytest.mark.parametrize("word", ["e", "lib", "a.", "a-", "x+", "'a", "libx.so"])
def test_error_of_one_long_word_is_read_in_no_time(word: str) -> None:
    with without_hanging():
        find_limit(word * 20_000)


EDITED: dict[str, Any] = {"file_path": "shop/orders.py", "old_string": "a", "new_string": "b"}
BOOM, OTHER = "KeyError: 'amount'", "TypeError: no"


@pytest.mark.parametrize(
    ("attempts", "is_given_up"),
    [
        ([failed("pytest", BOOM), worked("Edit", **EDITED), failed("pytest", BOOM), failed("pytest", BOOM)], True),
        ([failed("pytest", BOOM), failed("pytest", BOOM), failed("pytest", BOOM)], False),
        ([failed("pytest", BOOM), worked("Edit", **EDITED), failed("pytest", BOOM)], False),
        ([*[failed("pytest", BOOM), worked("Edit", **EDITED)] * 3, worked("pytest")], False),
        ([*[failed("pytest", BOOM), worked("Edit", **EDITED)] * 3, failed("pytest", OTHER)], False),
        ([worked("pytest"), *[failed("pytest", BOOM), worked("Edit", **EDITED)] * 3], True),
        ([failed("pytest", None), worked("Edit", **EDITED), failed("pytest", None), failed("pytest", None)], False),
        ([worked("Edit", **EDITED), *[failed("pytest", BOOM)] * 3], False),
    ],
)
def test_a_call_that_kept_failing_in_spite_of_edits_was_given_up(attempts: list[Attempt], *, is_given_up: bool) -> None:
    found = [pattern for pattern in find_patterns(attempts) if pattern.kind == "given_up"]
    assert len(found) == is_given_up
    for pattern in found:
        assert pattern.evidence["failures"] == 3
        assert [(edit["file"], edit["diff"]) for edit in pattern.evidence["tried"]] == [("shop/orders.py", "-a\n+b")]
    skills = asyncio.run(learn_from_attempts(attempts, task="repair the orders"))
    told = [skill.lesson for skill in skills if skill.kind == "given_up"]
    assert (
        told
        == ["When `pytest` fails with KeyError, edits of `orders.py` did not help 3 times: look elsewhere first"]
        * is_given_up
    )
