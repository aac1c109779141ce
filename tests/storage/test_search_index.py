from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, text

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.schema import memories
from pytest_golden.storage.search import SearchBounds, find_index_fault, rebuild_index, unindex_memory
from pytest_golden.storage.search_index import choose_index
from pytest_golden.storage.store import Store
from tests.storage.remembered import find, remember

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
