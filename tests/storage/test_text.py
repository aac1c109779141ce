from __future__ import annotations

import sqlite3
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.storage.text import storable


@given(st.text(st.characters()))
def test_every_text_becomes_one_that_a_database_gives_back(text: str) -> None:
    kept = storable(text)
    with closing(sqlite3.connect(":memory:")) as connection:
        assert connection.execute("SELECT ?", (kept,)).fetchone() == (kept,)
    assert storable(kept) == kept
    assert "\0" not in kept


def test_only_what_cannot_be_kept_is_changed() -> None:
    assert storable("plain") == "plain"
    assert storable("Füße 数据 🎉") == "Füße 数据 🎉"
    assert storable("a\0b") == "a\\x00b"
    assert storable("ü\0\udc80\ud800") == "ü\\x00\\udc80\\ud800"
