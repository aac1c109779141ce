"""What a lesson rests on, and how it is told that it has moved: versions of packages (edited lines: tests/learning/test_agent_memory.py)."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from pytest_golden.learning.agent_memory import AgentMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.lessons.staleness import find_moved, find_packages
from pytest_golden.learning.memory_store import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "venv/lib/python3.11/site-packages"
TRACEBACK = f"""Traceback (most recent call last):
  File "load.py", line 3, in <module>
    frame.read("orders.csv")
  File "{FOLDER}/polar_bear/frame.py", line 91, in read
    raise ColumnError(name)
polar_bear.errors.ColumnError: no column 'customer'"""
PYTEST = f"""{FOLDER}/polar_bear/frame.py:91: ColumnError
E   polar_bear.errors.ColumnError: no column 'customer'"""


def install(root: Path, number: str) -> None:
    """Have a package of this version in the folder that the tracebacks name."""
    folder = root / FOLDER
    for old in folder.glob("*.dist-info"):
        old.rmdir()
    (folder / f"Polar_Bear-{number}.dist-info").mkdir(parents=True)


@pytest.mark.parametrize("error", [TRACEBACK, PYTEST, TRACEBACK.replace("/", "\\"), TRACEBACK * 3])
def test_a_traceback_names_a_package_and_its_folder(error: str, tmp_path: Path) -> None:
    install(tmp_path, "1.4.0")
    found = find_packages(error, tmp_path)
    # A path of Windows names no folder here.
    assert found == ({} if "\\" in error else {"polar_bear": {"version": "1.4.0", "folder": FOLDER}})


def test_an_errors_class_alone_names_a_package_of_this_process(tmp_path: Path) -> None:
    assert find_packages("pydantic.errors.PydanticUserError: no", tmp_path) == {
        "pydantic": {"version": version("pydantic")}
    }
    assert find_packages("E   nobody.knows.ThisError: no\nKeyError: 'pydantic'", tmp_path) == {}


@pytest.mark.parametrize(
    "error", ["", "/site-packages/", f"{FOLDER}/polar_bear/x.py", "\0/site-packages/a/b", "x" * 99_999]
)
def test_what_is_not_installed_is_no_package(error: str, tmp_path: Path) -> None:
    assert find_packages(error, tmp_path) == {}


def test_another_version_makes_a_lesson_stale(tmp_path: Path) -> None:
    install(tmp_path, "1.4.0")
    evidence = {"packages": find_packages(TRACEBACK, tmp_path), "workspace": str(tmp_path)}
    assert find_moved(evidence, tmp_path) == find_moved(evidence, tmp_path, PYTEST) == ""
    install(tmp_path, "2.0.1")
    told = "it was learned with polar_bear 1.4.0, and here it is 2.0.1"
    assert find_moved(evidence, tmp_path) == find_moved(evidence, tmp_path, PYTEST) == told
    # Elsewhere only an error tells which version is meant.
    other = tmp_path / "other"
    assert find_moved(evidence, other) == ""
    install(other, "1.9")
    assert find_moved(evidence, other) == ""
    assert find_moved(evidence, other, TRACEBACK) == told.replace("2.0.1", "1.9")


@pytest.mark.parametrize("packages", [None, [], "x", {"a": "1.0"}, {"pydantic": {"version": 3}}, {"a": {}}])
def test_any_evidence_can_be_read(packages: object, tmp_path: Path) -> None:
    assert isinstance(find_moved({"packages": packages}, tmp_path, TRACEBACK), str)


def test_an_agent_sees_that_a_lesson_is_of_another_version(tmp_path: Path) -> None:
    install(tmp_path, "1.4.0")
    path = tmp_path / "golden.db"
    with AgentMemory("fixer", path, root=tmp_path) as memory:
        with memory.task("Load the orders of the shop") as task:
            task.attempt("load", {"column": "customer"}, error=TRACEBACK)
            task.attempt("load", {"column": "client"}, "loaded")
        with memory.task("Load the customers of the shop") as task:
            assert [hint.stale for hint in task.hints_for(TRACEBACK, "load")] == [""]
        install(tmp_path, "2.0.1")
        with memory.task("Load the customers of the shop") as task:
            (hint,) = task.hints_for(TRACEBACK, "load")
    assert hint.stale == "it was learned with polar_bear 1.4.0, and here it is 2.0.1"
    assert hint.advice.startswith(
        "Stale, it was learned with polar_bear 1.4.0, and here it is 2.0.1: When `load` fails"
    )
    with MemoryStore.open(path) as memories:
        (recalled,) = Lessons(memories).recall(TRACEBACK, root=tmp_path)
        assert recalled.stale == hint.stale
        assert [one.stale for one in Lessons(memories).recall(TRACEBACK)] == [""]
