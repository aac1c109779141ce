from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_golden.gate.fix_wording import tell_broken, tell_lesson, word_fix
from pytest_golden.gate.fixes import BrokeBefore, make_break
from pytest_golden.history.inputs import InputChange
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.quality import check_lesson
from tests.gate.lesson_points import B, difference, point

MANIFEST = "golden_projects.yaml"
FAILED, PASSED = point(1), point(2, passed=True)


def word(*subjects: str, **fields: Any) -> SkillMemory | None:
    return word_fix(FAILED, PASSED, difference(*subjects, **fields), MANIFEST)


def text_of(*subjects: str, **fields: Any) -> str:
    skill = word(*subjects, **fields)
    assert skill is not None
    assert check_lesson(skill) == ()
    return skill.lesson


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["pandas 2.3.0 -> 2.2.3"], "pandas 2.3.0 was pinned back to 2.2.3"),
        (["pandas 2.2.3 -> 2.10.0"], "pandas 2.2.3 was upgraded to 2.10.0"),
        (["numpy 1.26.4 -> 2.0.0 (in .venvs/etl)"], "numpy 1.26.4 was upgraded to 2.0.0"),
        (["pyarrow 17.0.0 added"], "pyarrow 17.0.0 was installed"),
        (["fastparquet 2024.2.0 removed (in venv)"], "fastparquet 2024.2.0 was removed"),
        (["a 1 -> 2", "b 1 -> 2", "c 1 -> 2", "d 1 -> 2"], "a 1 was upgraded to 2, b 1 was upgraded to 2, c 1 was"),
    ],
)
def test_versions_are_told_in_words(lines: list[str], told: str) -> None:
    assert text_of(surroundings=lines).startswith(told)


def test_package_that_the_error_names_comes_first_and_alone_among_many() -> None:
    failed = point(1, message="exit code 1: ImportError: cannot import name 'x' from 'pyarrow.lib'")
    many = tuple(f"p{number} 1 -> 2" for number in range(12))
    skill = word_fix(failed, PASSED, difference(surroundings=(*many, "pyarrow 16 -> 17")), MANIFEST)
    assert skill is not None
    assert skill.lesson == "pyarrow 16 was upgraded to 17"
    assert word_fix(failed, PASSED, difference(surroundings=many), MANIFEST) is None
    few = difference(surroundings=("a 1 -> 2", "pyarrow 16 -> 17"))
    skill = word_fix(failed, PASSED, few, MANIFEST)
    assert skill is not None
    assert skill.lesson == "pyarrow 16 was upgraded to 17 and a 1 was upgraded to 2"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("timeout 10s -> 10m", "the manifest's timeout was changed from 10s to 10m"),
        ('args ["--day"] -> none', "the manifest's args was changed"),
        ("set_env.TZ added: UTC", "set_env.TZ was added to the manifest"),
        ("set_env.TZ removed", "set_env.TZ was removed from the manifest"),
        ("set_env.TZ a -> b", "the manifest's set_env.TZ was changed"),
    ],
)
def test_manifest_keys_are_told_in_words(line: str, told: str) -> None:
    assert text_of("enough time for it", declaration=[line], files=(MANIFEST,)) == told


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("etl/load.py", "Python code"),
        ("models/orders.sql", "SQL"),
        ("requirements-dev.txt", "the declared dependencies"),
        ("etl/pyproject.toml", "the declared dependencies"),
        ("conf/a.yml", "configuration"),
        ("data/orders.csv", "input data"),
        ("run.sh", "a shell script"),
        ("a.ipynb", "a notebook"),
        ("job.scala", "a .scala file"),
        ("Makefile", "a file without an extension"),
        ("prompt.txt", "a text file"),
    ],
)
def test_kind_of_file_is_told_with_what_the_commit_says(file: str, kind: str) -> None:
    told = text_of("cast ids to str before the join", files=(file,))
    assert told == f'the fix changed {kind}: "cast ids to str before the join"'


@pytest.mark.parametrize(
    ("subject", "told"),
    [
        ("fix(etl): cast ids to str (#123)", "cast ids to str"),
        ("[ETL-12] cast ids to str.", "cast ids to str"),
        ("ETL-12: cast ids to str", "cast ids to str"),
    ],
)
def test_what_only_its_own_tracker_knows_is_taken_off_a_subject(subject: str, told: str) -> None:
    assert text_of(subject, files=("a.py",)).endswith(f': "{told}"')


@pytest.mark.parametrize("subject", ["fix", "WIP", "fix the bug again", "Merge pull request #12", "oops", "12"])
def test_subject_that_says_nothing_is_left_out(subject: str) -> None:
    assert text_of(subject, files=("a.py",)) == "the fix changed Python code, after: KeyError: <value>"


def test_subject_of_one_case_alone_stays_in_the_evidence() -> None:
    skill = word("read /srv/data/2026-03-01/orders.csv", files=("a.py",))
    assert skill is not None
    assert check_lesson(skill) == ()
    assert "/srv" not in skill.lesson
    assert skill.evidence["commits"][0]["subject"] == "read /srv/data/2026-03-01/orders.csv"


def test_versions_explain_the_file_that_pins_them() -> None:
    told = text_of("pin pandas", surroundings=("pandas 2.3.0 -> 2.2.3",), files=("requirements.txt",))
    assert told == "pandas 2.3.0 was pinned back to 2.2.3"
    both = text_of("pin pandas and cast", surroundings=("pandas 2.3.0 -> 2.2.3",), files=("requirements.txt", "a.py"))
    assert both == 'pandas 2.3.0 was pinned back to 2.2.3; the fix changed Python code: "pin pandas and cast"'


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"files": ("README.md", "docs/a.py", ".github/workflows/a.yml", "golden_baselines/sales/out.csv")},
        {"files": (MANIFEST,)},
        {"surroundings": ("platform Linux 6.1 x -> Linux 6.2 x", "pytest-golden-projects 1 -> 2")},
        {"files": ("a.py",), "declaration": ("expected_outcome success -> exit_code:1",)},
        {"files": ("a.py",), "declaration": ("retries 0 -> 3",)},
        {"files": tuple(f"a{number}.py" for number in range(101))},
        {"files": ("a.py", "golden_baselines/sales/out.csv")},
        {"files": ("a.py", "flows/golden_baselines/sales/out.csv")},
        {"files": ("a.py",), "commit_count": 21},
        {"files": ("a.py",), "commit_count": 0, "commits": (), "lost_count": 1},
    ],
)
def test_nothing_is_learned_where_it_is_not_clear_what_fixed_it(fields: dict[str, Any]) -> None:
    assert word("something", **fields) is None


@pytest.mark.parametrize(
    ("subject", "fields", "is_learned"),
    [
        ("total the orders", {}, False),
        ("show the second report", {}, False),
        ("separate the templates of the workspace", {}, False),
        ("fix", {}, False),
        ("retry the request on a timeout", {}, True),
        ("read from the mirror_host", {}, True),
        ("total the orders", {"declaration": ("network False -> True",)}, True),
    ],
)
def test_trouble_that_ends_by_itself_is_not_put_down_to_any_commit(
    subject: str, fields: dict[str, Any], is_learned: bool
) -> None:
    error = "exit code 1: requests.exceptions.ConnectTimeout: connection to api timed out"
    told = difference(subject, files=("etl/load.py",), **fields)
    assert (word_fix(point(1, message=error), PASSED, told, MANIFEST) is not None) is is_learned


def test_nothing_is_learned_of_a_failure_without_words() -> None:
    assert word_fix(point(1, message="  "), PASSED, difference("a", files=("a.py",)), MANIFEST) is None


@pytest.mark.parametrize(
    ("told", "confidence"),
    [
        (difference("one thing", files=("a.py",)), 0.9),
        (difference("one thing", "another", files=("a.py",)), 0.8),
        (difference("one thing", files=("a.py",), commit_count=3), 0.8),
        (difference("one thing", files=("a.py",), declaration=("timeout 1s -> 2s",)), 0.8),
        (difference("one thing", files=("lib/a.py",), inside=()), 0.7),
        (difference(*"abcdef", files=("a.py",)), 0.7),
    ],
)
def test_more_changes_make_it_less_sure(told: Any, confidence: float) -> None:
    skill = word_fix(FAILED, PASSED, told, MANIFEST)
    assert skill is not None
    assert skill.confidence == confidence


def test_id_follows_from_the_pass_so_that_learning_twice_is_learning_once() -> None:
    skill = word("one thing", files=("a.py",))
    assert skill is not None
    assert skill.id == f"lesson_{PASSED.entry_id.removeprefix('entry_')}"
    assert skill.evidence["failed_entry"] == FAILED.entry_id
    assert skill.what_failed == "KeyError: <value>"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (InputChange("file", "data/orders.csv.gz", "changed"), "input data that git does not hold was changed"),
        (InputChange("file", "data/parts/", "removed"), "input data that git does not hold was removed"),
        (InputChange("file", "warehouse.duckdb", "added"), "input data that git does not hold was added"),
        (InputChange("file", "config.local.yaml", "changed"), "configuration that git does not hold was changed"),
        (InputChange("passed", "~/.pgpass", "changed"), "a file of `pass_files` was changed"),
        (InputChange("variable", "DB_URL", "added"), "the variable DB_URL of `pass_env` was set"),
        (InputChange("variable", "DB_URL", "removed"), "the variable DB_URL of `pass_env` was taken away"),
    ],
)
def test_input_that_git_does_not_hold_is_the_lesson_where_nothing_else_changed(change: InputChange, told: str) -> None:
    skill = word_fix(point(1), point(2, passed=True), difference(inputs=(change,)), "golden_projects.yaml")
    assert skill is not None
    assert skill.lesson.startswith(f"{told}, after: KeyError")
    assert (skill.confidence, skill.evidence["inputs"]) == (0.8, [str(change)])
    assert check_lesson(skill) == ()


def test_input_beside_a_commit_is_evidence_alone_and_leaves_a_doubt() -> None:
    data = InputChange("file", "data/orders.csv", "changed", "1B -> 2B")
    code = difference("cast ids", files=("etl/load.py",), inputs=(data,))
    skill = word_fix(point(1), point(2, passed=True), code, "")
    assert skill is not None
    assert (skill.lesson, skill.confidence) == ('the fix changed Python code: "cast ids"', 0.8)
    assert skill.evidence["inputs"] == ["data/orders.csv changed (1B -> 2B)"]


@pytest.mark.parametrize(
    "fields",
    [
        {"inputs": (InputChange("file", "etl/x.bin", "changed"),)},
        {"inputs": (InputChange("file", "x.csv", "changed"),), "commit_count": 1, "files": ("README.md",)},
    ],
)
def test_input_that_may_be_anything_teaches_nothing(fields: dict[str, Any]) -> None:
    assert word_fix(point(1), point(2, passed=True), difference(**fields), "") is None


def test_input_does_not_mend_a_network() -> None:
    failed = point(
        1, message="exit code 1, expected 0: ConnectionError: Failed to establish a new connection: timed out"
    )
    data = InputChange("file", "x.csv", "changed")
    assert word_fix(failed, point(2, passed=True), difference(inputs=(data,)), "") is None


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


def test_other_lessons_are_one_line_and_name_who_proposed_them() -> None:
    plain = SkillMemory(lesson="use the cache\nand not the net")
    assert tell_lesson(plain) == ("lesson: use the cache and not the net",)
    assert re.fullmatch(
        'lesson: ci says: "x+\\.\\.\\."', tell_lesson(plain.replace(proposed_by="ci", lesson="x" * 400))[0]
    )
    assert len(tell_lesson(plain.replace(proposed_by="x" * 400))[0]) < 200


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
