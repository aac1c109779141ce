from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, text, update

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.columns import find_words
from pytest_golden.storage.schema import memories
from pytest_golden.storage.search import SearchBounds, choose_index, find_index_fault, rebuild_index, unindex_memory
from pytest_golden.storage.store import Store
from tests.storage.remembered import find, remember

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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


def test_damaged_index_is_found_and_built_again(file_store: Store) -> None:
    one, other = remember(file_store, "load", "数据管道")
    with file_store.write() as connection:
        unindex_memory(connection, one, "something else")
        connection.execute(text("UPDATE memory_words_data SET block = x'00' WHERE id > 10"))
    with pytest.raises(StorageError, match="golden store upgrade") as caught:
        find(file_store, "管道")
    assert caught.value.trouble is StorageTrouble.UNREACHABLE
    with file_store.write() as connection:
        fault = find_index_fault(connection)
        rebuild_index(connection)
        assert find_index_fault(connection) is None
    assert fault == "the search index is damaged"
    assert (find(file_store, "load"), find(file_store, "管道")) == ([one], [other])


def test_look_at_the_index_that_cannot_be_had_is_an_error(file_store: Store) -> None:
    with file_store.write() as connection:
        connection.execute(text("DROP TABLE memory_words"))
    with pytest.raises(StorageError) as caught, file_store.write() as connection:
        find_index_fault(connection)
    assert caught.value.trouble is StorageTrouble.UNREACHABLE


def test_index_keeps_no_second_copy_of_the_text(file_store: Store, path: Path) -> None:
    mark = "marked words that stand nowhere else"
    remember(file_store, mark)
    file_store.close()
    assert path.read_bytes().count(mark.encode()) == 1


# Words of several scripts, cases and accents, and what stands between words.
_WORDS = st.sampled_from(
    ["load", "Load", "LOADS", "Crédit", "cre\u0301dit", "credit", "Füße", "straße", "STRASSE", "σίσυφος", "ΣΊΣΥΦΟΣ",
     "Ёлка", "елка", "ёлка", "हिन्दी", "ไทย", "العَرَبِيَّة", "数据管道", "管道", "数", "データ", "데이터", "İstanbul", "istanbul",
     "order_id", "x9", "9", "²", "ﬁle", "file", "ǅ", "ﾃﾞｰﾀ", "'", "\\", ":*", "&", "|", "!", "<->"]
)  # fmt: skip
_TEXTS = st.lists(_WORDS, min_size=1, max_size=5).map(" ".join)


@pytest.fixture
def on_server(postgres_url: str) -> Iterator[Store]:
    with Store.open(postgres_url) as store:
        yield store


def forget(store: Store) -> None:
    with store.write() as connection:
        connection.execute(delete(memories))
        rebuild_index(connection)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], max_examples=60)
@given(texts=st.lists(_TEXTS, min_size=1, max_size=6), query=_TEXTS)
def test_both_databases_find_the_same(file_store: Store, on_server: Store, texts: list[str], query: str) -> None:
    for one in (file_store, on_server):
        forget(one)
        remember(one, *texts)
    assert sorted(find(on_server, query)) == sorted(find(file_store, query))


def test_rarer_word_ranks_higher(on_server: Store) -> None:
    *_, common, rare = remember(on_server, *["load failed"] * 20, "load lost", "duckdb lost")
    assert find(on_server, "load duckdb", limit=2)[0] == rare
    assert find(on_server, "lost duckdb", limit=2) == [rare, common]


def test_shorter_memory_and_one_that_says_it_more_often_rank_higher(on_server: Store) -> None:
    often, once, long = remember(
        on_server, "load load load of a b", "load x y of a b", " ".join(["load", *(f"w{n}" for n in range(500))])
    )
    assert find(on_server, "load") == [often, once, long]


def test_memory_of_very_many_and_very_long_words_is_found(on_server: Store) -> None:
    many = " ".join(f"word{number}" for number in range(200_000))
    endless = "x" * 100_000
    letters = "".join(chr(0x4E00 + number % 20_000) for number in range(100_000))
    numbers = remember(on_server, f"load {many}", f"load {endless}", f"load {letters}", "load " * 100_000)
    assert sorted(find(on_server, "load")) == numbers
    assert find(on_server, "word777") == [numbers[0]]
    assert find(on_server, endless) == [numbers[1]]
    assert find(on_server, letters[500:502]) == [numbers[2]]


def test_deep_namespace_is_found_by_each_of_its_beginnings(on_server: Store) -> None:
    namespace = tuple(f"level {number}" for number in range(100))
    (number,) = remember(on_server, "load", namespace=namespace)
    assert all(find(on_server, "load", namespace[:depth]) == [number] for depth in (0, 1, 50, 100))
    assert find(on_server, "load", (*namespace, "deeper")) == []


def run_noted(store: Store, statement: str = "SELECT") -> None:
    """Run a statement, and have the server note at once what was changed by now."""
    with store.write() as connection:
        connection.execute(text(statement))
        connection.execute(text("SELECT pg_stat_force_next_flush()"))


def analyze(store: Store) -> None:
    run_noted(store)
    run_noted(store, "ANALYZE memory_words")


def count_words(store: Store, most: int) -> dict[str, int]:
    with store.read() as connection:
        return choose_index(connection).count(connection, ["load", "Crédit", "数", "x7", "unheard"], most)


def test_words_are_counted_alike_with_and_without_statistics(on_server: Store) -> None:
    remember(on_server, *(f"load credit 数据 x{number}" for number in range(3_000)))
    assert count_words(on_server, 1_000) == {"load": 1_000, "Crédit": 1_000, "数": 1_000, "x7": 1, "unheard": 0}
    analyze(on_server)
    assert count_words(on_server, 1_000) == {"load": 1_000, "Crédit": 1_000, "数": 1_000, "x7": 1, "unheard": 0}
    assert count_words(on_server, 5_000) == {"load": 3_000, "Crédit": 3_000, "数": 3_000, "x7": 1, "unheard": 0}


def test_common_word_is_not_counted_when_statistics_know_it(on_server: Store) -> None:
    remember(on_server, *["load"] * 1_000)
    analyze(on_server)
    run_noted(on_server, "DELETE FROM memory_words WHERE number > 900")
    assert count_words(on_server, 950)["load"] == 950


def test_statistics_that_are_out_of_date_are_not_believed(on_server: Store) -> None:
    remember(on_server, *["load"] * 1_000)
    analyze(on_server)
    run_noted(on_server, "DELETE FROM memory_words WHERE number > 500")
    assert count_words(on_server, 950)["load"] == 500


def test_common_words_that_stand_in_old_memories_alone_are_found(on_server: Store) -> None:
    old = remember(on_server, *["load"] * 30, namespace=("old",))
    remember(on_server, *["load"] * 70, namespace=("new",))
    few = SearchBounds(common=20, ranked=30, newest=3, small=10)
    assert set(find(on_server, "load", ("old",), 2, few)) <= set(old[-3:])
    assert len(find(on_server, "load", ("old",), 2, few)) == 2
    assert len(find(on_server, "load", (), 2, few)) == 2


def test_words_are_found_by_the_index(on_server: Store) -> None:
    remember(on_server, *(f"load x{number}" for number in range(5_000)))
    with on_server.read() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        plan = connection.execute(text("EXPLAIN SELECT 1 FROM memory_words WHERE words @@ CAST('x77' AS tsquery)"))
        assert "ix_memory_words_words" in "\n".join(plan.scalars())
