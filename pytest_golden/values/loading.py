"""Loads modules without the garbage collector: a module is never garbage, and to look at many of them again and again takes time."""

from __future__ import annotations

import atexit
import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def loading(*, is_last: bool = False) -> Iterator[None]:
    """Switch the collector off in the with-block.

    After the last of the large ones what is there is set aside, once in a process and until it exits: each of the full collections
    that pytest makes at its end would take 45 ms more. https://docs.python.org/3/library/gc.html#gc.freeze
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
    if is_last and not gc.get_freeze_count():
        gc.freeze()
        # Else Python would not finish what is in a cycle: a file that nobody has closed would lose its last lines.
        atexit.register(gc.unfreeze)
