"""Sockets that cross a seal: those of this machine's servers, and the listening one that a launch hands out to the gate."""

from __future__ import annotations

import os
import re
import socket
import stat
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


#: The port that exporters use by default; in a network that was just made nothing else has taken it.
PORT = 4318

_SOCKET_TABLE = Path("/proc/net/unix")
# A name is written as it is, with spaces and line ends, so it reaches to where the next row begins.
_ROW_START = re.compile(rb"^\S+: [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{4} [0-9A-F]{2} +\d+", re.MULTILINE)
_HANDOVER_SCRIPT = Path(__file__).with_name("handover_child.py")
_MESSAGE_BYTES = 1 << 10


def find_sockets() -> tuple[str, ...]:
    """List the sockets in the file system that a process of ours could connect to, links resolved, sorted.

    A read-only mount keeps nobody from connecting, so a seal covers those that it leaves in sight. A name that is gone, or
    that another mount namespace gave, leads to no socket here and is left out.
    """
    try:
        table = _SOCKET_TABLE.read_bytes()
    except OSError:
        return ()
    if b" /" not in table:
        return ()
    resolve = cache(os.path.realpath)
    is_open = cache(_is_open_to_us)
    found = set()
    for name in set(parse_names(table)):
        folder, _, last = name.rpartition("/")
        path = f"{resolve(folder or '/').rstrip('/')}/{last}"
        if _is_socket(path) and is_open(os.path.dirname(path)):
            found.add(path)
    return tuple(sorted(found))


def parse_names(table: bytes) -> Iterator[str]:
    """Yield the absolute names in the text of /proc/net/unix (see `man 5 proc`); abstract ones begin with `@`."""
    for rest in _ROW_START.split(table)[1:]:
        if rest.startswith(b" /"):
            yield os.fsdecode(rest[1:].removesuffix(b"\n"))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _is_open_to_us(folder: str) -> bool:
    """Tell whether a process in the seal can go through a folder: there, root has no more rights than its modes give."""
    if os.getuid() != 0:
        return True
    groups = {os.getgid(), *os.getgroups()}
    return all(_lets_root_through(os.stat(above), groups) for above in (folder, *map(str, Path(folder).parents)))


def _lets_root_through(found: os.stat_result, groups: set[int]) -> bool:
    if found.st_uid == 0:
        return True
    return bool(found.st_mode & (stat.S_IXGRP if found.st_gid in groups else stat.S_IXOTH))


class Handover:
    """The gate's end of a channel over which launched processes hand out a listening socket of their own network.

    The other end goes to the supervisor with each launch; what arrives is read while the launch runs. `adopt` receives each
    socket.
    """

    def __init__(self, adopt: Callable[[socket.socket], None]) -> None:
        self._adopt = adopt
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ours.setblocking(False)
        self._has_failed = False
        #: Why no socket could be handed out; empty when all went well.
        self.trouble = ""

    @property
    def launcher(self) -> tuple[str, ...]:
        """Return the start of a command line that hands a socket out before it becomes what follows."""
        return (sys.executable, "-I", "-S", str(_HANDOVER_SCRIPT), str(PORT))

    def fileno(self) -> int:
        """Return the file descriptor by which `select` tells that there is something to `receive`."""
        return self._ours.fileno()

    def send_to(self, control: socket.socket) -> None:
        """Send the other end to the supervisor, for its next launch."""
        socket.send_fds(control, [b"\n"], [self._theirs.fileno()])

    def receive(self) -> None:
        """Take what has been sent, without waiting."""
        while True:
            try:
                message, numbers, _, _ = socket.recv_fds(self._ours, _MESSAGE_BYTES, 1)
            except BlockingIOError:
                return
            for number in numbers:
                self._take(number)
            if message == b"failed":
                self._has_failed = True
            elif message.startswith(b"trouble "):
                self.trouble = message.partition(b" ")[2].decode("utf-8", "replace")

    def take_failure(self) -> bool:
        """Tell, once, whether the program of the last launch could not be started."""
        failed, self._has_failed = self._has_failed, False
        return failed

    def close(self) -> None:
        """Close both ends; safe to call twice."""
        self._ours.close()
        self._theirs.close()

    def _take(self, number: int) -> None:
        try:
            listener = socket.socket(fileno=number)
        except OSError:
            with suppress(OSError):
                os.close(number)
            return
        self._adopt(listener)
