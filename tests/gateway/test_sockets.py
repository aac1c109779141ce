from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.seal import Mounted, cover, find_sockets, parse_names, without_idle_covers

if TYPE_CHECKING:
    from pathlib import Path

TABLE = b"""Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 1901087 /srv/one s\nock\n
00000000b73ff008: 00000003 00000000 00000000 0001 03  1125
00000000b73ff009: 00000002 00000000 00010000 0001 01 19010 @/tmp/abstract
00000000b73ff00a: 00000002 00000000 00010000 0001 01 19010 relative
00000000b73ff00b: 00000002 00000000 00000000 0002 01     0 /srv/\xff
"""


def test_names_are_read_whatever_is_in_them() -> None:
    assert list(parse_names(TABLE)) == ["/srv/one s\nock\n", os.fsdecode(b"/srv/\xff")]
    assert list(parse_names(b"")) == list(parse_names(TABLE.splitlines()[0])) == []


@pytest.mark.skipif(sys.platform != "linux", reason="Linux names its sockets")
def test_sockets_are_found_while_they_are_there(tmp_path: Path) -> None:
    path, gone = str(tmp_path / "here"), tmp_path / "gone"
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as other:
        server.bind(path)
        other.bind(str(gone))
        gone.unlink()
        found = find_sockets()
        assert path in found
        assert str(gone) not in found
    assert path not in find_sockets()


@pytest.mark.skipif(os.getuid() != 0, reason="only root goes through folders that are closed to it")
def test_socket_behind_a_folder_of_somebody_else_needs_no_cover(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
        os.chown(folder, 12345, 12345)
        assert str(folder / "s") not in find_sockets()
        folder.chmod(0o711)
        assert str(folder / "s") in find_sockets()


def test_covers_of_what_is_gone_or_out_of_reach_are_left_out(tmp_path: Path) -> None:
    here, closed, gone = (str(tmp_path / name) for name in ("here", "closed", "gone"))
    for path in (here, closed):
        (tmp_path / path).touch()
    prefix = ("bwrap", "--ro-bind", "/dev/null", "x", *cover(gone).arguments, *cover(here).arguments)
    prefix = (*prefix, *cover(closed).arguments, "--chdir", "/", "--")
    complaint = f"bwrap: Can't create file at {closed}: Permission denied\n".encode()
    kept = ("bwrap", *cover(here).arguments, "--chdir", "/", "--")
    assert without_idle_covers(prefix, complaint) == kept
    assert without_idle_covers(kept, complaint) == kept


def test_only_the_machines_own_folders_show_servers() -> None:
    assert Mounted("/srv", ("--ro-bind", "/srv", "/srv")).shows_servers
    assert Mounted("/srv", ("--bind", "/srv", "/srv")).shows_servers
    assert not Mounted("/srv", ("--bind", "/srv", "/srv"), is_granted=True).shows_servers
    assert not Mounted("/srv", ("--bind", "/scratch/view", "/srv")).shows_servers
    assert not Mounted("/srv", ("--overlay-src", "/srv", "--overlay", "u", "w", "/srv")).shows_servers
    assert not Mounted("/run", ("--size", "1", "--tmpfs", "/run")).shows_servers
