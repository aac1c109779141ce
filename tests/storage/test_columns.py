from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Text, bindparam, column, insert, select, text

from pytest_golden.storage.columns import (
    find_words,
    from_ms,
    namespace_range,
    read_namespace,
    separate,
    storable,
    storable_json,
    to_ms,
    write_namespace,
    write_term,
)
from pytest_golden.storage.schema import documents
from pytest_golden.storage.statements import Prepared, json_member_text

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store


# Every character, surrogates and NUL too, and what looks like their escapes.
ANY_TEXT = st.lists(
    st.text(st.characters())
    | st.sampled_from(["\\", "\\\\", r"\ud83d", r"\u0000", "\ud83d", "\ude00", "\0", "u", "d83d"])
).map("".join)
JSON = st.recursive(
    st.none() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
)


def storable_value(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(key): storable_value(item) for key, item in value.items()}
    return [storable_value(item) for item in value] if isinstance(value, list) else value


@given(ANY_TEXT)
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


@given(JSON)
def test_texts_and_keys_of_a_json_document_become_the_same_escapes(value: Any) -> None:
    # A pair of surrogates that Python keeps as two is one character in JSON.
    plain = json.loads(json.dumps(value))
    kept = storable_json(json.dumps(value))
    assert json.loads(kept) == storable_value(plain)
    assert storable_json(kept) == kept


@pytest.mark.parametrize("given", [r'"\uD83D\uDE00"', r'"\\ud83d"', r'"é \u00e9 \n"', r'{"a": "\\\\u0000"}'])
def test_json_that_a_database_takes_stays_as_it_is(given: str) -> None:
    assert storable_json(given) == given


@pytest.mark.parametrize("given", [r'"\uD83D"', r'"\ud83d"'])
def test_json_of_others_may_write_its_escapes_in_capitals(given: str) -> None:
    assert storable_json(given) == r'"\\ud83d"'


def test_no_way_into_a_store_lets_through_what_it_cannot_keep(store: Store) -> None:
    odd, kept = "boom \ud83d\0", r"boom \ud83d\x00"
    asked = text("SELECT :odd AS odd").columns(column("odd", Text))
    member = select(json_member_text(documents.c.body, "error")).where(documents.c.digest == bindparam("the_digest"))
    with store.write() as connection:
        connection.execute(insert(documents), {"digest": f"1{odd}", "body": {"error": odd, odd: [odd]}})
        connection.execute(insert(documents), [{"digest": f"{n}{odd}", "body": {"error": odd}} for n in (2, 3)])
        Prepared(insert(documents), "digest", "body").leave(connection, {"digest": f"4{odd}", "body": {"error": odd}})
        assert connection.execute(asked, {"odd": odd}).scalar_one() == kept
    with store.read() as connection:
        assert {row.digest for row in connection.execute(select(documents))} == {f"{n}{kept}" for n in range(1, 5)}
        for digest in (f"1{odd}", f"4{odd}"):
            assert connection.execute(member, {"the_digest": digest}).scalar_one() == kept


MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(MOMENTS)
def test_moment_comes_back_to_the_millisecond(moment: datetime) -> None:
    back = from_ms(to_ms(moment))
    assert timedelta(0) <= moment - back < timedelta(milliseconds=1)
    assert back.tzinfo is UTC


@given(MOMENTS, MOMENTS)
def test_order_is_kept(one: datetime, other: datetime) -> None:
    assert one > other or to_ms(one) <= to_ms(other)


def test_other_zones_are_the_same_moment() -> None:
    there = datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert from_ms(to_ms(there)) == there
    assert to_ms(datetime(1970, 1, 1, 0, 0, 1, 2000, tzinfo=UTC)) == 1002


# Surrogates too: a name may come from a file's. Those and NUL come back as the store keeps them.
NAMESPACES = st.lists(st.text(st.characters()), max_size=4).map(tuple)


@given(NAMESPACES)
def test_namespace_comes_back(namespace: tuple[str, ...]) -> None:
    assert read_namespace(write_namespace(namespace)) == tuple(map(storable, namespace))


@given(NAMESPACES, NAMESPACES)
def test_range_holds_exactly_what_begins_with_the_prefix(prefix: tuple[str, ...], namespace: tuple[str, ...]) -> None:
    limits = namespace_range(prefix)
    assert (limits is None) == (prefix == ())
    if limits is not None:
        is_below = tuple(map(storable, namespace[: len(prefix)])) == tuple(map(storable, prefix))
        assert (limits[0] <= write_namespace(namespace) < limits[1]) == is_below
        assert limits[0] <= write_namespace((*prefix, *namespace)) < limits[1]


def test_an_element_is_whole() -> None:
    low, high = namespace_range(("plans", "etl")) or ("", "")
    assert not low <= write_namespace(("plans", "etl2")) < high
    assert not low <= write_namespace(("plans", "etl/daily")) < high
    assert write_namespace(("plans", "etl/daily")) == "plans/etl%2Fdaily/"


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
