"""Which written files no pattern names."""

from __future__ import annotations

import pytest

from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.regression.unexpected import find_run, find_unexpected, names_output, put_run


@pytest.mark.parametrize(
    ("pattern", "path", "named"),
    [
        ("target/**", "target/a/b.csv", True),
        ("target/**", "targets/a", False),
        ("**/*.csv", "a.csv", True),
        ("**/*.csv", "x/y/a.csv", True),
        ("*.csv", "x/a.csv", False),
        ("out", "out/deep/a", True),
        ("out/", "out/a", True),
        ("./out/a?.txt", "out/a1.txt", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a**z", "a/x/z", True),
        ("[ab].txt", "a.txt", True),
        ("[!ab].txt", "a.txt", False),
        ("[!ab].txt", "c.txt", True),
        ("[a.txt", "[a.txt", True),
        ("a+(b).txt", "a+(b).txt", True),
        ("*", "line\nbreak", True),
    ],
)
def test_patterns_name_paths(pattern: str, path: str, named: bool) -> None:
    assert find_unexpected([path], [pattern]) == (() if named else (path,))


def test_what_tools_leave_behind_is_never_unexpected() -> None:
    left = ["__pycache__/m.pyc", "pkg/__pycache__/m.pyc", "m.pyc", ".pytest_cache/v/x", ".coverage.host.1"]
    assert find_unexpected(left, []) == ()
    assert find_unexpected(["pycache/x", "a.py"], []) == ("pycache/x", "a.py")


@pytest.mark.parametrize(
    ("path", "pattern", "told"),
    [
        ("plots/a/rmse.json", "plots/{run}/rmse.json", ("a", "plots/{run}/rmse.json")),
        ("plots/a-b/x/y", "plots/{run}/**", ("a-b", "plots/{run}/x/y")),
        ("plots/a/x/y", "plots/{run}", ("a", "plots/{run}/x/y")),
        ("r-20240101.csv.gz", "r-{run}.csv.gz", ("20240101", "r-{run}.csv.gz")),
        ("x/r-x.csv", "{run}/r-{run}.csv", ("x", "{run}/r-{run}.csv")),
        ("x/r-y.csv", "{run}/r-{run}.csv", None),
        ("plots/a/b/rmse.json", "plots/{run}/rmse.json", None),
        ("plots/rmse.json", "plots/*.json", None),
        ("plots/{run}/rmse.json", "plots/{run}/rmse.json", ("{run}", "plots/{run}/rmse.json")),
    ],
)
def test_a_stamp_in_a_path_is_found(path: str, pattern: str, told: tuple[str, str] | None) -> None:
    assert find_run(path, pattern) == told


def test_stamped_files_are_expected_and_named_by_their_stable_path_alone() -> None:
    output = DeclaredOutput("plots/{run}/rmse.json")
    assert find_unexpected(["plots/a/rmse.json", "plots/a/other.json"], [output.path]) == ("plots/a/other.json",)
    assert names_output(output, "plots/{run}/rmse.json")
    assert not names_output(output, "plots/a/rmse.json")


@pytest.mark.parametrize(
    ("path", "other", "told"),
    [
        ("plots/x.json/a/x.json", "plots/x.json/b/x.json", "plots/x.json/{run}/x.json"),
        ("a/p/a/x", "b/p/b/x", "{run}/p/{run}/x"),
        ("a/x.json", "a/x.json", None),
        ("a/1.json", "a/2.json", None),
        ("a/x/y", "b/z/y", None),
        ("a/x", "a/b/x", None),
    ],
)
def test_two_paths_tell_which_folder_is_a_stamp(path: str, other: str, told: str | None) -> None:
    assert put_run(path, other) == told
