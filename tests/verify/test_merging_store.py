from __future__ import annotations

import hashlib
import io
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock

from pytest_golden.errors import SettingsError, StorageError
from pytest_golden.gate.store import record_event
from pytest_golden.history.past_store import find_last_pass, list_results
from pytest_golden.journal.service import Journal
from pytest_golden.learning.gate_learning import learn_from_results
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.sqlite import list_files
from pytest_golden.storage.store import Store
from pytest_golden.verify.merging_store import MergeReport, merge_stores, take_in_substitute
from tests.gate.gate_events import begin, end, judge

if TYPE_CHECKING:
    from pathlib import Path

FAILED, PASSED = ResultStatus.FAILED, ResultStatus.PASSED


def gate(store: Store, minute: int, **results: ResultStatus) -> None:
    begun = begin(*results, minute=minute)
    events: list[Any] = [begun, *(judge(begun, project, status) for project, status in results.items()), end(begun)]
    for event in events:
        with store.write() as connection:
            record_event(connection, event)
    learn_from_results(store)


def merge(target: Path, *sources: Path) -> MergeReport:
    told: list[int] = []
    report = merge_stores(target, sources, rules={}, progress=told.append)
    assert check_store(target).problems == ()
    return report


def read_all(path: Path) -> dict[str, Any]:
    """Read all that two orders of merging must have alike; when something was learned is no matter."""
    with Store.open(path) as store, store.read() as connection:
        exported = io.BytesIO()
        Journal(store).export(exported)
        tables: dict[str, Any] = {"journal": exported.getvalue()}
        for table, left_out in (
            ("gate_runs", {"number"}),
            ("gate_results", {"number", "learned_at"}),
            ("trajectories", {"number"}),
            ("documents", set()),
        ):
            rows = connection.exec_driver_sql(f"SELECT * FROM {table}").mappings()
            tables[table] = sorted(str({key: row[key] for key in row if key not in left_out}) for row in rows)
        query = "SELECT namespace, key, version, is_newest, value, words FROM memories WHERE namespace LIKE 'notes%'"
        tables["memories"] = sorted(map(str, connection.exec_driver_sql(query)))
        query = "SELECT key, json_extract(value, '$.count') FROM memories WHERE namespace LIKE 'signatures%'"
        tables["tallies"] = sorted(map(str, connection.exec_driver_sql(query)))
    return tables


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """Three stores with a past in common, each gone on by itself."""
    paths = [tmp_path / "a.db", tmp_path / "b.db", tmp_path / "c.db"]
    with Store.open(paths[0]) as store:
        gate(store, 0, p=PASSED, q=FAILED)
        with MemoryStore.open(paths[0]) as memories:
            memories.save_memory(("notes",), "k", {"text": "common"})
    for path in paths[1:]:
        shutil.copyfile(paths[0], path)
    for number, path in enumerate(paths, 1):
        with Store.open(path) as store:
            gate(store, number * 10, p=PASSED, q=FAILED if number == 2 else PASSED)
        with MemoryStore.open(path) as memories:
            memories.save_memory(("notes",), "k", {"text": f"of shard {number}"})
    return paths


def test_stores_are_merged_in_any_order_and_however_often(shards: list[Path], tmp_path: Path) -> None:
    a, b, c = shards
    report = merge(tmp_path / "abc.db", a, b, c)
    assert (report.runs, report.results) == (4, 8)
    everything = read_all(tmp_path / "abc.db")
    merge(tmp_path / "cab.db", c, a, b)
    assert read_all(tmp_path / "cab.db") == everything
    merge(tmp_path / "bc.db", b, c)
    merge(tmp_path / "bc.db", a)
    assert read_all(tmp_path / "bc.db") == everything
    again = merge(tmp_path / "abc.db", b, a)
    assert (again.added, again.merged, again.runs, again.results, again.memories) == (0, 0, 0, 0, 0)
    assert read_all(tmp_path / "abc.db") == everything
    merge(a, tmp_path / "abc.db")
    assert read_all(a) == everything


def test_the_history_goes_by_time(shards: list[Path], tmp_path: Path) -> None:
    a, b, c = shards
    merge(c, a, b)
    with Store.open(c) as store, store.read() as connection:
        found = list_results(connection, "q", 10)
        assert [one.status for one in found] == [PASSED, FAILED, PASSED, FAILED]
        assert [one.pass_streak for one in found] == [1, 0, 1, 0]
        assert [one.pass_streak for one in list_results(connection, "p", 10)] == [4, 3, 2, 1]
        last = find_last_pass(connection, "p")
    assert last is not None
    assert last.result == found[0].__class__(**{name: getattr(last.result, name) for name in last.result.__slots__})
    assert last.surroundings == {"python": "3.11.2"}


def test_the_newest_version_of_a_memory_is_found(shards: list[Path], tmp_path: Path) -> None:
    a, b, c = shards
    merge(b, c, a)
    with MemoryStore.open(b) as memories:
        versions = [memory.value["text"] for memory in memories.history(("notes",), "k")]
        assert versions == ["common", "of shard 1", "of shard 2", "of shard 3"]
        (hit,) = memories.search_memories(("notes",), "shard")
        assert hit.memory.value == {"text": "of shard 3"}


def test_failures_are_counted_once(shards: list[Path], tmp_path: Path) -> None:
    a, b, c = shards
    merge(a, b, c)
    merge(a, b)
    with Store.open(a) as store, store.read() as connection:
        query = "SELECT json_extract(value, '$.count') FROM memories WHERE namespace LIKE 'signatures%'"
        assert list(connection.exec_driver_sql(query).scalars()) == [2]


def test_an_interrupted_run_that_ended_elsewhere_has_ended(tmp_path: Path) -> None:
    a, b = tmp_path / "a.db", tmp_path / "b.db"
    begun = begin("p")
    with Store.open(a) as store, store.write() as connection:
        record_event(connection, begun)
    shutil.copyfile(a, b)
    with Store.open(b) as store, store.write() as connection:
        record_event(connection, judge(begun, "p"))
        record_event(connection, end(begun))
    merge(a, b)
    assert read_all(a) == read_all(b)
    merge(b, a)
    assert read_all(a) == read_all(b)


def digest_files(path: Path) -> list[tuple[str, str]]:
    return [(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in list_files(path)]


def test_sources_stay_as_they_are(shards: list[Path], tmp_path: Path) -> None:
    a, b, _ = shards
    before = digest_files(a), digest_files(b)
    merge(tmp_path / "new.db", a, b)
    assert (digest_files(a), digest_files(b)) == before


def test_a_source_that_is_in_use_is_read_with_what_waits_in_its_log(shards: list[Path], tmp_path: Path) -> None:
    with Store.open(shards[0]) as store:
        gate(store, 50, p=PASSED)
        before = shards[0].read_bytes()
        report = merge(tmp_path / "new.db", shards[0])
        assert shards[0].read_bytes() == before
    assert report.runs == 3


def test_an_unclosed_log_is_read(shards: list[Path], tmp_path: Path) -> None:
    with Store.open(shards[0]) as store:
        gate(store, 50, p=PASSED)
        for ending in ("", "-wal"):
            shutil.copyfile(f"{shards[0]}{ending}", f"{tmp_path / 'killed.db'}{ending}")
    before = digest_files(tmp_path / "killed.db")
    assert merge(tmp_path / "new.db", tmp_path / "killed.db").runs == 3
    assert digest_files(tmp_path / "killed.db") == before


def make_foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE x (y)")
    connection.close()


def make_newer(path: Path) -> None:
    with Store.open(path) as store, store.write() as connection:
        connection.exec_driver_sql("UPDATE golden_version SET version_num = '9999'")


def make_damaged(path: Path) -> None:
    with Store.open(path) as store:
        gate(store, 0, p=PASSED)
    content = bytearray(path.read_bytes())
    content[8192:40000] = b"x" * (40000 - 8192)
    path.write_bytes(content)


def make_miscounted(path: Path) -> None:
    with Store.open(path) as store:
        gate(store, 0, p=PASSED)
        with store.write() as connection:
            connection.exec_driver_sql("UPDATE entries SET open_count = 7")


BAD: dict[str, Any] = {
    "there is no such file": lambda path: None,
    "it is a database of another program": make_foreign,
    "it was made by a newer pytest-golden-projects": make_newer,
    "it is damaged": make_damaged,
    "its counts differ": make_miscounted,
    "that is a folder; give a file": lambda path: path.mkdir(),
    "is not a golden store; give another file": lambda path: path.write_text("x" * 5000),
    "a database of another program": lambda path: path.touch(),
}


@pytest.mark.parametrize("told", BAD)
def test_with_a_bad_source_nothing_is_merged(shards: list[Path], tmp_path: Path, told: str) -> None:
    bad, target = tmp_path / "bad.db", tmp_path / "target.db"
    BAD[told](bad)
    before = read_all(shards[1])
    with pytest.raises(StorageError) as caught:
        merge_stores(shards[1], [shards[0], bad], rules={}, progress=print)
    assert told in str(caught.value)
    assert str(bad) in str(caught.value)
    assert "golden-merge" not in str(caught.value)
    assert read_all(shards[1]) == before
    with pytest.raises(StorageError):
        merge_stores(target, [bad], rules={}, progress=print)
    assert not target.exists()


def test_a_source_that_is_the_store_itself_is_refused(shards: list[Path], tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(shards[0])
    for same in (shards[0], tmp_path / "link.db"):
        with pytest.raises(SettingsError, match="is the one that is merged into"):
            merge_stores(shards[0], [same], rules={}, progress=print)


def test_a_source_that_is_another_entry_under_the_same_id_is_refused(shards: list[Path], tmp_path: Path) -> None:
    with Store.open(shards[1]) as store, store.write() as connection:
        connection.exec_driver_sql("UPDATE entries SET intent = 'another' WHERE number = 1")
    before = read_all(shards[0])
    with pytest.raises(
        StorageError, match=r"b\.db: entry .*: its intent differs from the one here; .*nothing was merged"
    ):
        merge_stores(shards[0], [shards[2], shards[1]], rules={}, progress=print)
    assert read_all(shards[0]) == before


def test_stores_are_merged_into_any_database(shards: list[Path], location: str | Path) -> None:
    for _ in range(2):
        merge_stores(location, shards, rules={}, progress=print)
    with Store.open(location) as store, store.read() as connection:
        assert [one.status for one in list_results(connection, "q", 10)] == [PASSED, FAILED, PASSED, FAILED]
        assert [one.pass_streak for one in list_results(connection, "p", 10)] == [4, 3, 2, 1]
    with MemoryStore.open(location) as memories:
        (hit,) = memories.search_memories(("notes",), "shard")
        assert hit.memory.value == {"text": "of shard 3"}
        assert len(memories.history(("notes",), "k")) == 4


def spoil(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


FOREIGN = {
    "a moment after all time": (["UPDATE signals SET created_at = 9223372036854775807"], "a row of signals holds what"),
    "a moment that is a text": (
        ["UPDATE memories SET created_at = 'x'"],
        "a row of memories holds what no store keeps",
    ),
    "bytes": (["UPDATE entries SET intent = zeroblob(9)"], "row 1 of entries: intent holds text that cannot be read"),
    "not JSON": (["UPDATE entries SET actions = '{bad'"], "row 1 of entries: actions is not JSON"),
    "deep JSON": ([f"UPDATE memories SET value = '{'[' * 50_000}'"], "memories: value is not JSON"),
    "no UTF-8": (["UPDATE entries SET intent = CAST(x'ff41' AS TEXT)"], "`golden store mend` repairs it"),
    "a memory that is a list": (["UPDATE memories SET value = '[1]'"], "the value of 'k' is not an object"),
    "tags that are a number": (["UPDATE memories SET tags = '5'"], "tags of a memory must be a sequence of texts"),
    "a key with a NUL": (
        ["UPDATE memories SET key = 'k' || char(0) WHERE key = 'k'"],
        "key holds text that cannot be read",
    ),
    "no namespace": (["UPDATE memories SET namespace = 'notes' WHERE key = 'k'"], "'notes' is not a namespace"),
    "a view without an end": (
        [
            "ALTER TABLE signals RENAME TO heard",
            "CREATE VIEW signals AS WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
            "SELECT heard.* FROM heard, r",
        ],
        "its signals are not tables",
    ),
}


@pytest.mark.parametrize(("statements", "told"), FOREIGN.values(), ids=FOREIGN)
def test_a_source_that_somebody_has_tampered_with_is_refused(tmp_path: Path, statements: list[str], told: str) -> None:
    source, target = tmp_path / "spoilt.db", tmp_path / "all.db"
    with Store.open(source) as store:
        gate(store, 0, p=PASSED)
        MemoryStore(store).save_memory(("notes",), "k", {"text": "common"})
    spoil(source, *statements)
    with pytest.raises(StorageError) as caught:
        merge_stores(target, [source], rules={}, progress=lambda _: None)
    assert told in str(caught.value)
    assert "golden-merge-" not in str(caught.value)
    if target.exists():
        with MemoryStore.open(target) as memories:
            assert memories.list_namespaces() == ()


def test_substitute_is_taken_in_once_and_not_while_a_gate_uses_it(tmp_path: Path) -> None:
    source, target = tmp_path / "elsewhere" / "golden.db", tmp_path / "golden.db"
    source.parent.mkdir()
    assert take_in_substitute(target, source.parent) == 0
    assert not target.exists()
    with Store.open(source) as store:
        gate(store, 0, p=PASSED)
    with FileLock(source.with_name("gate.lock")):
        assert take_in_substitute(target, source.parent) == 0
    assert source.exists()
    assert take_in_substitute(target, source.parent) == 1
    assert list_files(source) == ()
    assert take_in_substitute(target, source.parent) == 0
    with Store.open(target) as store, store.read() as connection:
        assert len(list_results(connection, "p", 5)) == 1


def test_substitute_that_cannot_be_read_stays(tmp_path: Path) -> None:
    source = tmp_path / "elsewhere" / "golden.db"
    source.parent.mkdir()
    source.write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageError, match="is not a golden store"):
        take_in_substitute(tmp_path / "golden.db", source.parent)
    assert source.exists()
