"""Users' patterns over texts, with the process that applies them and without it."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.compare.opening import PatternTimedOutError
from pytest_golden.compare.pattern_child import Treatment
from pytest_golden.compare.text_patterns import MARK, PatternProcess
from pytest_golden.errors import GoldenError
from tests.patience import without_hanging


def test_without_patterns_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/missing")
    with PatternProcess() as patterns:
        assert patterns.is_idle
        assert patterns.treat_block(b"a\n") == (b"a\n", None)
        assert patterns.mask_texts(["a"]) == ["a"]


def test_lines_are_masked_and_left_out_and_keep_their_ends() -> None:
    with PatternProcess(["^#", "^$"], [r"\d+", f"{MARK} ms"]) as patterns:
        assert patterns.treat_block(b"# 1\na 1 ms\r\n\nb\nc 22") == (
            b"a <masked>\r\nb\nc <masked>".replace(b"\nc", b"\nc"),
            [1, 3, 4],
        )
        assert patterns.treat_block(b"a 5\nb\n") == (b"a <masked>\nb\n", None)
        assert patterns.treat_block(b"# 1\n# 2") == (b"", [0, 1][:0])
        assert patterns.treat_block(b"a\n# 2") == (b"a\n", [0])
        assert patterns.treat_block(b"\xff 1\n") == (b"\xff <masked>\n", None)
        assert patterns.treat_block(b"") == (b"", None)


def test_texts_are_masked_whole() -> None:
    with PatternProcess(masks=["a.*z", r"\ud800"]) as patterns:
        assert patterns.mask_texts(["a\nz", "xaz\n", "\ud800!"]) == ["a\nz", f"x{MARK}\n", f"{MARK}!"]
        assert patterns.mask_texts([]) == []


def test_masks_apply_in_their_order() -> None:
    with PatternProcess(masks=["one", MARK]) as patterns:
        assert patterns.mask_texts(["one two"]) == [f"{MARK} two"]
        assert patterns.mask_texts(["aone"]) == [f"a{MARK}"]


def test_a_pattern_that_backtracks_without_end_is_stopped() -> None:
    with without_hanging(), PatternProcess(masks=["(a+)+$"], batch_seconds=0.5) as patterns:
        assert patterns.mask_texts(["aaa"]) == [MARK]
        with pytest.raises(PatternTimedOutError, match=r"the patterns of masks took more than 0\.5s"):
            patterns.mask_texts(["a" * 60 + "b"])


def test_a_process_that_cannot_be_started_or_breaks_down_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with PatternProcess(masks=["("]) as patterns, pytest.raises(GoldenError, match="broke down"):
        patterns.mask_texts(["a"])
    monkeypatch.setattr(sys, "executable", "/missing/python")
    with PatternProcess(masks=["a"]) as patterns, pytest.raises(GoldenError, match="could not be started"):
        patterns.mask_texts(["a"])


BLOCKS = st.lists(st.sampled_from([b"a", b"# b", b"c 12", b"\xff 3", b"", b"\r", b"d 4\r"]), max_size=8)


@given(BLOCKS, st.booleans(), st.booleans(), st.booleans())
def test_lines_keep_their_order_and_their_ends(
    lines: list[bytes], is_open: bool, ignoring: bool, masking: bool
) -> None:
    block = b"".join(line + b"\n" for line in lines)
    block = block[:-1] if is_open else block
    treated, positions = Treatment(["^#", "^$"] if ignoring else [], [r"\d+"] if masking else [], "M").treat(block)
    expected, kept = [], []
    for at, line in enumerate(re.findall(rb"[^\n]*\n|[^\n]+$", block)):
        body = re.sub(rb"\r?\n$|\r$", b"", line)
        if ignoring and (body.startswith(b"#") or not body):
            continue
        kept.append(at)
        expected.append((re.sub(rb"\d+", b"M", body) if masking else body) + line[len(body) :])
    assert treated == b"".join(expected)
    assert positions == (None if len(kept) == len(re.findall(rb"[^\n]*\n|[^\n]+$", block)) else kept)
