"""Which written files no pattern names."""

from __future__ import annotations

import pytest

from pytest_golden.regression.unexpected import find_unexpected


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
