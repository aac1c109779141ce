from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_golden.errors import SettingsError, StorageError
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.storage.columns import storable
from tests.learning.conftest import BOTH, START, Clock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_golden.storage.store import Store

PLANS = ("plans", "global")


@pytest.fixture
def memories(tmp_path: Path, clock: Clock) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "golden.db", clock=clock) as opened:
        yield opened


def test_saved_memory_is_got_back_by_another_store(tmp_path: Path, memories: MemoryStore) -> None:
    value = {"strategy": "a → b", "steps": [1, 2.5, None, True], "nested": {"x": []}}
    provenance = {"run": "entry_1", "commit": "abc", "steps": ["step_1"]}
    saved = memories.save_memory(PLANS, "p1", value, tags=["fast"], provenance=provenance)
    with MemoryStore.open(tmp_path / "golden.db") as other:
        found = other.get(PLANS, "p1")
    assert found == saved
    assert (saved.namespace, saved.key, saved.value, saved.version) == (PLANS, "p1", value, 1)
    assert (saved.tags, saved.provenance) == (("fast",), provenance)
    assert saved.created_at == saved.updated_at == START


def test_what_is_missing_is_none(memories: MemoryStore) -> None:
    memories.save_memory(PLANS, "p1", {"a": 1})
    assert memories.get(PLANS, "p2") is None
    assert memories.get(("plans",), "p1") is None
    assert memories.get(PLANS, "p1", version=2) is None
    assert memories.history(PLANS, "p2") == ()
    assert memories.delete(PLANS, "p2") is False


def test_another_value_is_a_new_version_and_the_old_one_stays(memories: MemoryStore, clock: Clock) -> None:
    memories.save_memory(PLANS, "p1", {"a": 1}, tags=["old"])
    clock.pass_by(hours=1)
    second = memories.save_memory(PLANS, "p1", {"a": 2})
    assert (second.version, second.tags) == (2, ())
    assert (second.created_at, second.updated_at) == (START, START + timedelta(hours=1))
    assert [memory.value for memory in memories.history(PLANS, "p1")] == [{"a": 1}, {"a": 2}]
    assert memories.get(PLANS, "p1") == second
    first = memories.get(PLANS, "p1", version=1)
    assert first is not None
    assert (first.value, first.tags, first.updated_at) == ({"a": 1}, ("old",), START)
    assert memories.save_memory(PLANS, "p1", {"a": 1}).version == 3


def test_equal_value_makes_no_version(memories: MemoryStore, clock: Clock) -> None:
    first = memories.save_memory(PLANS, "p1", {"a": 1, "b": [1]}, tags=["t"], provenance={"run": "1"})
    clock.pass_by(hours=1)
    assert memories.save_memory(PLANS, "p1", {"b": [1], "a": 1}) == first
    assert len(memories.history(PLANS, "p1")) == 1
    again = memories.save_memory(PLANS, "p1", {"a": 1, "b": [1]}, tags=["new"], provenance={"run": "2"})
    assert (again.version, again.tags, again.provenance) == (1, ("new",), {"run": "2"})
    assert again.updated_at == START + timedelta(hours=1)
    assert memories.get(PLANS, "p1") == again
    assert memories.search_memories((), "new")[0].memory == again
    assert memories.save_memory(PLANS, "p1", {"a": True, "b": [1]}).version == 2


def test_deleting_takes_all_versions_and_the_words(memories: MemoryStore) -> None:
    memories.save_memory(PLANS, "p1", {"a": "first"})
    memories.save_memory(PLANS, "p1", {"a": "second"})
    assert memories.delete(PLANS, "p1") is True
    assert memories.history(PLANS, "p1") == ()
    assert memories.search_memories((), "first second") == ()
    assert memories.save_memory(PLANS, "p1", {"a": "third"}).version == 1


def test_namespaces_and_keys_are_listed(memories: MemoryStore) -> None:
    for namespace in (("plans", "b"), ("plans", "a"), ("plansx",), ("plans", "a", "deep/er"), ("ä", "%2F")):
        memories.save_memory(namespace, "z", {"n": 1})
        memories.save_memory(namespace, "a", {"n": 1})
    everything = (("plans", "a"), ("plans", "a", "deep/er"), ("plans", "b"), ("plansx",), ("ä", "%2F"))
    assert memories.list_namespaces() == everything
    assert memories.list_namespaces(("plans",)) == everything[:3]
    assert memories.list_namespaces(("plans", "a")) == everything[:2]
    assert memories.list_keys(("plans", "a")) == ("a", "z")
    assert memories.list_keys(("plans",)) == ()


def test_search_is_narrowed_by_tags_and_parts_of_values(memories: MemoryStore) -> None:
    for number in range(30):
        value = {"text": "load the orders", "context": {"domain": "orders" if number == 29 else "prices"}}
        memories.save_memory(
            ("plans", "a"), f"k{number:02}", value, tags=["night", "rare"] if number == 7 else ["night"]
        )

    def keys(query: str, **narrowed: Any) -> list[str]:
        return [hit.memory.key for hit in memories.search_memories((), query, 2, **narrowed)]

    assert keys("orders", tags=["rare", "night"]) == keys("", tags=["rare"]) == ["k07"]
    assert keys("load", where={"context.domain": "orders"}) == ["k29"]
    assert keys("load", where={"context.domain.x": "orders"}) == keys("", tags=["never"]) == keys(" ") == []
    assert len(keys("load", tags=["night"])) == 2


def test_search_finds_any_word_in_the_newest_versions_below_a_prefix(memories: MemoryStore) -> None:
    memories.save_memory(("plans", "a"), "k1", {"text": "load the orders", "n": 42})
    memories.save_memory(("plans", "b"), "k2", {"text": "load orders, then customers and orders"})
    memories.save_memory(("lessons", "a"), "k3", {"text": "customers come first"}, tags=["urgent"])
    memories.save_memory(("lessons", "a"), "k3", {"text": "suppliers come first"})

    def keys(namespace: tuple[str, ...], query: str, limit: int = 10) -> set[str]:
        return {hit.memory.key for hit in memories.search_memories(namespace, query, limit)}

    assert keys((), "orders nothing") == {"k1", "k2"}
    assert keys((), "customers") == {"k2"}
    assert keys(("plans", "a"), "orders") == {"k1"}
    assert keys(("plan",), "orders") == set()
    assert keys((), "42") == {"k1"}
    assert keys((), "text") == set()
    assert len(keys((), "orders first", 1)) == 1
    scores = [hit.score for hit in memories.search_memories((), "orders customers")]
    assert scores == sorted(scores, reverse=True)
    for operators in ("orders AND nothing", '"orders', "orders*", "NEAR(orders)", "a:orders", "-orders", "(orders"):
        assert "k1" in keys((), operators)
    assert keys((), " ") == keys((), "*") == set()


@BOTH
def test_a_word_that_nothing_has_finds_those_that_begin_with_it(store: Store) -> None:
    memories = MemoryStore(store)
    for key, text in {
        "a": "the authentication fails",
        "b": "authors of orders",
        "c": "Überweisung",
        "d": "auth",
    }.items():
        memories.save_memory(("notes",), key, {"text": text})

    def find(query: str) -> list[str]:
        return sorted(hit.memory.key for hit in memories.search_memories((), query))

    assert find("authentic") == ["a"]
    assert find("AUTHENTIC orders") == ["b"]
    assert find("autho authen") == ["a", "b"]
    assert find("überw") == ["c"]
    assert find("auth") == ["d"]
    assert find("aut") == find("thentication") == []
    assert find("authen* OR") == find("authentic*ity") == ["a"]


@pytest.mark.parametrize("limit", [0, -1, True, "3"])
def test_limit_of_a_search_is_one_or_more(memories: MemoryStore, limit: Any) -> None:
    with pytest.raises(ValueError, match="limit must be"):
        memories.search_memories((), "x", limit)


def test_versions_of_one_key_that_are_saved_together_follow_each_other(memories: MemoryStore) -> None:
    values = [{"text": text} for text in ("first", "second", "second", "third")]
    one = [{"namespace": ("a",), "key": "k", "value": value} for value in values]
    other = {"namespace": ("a",), "key": "other", "value": {"text": "second"}}
    kept = memories.save_memories([one[0], other, *one[1:]])
    assert [memory.version for memory in kept] == [1, 1, 2, 2, 3]
    assert [hit.memory.key for hit in memories.search_memories((), "first second")] == ["other"]
    assert [hit.memory.key for hit in memories.search_memories((), "third")] == ["k"]


def test_many_are_saved_together_or_not_at_all(memories: MemoryStore) -> None:
    saved = memories.save_memories({"namespace": PLANS, "key": f"k{n}", "value": {"n": n}} for n in range(3))
    assert [memory.key for memory in saved] == ["k0", "k1", "k2"]
    for wrong in ({"namespace": PLANS, "key": "x", "value": 3}, {"key": "x"}, {"namespace": PLANS, "kei": "x"}):
        with pytest.raises(ValueError, match=r"^memory 2: "):
            memories.save_memories([{"namespace": PLANS, "key": "new", "value": {}}, wrong])
    assert memories.list_keys(PLANS) == ("k0", "k1", "k2")
    assert memories.save_memories([]) == ()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"namespace": "plans"}, "namespace must be a sequence"),
        ({"namespace": ()}, "namespace must have at least one"),
        ({"namespace": ("plans", "")}, "element of namespace"),
        ({"namespace": ("plans", 3)}, "texts only"),
        ({"key": " "}, "key must be text"),
        ({"key": "a\0b"}, "key .* NUL"),
        ({"key": "a\ud800"}, "key .* surrogate"),
        ({"value": [1]}, "value must be a mapping"),
        ({"value": {"x": object()}}, "value cannot be written as JSON"),
        ({"value": {"x": "y" * 1_048_576}}, "value is 1,048,584 bytes"),
        ({"tags": "tag"}, "tags must be a sequence"),
        ({"provenance": ["run"]}, "provenance must be a mapping"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(memories: MemoryStore, arguments: dict[str, Any], told: str) -> None:
    plain: dict[str, Any] = {"namespace": PLANS, "key": "k", "value": {}}
    with pytest.raises(ValueError, match=told):
        memories.save_memory(**{**plain, **arguments})
    assert memories.list_namespaces() == ()


def test_secrets_are_taken_out_before_anything_is_stored(tmp_path: Path, memories: MemoryStore) -> None:
    secret = "ghp_" + "A1b2C3d4E5" * 4
    saved = memories.save_memory(
        PLANS,
        "k",
        {"password": "hunter2secret9", "text": f"token {secret}"},
        tags=[f"x {secret}"],
        provenance={"commit": secret},
    )
    assert "hunter2secret9" not in str(saved)
    memories.save_memory(PLANS, "k", {"text": f"other {secret}"})
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert secret.encode() not in stored
    assert b"hunter2secret9" not in stored
    assert b"REDACTED" in stored


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def test_any_json_value_comes_back_under_any_namespace() -> None:
    names = st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=3)

    @settings(max_examples=60)
    @given(value=st.dictionaries(st.text(), JSON, max_size=3), elements=names)
    def check(value: dict[str, Any], elements: list[str]) -> None:
        saved = opened.save_memory(elements, "k", value)
        assert opened.get(elements, "k") == saved
        assert opened.list_namespaces() == (tuple(map(storable, elements)),)
        assert opened.save_memory(elements, "k", value).version == 1
        assert opened.delete(elements, "k")

    with MemoryStore.open(":memory:") as opened:
        check()


def test_lone_surrogates_and_nul_in_a_value_become_escapes(memories: MemoryStore) -> None:
    saved = memories.save_memory(PLANS, "k", {"a": "\ud800 \0 x"})
    found = memories.get(PLANS, "k")
    assert found is not None
    assert found == saved
    assert found.value == {"a": r"\ud800 \x00 x"}
    assert memories.search_memories((), "x")[0].memory == found


def test_a_kept_value_cannot_be_written(memories: MemoryStore) -> None:
    value: dict[str, Any] = {"steps": ["a"]}
    saved = memories.save_memory(PLANS, "k", value)
    value["steps"].append("b")
    found = memories.get(PLANS, "k")
    assert found is not None
    for memory in (saved, found):
        assert memory.value == {"steps": ["a"]}
        with pytest.raises(TypeError):
            memory.value["steps"].append("c")


def test_threads_lose_nothing(memories: MemoryStore) -> None:
    def save(thread: int) -> None:
        for number in range(10):
            memories.save_memory(PLANS, f"{thread}-{number}", {"n": number})
            memories.save_memory(PLANS, "shared", {"thread": thread, "n": number})

    threads = [threading.Thread(target=save, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(memories.list_keys(PLANS)) == 41
    assert [memory.version for memory in memories.history(PLANS, "shared")] == list(range(1, 41))


@BOTH
def test_only_a_store_of_its_own_is_closed(store: Store, tmp_path: Path) -> None:
    with MemoryStore(store) as memories:
        memories.save_memory(PLANS, "k", {"n": 1})
    assert MemoryStore(store).list_keys(PLANS) == ("k",)
    own = MemoryStore.open(tmp_path / "own.db")
    own.close()
    with pytest.raises(StorageError, match="closed"):
        own.list_keys(PLANS)


def test_store_that_is_not_named_is_the_one_of_the_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOLDEN_MANIFEST", raising=False)
    monkeypatch.delenv("GOLDEN_STORE_URL", raising=False)
    (tmp_path / ".git").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    with MemoryStore.open():
        assert (tmp_path / "below" / ".golden" / "golden.db").is_file()
    (tmp_path / "golden_projects.yaml").write_text("workspace_root: root\n")
    with MemoryStore.open():
        assert (tmp_path / "root" / ".golden" / "golden.db").is_file()
    monkeypatch.setenv("GOLDEN_STORE_URL", f"sqlite:///{tmp_path}/named.db")
    with MemoryStore.open():
        assert (tmp_path / "named.db").is_file()
    monkeypatch.setenv("GOLDEN_STORE_URL", "none")
    with pytest.raises(SettingsError, match="GOLDEN_STORE_URL is none"):
        MemoryStore.open()


def test_a_place_that_no_index_takes_is_refused(memories: MemoryStore) -> None:
    memories.save_memory(("n",), "k" * 2598, {"a": 1})
    with pytest.raises(ValueError, match="namespace and key have 2,601 bytes together"):
        memories.save_memory(("n",), "k" * 2599, {"a": 1})
