"""Lets a command whose work leaves something to clean up end in good order, whoever asks it to end."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def raise_when_ended() -> Iterator[None]:
    """Let a request to end (SIGTERM, SIGHUP) be a KeyboardInterrupt inside a with-block, as Ctrl-C is.

    So is what breaks after a request that others have swallowed: a module whose import it has cut off, say.
    """
    is_asked = False

    def interrupt(*_: object) -> None:
        nonlocal is_asked
        is_asked = True
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wanted = [signal.SIGTERM, signal.SIGHUP]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        wanted.append(signal.SIGINT)
    before = {number: signal.signal(number, interrupt) for number in wanted}
    try:
        yield
    except Exception as error:
        if is_asked:
            raise KeyboardInterrupt from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def exit_when_ended() -> Iterator[None]:
    """Let SIGTERM end a server as it should end: with everything closed, and with 0, for that is what a service does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
