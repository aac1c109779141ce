from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update

from pytest_golden.storage.columns import find_words
from pytest_golden.storage.schema import memories
from pytest_golden.storage.search import SearchBounds, find_index_fault, rebuild_index, unindex_memory
from tests.storage.remembered import find, remember

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store


def test_any_word_finds_and_more_rank_higher(store: Store) -> None:
    one, both, other = remember(store, "load failed", "load failed: duckdb missing", "all is well with pandas")
    assert find(store, "duckdb load") == [both, one]
    assert find(store, "DuckDB") == [both]
    assert find(store, "PANDAS nothing") == [other]
    assert find(store, "unheard of") == []
    assert find(store, "duckdb load", limit=1) == [both]
    assert find(store, "duckdb load", limit=0) == []


def test_accents_and_case_do_not_count(store: Store) -> None:
    numbers = remember(store, "Crédit agricole", "cre\u0301dit", "CREDIT")
    assert sorted(find(store, "credit")) == numbers
    assert sorted(find(store, "CRÉDIT")) == numbers


def test_stop_words_find_only_when_there_is_nothing_else(store: Store) -> None:
    one, other = remember(store, "the load of the table", "the end")
    assert find(store, "the table") == [one]
    assert sorted(find(store, "the")) == [one, other]


@pytest.mark.parametrize(
    "query",
    ['"', "'", '"load', "load*", "lo*", "NEAR(load table)", "load AND table", "words : load", "place:outcomes", "^load",
     "load NOT table", "(", "{", "-load", "+", "load;DROP TABLE memories", "\0", "\udc80", "load\0table", "x" * 100_000],
)  # fmt: skip
def test_operators_are_text(store: Store, query: str) -> None:
    one, _ = remember(store, "load the table", "near and not")
    found = find(store, query)
    assert (one in found) == bool({"load", "table"} & set(find_words(query)))


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(query=st.text(st.characters(), max_size=30), prefix=st.lists(st.text(st.characters()), max_size=2))
def test_no_query_and_no_prefix_is_an_error(store: Store, query: str, prefix: list[str]) -> None:
    assert find(store, query, tuple(prefix)) == []


def test_part_of_a_sentence_without_blanks_is_found(store: Store) -> None:
    chinese, japanese, korean = remember(store, "数据管道失败了", "データ検証エラー", "데이터베이스 연결 실패")
    assert find(store, "管道") == [chinese]
    assert find(store, "了") == [chinese]
    assert find(store, "数") == [chinese]
    assert find(store, "検証") == [japanese]
    assert find(store, "엔진 연결이") == [korean]
    assert find(store, "天气") == []


def test_prefix_counts_by_whole_elements(store: Store) -> None:
    (etl,) = remember(store, "load", namespace=("outcomes", "etl"))
    (deep,) = remember(store, "load", namespace=("outcomes", "etl", "x"))
    (longer,) = remember(store, "load", namespace=("outcomes", "etl2"))
    (case,) = remember(store, "load", namespace=("outcomes", "ETL"))
    (slash,) = remember(store, "load", namespace=("outcomes/etl",))
    (strange,) = remember(store, "load", namespace=("-", "*"))
    assert set(find(store, "load")) == {etl, deep, longer, case, slash, strange}
    assert set(find(store, "load", ("outcomes", "etl"))) == {etl, deep}
    assert set(find(store, "load", ("outcomes",))) == {etl, deep, longer, case}
    assert find(store, "load", ("outcomes/etl",)) == [slash]
    assert find(store, "load", ("-",)) == [strange]
    assert find(store, "load", ("-", "*")) == [strange]
    assert find(store, "load", ("out",)) == []


def test_words_in_a_namespace_are_not_searched(store: Store) -> None:
    remember(store, "load")
    assert find(store, "outcomes etl") == []


def test_what_was_taken_out_is_not_found(store: Store) -> None:
    one, other = remember(store, "load 数据管道", "load it")
    with store.write() as connection:
        unindex_memory(connection, one, "load 数据管道")
        connection.execute(update(memories).where(memories.c.number == one).values(words=None))
        assert find_index_fault(connection) is None
    assert find(store, "load 管道") == [other]


def test_among_equals_the_newest_comes_first(store: Store) -> None:
    numbers = remember(store, *["load failed"] * 5)
    assert find(store, "failed", limit=5) == numbers[::-1]


def find_in_few(store: Store, query: str, prefix: tuple[str, ...] = (), limit: int = 10) -> list[int]:
    """Find as in a store of thousands of memories, where words are common and places large."""
    return find(store, query, prefix, limit, SearchBounds(common=20, ranked=30, newest=10, small=10))


def test_common_words_choose_no_rows_while_rare_ones_do(store: Store) -> None:
    numbers = remember(store, *["sequential load"] * 50, "sequential duckdb", *["sequential load"] * 5)
    rare = numbers[50]
    assert find_in_few(store, "sequential duckdb", limit=1) == [rare]
    # What is left is filled from the newest, and a common word alone finds the newest.
    assert find_in_few(store, "sequential duckdb", limit=3)[0] == rare
    assert len(find_in_few(store, "sequential duckdb", limit=3)) == 3
    assert set(find_in_few(store, "sequential", limit=3)) <= set(numbers[-10:])
    assert len(find_in_few(store, "sequential load", limit=3)) == 3
    assert find_in_few(store, "sequential unheard", ("outcomes",), limit=1)[0] in numbers[-10:]


def test_words_that_are_common_elsewhere_find_in_a_small_place(store: Store) -> None:
    remember(store, *["sequential load"] * 50)
    (lesson,) = remember(store, "sequential lesson", namespace=("lessons", "etl"))
    remember(store, *["sequential load"] * 50)
    assert find_in_few(store, "sequential", ("lessons",)) == [lesson]
    assert find_in_few(store, "sequential", ("plans",)) == []
    assert len(find_in_few(store, "sequential", ("outcomes",), limit=5)) == 5


def test_only_so_many_rows_are_ranked(store: Store) -> None:
    groups = [remember(store, *[f"word{group}"] * (group + 5)) for group in range(10)]
    found = find_in_few(store, " ".join(f"word{group}" for group in range(10)), limit=100)
    assert set(groups[0] + groups[1]) <= set(found)
    assert len(found) <= 30


def test_index_that_differs_is_found_and_built_again(store: Store) -> None:
    one, other, third = remember(store, "load", "数据管道", "gone")
    with store.write() as connection:
        unindex_memory(connection, one, "load")
        connection.execute(delete(memories).where(memories.c.number == third))
        assert find_index_fault(connection) == "the search index differs from the memories in 2 rows"
        rebuild_index(connection)
        assert find_index_fault(connection) is None
    assert (find(store, "load"), find(store, "管道")) == ([one], [other])


def test_index_is_built_again_of_more_memories_than_are_read_at_once(store: Store) -> None:
    numbers = remember(store, *["load"] * 7)
    with store.write() as connection:
        rebuild_index(connection, at_once=3)
        assert find_index_fault(connection) is None
    assert find(store, "load") == numbers[::-1]


def test_common_words_among_many_memories_still_find_some(store: Store) -> None:
    remember(store, *(f"sequential load {number % 97} x{number}" for number in range(1, 10_001)))
    for query in ("sequential", "sequential load 5 x777", "x777 x888", "1 2 3 4 5 6 7 8 9"):
        assert find(store, query), query
