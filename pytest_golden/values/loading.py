"""Loads modules without the garbage collector: a module is never garbage, and to look at many of them again and again takes time."""

from __future__ import annotations

import atexit
import gc
import io
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# What all files are, also those of gzip. The check of `io.IOBase` itself takes five times as long.
_FILE: type[Any] = io.IOBase.__base__ or io.IOBase
# Python 3.12 itself sets some objects aside when it starts.
_FROZEN_AT_START = gc.get_freeze_count()


@contextmanager
def loading(*, is_last: bool = False) -> Iterator[None]:
    """Switch the collector off in the with-block. After the last of the large ones, set aside what is there."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
    if is_last:
        set_aside()


def set_aside() -> None:
    """Let the garbage collector ignore what is there now, once in a process.

    Each of the full collections that pytest makes at its end would take 45 ms more, and Python's own exit 200 ms.
    https://docs.python.org/3/library/gc.html#gc.freeze
    """
    if gc.get_freeze_count() == _FROZEN_AT_START:
        gc.freeze()
        atexit.register(_flush_files)


def _flush_files() -> None:
    """Write what nobody has closed: at its exit Python does not finish what is set aside.

    Only now, when the other threads have ended: `gc.get_objects` also returns a tuple that a thread is still making, and that thread
    then fails with a SystemError.
    """
    gc.unfreeze()
    for each in gc.get_objects():
        if isinstance(each, _FILE):
            with suppress(OSError, ValueError):
                each.flush()
    gc.freeze()
