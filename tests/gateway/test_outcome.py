from __future__ import annotations

from pathlib import Path

import pytest

from pytest_golden.errors import GatewayError
from pytest_golden.gateway import outcome as pattern_search
from pytest_golden.gateway.model import PatternVerdict
from pytest_golden.gateway.outcome import search_files, search_texts, write_texts
from tests.patience import without_hanging

MIB = 1 << 20


def test_pattern_is_searched_in_every_text_and_line() -> None:
    assert search_texts("^boom$", ["", "fine", "first\nboom\nlast"]) is PatternVerdict.FOUND
    assert search_texts("^boom$", ["kaboom"]) is PatternVerdict.ABSENT
    assert search_texts("x", []) is PatternVerdict.ABSENT


def test_pattern_that_looks_like_an_option_is_searched() -> None:
    assert search_texts("--help", ["see --help"]) is PatternVerdict.FOUND


@pytest.mark.parametrize("start", [4 * MIB - 20, 4 * MIB - 1, 4 * MIB, 8 * MIB - 7])
def test_match_across_the_border_of_a_window_is_found(tmp_path: Path, start: int) -> None:
    (tmp_path / "out").write_bytes(b"x" * start + b"needle in a haystack" + b"x" * MIB)
    assert search_files("needle in a haystack", [tmp_path / "out"]) is PatternVerdict.FOUND


def test_match_that_spans_lines_and_is_not_text_is_found(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"code \xff\nnext \xc3\xa9nd")
    assert search_files(r"code \\xff\s+next .nd", [tmp_path / "out"]) is PatternVerdict.FOUND


def test_catastrophic_pattern_is_stopped_in_time() -> None:
    with without_hanging():
        assert search_texts("(a+)+$", ["a" * 60 + "b"], timeout_seconds=0.5) is PatternVerdict.TIMED_OUT


def test_search_that_breaks_down_is_an_error_and_not_a_verdict(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match="broke down"):
        search_files("x", [tmp_path / "missing"])
    with pytest.raises(GatewayError, match="could not be run"):
        search_files("a\0b", [])


def test_texts_are_written_whole_and_empty_ones_not_at_all(tmp_path: Path) -> None:
    files = write_texts(tmp_path, ["a\r\n", "", "\ud800"])
    assert [file.read_bytes() for file in files] == [b"a\r\n", b"\\ud800"]


def test_script_lies_beside_its_caller() -> None:
    assert Path(pattern_search.__file__).with_name("pattern_search_child.py").is_file()
