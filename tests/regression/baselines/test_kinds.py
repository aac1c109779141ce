"""By which comparison a file is compared."""

from __future__ import annotations

from pathlib import PureWindowsPath

import pytest

from pytest_golden.compare.model import choose_comparison
from pytest_golden.manifest.model import DeclaredOutput


@pytest.mark.parametrize(
    ("name", "comparison"),
    [
        ("out/a.csv", "table"),
        ("a.parquet", "table"),
        ("a.JSONL", "table"),
        ("a.json", "json"),
        ("a.json.gz", "json"),
        ("a.log.zst", "text"),
        ("a.md", "text"),
        ("a.png", "bytes"),
        ("a", "bytes"),
        ("a.gz", "bytes"),
        ("out.d/a", "bytes"),
    ],
)
def test_the_suffix_tells_and_that_of_an_archive_is_seen_through(name: str, comparison: str) -> None:
    assert choose_comparison(name, DeclaredOutput(path="**")) == comparison


def test_what_is_declared_wins() -> None:
    assert choose_comparison("a.csv", DeclaredOutput(path="a.csv", compare="text")) == "text"


def test_a_path_of_windows_is_read_too() -> None:
    assert choose_comparison(PureWindowsPath("out\\a.yml"), DeclaredOutput(path="**")) == "text"
