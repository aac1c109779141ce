from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gate.fixes import (
    Break,
    find_broken,
    find_ending,
    find_turned,
    is_chance,
    is_related,
    is_repeat,
    make_break,
)
from pytest_golden.regression.model import ReasonKind, ResultStatus
from tests.gate.lesson_points import B, C, difference, point

if TYPE_CHECKING:
    from pytest_golden.gate.fixes import Point

MANIFEST = "golden_projects.yaml"


def none_descends(commit: str, ancestor: str) -> bool:
    return commit == ancestor


def all_descend(commit: str, ancestor: str) -> bool:
    return True


def test_pass_belongs_to_the_failure_right_before_it() -> None:
    failed = point(2, message="exit code 1: second")
    earlier = [failed, point(1), point(0, passed=True)]
    assert find_turned(point(3, passed=True), earlier, none_descends) is failed
    assert find_turned(point(3), [point(2, passed=True)], none_descends) == point(2, passed=True)
    assert find_turned(point(3, passed=True), [point(2, passed=True), failed], none_descends) is None
    assert find_turned(point(3, passed=True), [], none_descends) is None


@pytest.mark.parametrize(
    "between",
    [
        point(2, status=ResultStatus.SKIPPED, message=None, reason_kind="skip_if_missing"),
        point(2, status=ResultStatus.ERROR, message=None, reason_kind=ReasonKind.INTERRUPTED),
        point(2, status=ResultStatus.ERROR, message="no bwrap", reason_kind=ReasonKind.SANDBOX_UNAVAILABLE),
        point(2, status=ResultStatus.ERROR, message="a bug", reason_kind=ReasonKind.HARNESS),
    ],
)
def test_what_tells_nothing_of_the_project_is_looked_past(between: Point) -> None:
    assert not between.counts
    assert find_turned(point(3, passed=True), [between, point(1)], none_descends) == point(1)
    assert find_ending(point(1), [between], none_descends) is None


def test_result_of_another_branch_is_looked_past() -> None:
    elsewhere = point(2, branch="feature", commit=B)
    assert find_turned(point(3, passed=True), [elsewhere, point(1, passed=True)], none_descends) is None
    assert find_turned(point(3, passed=True, commit=C), [elsewhere], none_descends) is None
    assert find_turned(point(3, passed=True, commit=C), [elsewhere], all_descend) is elsewhere


@pytest.mark.parametrize(
    ("later", "earlier", "is_one"),
    [
        (point(2, commit=B), point(1), True),
        (point(2, commit=B, branch=None), point(1, branch=None), False),
        (point(2, branch=None), point(1, branch=None), True),
        (point(2, commit=None, branch=None), point(1, commit=None, branch=None), True),
        (point(2, commit=None, branch=None, workspace_root="/x"), point(1, commit=None, branch=None), False),
        (point(2, commit=None, branch=None), point(1), False),
    ],
)
def test_results_are_related_by_branch_by_history_or_outside_git_by_folder(
    later: Point, earlier: Point, is_one: bool
) -> None:
    assert is_related(later, earlier, none_descends) is is_one


def test_failure_that_comes_and_goes_by_itself_is_chance() -> None:
    failed, passed = point(2, commit=B), point(3, passed=True, commit=C)
    assert not is_chance(failed, passed, [failed, point(1, passed=True)])
    assert is_chance(failed, passed, [failed, point(1, passed=True, commit=B)])
    assert is_chance(failed, point(3, passed=True, commit=B), [failed])
    assert not is_chance(failed, point(3, passed=True, commit=B, declaration_digest="other"), [failed])
    assert not is_chance(failed, point(3, passed=True, commit=B, dirty=True), [failed])
    assert is_chance(failed, point(3, passed=True, commit=C, is_flaky=True), [failed])


def test_ending_of_a_failure_is_a_pass_or_the_same_again() -> None:
    shown = point(1)
    other = point(2, message="exit code 1, expected 0: disk on fire")
    same = point(3, message="exit code 1, expected 0: KeyError: 'price'")
    passed = point(4, passed=True)
    assert find_ending(shown, [other, same, passed], none_descends) is same
    assert find_ending(shown, [other, passed, same], none_descends) is passed
    assert find_ending(shown, [other], none_descends) is None
    assert find_ending(shown, [point(4, passed=True, branch="other", commit=B)], none_descends) is None


def test_failure_that_is_only_run_again_is_a_repeat() -> None:
    shown = point(3)
    assert is_repeat(shown, [point(2), point(1, passed=True)])
    assert not is_repeat(shown, [point(2, commit=B)])
    assert not is_repeat(shown, [point(2, message="other words")])
    assert not is_repeat(shown, [point(2, passed=True)])
    assert not is_repeat(shown, [])
    assert not is_repeat(point(3, dirty=True), [point(2, dirty=True)])


def broken(number: int = 1, project: str = "sales", **fields: Any) -> Break:
    plain = {"files": ("etl/load.py",), **fields}
    made = make_break(point(number, project=project), difference("load prices", **plain), MANIFEST)
    assert made is not None
    return made


def test_break_keeps_what_had_changed() -> None:
    one = broken(files=("README.md", MANIFEST, "etl/load.py", "lib/x.py"), inside=("etl/load.py",))
    assert (one.files, one.inside) == (("etl/load.py", "lib/x.py"), ("etl/load.py",))
    assert (one.error, one.project) == ("KeyError: 'amount'", "sales")
    assert [commit["subject"] for commit in one.commits] == ["load prices"]
    draft = one.to_draft()
    assert (draft.namespace, draft.key, draft.words) == (("breaks", "golden"), one.entry, "")
    assert Break.from_dict(draft.value) == one


def test_secrets_are_taken_out_of_what_is_kept() -> None:
    one = make_break(point(message="password=hunter2hunter2 refused"), difference("a", files=("a.py",)), MANIFEST)
    assert one is not None
    assert "hunter2" not in str(one.to_draft().value)


@pytest.mark.parametrize("files", [(), ("README.md",), tuple(f"{number}.py" for number in range(101))])
def test_no_file_or_too_many_are_to_blame_for_nothing(files: tuple[str, ...]) -> None:
    assert make_break(point(), difference("a", files=files), MANIFEST) is None


def test_projects_that_broke_most_often_come_first() -> None:
    known = [
        broken(1),
        broken(2, "stock"),
        broken(3, "stock", files=("lib/x.py", "etl/load.py")),
        broken(4, "stock", files=("other.py",)),
        broken(5, "other", files=("other.py",)),
    ]
    first, second = find_broken(known, {"etl/load.py", "lib/x.py"})
    assert (first.project, first.count, first.break_count) == ("stock", 2, 3)
    assert first.files == ("lib/x.py", "etl/load.py")
    assert first.last is known[2]
    assert (second.project, second.count, second.break_count) == ("sales", 1, 1)
    assert find_broken(known, set()) == ()


def test_one_file_of_a_great_change_tells_nothing_unless_it_is_the_projects_own() -> None:
    many = tuple(f"lib/{number}.py" for number in range(20))
    one = broken(files=("etl/load.py", *many), inside=("etl/load.py",))
    assert find_broken([one], {"lib/3.py"}) == ()
    assert find_broken([one], {"lib/3.py", "etl/load.py"})[0].files == ("etl/load.py",)
