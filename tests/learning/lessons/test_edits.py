"""What an agent edited between a failure and a pass: the edits themselves, and the lesson that they give."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_golden.learning.lessons.edits import Edit, find_edits, is_of_language, strip_call
from pytest_golden.learning.lessons.lesson_wording import learn_from_attempts
from pytest_golden.learning.lessons.model import Attempt, LessonKind, SkillMemory
from pytest_golden.learning.lessons.patterns import find_patterns

KEY, TYPE = "E   KeyError: 'customer_id'", "E   TypeError: unsupported operand type(s) for +: 'int' and 'str'"
EDIT = Attempt("edit", {"file_path": "/repo/src/orders.py", "old_string": "row['a']", "new_string": "row['b']"}, True)
WRITE = Attempt("write_file", {"path": "src/load.py", "content": "one\ntwo\n"}, True)
READ = Attempt("read_file", {"path": "src/orders.py"}, True)
PASS = Attempt("bash", {"command": "pytest tests/test_a.py"}, True)


def fail(error: str = KEY, command: str = "pytest tests/test_a.py -x 2>&1 | tail -20") -> Attempt:
    return Attempt("bash", {"command": command}, False, error)


def learn(*attempts: Attempt) -> tuple[SkillMemory, ...]:
    return asyncio.run(learn_from_attempts(attempts, task="Fix the orders import"))


@pytest.mark.parametrize(
    ("evidence", "languages"),
    [
        ({"edits": [{"file": "src/A.PY", "diff": ""}]}, {"python"}),
        ({"files": ["models/a.sql", "run.py"]}, {"sql", "python"}),
        ({"files": ["README.md", 5, ""]}, {"sql", "python", "yaml"}),
        ({"edits": "a.py", "files": {"a.sql": 1}}, {"sql", "python", "yaml"}),
        ({}, {"sql", "python", "yaml"}),
    ],
)
def test_a_lesson_is_of_the_languages_of_its_files(evidence: dict[str, Any], languages: set[str]) -> None:
    assert {one for one in ("sql", "python", "yaml") if is_of_language(evidence, one)} == languages
    assert is_of_language(evidence, None)


@pytest.mark.parametrize(
    ("arguments", "edits"),
    [
        ({"file_path": "a.py", "old_string": "x\ny", "new_string": "x\nz"}, [("a.py", "-y\n+z")]),
        ({"command": "str_replace", "path": "a.py", "old_str": "x", "new_str": "y"}, [("a.py", "-x\n+y")]),
        ({"path": "a.py", "content": "x"}, [("a.py", "+x")]),
        ({"file_path": "a.py", "old_string": "x", "new_string": ""}, [("a.py", "-x")]),
        (
            {
                "file_path": "a.py",
                "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}],
            },
            [("a.py", "-1\n+2"), ("a.py", "-3\n+4")],
        ),
        (
            {"patch": "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-1\n+2\n--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n+3\n"},
            [("x.py", "-1\n+2"), ("y.py", "+3")],
        ),
        ({"input": "*** Begin Patch\n*** Update File: src/x.py\n@@\n-1\n+2\n*** End Patch"}, [("src/x.py", "-1\n+2")]),
        ({"command": "sed -i 's/a/b/' src/x.py && git diff"}, [("src/x.py", "+sed -i 's/a/b/' src/x.py && git diff")]),
        ({"command": "sed 's/a/b/' src/x.py"}, []),
        ({"command": "cd /x && chmod +x run.sh"}, [("", "+chmod +x")]),
        ({"command": "git config user.email a@b.example"}, [("", "+git config")]),
        ({"command": "uv pip install pandas==2"}, [("", "+uv pip install")]),
        ({"command": "git status && cat chmod.txt"}, []),
        ({"path": "a.py"}, []),
        ({"query": "content of a.py"}, []),
        ({"path": 3, "content": "x"}, []),
        ({}, []),
    ],
)
def test_edits_are_known_by_their_arguments(arguments: dict[str, Any], edits: list[tuple[str, str]]) -> None:
    assert find_edits(Attempt("any", arguments, True)) == tuple(Edit(*one) for one in edits)


def test_long_edits_are_cut() -> None:
    (edit,) = find_edits(Attempt("write", {"path": "a", "content": "\n".join(["x" * 500] * 30)}, True))
    lines = edit.diff.splitlines()
    assert len(lines) == 13
    assert lines[-1] == " (18 more lines)"
    assert max(map(len, lines)) == 200


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("pytest a.py -x", "pytest a.py", True),
        ("pytest a.py --tb=short 2>&1 | tail -5", "pytest a.py", True),
        ("pytest a.py", "pytest b.py", False),
        ("python a.py > log.txt", "python a.py", True),
        ("dbt run --select orders", "dbt run --select items", False),
    ],
)
def test_options_and_pipes_do_not_make_another_check(one: str, other: str, is_same: bool) -> None:
    assert (strip_call({"command": one}) == strip_call({"command": other})) is is_same


def test_long_texts_are_no_commands() -> None:
    # A pattern that tries all ways to split this would never end.
    table = "| a " * 500 + "\nmore"
    assert strip_call([table, {"text": table}]) == [table, {"text": table}]
    assert find_patterns([fail(command=table), EDIT, Attempt("bash", {"command": f"{table}!"}, True)]) == ()
    large = "\n".join(f"line {number % 7}" for number in range(5_000))
    attempts = [
        one
        for number in range(40)
        for one in (
            fail(f"KeyError: 'a{number}'", f"pytest test_{number}.py"),
            Attempt("edit", {"path": f"{number}.py", "old_str": large, "new_str": large[::-1]}, True),
        )
    ]
    assert find_patterns(attempts) == ()


def test_the_edit_after_which_the_same_call_works_is_the_lesson() -> None:
    (lesson,) = learn(fail(), READ, EDIT, PASS)
    assert lesson.kind == LessonKind.EDIT_FIX
    assert lesson.lesson == (
        "When `bash` fails with KeyError, look at `orders.py`: `row['b']` in the place of `row['a']` fixed it"
    )
    assert lesson.what_worked == "/repo/src/orders.py:\n-row['a']\n+row['b']"
    assert lesson.evidence["error"] == KEY
    assert lesson.evidence["check"] == {"command": "pytest tests/test_a.py -x 2>&1 | tail -20"}


def test_each_error_of_a_chain_has_the_edit_that_ended_it() -> None:
    first, second = learn(fail(), EDIT, fail(TYPE), WRITE, PASS)
    assert [edit["file"] for edit in first.evidence["edits"]] == ["/repo/src/orders.py"]
    assert [edit["file"] for edit in second.evidence["edits"]] == ["src/load.py"]
    assert second.evidence["error"] == TYPE
    assert "look at `load.py`: an edit there fixed it" in second.lesson


def test_a_command_that_changes_something_is_told_without_its_arguments() -> None:
    denied = fail("sh: ./dump.sh: Permission denied", "./dump.sh")
    (lesson,) = learn(
        denied, Attempt("bash", {"command": "chmod +x dump.sh"}, True), Attempt("bash", denied.arguments, True)
    )
    assert lesson.lesson == 'When `bash` fails with "sh: <path>: Permission denied", run `chmod +x` first'
    assert lesson.what_worked == "chmod +x"


def test_an_edit_that_did_not_help_is_no_fix() -> None:
    (lesson,) = learn(fail(), EDIT, fail(), WRITE, PASS)
    assert [edit["file"] for edit in lesson.evidence["edits"]] == ["src/load.py"]


def test_an_edit_that_only_brought_another_error_is_no_fix() -> None:
    assert learn(fail(), EDIT, fail(TYPE)) == ()
    first, second = learn(
        fail(), EDIT, fail(TYPE), WRITE, fail(), Attempt("edit", {"path": "c.py", "content": "c"}, True), PASS
    )
    assert [(one.evidence["error"], one.evidence["edits"][0]["file"]) for one in (first, second)] == [
        (TYPE, "src/load.py"),
        (KEY, "c.py"),
    ]


@pytest.mark.parametrize(
    "attempts",
    [
        (fail(), PASS),
        (fail(), READ, PASS),
        (fail(), EDIT),
        (fail(), EDIT, fail()),
        (fail(), Attempt("edit", EDIT.arguments, False, "no such file"), PASS),
    ],
)
def test_without_an_edit_and_a_pass_nothing_is_learned(attempts: tuple[Attempt, ...]) -> None:
    assert [lesson for lesson in learn(*attempts) if lesson.evidence["failed_tool"] == "bash"] == []


def test_secrets_of_an_edit_are_hidden() -> None:
    edit = Attempt("write", {"path": "conf.py", "content": "api_key = 'sk-live-0123456789abcdef0123'"}, True)
    (pattern,) = find_patterns([fail(), edit, PASS])
    assert "0123456789abcdef0123" not in str(pattern.evidence)
    assert "0123456789abcdef0123" not in str([lesson.to_dict() for lesson in learn(fail(), edit, PASS)])
