from __future__ import annotations

from pathlib import Path

import pytest

from pytest_golden.errors import GatewayError
from pytest_golden.gateway import outcome as pattern_search
from pytest_golden.gateway.model import PatternVerdict
from pytest_golden.gateway.outcome import search
from tests.patience import without_hanging

MIB = 1 << 20


def test_pattern_is_searched_in_every_text_and_line() -> None:
    assert search("^boom$", (), ["", "fine", "first\nboom\nlast"]) is PatternVerdict.FOUND
    assert search("^boom$", (), ["kaboom"]) is PatternVerdict.ABSENT
    assert search("x", (), []) is PatternVerdict.ABSENT


def test_pattern_that_looks_like_an_option_is_searched() -> None:
    assert search("--help", (), ["see --help"]) is PatternVerdict.FOUND


@pytest.mark.parametrize("start", [4 * MIB - 20, 4 * MIB - 1, 4 * MIB, 8 * MIB - 7])
def test_match_across_the_border_of_a_window_is_found(tmp_path: Path, start: int) -> None:
    (tmp_path / "out").write_bytes(b"x" * start + b"needle in a haystack" + b"x" * MIB)
    assert search("needle in a haystack", [tmp_path / "out"], ()) is PatternVerdict.FOUND


def test_match_that_spans_lines_and_is_not_text_is_found(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"code \xff\nnext \xc3\xa9nd")
    assert search(r"code \\xff\s+next .nd", [tmp_path / "out"], ()) is PatternVerdict.FOUND


def test_catastrophic_pattern_is_stopped_in_time() -> None:
    with without_hanging():
        assert search("(a+)+$", (), ["a" * 60 + "b"], timeout_seconds=0.5) is PatternVerdict.TIMED_OUT


def test_search_that_breaks_down_is_an_error_and_not_a_verdict(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match="broke down"):
        search("x", [tmp_path / "missing"], ())
    with pytest.raises(GatewayError, match="could not be run"):
        search("a\0b", [], ())


def test_texts_are_searched_whole_and_each_alone() -> None:
    assert search(r"a\r\n", (), ["a\r\n"]) is PatternVerdict.FOUND
    assert search(r"^\\ud800\Z", (), ["", "\ud800"]) is PatternVerdict.FOUND
    assert search(r"one\s*two|^$", (), ["one", "", "two"]) is PatternVerdict.ABSENT


def test_script_lies_beside_its_caller() -> None:
    assert Path(pattern_search.__file__).with_name("pattern_search_child.py").is_file()
