from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.storage.columns import find_words, separate, write_term


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Column 'order_id' NOT found", ["column", "order", "id", "found"]),
        ("the duckdb the DuckDB", ["duckdb"]),
        ("what is it", ["what", "is", "it"]),
        ("Füße cafe\u0301", ["füße", "cafe\u0301"]),
        ("数据管道 failed", ["数据", "据管", "管道", "failed"]),
        ("道", ["道"]),
        ("\0\udc80 *\"'()^", []),
        ("", []),
    ],
)
def test_query_is_words(query: str, words: list[str]) -> None:
    assert find_words(query) == words


def test_query_has_forty_words_at_most() -> None:
    assert find_words(" ".join(f"w{number}" for number in range(100))) == [f"w{number}" for number in range(40)]
    assert len(find_words(" ".join(f"w{number}" for number in range(100)), keep_all=True)) == 100


def test_runs_without_blanks_become_pairs_and_the_last_letter() -> None:
    assert separate("load: 数据管道ok").split() == ["load:", "数据", "据管", "管道", "道", "ok"]
    assert separate("한국어 カタ").split() == ["한국", "국어", "어", "カタ", "タ"]
    assert separate("plain Füße") == "plain Füße"


@given(st.text(st.characters()))
def test_term_holds_nothing_that_fts5_would_understand(text: str) -> None:
    for word in find_words(text):
        assert '"' not in word
        assert "\0" not in word
        assert write_term(word) in {f'"{word}"', f'"{word}"*'}
