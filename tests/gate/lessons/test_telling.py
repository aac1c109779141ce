from __future__ import annotations

from typing import Any

import pytest

from pytest_golden.gate.fix_wording import tell_broken, tell_lesson, word_fix
from pytest_golden.gate.fixes import BrokeBefore, make_break
from pytest_golden.history.inputs import InputChange
from pytest_golden.learning.lessons.model import SkillMemory
from tests.gate.lessons.made import B, difference, point

MANIFEST = "golden_projects.yaml"


def tell(*subjects: str, project: str = "sales", **fields: Any) -> tuple[str, ...]:
    passed = point(2, passed=True, commit=B)
    skill = word_fix(point(1), passed, difference(*subjects, **fields), MANIFEST)
    assert skill is not None
    return tell_lesson(skill, project)


def test_fix_by_one_commit_names_it_with_its_subject() -> None:
    assert tell("cast ids", files=("etl/load.py",)) == (
        "lesson: the fix changed Python code",
        "  fixed by 0000000: 'cast ids' (etl/load.py)",
    )


def test_fix_in_another_project_says_so() -> None:
    assert tell("cast ids", project="stock", files=("a.py",))[1].endswith("'cast ids' (a.py) in sales")


def test_one_of_several_commits_is_said_to_be_one_of_them() -> None:
    told = tell("a b", "c d", "e f", "g h", files=("1.py", "2.py", "3.py", "4.py", "5.py"))
    assert told == (
        "lesson: the fix changed Python code",
        "  fixed by one of 4 commits aaaaaaa..bbbbbbb: 'a b', 'c d', 'e f', +1 more (1.py, 2.py, 3.py and 2 more)",
    )


def test_one_commit_of_many_is_said_to_be_the_one_in_the_projects_folder() -> None:
    told = tell("cast ids", commit_count=3, files=("etl/load.py", "lib/x.sql"), inside=("etl/load.py",))
    assert told == (
        "lesson: the fix changed Python code",
        "  fixed by 0000000, the one of 3 commits in its folder: 'cast ids' (etl/load.py)",
    )


def test_fix_without_a_commit_names_the_edit_or_the_commit_it_passed_at() -> None:
    edit = tell(files=("a.py",), edited=("a.py",))
    assert edit[1] == "  fixed by an edit on bbbbbbb that was not committed (a.py)"
    assert tell(surroundings=("pandas 2 -> 1",)) == (
        "lesson: pandas 2 was pinned back to 1",
        "  fixed at bbbbbbb, by no commit",
    )


def test_fix_from_outside_git_names_the_input_and_one_that_came_beside_a_commit_too() -> None:
    data = InputChange("file", "data/orders.csv", "changed", "12KiB -> 14KiB")
    assert tell(inputs=(data,)) == (
        "lesson: input data that git does not hold was changed",
        "  fixed at bbbbbbb, by no commit (data/orders.csv changed (12KiB -> 14KiB))",
    )
    both = tell("cast ids", files=("etl/load.py",), inputs=(data,))
    assert both == (
        "lesson: the fix changed Python code",
        "  fixed by 0000000: 'cast ids' (etl/load.py); besides, data/orders.csv changed (12KiB -> 14KiB)",
    )
    edit = tell(files=("a.py",), edited=("a.py",), inputs=(data,))
    assert edit[1].endswith("not committed (a.py); besides, data/orders.csv changed (12KiB -> 14KiB)")


def test_other_lessons_are_one_line_and_say_when_they_wait() -> None:
    plain = SkillMemory(lesson="use the cache\nand not the net")
    assert tell_lesson(plain) == ("lesson: use the cache and not the net",)
    assert tell_lesson(plain.replace(approved=False, lesson="x" * 400))[0].endswith("xx... (not approved yet)")


def test_fix_of_which_little_is_known_is_told_as_far_as_it_is() -> None:
    bare = SkillMemory(lesson="pin it", kind="project_fix", evidence={"project": 3, "commits": "none", "files": None})
    assert tell_lesson(bare, "sales") == ("lesson: pin it",)


@pytest.mark.parametrize(
    ("count", "breaks", "told"),
    [(1, 1, "sales: broke once when a.py changed"), (2, 5, "sales: broke 2 times (of 5 breaks) when a.py changed")],
)
def test_break_is_told_with_its_commit_and_how_often(count: int, breaks: int, told: str) -> None:
    one = make_break(point(), difference("load prices", files=("a.py",)), MANIFEST)
    assert one is not None
    line = tell_broken(BrokeBefore("sales", count, breaks, ("a.py",), one))
    assert line == f"{told}, last on 2026-03-01 by 0000000: 'load prices'"


def test_break_by_an_edit_says_so() -> None:
    one = make_break(point(), difference(files=("a.py",), edited=("a.py",)), MANIFEST)
    assert one is not None
    assert tell_broken(BrokeBefore("sales", 1, 1, ("a.py",), one)).endswith("by an edit")
