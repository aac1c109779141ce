"""The log that a store's file leaves behind when another file takes its place while it is open.

SQLite takes a log by its name: the file that stands there now would be read with the pages of the one that is gone, and
both be lost. Source: https://www.sqlite.org/howtocorrupt.html, "Unlinking or renaming a database file while in use".
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

_ENDINGS = ("-wal", "-shm")


class Log(NamedTuple):
    """Which file the log of an open store is, by its device and number."""

    device: int
    inode: int


def find_log(path: Path | None) -> Log | None:
    """Find the log of the store that is open at this path; None where it has none."""
    if path is not None:
        with suppress(OSError):
            found = path.with_name(f"{path.name}-wal").stat()
            return Log(found.st_dev, found.st_ino)
    return None


def set_log_aside(path: Path | None, log: Log | None, moment: datetime) -> None:
    """Give the log of a store that is gone another name, if it is still there; that of a newer store stays."""
    if path is None or log is None or find_log(path) != log:
        return
    stamp = f"{path.name}.gone-{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    for ending in _ENDINGS:
        with suppress(OSError):
            path.with_name(path.name + ending).rename(path.with_name(stamp + ending))
