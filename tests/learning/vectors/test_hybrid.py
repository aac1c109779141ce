from __future__ import annotations

import base64
import functools
import itertools
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from pytest_golden.errors import GoldenError
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import HybridAnswer, SearchMethod, VectorsError
from pytest_golden.learning.vectors.hybrid import (
    Entry,
    HybridSearch,
    VectorMatrix,
    fuse,
    read_units,
    read_vector,
    write_vector,
)
from pytest_golden.storage.schema import memory_vectors
from pytest_golden.storage.store import Store
from tests.learning.conftest import BOTH
from tests.learning.vectors.embedders import Hanging, Told, embed
from tests.patience import wait_until, without_hanging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


ETL = ("lessons", "etl")
TEXTS = {
    "renamed": "the column amount is missing",
    "slow": "timeout of the network",
    "full": "heap is full of orders",
}
RANKINGS = st.lists(st.lists(st.integers(1, 20), unique=True, max_size=8), max_size=3)


def fill(store: Store, texts: dict[str, str] = TEXTS, namespace: tuple[str, ...] = ETL) -> None:
    MemoryStore(store).save_memories(
        {"namespace": namespace, "key": key, "value": {"text": text}} for key, text in texts.items()
    )


def keys(answer: HybridAnswer) -> list[str]:
    return [hit.memory.key for hit in answer.hits]


def kept(store: Store) -> list[tuple[str, int]]:
    with store.read() as connection:
        rows = connection.execute(select(memory_vectors).order_by(memory_vectors.c.number))
        return [(row.model, row.number) for row in rows]


@BOTH
def test_what_means_the_same_is_found_without_a_common_word(store: Store) -> None:
    fill(store)
    answer = MemoryStore(store, embed).hybrid_search((), "field absent")
    assert (answer.method, answer.notice, keys(answer)) == ("hybrid", None, ["renamed"])
    assert MemoryStore(store).search_memories((), "field absent") == ()


@BOTH
def test_both_rankings_count_and_the_best_of_both_comes_first(store: Store) -> None:
    fill(store)
    answer = MemoryStore(store, embed).hybrid_search(("lessons",), "slow socket orders network")
    assert keys(answer) == ["slow", "full"]
    assert [hit.score for hit in answer.hits] == pytest.approx([2 / 61, 1 / 62])
    assert keys(MemoryStore(store, embed).hybrid_search((), "slow socket orders", limit=1)) == ["slow"]
    assert answer.to_dict()["method"] == "hybrid"


def test_lessons_that_may_not_be_shown_are_not_found(store: Store) -> None:
    lessons = Lessons(store)
    kept = [
        lessons.add(SkillMemory(lesson=f"Read the column {name} first.", source=source), "etl").skill
        for name, source in (("alpha", "rules"), ("beta", "rules"), ("gamma", "agent"), ("delta", "model"))
    ]
    lessons.reject(kept[0].id, "ann")
    fill(store, {"free": "the column is there"}, ("notes",))
    memories = MemoryStore(store, embed)
    for limit in (1, 2, 10):
        answer = memories.hybrid_search((), "field column", limit)
        assert answer.method == "hybrid"
        assert set(keys(answer)) <= {kept[1].id, "free"}
        assert len(answer.hits) == min(limit, 2)
        assert {hit.memory.key for hit in memories.search_memories((), "column", limit)} <= {kept[1].id, "free"}
        assert len(memories.search_memories((), "column", limit)) == min(limit, 2)


@BOTH
def test_prefix_counts_by_whole_elements_in_both_rankings(store: Store) -> None:
    fill(store)
    fill(store, {"other": "column missing"}, ("lessons", "etl2"))
    memories = MemoryStore(store, embed)
    assert keys(memories.hybrid_search(ETL, "field column")) == ["renamed"]
    assert keys(memories.hybrid_search(("lessons",), "field column")) == ["other", "renamed"]
    assert memories.hybrid_search(("less",), "field column") == HybridAnswer((), SearchMethod.HYBRID)


def test_only_what_is_searched_is_embedded_and_only_once(store: Store) -> None:
    fill(store)
    fill(store, {"a": "late", "b": "ram"}, ("outcomes", "etl"))
    embedder = Told()
    memories = MemoryStore(store, embedder)
    memories.hybrid_search(ETL, "field")
    assert embedder.count == 1 + 3
    memories.hybrid_search(ETL, "field")
    assert embedder.count == 1 + 3 + 1
    MemoryStore(store, embedder).hybrid_search((), "field")
    assert embedder.count == 1 + 3 + 1 + (1 + 2)
    assert len(kept(store)) == 5


def test_saving_asks_no_embedder(store: Store) -> None:
    embedder = Told()
    MemoryStore(store, embedder).save_memory(ETL, "k", {"text": "late"})
    assert embedder.asked == []


def test_newest_version_alone_is_found_and_is_embedded_anew(store: Store) -> None:
    fill(store)
    memories = MemoryStore(store, embed)
    memories.hybrid_search((), "field")
    memories.save_memory(ETL, "renamed", {"text": "timeout"})
    assert keys(memories.hybrid_search((), "field")) == []
    assert keys(memories.hybrid_search((), "late")) == ["renamed", "slow"]
    memories.delete(ETL, "renamed")
    assert keys(memories.hybrid_search((), "late")) == ["slow"]
    assert len(kept(store)) == 2


@BOTH
def test_changed_tags_are_embedded_too(store: Store) -> None:
    fill(store)
    memories = MemoryStore(store, embed)
    memories.hybrid_search((), "field")
    memories.save_memory(ETL, "full", {"text": TEXTS["full"]}, tags=["socket"])
    assert "full" in keys(memories.hybrid_search((), "connection"))


@BOTH
def test_what_others_write_meanwhile_is_seen(store: Store) -> None:
    fill(store)
    one, other = MemoryStore(store, embed), MemoryStore(store, embed)
    one.hybrid_search((), "field")
    other.save_memory(ETL, "new", {"text": "attribute"})
    other.delete(ETL, "renamed")
    other.hybrid_search((), "field")
    assert keys(one.hybrid_search((), "field")) == ["new"]
    # A vector made again under the same number.
    other.save_memory(ETL, "new", {"text": "attribute"}, tags=["ram", "heap", "ram"])
    other.hybrid_search((), "x late")
    assert keys(one.hybrid_search((), "memory")) == ["full", "new"]
    other.delete(ETL, "full")
    assert keys(one.hybrid_search((), "memory")) == ["new"]


def test_what_was_written_by_a_clock_that_went_back_is_seen(store: Store) -> None:
    fill(store)
    one, other = MemoryStore(store, embed), MemoryStore(store, embed)
    one.hybrid_search((), "field")
    other.save_memory(ETL, "renamed", {"text": "attribute socket"})
    other.delete(ETL, "slow")
    other.hybrid_search((), "field")
    with store.write() as connection:
        connection.execute(memory_vectors.update().values(stamp=1))
    assert keys(one.hybrid_search((), "connection")) == ["renamed"]
    assert keys(one.hybrid_search((), "ram")) == ["full"]


def test_another_model_embeds_anew(store: Store) -> None:
    fill(store)
    MemoryStore(store, Told(model="one")).hybrid_search((), "field")
    flipped = Told(lambda texts: embed(texts)[:, ::-1], model="two")
    assert keys(MemoryStore(store, flipped).hybrid_search((), "field")) == ["renamed"]
    assert {model for model, _ in kept(store)} == {"two"}
    assert keys(MemoryStore(store, Told(model="one")).hybrid_search((), "field")) == ["renamed"]


def test_secrets_in_a_query_do_not_reach_the_embedder(store: Store) -> None:
    embedder = Told()
    fill(store)
    MemoryStore(store, embedder).hybrid_search((), "column password=hunter2secret9")
    assert "hunter2secret9" not in str(embedder.asked)


def test_long_texts_are_cut_and_many_go_in_batches(store: Store) -> None:
    fill(store, {f"k{number}": "ä" * 9_000 + f" {number}" for number in range(60)})
    embedder = Told(lambda texts: np.ones((len(texts), 2)))
    assert MemoryStore(store, embedder).hybrid_search((), "x" * 9_000).notice is None
    assert max(len(text.encode()) for batch in embedder.asked for text in batch) <= 8_000
    assert [len(batch) for batch in embedder.asked] == [1, 16, 25, 7, 12]
    assert len(embedder.asked[0][0]) == 8_000


def fails(_: Sequence[str]) -> Any:
    raise RuntimeError("boom password=hunter2secret9\nat once")


async def never(_: Sequence[str]) -> Any:
    return []


@pytest.mark.parametrize(
    ("behave", "told"),
    [
        (fails, "failed (RuntimeError: boom password="),
        (lambda _: sys.exit("bye"), "failed (SystemExit: bye)"),
        (lambda _: None, "gave no numbers (NoneType of object)"),
        (lambda _: [], "gave numbers of shape (0,) for 1 text, instead of one vector each"),
        (lambda texts: [1.0] * len(texts), "gave numbers of shape (1,) for 1 text, instead of one vector each"),
        (lambda texts: [[]] * len(texts), "gave numbers of shape (1, 0) for 1 text"),
        (lambda _: [[1.0], [2.0]], "gave numbers of shape (2, 1) for 1 text"),
        (lambda texts: np.empty((len(texts.clear() or ()), 3)), "gave numbers of shape (0, 3) for 1 text"),
        (lambda _: [[1.0], [2.0, 3.0]], "gave no rows of equal length"),
        (lambda _: [["a"]], "gave no numbers (list of "),
        (lambda _: [[True]], "gave no numbers (list of "),
        (lambda _: [[float("nan"), 1]], "gave NaN or infinite numbers"),
        (lambda _: np.array([[np.inf, 1]]), "gave NaN or infinite numbers"),
        (lambda _: [[0.0, 0.0]], "gave a vector of zeros for the query"),
        (never, "is a coroutine function"),
    ],
)
def test_embedder_that_gives_nothing_of_use_leaves_the_words(
    store: Store, behave: Callable[[Sequence[str]], Any], told: str
) -> None:
    fill(store)
    memories = MemoryStore(store, Told(behave))
    answer = memories.hybrid_search((), "orders")
    assert (answer.method, keys(answer)) == ("words", ["full"])
    assert answer.hits == memories.search_memories((), "orders")
    assert answer.notice is not None
    assert f"the embedder told {told}" in answer.notice
    assert "hunter2secret9" not in answer.notice
    assert "\n" not in answer.notice
    assert kept(store) == []


def test_without_an_embedder_the_words_are_searched_and_it_is_said(store: Store) -> None:
    fill(store)
    answer = MemoryStore(store).hybrid_search((), "orders")
    assert (answer.method, keys(answer)) == ("words", ["full"])
    assert answer.notice is not None
    assert "there is no embedder" in answer.notice
    with pytest.raises(GoldenError, match="there is no embedder"):
        MemoryStore(store).embed_memories()


def test_blank_query_finds_nothing_and_asks_nobody(store: Store) -> None:
    fill(store)
    embedder = Told()
    answer = MemoryStore(store, embedder).hybrid_search((), " \n")
    assert (answer.hits, answer.method, embedder.asked) == ((), "words", [])
    assert answer.notice is not None
    assert "blank" in answer.notice


@pytest.mark.parametrize("limit", [0, -1, True, "3"])
def test_limit_is_one_or_more(store: Store, limit: Any) -> None:
    with pytest.raises(ValueError, match="limit must be"):
        MemoryStore(store, embed).hybrid_search((), "x", limit)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), True, "3"])
def test_seconds_for_the_embedder_are_above_zero(store: Store, seconds: Any) -> None:
    with pytest.raises(ValueError, match="embedder_seconds must be"):
        MemoryStore(store, embed, embedder_seconds=seconds)


def test_embedder_that_hangs_is_waited_for_once(store: Store) -> None:
    fill(store)
    hanging = Hanging()
    memories = MemoryStore(store, hanging, embedder_seconds=0.3)
    with without_hanging():
        first = memories.hybrid_search((), "orders")
    second = memories.hybrid_search((), "orders")
    assert (first.method, keys(first), second.method, hanging.calls) == ("words", ["full"], "words", 1)
    assert "did not answer within 0.3 s" in (first.notice or "")
    assert "has not answered an earlier question yet" in (second.notice or "")
    hanging.released.set()
    wait_until(lambda: memories.hybrid_search((), "ram").method == "hybrid")


def test_another_thread_waits_its_turn_no_longer_than_for_the_embedder(store: Store) -> None:
    fill(store)
    hanging = Hanging()
    search = HybridSearch(store, hanging, 600)
    first: list[HybridAnswer] = []
    thread = threading.Thread(target=lambda: first.append(search.find((), "ram", 10)))
    thread.start()
    wait_until(lambda: hanging.calls)
    search._seconds = 0.1
    with pytest.raises(GoldenError, match="is busy for another thread"):
        search.find((), "ram", 10)
    hanging.released.set()
    thread.join()
    assert keys(first[0]) == ["full"]


@BOTH
def test_threads_search_at_once(store: Store) -> None:
    fill(store)
    memories = MemoryStore(store, embed)
    found: list[list[str]] = []

    def search() -> None:
        found.extend(keys(memories.hybrid_search((), "field")) for _ in range(5))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["renamed"]] * 20


def test_embedder_that_fails_for_memories_alone_leaves_those_that_have_vectors(store: Store) -> None:
    fill(store)
    told = Told()
    memories = MemoryStore(store, told)
    memories.hybrid_search((), "field")
    memories.save_memory(ETL, "bad", {"text": "field poison"})

    def behave(texts: Sequence[str]) -> Any:
        return fails(texts) if "poison" in str(texts) else embed(texts)

    told.behave = behave
    answer = memories.hybrid_search((), "attribute")
    assert (answer.method, keys(answer)) == ("hybrid", ["renamed"])
    assert (answer.notice or "").startswith("1 memory there has no vector yet: the embedder told failed (RuntimeError")
    with pytest.raises(GoldenError, match="RuntimeError"):
        memories.embed_memories()
    fresh = MemoryStore(store, Told(behave, model="fresh")).hybrid_search((), "orders")
    assert (fresh.method, keys(fresh)) == ("words", ["full"])


def test_memories_that_mean_nothing_to_the_model_are_found_by_words(store: Store) -> None:
    fill(store, {"renamed": "column", "strange": "qwx"})
    answer = MemoryStore(store, embed).hybrid_search((), "field qwx")
    assert (answer.method, set(keys(answer))) == ("hybrid", {"renamed", "strange"})
    assert answer.notice == "1 memory there got a vector of zeros"
    fill(store, {"other": "qwx qwy"}, ("strange",))
    answer = MemoryStore(store, embed).hybrid_search(("strange",), "field qwx")
    assert (answer.method, keys(answer)) == ("words", ["other"])
    assert "gave no vector but zeros for 1 memory" in (answer.notice or "")


def test_another_dimension_under_the_same_name_is_said(store: Store) -> None:
    fill(store)
    told = Told()
    memories = MemoryStore(store, told)
    memories.hybrid_search((), "field")
    told.behave = lambda texts: np.ones((len(texts), 3))
    for one in (memories, MemoryStore(store, told)):
        answer = one.hybrid_search((), "orders")
        assert (answer.method, keys(answer)) == ("words", ["full"])
        assert "gives vectors of 3 numbers, and those kept under that name have 5" in (answer.notice or "")
    told.behave = embed
    assert keys(memories.hybrid_search((), "field")) == ["renamed"]
    memories.save_memory(ETL, "new", {"text": "late"})
    told.behave = lambda texts: embed(texts) if len(told.asked) % 2 else np.ones((len(texts), 3))
    told.asked.clear()
    assert "gives vectors of 3 numbers" in (memories.hybrid_search((), "field").notice or "")


def test_search_that_has_no_time_left_goes_on_in_the_next_one(store: Store) -> None:
    fill(store, {f"k{number}": "column" for number in range(100)})
    now = 0.0

    def slow(texts: Sequence[str]) -> Any:
        nonlocal now
        now += 50 * (len(texts) > 1)
        return embed(texts)

    search = HybridSearch(store, slow, 80, clock=lambda: now)
    answer = search.find((), "field", 200)
    assert answer.method == "hybrid"
    assert 0 < len(answer.hits) < 100
    assert "no vector yet" in (answer.notice or "")
    while search.find((), "field", 200).notice:
        pass
    assert len(kept(store)) == 100


@BOTH
def test_all_vectors_are_made_when_that_is_asked_for(store: Store) -> None:
    fill(store)
    fill(store, {"a": "late"}, ("outcomes", "etl"))
    embedder = Told()
    memories = MemoryStore(store, embedder)
    assert memories.embed_memories(("lessons",)) == 3
    assert memories.embed_memories() == 1
    assert memories.embed_memories() == 0
    assert embedder.count == 4
    with pytest.raises(ValueError, match="namespace"):
        memories.embed_memories("lessons")


def test_too_many_memories_are_searched_by_words_and_not_embedded(store: Store) -> None:
    fill(store)
    fill(store, {"a": "late"}, ("outcomes",))
    embedder = Told()
    few = HybridSearch(store, embedder, 5, most=2)
    with pytest.raises(GoldenError, match="more than 2 memories are there"):
        few.find((), "field", 10)
    with pytest.raises(GoldenError, match="more than 2 memories are there"):
        few.find(("lessons",), "field", 10)
    assert keys(few.find(("outcomes",), "slow", 10)) == ["a"]
    MemoryStore(store, embedder).hybrid_search((), "field")
    with pytest.raises(GoldenError, match="4 memories have vectors, and at most 2 are compared"):
        HybridSearch(store, embedder, 5, most=2).find((), "field", 10)


@BOTH
def test_damaged_vector_means_nothing(store: Store) -> None:
    fill(store)
    MemoryStore(store, embed).hybrid_search((), "field")
    with store.write() as connection:
        connection.execute(memory_vectors.update().where(memory_vectors.c.number == 1).values(vector="?"))
    answer = MemoryStore(store, embed).hybrid_search((), "field socket")
    assert (answer.method, keys(answer)) == ("hybrid", ["slow"])
    assert answer.notice == "1 memory there got a vector of zeros"


@BOTH
def test_memory_that_was_changed_while_it_was_embedded_is_embedded_again(store: Store) -> None:
    fill(store, {"k": "column"})
    writer = MemoryStore(store)

    def behave(texts: Sequence[str]) -> Any:
        if texts == ["k column"]:
            writer.save_memory(ETL, "k", {"text": "column"}, tags=["late"])
        return embed(texts)

    memories = MemoryStore(store, Told(behave))
    assert kept(store) == []
    memories.hybrid_search((), "field")
    assert keys(memories.hybrid_search((), "slow")) == ["k"]


def test_store_that_cannot_be_written_is_searched_as_far_as_it_has_vectors(tmp_path: Path) -> None:
    path = tmp_path / "golden.db"
    with Store.open(path) as store, Store.open(path, busy_seconds=0.05) as other:
        fill(store)
        MemoryStore(store, embed).hybrid_search((), "field")
        MemoryStore(store).save_memory(ETL, "new", {"text": "attribute"})
        with store.write():
            answer = MemoryStore(other, embed).hybrid_search((), "field")
    assert (answer.method, keys(answer)) == ("hybrid", ["renamed"])
    told = "1 memory there has no vector yet: the vectors were not kept: the store"
    assert (answer.notice or "").startswith(told)
    assert "locked" in (answer.notice or "")


def test_missing_extra_is_named() -> None:
    code = """
import sys
sys.modules["numpy"] = None
from pytest_golden import MemoryStore
with MemoryStore.open(":memory:", embedder=len) as memories:
    memories.save_memory(("a",), "k", {"text": "orders"})
    answer = memories.hybrid_search((), "orders")
    print(answer.method, len(answer.hits), answer.notice)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("words 1 ")
    assert "pip install 'pytest-golden-projects[embeddings]'" in done.stdout


def test_memory_store_loads_no_numpy_before_it_is_needed() -> None:
    code = "import sys; from pytest_golden import MemoryStore, HybridAnswer; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.fixture
def in_memory() -> Iterator[MemoryStore]:
    with MemoryStore.open(":memory:", embedder=embed) as memories:
        yield memories


def test_store_in_memory_is_searched_too(in_memory: MemoryStore) -> None:
    in_memory.save_memory(ETL, "k", {"text": "late"})
    assert keys(in_memory.hybrid_search((), "slow")) == ["k"]


def test_vectors_are_kept_under_the_name_of_the_model_or_of_the_embedder(store: Store) -> None:
    named: dict[Any, str] = {
        Told(model="small"): "small",
        Told(model=" "): "tests.learning.vectors.embedders.Told",
        Told(model=3): "tests.learning.vectors.embedders.Told",
        embed: "tests.learning.vectors.embedders.embed",
        functools.partial(embed): "tests.learning.vectors.embedders.embed",
    }
    fill(store, {"k": "late"})
    for embedder, name in named.items():
        assert MemoryStore(store, embedder).hybrid_search((), "slow").method == "hybrid"
        assert [model for model, _ in kept(store)] == [name]


@pytest.fixture
def no_threads() -> Iterator[None]:
    """Let each thread want more memory than there are addresses, so that none can be started."""
    size = threading.stack_size(1 << 47)
    yield
    threading.stack_size(size)


@pytest.mark.usefixtures("no_threads")
def test_machine_that_can_start_no_thread_leaves_the_words(store: Store) -> None:
    fill(store)
    answer = MemoryStore(store, embed).hybrid_search((), "orders")
    assert (answer.method, keys(answer)) == ("words", ["full"])
    assert "cannot be asked (RuntimeError: can't start new thread)" in (answer.notice or "")


def test_search_without_time_for_any_memory_says_so(store: Store) -> None:
    fill(store)
    # The query is asked for in time, and then it is over.
    moments = itertools.chain([0.0, 0.0], itertools.repeat(100.0))
    search = HybridSearch(store, embed, 5, clock=lambda: next(moments))
    with pytest.raises(VectorsError, match="3 memories there have no vector yet: time ran out"):
        search.find((), "orders late", 10)


def test_what_stands_high_in_both_comes_first() -> None:
    fused = fuse([1, 2, 3], [3, 4])
    assert [number for number, _ in fused] == [3, 1, 4, 2]
    assert [score for _, score in fused] == pytest.approx([1 / 63 + 1 / 61, 1 / 61, 1 / 62, 1 / 62])


def test_nothing_gives_nothing() -> None:
    assert fuse() == fuse([], []) == []


@given(rankings=RANKINGS)
def test_every_number_comes_once_in_an_order_that_the_rankings_do_not_change(rankings: list[list[int]]) -> None:
    fused = fuse(*rankings)
    assert sorted(number for number, _ in fused) == sorted({number for ranking in rankings for number in ranking})
    assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)
    backwards = dict(fuse(*reversed(rankings)))
    assert {number: pytest.approx(score) for number, score in fused} == backwards


@given(ranking=st.lists(st.integers(1, 99), unique=True, max_size=9))
def test_one_ranking_stays_as_it_is(ranking: list[int]) -> None:
    assert [number for number, _ in fuse(ranking)] == ranking


DIMENSION = 4
NAMESPACES = ("a/", "a/b/", "b/")
ROWS = st.lists(st.integers(-3, 3), min_size=DIMENSION, max_size=DIMENSION)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def unit(row: list[int]) -> Any:
    return read_units([row], 1)[0]


def entry(number: int, row: list[int], stamp: int = 1, namespace: str = "a/") -> Entry:
    return Entry(number, stamp, namespace, unit(row))


def test_nearest_come_first_and_the_newest_of_equals() -> None:
    matrix = VectorMatrix(DIMENSION)
    matrix.add([entry(1, [1, 0, 0, 0]), entry(2, [1, 1, 0, 0]), entry(3, [0, 0, 1, 0]), entry(4, [2, 0, 0, 0])])
    found = matrix.rank(unit([1, 0, 0, 0]), None, 10)
    assert [number for number, _ in found] == [4, 1, 2]
    assert [round(cosine, 4) for _, cosine in found] == [1, 1, 0.7071]
    assert matrix.rank(unit([1, 0, 0, 0]), None, 1)[0][0] == 4


def test_empty_one_finds_nothing() -> None:
    matrix = VectorMatrix(DIMENSION)
    for span in (None, ("a/", "a0")):
        assert matrix.rank(unit([1, 0, 0, 0]), span, 10) == []
        assert matrix.count_empty(span) == (0, 0)
    assert len(matrix) == 0


def test_few_rows_of_many_are_looked_at_alone() -> None:
    matrix = VectorMatrix(DIMENSION)
    matrix.add([entry(number, [1, number % 5, 0, 0], namespace="b/") for number in range(300)])
    matrix.add([entry(1000, [1, 0, 0, 0]), entry(1001, [0, 0, 0, 0], namespace="a/b/")])
    assert [number for number, _ in matrix.rank(unit([1, 0, 0, 0]), ("a/", "a0"), 10)] == [1000]
    assert matrix.count_empty(("a/", "a0")) == (2, 1)
    assert matrix.count_empty(None) == (302, 1)


@given(
    rows=st.lists(st.lists(st.tuples(ROWS, st.sampled_from(NAMESPACES)), max_size=4), max_size=4),
    asked=ROWS,
    limit=st.integers(1, 4),
    span=st.sampled_from([None, ("a/", "a0"), ("a/b/", "a/b0"), ("c/", "c0")]),
)
def test_it_ranks_what_it_holds_as_a_plain_loop_does(
    rows: list[list[tuple[list[int], str]]], asked: list[int], limit: int, span: tuple[str, str] | None
) -> None:
    matrix = VectorMatrix(DIMENSION)
    held: list[Entry] = []
    for some in rows:
        new = [entry(len(held) + place, row, place, namespace) for place, (row, namespace) in enumerate(some)]
        matrix.add(new)
        held += new
    inside = [one for one in held if span is None or span[0] <= one.namespace < span[1]]
    cosines = {one.number: round(float(np.dot(one.unit, unit(asked))), 6) for one in inside}
    expected = sorted((number for number, cosine in cosines.items() if cosine > 0), key=lambda n: (-cosines[n], -n))
    found = matrix.rank(unit(asked), span, limit)
    assert len(matrix) == len(held)
    assert len(found) == min(limit, len(expected))
    for (number, cosine), wanted in zip(found, expected, strict=False):
        assert abs(cosine - cosines[wanted]) < 1e-5
        assert abs(cosine - cosines[number]) < 1e-5
    assert matrix.count_empty(span) == (len(inside), sum(not one.unit.any() for one in inside))


@given(row=st.lists(NUMBERS, min_size=1, max_size=8))
def test_any_finite_vector_becomes_one_of_length_one_and_comes_back(row: list[float]) -> None:
    unit = read_units([row], 1)[0]
    assert np.linalg.norm(unit) == pytest.approx(1 if any(row) else 0, abs=1e-5)
    assert unit.dtype == np.float32
    back = read_vector(write_vector(unit))
    assert back is not None
    assert back.tolist() == unit.tolist()


def test_vectors_are_kept_as_little_endian_floats_in_base64() -> None:
    assert write_vector(np.array([1.0, 0.5], np.float32)) == base64.b64encode(b"\0\0\x80\x3f\0\0\0\x3f").decode()


@pytest.mark.parametrize("text", ["", "?", "AAA", "AAAA", "AADAfw==", "ä"])
def test_what_is_no_vector_is_none(text: str) -> None:
    assert read_vector(text) is None


@pytest.mark.parametrize("given", [[[1, 2], [3, 4]], ((1.0, 2.0), (3.0, 4.0)), np.ones((2, 2), np.float16)])
def test_rows_of_any_numbers_are_taken(given: Any) -> None:
    assert read_units(given, 2).shape == (2, 2)


@pytest.mark.parametrize("given", [{}, "text", [[1 + 2j]], [[None]], 3, [[[1.0]]], object()])
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(VectorsError, match="gave n"):
        read_units(given, 1)
