from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert, select, text

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.integrity import check_store, mend_store, repair_store
from pytest_golden.storage.schema import HEAD, documents, entries, memories, metadata, signals
from pytest_golden.storage.search import find_memories
from pytest_golden.storage.shared_documents import keep_document
from pytest_golden.storage.statements import json_member_text
from pytest_golden.storage.store import Store
from tests.storage.filled import fill
from tests.storage.remembered import remember

if TYPE_CHECKING:
    from pathlib import Path

    from tests.storage.conftest import Elsewhere


def test_whole_store_is_counted(store: Store, location: str | Path) -> None:
    fill(store)
    found = check_store(location)
    assert (found.where, found.version, found.problems) == (store.where, HEAD, ())
    assert set(found.tables) == set(metadata.tables)
    assert (found.tables["entries"], found.tables["signals"], found.tables["documents"]) == (1, 8, 0)
    assert found.size_bytes >= (100_000 if store.path is None else store.path.stat().st_size)
    assert len(found.notes) == (store.path is None)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET open_count = 2",
        "UPDATE entries SET met_count = 0",
        "UPDATE entries SET critical_lost_count = 0",
        "UPDATE entries SET positive_count = 2",
        "UPDATE entries SET negative_count = 0",
        "DELETE FROM expectations WHERE id = 'unmet'",
        "DELETE FROM expectations",
        "DELETE FROM signals",
        "UPDATE expectations SET status = 'met' WHERE id = 'open'",
    ],
)
def test_counts_that_differ_are_found(store: Store, location: str | Path, statement: str) -> None:
    fill(store)
    with store.write() as connection:
        connection.execute(text(statement))
    assert check_store(location).problems == ("entry entry_1: its counts differ from its expectations and signals",)


def test_reference_to_nothing_is_found_in_a_file(file_store: Store, path: Path) -> None:
    fill(file_store)
    file_store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM entries")
    problems = check_store(path).problems
    assert "row 1 of expectations refers to a row that does not exist, in entries" in problems
    assert len(problems) == 10


def test_reference_to_nothing_is_found_on_a_server(postgres_url: str) -> None:
    with Store.open(postgres_url) as store:
        fill(store)
        with store.write() as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            connection.execute(text("DELETE FROM entries"))
    problems = check_store(postgres_url).problems
    assert "row 1 of expectations refers to a row that does not exist, in entries" in problems
    assert (
        "the tally of entries by day differs from the entries in 2 rows; `golden store upgrade` counts it again"
        in problems
    )
    assert len(problems) == 11


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry_tally SET amount = 7 WHERE agent_id <> '' AND amount = 1",
        "DELETE FROM entry_tally WHERE agent_id = '' AND amount = 1",
        "INSERT INTO entry_tally (day, agent_id, intent_type, assessment, amount) VALUES (7, 'a', '', 'open', 1)",
    ],
)
def test_tally_that_differs_is_found_and_counted_again(store: Store, location: str | Path, statement: str) -> None:
    fill(store)
    with store.write() as connection:
        connection.execute(text("UPDATE entries SET assessment = 'success'"))
    assert repair_store(store) == ()
    with store.write() as connection:
        connection.execute(text(statement))
    told = "the tally of entries by day differs from the entries in 1 rows"
    assert check_store(location).problems == (f"{told}; `golden store upgrade` counts it again",)
    assert repair_store(store) == (told,)
    assert check_store(location).problems == ()


def test_search_index_that_differs_is_found_and_built_again(store: Store, location: str | Path) -> None:
    fill(store)
    assert repair_store(store) == ()
    with store.write() as connection:
        connection.execute(text("UPDATE memories SET words = NULL"))
    told = "the search index differs from the memories in 1 rows"
    assert check_store(location).problems == (f"{told}; `golden store upgrade` builds it again",)
    assert repair_store(store) == (told,)
    assert check_store(location).problems == ()


def test_writer_and_look_at_what_is_whole_do_not_wait_for_each_other_on_a_server(postgres_url: str) -> None:
    with Store.open(postgres_url) as store:
        fill(store)
        with Store.open(postgres_url, busy_seconds=0.2) as impatient, store.write():
            assert repair_store(impatient) == ()
            assert check_store(postgres_url).problems == ()


def test_lost_table_of_a_server_is_damage(postgres_url: str) -> None:
    with Store.open(postgres_url) as store, store.write() as connection:
        connection.execute(text("DROP TABLE signals"))
    found = check_store(postgres_url)
    assert (found.version, len(found.problems)) == (None, 1)
    assert "signals" in found.problems[0]


@pytest.mark.parametrize("damage", ["page", "header", "short", "garbage"])
def test_damaged_file_is_found(path: Path, damage: str) -> None:
    with Store.open(path) as store, store.write() as connection:
        for number in range(300):
            keep_document(connection, [number, "x" * 500])
    size = path.stat().st_size
    if damage == "short":
        os.truncate(path, size // 2)
    else:
        with path.open("r+b") as file:
            file.seek(size // 2 // 4096 * 4096 if damage == "page" else 0)
            file.write(os.urandom({"page": 8192, "header": 100, "garbage": size}[damage]))
    before = path.read_bytes()
    found = check_store(path)
    assert found.problems
    assert found.version is None
    assert all("\n" not in problem for problem in found.problems)
    assert path.read_bytes() == before


def test_store_in_a_read_only_folder_is_checked_but_for_its_index(
    file_store: Store, path: Path, elsewhere: Elsewhere
) -> None:
    fill(file_store)
    file_store.close()
    code = """
        from pytest_golden.storage.integrity import check_store
        found = check_store(path)
        print(json.dumps([found.problems, found.notes, found.tables["entries"]]))
    """
    facts = elsewhere(("--ro-bind", str(path.parent), str(path.parent)), path, code)
    assert facts == [[], ["the search index was not checked: that would write"], 1]


def test_what_is_no_store_of_ours_is_not_checked(path: Path) -> None:
    with pytest.raises(StorageError, match="there is no such file"):
        check_store(path)
    with Store.open(path) as store, store.write() as connection:
        connection.execute(text("UPDATE golden_version SET version_num = '9999'"))
    with pytest.raises(StorageError) as caught:
        check_store(path)
    assert caught.value.trouble is StorageTrouble.NEWER


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
# `boom`, then half a character as UTF-8 has it for no text; and a byte that begins no character.
HALF, STRAY = "626F6F6D20EDA0BD", "626F6F6D20FF"


def break_text(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def select_text(store: Store, query: Any) -> Any:
    with store.read() as connection:
        return connection.scalar(query)


def test_every_text_that_cannot_be_read_is_named_and_repaired(file_store: Store, path: Path) -> None:
    fill(file_store)
    remember(file_store, "boom load failed")
    break_text(
        path,
        f"UPDATE entries SET intent = CAST(X'{HALF}' AS TEXT), immediate_notes = 'a' || char(0) || 'b'",
        f"UPDATE signals SET summary = CAST(X'{STRAY}' AS TEXT) WHERE number = 1",
        f"UPDATE memories SET words = CAST(X'{HALF}' AS TEXT) || ' load' WHERE number = 2",
        r"""INSERT INTO documents VALUES ('d1', '{"error":"boom \ud83d","\u0000":["\\ud83d \uD83D\uDE00"]}')""",
        f"INSERT INTO documents VALUES ('d2', CAST(X'7B226122203A2022{STRAY}227D' AS TEXT))",
    )
    with pytest.raises(StorageError, match=r"text that cannot be read .*`golden store mend` repairs it"):
        select_text(file_store, select(entries.c.intent))
    odd = {
        "row d1 of documents: body holds text that cannot be read",
        "row d2 of documents: body holds text that cannot be read",
        "row 1 of entries: intent holds text that cannot be read",
        "row 1 of entries: immediate_notes holds text that cannot be read",
        "row 1 of signals: summary holds text that cannot be read",
        "row 2 of memories: words holds text that cannot be read",
    }
    told = {problem.removesuffix("; `golden store mend` repairs it") for problem in check_store(path).problems}
    assert odd <= told

    done = mend_store(path, NOON)
    assert (set(done.mended), done.left) == (odd, ())
    assert check_store(path).problems == ()
    assert select_text(file_store, select(entries.c.intent)) == r"boom \ud83d"
    assert select_text(file_store, select(entries.c.immediate_notes)) == r"a\x00b"
    assert select_text(file_store, select(signals.c.summary).where(signals.c.number == 1)) == r"boom \udcff"
    assert select_text(file_store, select(memories.c.words).where(memories.c.number == 2)) == r"boom \ud83d load"
    error = json_member_text(documents.c.body, "error")
    assert select_text(file_store, select(error).where(documents.c.digest == "d1")) == r"boom \ud83d"
    body = select_text(file_store, select(documents.c.body).where(documents.c.digest == "d1"))
    assert body[r"\x00"] == [r"\ud83d 😀"]
    assert select_text(file_store, select(documents.c.body).where(documents.c.digest == "d2")) == {"a": r"boom \udcff"}
    with file_store.read() as connection:
        assert [number for number, _ in find_memories(connection, "boom", (), 5)] == [2]
    # The copy is the store as it was.
    assert done.backup == path.with_name("golden.db.before-mend-20260301T120000Z")
    assert odd <= {told.removesuffix("; `golden store mend` repairs it") for told in check_store(done.backup).problems}


def test_nothing_is_copied_or_changed_where_there_is_nothing_to_repair(file_store: Store, path: Path) -> None:
    fill(file_store)
    done = mend_store(path, NOON)
    assert (done.mended, done.left, done.backup) == ((), (), None)
    assert not list(path.parent.glob("*.before-mend-*"))


def test_what_is_no_json_stays_and_is_named(file_store: Store, path: Path) -> None:
    fill(file_store)
    break_text(path, "UPDATE entries SET actions = '[', intent = CAST(X'FF' AS TEXT)")
    assert "row 1 of entries: actions is not JSON" in check_store(path).problems
    done = mend_store(path, NOON)
    assert done.left == ("row 1 of entries: actions is not JSON",)
    assert done.mended == ("row 1 of entries: intent holds text that cannot be read",)
    assert mend_store(path, NOON).left == done.left


def test_name_that_rows_share_is_repaired_in_all_of_them(file_store: Store, path: Path) -> None:
    fill(file_store)
    odd = f"CAST(X'{HALF}' AS TEXT)"
    break_text(
        path,
        f"UPDATE entries SET id = {odd}",
        f"UPDATE expectations SET entry_id = {odd}",
        f"UPDATE signals SET entry_id = {odd} WHERE entry_id IS NOT NULL",
        f"UPDATE entry_history SET entry_id = {odd}",
    )
    mend_store(path, NOON)
    assert check_store(path).problems == ()
    assert select_text(file_store, select(entries.c.id)) == r"boom \ud83d"


def test_more_rows_than_are_read_at_once_are_repaired(file_store: Store, path: Path) -> None:
    with file_store.write() as connection:
        connection.execute(insert(documents), [{"digest": f"{n:05}", "body": n} for n in range(2_500)])
    break_text(path, r"""UPDATE documents SET body = '"\ud83d"'""")
    assert check_store(path).problems[-1] == "more rows have such texts"
    assert len(mend_store(path, NOON).mended) == 2_500
    assert check_store(path).problems == ()


def test_escapes_in_json_are_repaired_on_a_server_too(postgres_url: str) -> None:
    with Store.open(postgres_url) as store, store.write() as connection:
        connection.execute(
            text(r"""INSERT INTO documents VALUES ('d1', '{"a":"\ud83d \u0000 \\ud83d"}'), ('d2', '"\u00e9"')""")
        )
    odd = "row d1 of documents: body holds text that cannot be read"
    assert check_store(postgres_url).problems == (f"{odd}; `golden store mend` repairs it",)
    done = mend_store(postgres_url, NOON)
    assert (done.mended, done.backup) == ((odd,), None)
    assert check_store(postgres_url).problems == ()
    with Store.open(postgres_url) as store:
        assert select_text(store, select(documents.c.body).where(documents.c.digest == "d1")) == {
            "a": r"\ud83d \x00 \ud83d"
        }
        assert (
            select_text(store, text("SELECT body ->> 'a' FROM documents WHERE digest = 'd1'")) == r"\ud83d \x00 \ud83d"
        )
