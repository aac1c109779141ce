from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert, select, text

from pytest_golden.errors import StorageError
from pytest_golden.storage.integrity import check_store, mend_store
from pytest_golden.storage.schema import documents, entries, memories, signals
from pytest_golden.storage.search import find_memories
from pytest_golden.storage.statements import json_member_text
from pytest_golden.storage.store import Store
from tests.storage.filled import fill
from tests.storage.remembered import remember

if TYPE_CHECKING:
    from pathlib import Path

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
