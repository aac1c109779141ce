from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, text

from pytest_golden.storage.schema import memories
from pytest_golden.storage.search import rebuild_index
from pytest_golden.storage.store import Store
from tests.storage.remembered import find, remember

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
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


def test_words_are_found_by_the_index(on_server: Store) -> None:
    remember(on_server, *(f"load x{number}" for number in range(5_000)))
    with on_server.read() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        plan = connection.execute(text("EXPLAIN SELECT 1 FROM memory_words WHERE words @@ CAST('x77' AS tsquery)"))
        assert "ix_memory_words_words" in "\n".join(plan.scalars())
