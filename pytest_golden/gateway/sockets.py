"""Sockets of this machine's servers that lie in the file system: a read-only mount keeps nobody from connecting to them.

What is found here is what the kernel names at this moment; which of it a seal would leave in sight is the seal's to know.
"""

from __future__ import annotations

import os
import re
import stat
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLE = Path("/proc/net/unix")
# A name is written as it is, with spaces and line ends, so it reaches to where the next row begins.
_ROW_START = re.compile(rb"^\S+: [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{4} [0-9A-F]{2} +\d+", re.MULTILINE)


def find_sockets() -> tuple[str, ...]:
    """List the sockets with a place in the file system that a process of ours could reach, links resolved, sorted.

    A name that another mount namespace gave, or that is gone, leads to no socket here and is left out.
    """
    try:
        table = _TABLE.read_bytes()
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
    """Give the absolute names in the text of /proc/net/unix (see `man 5 proc`); abstract ones begin with `@`."""
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
