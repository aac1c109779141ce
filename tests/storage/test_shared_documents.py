from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, text

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.schema import documents
from pytest_golden.storage.shared_documents import keep_document, read_document
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(body=JSON)
def test_document_comes_back(store: Store, body: object) -> None:
    with store.write() as connection:
        digest = keep_document(connection, body)
    with store.read() as connection:
        assert read_document(connection, digest) == body
    assert len(digest) == 32


def test_same_content_is_kept_once_whatever_the_order_of_its_keys(store: Store) -> None:
    with store.write() as connection:
        first = keep_document(connection, {"a": 1, "b": [1, 2]})
        assert keep_document(connection, {"b": [1, 2], "a": 1}) == first
        assert keep_document(connection, {"b": [2, 1], "a": 1}) != first
        assert connection.execute(select(func.count()).select_from(documents)).scalar_one() == 2


def test_what_no_database_takes_comes_back_as_an_escape(store: Store) -> None:
    with store.write() as connection:
        digest = keep_document(connection, {"\ud83d": ["\udc80\0"]})
        kept = read_document(connection, digest)
        assert kept == {"\\ud83d": ["\\udc80\\x00"]}
        assert keep_document(connection, kept) == digest


def test_what_is_no_json_is_refused_and_an_unknown_digest_is_none(store: Store) -> None:
    with store.write() as connection:
        with pytest.raises(ValueError, match="JSON compliant"):
            keep_document(connection, {"a": float("nan")})
        with pytest.raises(TypeError):
            keep_document(connection, {"a": object()})
        assert read_document(connection, "0" * 32) is None


@pytest.fixture
def followed(path: Path) -> Iterator[Store]:
    """A store that follows its file, with one document."""
    with Store.open(path, follows=True) as store:
        keep(store, "the first")
        yield store


def keep(store: Store, body: object) -> str:
    with store.write() as connection:
        return keep_document(connection, body)


def count(store: Store) -> int:
    with store.read() as connection:
        return connection.execute(select(func.count()).select_from(documents)).scalar_one()


def trouble_of_reading(store: Store) -> StorageTrouble:
    with pytest.raises(StorageError) as caught:
        count(store)
    return caught.value.trouble


def make_other(path: Path, bodies: int) -> Path:
    with Store.open(path) as other:
        for number in range(bodies):
            keep(other, number)
    return path


def test_file_that_takes_the_place_of_another_is_read_and_written_from_then_on(followed: Store, path: Path) -> None:
    for bodies in (3, 5):
        make_other(path.with_name("other.db"), bodies).replace(path)
        assert count(followed) == bodies
        digest = keep(followed, "written after it")
        with Store.open(path) as seen, seen.read() as connection:
            assert read_document(connection, digest) == "written after it"
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def test_file_that_takes_the_place_of_another_is_not_read_with_the_log_of_that(followed: Store, path: Path) -> None:
    log = path.with_name(f"{path.name}-wal").read_bytes()
    assert log
    make_other(path.with_name("other.db"), 3).replace(path)
    assert count(followed) == 3
    (aside,) = path.parent.glob("golden.db.gone-*-wal")
    assert aside.read_bytes() == log


def test_write_finds_the_file_that_took_the_place_of_another(followed: Store, path: Path) -> None:
    make_other(path.with_name("other.db"), 3).replace(path)
    keep(followed, "written at once")
    assert count(followed) == 4


def test_what_reads_when_a_file_takes_the_place_reads_the_old_one_to_its_end(followed: Store, path: Path) -> None:
    with followed.read() as connection:
        make_other(path.with_name("other.db"), 3).replace(path)
        assert count(followed) == 3
        assert connection.execute(select(func.count()).select_from(documents)).scalar_one() == 1


def test_file_that_is_gone_is_said_until_one_is_there(followed: Store, path: Path) -> None:
    shutil.move(path, path.with_name("elsewhere.db"))
    assert trouble_of_reading(followed) is StorageTrouble.GONE
    assert not path.exists()
    shutil.move(path.with_name("elsewhere.db"), path)
    assert count(followed) == 1
    path.unlink()
    assert trouble_of_reading(followed) is StorageTrouble.GONE
    make_other(path, 2)
    assert count(followed) == 2


def test_file_that_cannot_be_opened_is_said_until_a_better_one_is_there(followed: Store, path: Path) -> None:
    path.with_name("garbage").write_bytes(b"no database at all\n" * 500)
    path.with_name("garbage").replace(path)
    assert trouble_of_reading(followed) is StorageTrouble.CORRUPT
    make_other(path.with_name("other.db"), 2).replace(path)
    assert count(followed) == 2


def test_store_that_does_not_follow_is_not_read_when_another_is_in_its_place(path: Path) -> None:
    with Store.open(path) as store:
        make_other(path.with_name("other.db"), 3).replace(path)
        assert trouble_of_reading(store) is StorageTrouble.GONE


def test_store_that_a_newer_program_brought_up_to_date_is_neither_read_nor_written(store: Store) -> None:
    with store.write() as connection:
        keep_document(connection, "before")
        connection.execute(text("UPDATE golden_version SET version_num = '9999'"))
    for transaction in (store.read, store.write, store.write_aside):
        with pytest.raises(StorageError, match=r"version 9999 .* by a newer .* restart") as caught, transaction():
            pytest.fail("it was let in")
        assert caught.value.trouble is StorageTrouble.NEWER


def test_store_whose_version_was_lost_while_it_was_open_is_damaged(store: Store) -> None:
    with store.write() as connection:
        connection.execute(text("DELETE FROM golden_version"))
    assert trouble_of_reading(store) is StorageTrouble.CORRUPT


def test_older_store_that_may_only_be_read_stays_as_it_is(path: Path) -> None:
    with Store.open(path) as store, store.write() as connection:
        connection.execute(text("UPDATE golden_version SET version_num = '0000'"))
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"older version \(0000\).*run `golden store upgrade") as caught:
        Store.open(path, only_reads=True)
    assert caught.value.trouble is StorageTrouble.OLDER
    assert path.read_bytes() == before


@pytest.mark.parametrize("is_there", [False, True])
def test_store_that_may_only_be_read_is_not_made(path: Path, is_there: bool) -> None:
    if is_there:
        path.touch()
    with pytest.raises(StorageError) as caught:
        Store.open(path, only_reads=True)
    assert caught.value.trouble is (StorageTrouble.OLDER if is_there else StorageTrouble.GONE)
    assert path.exists() == is_there
    assert not is_there or not path.stat().st_size


def test_store_that_may_only_be_read_takes_no_write(path: Path) -> None:
    make_other(path, 2)
    with Store.open(path, only_reads=True) as store:
        assert count(store) == 2
        for transaction in (store.write, store.write_aside):
            with pytest.raises(StorageError, match="opened for reading only") as caught, transaction():
                pytest.fail("it was let in")
            assert caught.value.trouble is StorageTrouble.READ_ONLY
