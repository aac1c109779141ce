"""Which comparison a file gets, and what becomes of trouble."""

from __future__ import annotations

import os
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

import pytest

from pytest_golden.compare import text_patterns as patterns
from pytest_golden.compare.comparing import compare_files
from pytest_golden.compare.opening import choose_comparison
from pytest_golden.errors import GoldenError
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.regression.model import ReasonKind
from tests.requirement import require

if TYPE_CHECKING:
    from tests.compare.files import Files


NAMES = ("a.txt", "a.json", "a.bin", "a.png", "a.csv")


def declare(name: str) -> DeclaredOutput:
    return DeclaredOutput(path=name, compare="image_size" if name == "a.png" else None)


@pytest.mark.parametrize("name", NAMES)
def test_an_output_that_is_gone_is_told(files: Files, name: str) -> None:
    found = compare_files(declare(name), files.root / name, files.write("b", name, "x"), shown_as=f"out/{name}")
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_UNREADABLE
    assert found.message == f"out/{name} is gone: it was removed after the run"


@pytest.mark.parametrize("name", NAMES)
def test_a_baseline_that_is_a_folder_is_told(files: Files, name: str) -> None:
    actual = files.write("view", name, "x")
    found = compare_files(declare(name), actual, files.root, shown_as=f"out/{name}")
    assert found is not None
    assert found.kind == ReasonKind.BASELINE_UNREADABLE
    assert found.message == f"the baseline of out/{name} is no regular file"


def test_a_baseline_that_is_needed_and_not_there_is_told(files: Files) -> None:
    found = compare_files(declare("a.txt"), files.write("view", "a.txt", "x"), None, shown_as="a.txt")
    assert found is not None
    assert (found.kind, found.message) == (ReasonKind.BASELINE_UNREADABLE, "the baseline of a.txt is missing")


def test_a_link_is_no_output(files: Files) -> None:
    require(hasattr(os, "O_NOFOLLOW"), "links that can be told")
    link = files.root / "a.txt"
    link.symlink_to(files.write("b", "a.txt", "x"))
    found = compare_files(declare("a.txt"), link, files.root / "b" / "a.txt", shown_as="a.txt")
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_UNREADABLE


def test_a_pattern_that_backtracks_without_end_is_stopped_and_told(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "BATCH_SECONDS", 0.5)
    found = files.compare("a.txt", "a" * 60 + "b", "a" * 60 + "c", masks=["(a+)+$"], ignore_lines=["^x"])
    assert found is not None
    assert found.kind == ReasonKind.PATTERN_TIMED_OUT
    assert found.message == (
        "out/a.txt could not be compared: the patterns of ignore_lines and masks took more than 0.5s over a part of it: "
        "one backtracks without end, make it simpler"
    )


def test_a_name_cannot_break_a_message(files: Files) -> None:
    actual, accepted = files.write("view", "a", "x"), files.write("b", "a", "y")
    found = compare_files(DeclaredOutput(path="*"), actual, accepted, shown_as="a\nb\x1b[31m")
    assert found is not None
    assert found.message.splitlines()[0].startswith(r"a\nb\x1b[31m differs")


def test_a_table_goes_to_the_tables(files: Files) -> None:
    pytest.importorskip("duckdb")
    assert files.compare("a.csv", "id,n\n1,2\n", "id,n\n1,2\n") is None
    found = files.compare("a.csv", "id,n\n1,2\n", "id,n\n1,3\n")
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_DIFFERS


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.bin"])
def test_a_message_is_bounded_whatever_differs(files: Files, name: str) -> None:
    one = {f"key {number}": "é" * 400 for number in range(3000)}
    other = {f"key {number}": "\x1b" * 400 for number in range(3000)}
    texts = ("\n".join(map(str, rows.items())) for rows in (one, other))
    message = files.tell(name, *((one, other) if name == "a.json" else texts))
    assert len(message.splitlines()) <= 41
    assert len(message.encode()) <= 6 << 10
    assert "\x1b" not in message


def test_nothing_is_written(files: Files) -> None:
    files.compare("a.txt", "one\n", "two\n", masks=["x"])
    assert sorted(path.name for path in files.root.rglob("*") if path.is_file()) == ["a.txt", "a.txt"]
    assert Path("a.txt").exists() is False


@pytest.mark.parametrize("name", ["a.txt", "a.json"])
def test_too_little_memory_is_one_sentence_and_no_difference(files: Files, name: str) -> None:
    def redact(_: str) -> str:
        raise MemoryError

    actual, accepted = files.write("view", name, "1"), files.write("baselines", name, "2")
    told = f"^out/{name} could not be compared: too little memory is free here for `compare: "
    with pytest.raises(GoldenError, match=told):
        compare_files(declare(name), actual, accepted, shown_as=f"out/{name}", redact=redact)


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
