"""Loads modules without the garbage collector: a module is never garbage, and to look at many of them again and again takes time."""

from __future__ import annotations

import atexit
import gc
import io
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What all files are, also those of gzip. The check of `io.IOBase` itself takes five times as long.
_FILE: type[Any] = io.IOBase.__base__ or io.IOBase


@contextmanager
def loading(*, is_last: bool = False) -> Iterator[None]:
    """Switch the collector off in the with-block.

    After the last of the large ones what is there is set aside, once in a process: each of the full collections that pytest makes
    at its end would take 45 ms more, and Python's own exit 200 ms. https://docs.python.org/3/library/gc.html#gc.freeze
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
    if is_last and not gc.get_freeze_count():
        # At its exit Python does not finish what is set aside, so a file that nobody has closed would lose its last lines.
        atexit.register(_flush, WeakSet(each for each in gc.get_objects() if isinstance(each, _FILE)))
        gc.freeze()


def _flush(files: Iterable[io.IOBase]) -> None:
    for file in files:
        with suppress(OSError, ValueError):
            file.flush()
