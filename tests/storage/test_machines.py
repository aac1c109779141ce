"""Machines on which a store has a hard time: full disks, read-only places, many processes, kill -9."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.shared_documents import keep_document, read_document
from pytest_golden.storage.store import Store
from tests.storage.conftest import end, hear, say, start

if TYPE_CHECKING:
    from pathlib import Path

    from tests.storage.conftest import Elsewhere

USE_READ_ONLY = """
    def write():
        with Store.open(path) as store:
            keep(store, "new")
    facts = {"writing": trouble_of(write)}
    try:
        with Store.open(path) as store:
            facts["reading"] = read(store, "%s")
    except StorageError as error:
        facts["reading"] = error.trouble.value
    facts["files"] = sorted(os.listdir(path.parent))
    print(json.dumps(facts))
"""


def make_store(path: Path) -> str:
    with Store.open(path) as store, store.write() as connection:
        return keep_document(connection, "kept")


def test_full_disk_is_said_and_loses_nothing_that_was_confirmed(tmp_path: Path, elsewhere: Elsewhere) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    facts = elsewhere(
        ("--size", str(1 << 20), "--tmpfs", str(disk)),
        disk / "golden.db",
        """
        store = Store.open(path)
        kept, trouble = [], None
        while trouble is None and len(kept) < 500:
            trouble = trouble_of(lambda: kept.append(keep(store, [len(kept), "x" * 20_000])))
        again = trouble_of(lambda: keep(store, ["y" * 20_000]))
        found = sum(read(store, digest) is not None for digest in kept)
        store.close()
        with Store.open(path) as store:
            later = sum(read(store, digest) is not None for digest in kept)
        print(json.dumps([trouble, again, len(kept), found, later]))
        """,
    )
    assert facts[:2] == ["full", "full"]
    assert facts[2] == facts[3] == facts[4] > 0


def test_disk_too_full_for_a_new_store_is_said(tmp_path: Path, elsewhere: Elsewhere) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    for size in (8192, 65536, 131072):
        assert (
            elsewhere(
                ("--size", str(size), "--tmpfs", str(disk)),
                disk / "golden.db",
                "print(json.dumps(trouble_of(lambda: Store.open(path))))",
            )
            == "full"
        )


def test_folder_mounted_read_only_can_be_read(tmp_path: Path, elsewhere: Elsewhere) -> None:
    digest = make_store(tmp_path / "golden.db")
    facts = elsewhere(("--ro-bind", str(tmp_path), str(tmp_path)), tmp_path / "golden.db", USE_READ_ONLY % digest)
    assert facts == {"writing": "read_only", "reading": "kept", "files": ["golden.db"]}


def test_folder_without_write_permission_can_be_read(tmp_path: Path, elsewhere: Elsewhere) -> None:
    folder = tmp_path / "state"
    digest = make_store(folder / "golden.db")
    folder.chmod(0o555)
    facts = elsewhere((), folder / "golden.db", USE_READ_ONLY % digest)
    assert facts == {"writing": "read_only", "reading": "kept", "files": ["golden.db"]}
    (folder / "golden.db").chmod(0o444)
    assert elsewhere((), folder / "golden.db", USE_READ_ONLY % digest) == facts


def test_file_without_write_permission_can_be_read(tmp_path: Path, elsewhere: Elsewhere) -> None:
    path = tmp_path / "golden.db"
    digest = make_store(path)
    path.chmod(0o444)
    facts = elsewhere((), path, USE_READ_ONLY % digest)
    assert (facts["writing"], facts["reading"]) == ("read_only", "kept")
    path.chmod(0o644)
    with Store.open(path) as store, store.read() as connection:
        assert read_document(connection, digest) == "kept"


def test_file_without_read_permission_is_said(tmp_path: Path, elsewhere: Elsewhere) -> None:
    path = tmp_path / "golden.db"
    digest = make_store(path)
    path.chmod(0)
    facts = elsewhere((), path, USE_READ_ONLY % digest)
    assert facts["writing"] == facts["reading"] == "unreachable"


def test_folder_that_cannot_be_written_holds_no_new_store(tmp_path: Path, elsewhere: Elsewhere) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(0o555)
    opening = "print(json.dumps(trouble_of(lambda: Store.open(path))))"
    assert elsewhere((), folder / "golden.db", opening) == "read_only"
    assert elsewhere((), folder / "below" / "golden.db", opening) == "read_only"


def test_what_waits_in_a_log_in_a_read_only_folder_is_not_passed_over(
    tmp_path: Path, elsewhere: Elsewhere, warm_starts: Path
) -> None:
    folder = tmp_path / "state"
    digest = make_store(folder / "golden.db")
    writer = start(
        "store = Store.open(path)\nprint(keep(store, 1), flush=True)\nos.kill(os.getpid(), 9)",
        folder / "golden.db",
        warm_starts,
    )
    assert hear(writer)
    end(writer)
    (folder / "golden.db-shm").unlink()
    folder.chmod(0o555)
    facts = elsewhere((), folder / "golden.db", USE_READ_ONLY % digest)
    assert facts["writing"] == facts["reading"] == "read_only"


def test_processes_that_open_a_new_file_at_once_all_get_it(path: Path, warm_starts: Path) -> None:
    code = """
        print("ready")
        input()
        with Store.open(path) as store:
            print(keep(store, [os.getpid()]), os.getpid())
    """
    openers = [start(code, path, warm_starts) for _ in range(5)]
    assert [hear(opener) for opener in openers] == ["ready"] * 5
    for opener in openers:
        say(opener, "go")
    digests = dict(hear(opener).split() for opener in openers)
    assert [end(opener) for opener in openers] == [0] * 5
    with Store.open(path) as store, store.read() as connection:
        assert len(digests) == 5
        assert {digest: read_document(connection, digest) for digest in digests} == {
            digest: [int(pid)] for digest, pid in digests.items()
        }
    assert check_store(path).problems == ()


def test_killed_writers_lose_nothing_that_was_confirmed(path: Path, warm_starts: Path) -> None:
    code = """
        with Store.open(path) as store:
            for number in range(100_000):
                print(keep(store, [os.getpid(), number, "x" * 300]), flush=True)
    """
    writers = [start(code, path, warm_starts) for _ in range(8)]
    confirmed = []
    chance = random.Random(3)
    for writer in writers:
        confirmed += [hear(writer) for _ in range(chance.randint(1, 40))]
        writer.kill()
        # What it had said before it died was confirmed as well; a line cut off was not.
        assert writer.stdout is not None
        said = writer.stdout.read()
        end(writer)
        confirmed += [line.strip() for line in said.splitlines(keepends=True) if line.endswith("\n")]
    with Store.open(path) as store, store.read() as connection:
        assert len(confirmed) > 8
        assert [digest for digest in confirmed if read_document(connection, digest) is None] == []
    assert check_store(path).problems == ()


def test_process_killed_while_it_makes_the_tables_leaves_a_file_that_the_next_one_takes(
    path: Path, warm_starts: Path
) -> None:
    code = """
        import pytest_golden.storage.upgrading as module
        def upgrade(*arguments, real=module.upgrade):
            real(*arguments)
            os.kill(os.getpid(), 9)
        module.upgrade = upgrade
        Store.open(path)
    """
    assert end(start(code, path, warm_starts)) == -9
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
    make_store(path)
    assert check_store(path).problems == ()
