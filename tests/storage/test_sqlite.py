from __future__ import annotations

from pathlib import Path

import pytest

from pytest_golden.storage.sqlite import find_type, keeps_shared_memory

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
