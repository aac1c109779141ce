from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, select

from pytest_golden.errors import SettingsError, StorageError, StorageTrouble
from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.schema import documents
from pytest_golden.storage.shared_documents import keep_document
from pytest_golden.storage.sqlite import backup_store, find_type, keeps_shared_memory, put_aside, refuse_foreign
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from tests.storage.conftest import Elsewhere


TABLE = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:27 / {place} rw,relatime shared:2 master:1 - {kind} server:/export rw,vers=4.2
31 22 0:28 / {place}r rw - ext4 /dev/vdb rw
32 22 0:29 / /with\\040blank rw - nfs4 server:/other rw
line of another form
"""


def write_mounts(folder: Path, place: Path, kind: str) -> Path:
    mounts = folder / "mountinfo"
    mounts.write_text(TABLE.format(place=str(place).replace(" ", "\\040"), kind=kind))
    return mounts


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "virtiofs"])
def test_network_file_system_keeps_no_shared_memory(tmp_path: Path, kind: str) -> None:
    share = tmp_path / "a share"
    (share / "below").mkdir(parents=True)
    mounts = write_mounts(tmp_path, share, kind)
    assert not keeps_shared_memory(share / "below", mounts)
    assert not keeps_shared_memory(share, mounts)
    assert keeps_shared_memory(tmp_path, mounts)
    assert find_type(share, mounts) == kind


def test_disk_of_a_container_without_rights_keeps_it(tmp_path: Path) -> None:
    assert keeps_shared_memory(tmp_path, write_mounts(tmp_path, tmp_path, "fuse.fuse-overlayfs"))


def test_neighbour_of_a_mount_with_a_longer_name_is_not_below_it(tmp_path: Path) -> None:
    mounts = write_mounts(tmp_path, tmp_path / "sh", "nfs4")
    assert find_type(tmp_path / "share", mounts) == "ext4"
    assert find_type(Path("/with blank/x"), mounts) == "nfs4"


def test_link_to_a_network_file_system_is_followed(tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "share")
    assert not keeps_shared_memory(tmp_path / "link", write_mounts(tmp_path, tmp_path / "share", "nfs"))


def test_later_mount_on_the_same_place_hides_the_earlier(tmp_path: Path) -> None:
    mounts = write_mounts(tmp_path, tmp_path, "nfs4")
    mounts.write_text(f"{mounts.read_text()}33 22 0:29 / {tmp_path} rw - tmpfs tmpfs rw\n")
    assert find_type(tmp_path, mounts) == "tmpfs"


def test_system_without_a_mount_table_is_taken_for_the_usual(tmp_path: Path) -> None:
    assert keeps_shared_memory(tmp_path, tmp_path / "none")
    assert find_type(tmp_path, tmp_path / "none") is None
    assert keeps_shared_memory(tmp_path)


MOMENT = datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC)


@pytest.fixture
def store(file_store: Store) -> Store:
    """Only SQLite's are files."""
    return file_store


def keep(store: Store, *bodies: object) -> None:
    for body in bodies:
        with store.write() as connection:
            keep_document(connection, body)


def bodies(path: Path) -> list[object]:
    with Store.open(path) as store, store.read() as connection:
        return list(connection.execute(select(documents.c.body).order_by(documents.c.digest)).scalars())


@pytest.mark.parametrize("kind", ["ext4", "nfs4"])
def test_backup_of_a_store_in_use_has_all_that_was_confirmed(store: Store, path: Path, kind: str) -> None:
    store.close()
    with Store.open(path, mounts=write_mounts(path.parent, path.parent, kind)) as store:
        keep(store, *range(50))
        target = path.with_name("copy.db")
        size = backup_store(path, target)
        keep(store, "later")
    assert size == target.stat().st_size
    assert sorted(bodies(target), key=str) == sorted(range(50), key=str)
    assert check_store(target).problems == ()
    assert sorted(file.name for file in path.parent.iterdir()) == ["copy.db", "golden.db", "mountinfo"]


def test_backup_does_not_stop_writers(store: Store, path: Path) -> None:
    keep(store, *(["x" * 10_000, number] for number in range(100)))
    is_done = threading.Event()
    written = 0

    def copy() -> None:
        for number in range(3):
            backup_store(path, path.with_name(f"copy{number}.db"))
        is_done.set()

    copier = threading.Thread(target=copy)
    copier.start()
    while not is_done.is_set():
        keep(store, ["meanwhile", written])
        written += 1
    copier.join()
    assert written
    for number in range(3):
        assert check_store(path.with_name(f"copy{number}.db")).problems == ()
    with store.read() as connection:
        assert connection.execute(select(func.count()).select_from(documents)).scalar_one() == 100 + written


@pytest.mark.parametrize("kind", ["file", "folder", "dead link", "the store itself"])
def test_backup_replaces_nothing(store: Store, path: Path, kind: str) -> None:
    target = path if kind == "the store itself" else path.with_name("copy.db")
    if kind == "file":
        target.write_text("precious")
    elif kind == "folder":
        target.mkdir()
    elif kind == "dead link":
        target.symlink_to("nowhere")

    def look() -> object:
        if target.is_symlink():
            return target.readlink()
        return sorted(target.iterdir()) if target.is_dir() else target.read_bytes()

    before = look()
    with pytest.raises(StorageError, match="already exists; give the name of a new file"):
        backup_store(path, target)
    assert look() == before


def test_backup_that_cannot_be_made_says_so_and_leaves_nothing(store: Store, path: Path, elsewhere: Elsewhere) -> None:
    with pytest.raises(StorageError, match="none is not a folder"):
        backup_store(path, path.parent / "none" / "copy.db")
    with pytest.raises(StorageError, match="there is no such file"):
        backup_store(path.with_name("none.db"), path.with_name("copy.db"))
    with pytest.raises(StorageError, match="there is no such file"):
        backup_store(":memory:", path.with_name("copy.db"))
    with pytest.raises(SettingsError):
        backup_store("postgresql://here/x", path.with_name("copy.db"))
    assert not path.with_name("copy.db").exists()
    disk = path.with_name("disk")
    disk.mkdir()
    facts = elsewhere(
        ("--size", "65536", "--tmpfs", str(disk)),
        path,
        """
        from pytest_golden.storage.sqlite import backup_store
        disk = path.with_name("disk")
        print(json.dumps([trouble_of(lambda: backup_store(path, disk / "copy.db")), os.listdir(disk)]))
        """,
    )
    assert facts == ["full", []]


def test_backup_on_a_file_system_without_links(store: Store, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    keep(store, 1)
    backup_store(path, path.with_name("copy.db"))
    assert bodies(path.with_name("copy.db")) == [1]


def test_two_backups_to_one_place_at_once_leave_the_first(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = path.with_name("copy.db")
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    target.write_text("the first")
    with pytest.raises(StorageError, match="already exists"):
        backup_store(path, target)
    assert target.read_text() == "the first"


def test_damaged_store_is_put_aside_with_all_its_bytes(path: Path) -> None:
    endings = ("", "-wal", "-shm", "-journal")
    for ending in endings:
        path.with_name(path.name + ending).write_text(f"bytes{ending}")
    aside = put_aside(path, MOMENT)
    assert aside == path.with_name("golden.db.damaged-20260301T123005Z")
    assert sorted(file.name for file in path.parent.iterdir()) == sorted(aside.name + ending for ending in endings)
    for ending in endings:
        assert aside.with_name(aside.name + ending).read_text() == f"bytes{ending}"
    Store.open(path).close()
    assert put_aside(str(path), MOMENT) == aside.with_name(f"{aside.name}-2")
    with pytest.raises(StorageError, match="there is no such file"):
        put_aside(path, MOMENT)


def test_process_that_has_a_store_open_finds_it_gone_when_it_is_put_aside(store: Store, path: Path) -> None:
    keep(store, 1)
    aside = put_aside(path, MOMENT)
    with pytest.raises(StorageError) as caught:
        keep(store, 2)
    assert caught.value.trouble is StorageTrouble.GONE
    store.close()
    with closing(sqlite3.connect(aside)) as connection:
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (1,)


def test_store_that_cannot_be_put_aside_says_so(store: Store, path: Path, elsewhere: Elsewhere) -> None:
    code = """
        from datetime import UTC, datetime
        from pytest_golden.storage.sqlite import put_aside
        print(json.dumps(trouble_of(lambda: put_aside(path, datetime.now(UTC)))))
    """
    assert elsewhere(("--ro-bind", str(path.parent), str(path.parent)), path, code) == "read_only"


def test_store_in_a_read_only_folder_is_copied(store: Store, path: Path, tmp_path: Path, elsewhere: Elsewhere) -> None:
    store.close()
    folder = tmp_path / "state"
    with Store.open(folder / "golden.db") as store:
        keep(store, 7)
    code = """
        from pytest_golden.storage.sqlite import backup_store
        print(json.dumps(trouble_of(lambda: backup_store(path, path.parent.parent / "copy.db"))))
    """
    assert elsewhere(("--ro-bind", str(folder), str(folder)), folder / "golden.db", code) is None
    assert bodies(tmp_path / "copy.db") == [7]


@pytest.mark.parametrize(("name", "told"), [("x" * 300, "File name too long"), ("/dev/null", "is not a file")])
def test_place_where_no_file_can_be_is_refused(tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        refuse_foreign(tmp_path / name)
