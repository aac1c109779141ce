"""A line on a terminal that shows what is running now. It writes beside pytest's capture and erases itself."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS_BETWEEN = 0.2
_SPINNER = "|/-\\"
_ERASE = "\r\x1b[2K"


class LiveLine:
    """Shows what `describe` says about five times a second, in one line of a terminal; None shows nothing.

    `descriptor` is the terminal's and is closed at the end. The text must fit the width less two signs.
    """

    def __init__(self, descriptor: int, describe: Callable[[], str | None]) -> None:
        self._descriptor = descriptor
        self._describe = describe
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._is_shown = False
        self._thread = threading.Thread(target=self._show, name="golden-live-line", daemon=True)

    def start(self) -> None:
        """Begin to show."""
        self._thread.start()

    def stop(self) -> None:
        """Erase the line and let the terminal go; nothing is written afterwards."""
        self._ended.set()
        self._thread.join()
        self.erase()
        os.close(self._descriptor)

    def erase(self) -> None:
        """Take the line away, so that another can be written in its place."""
        with self._lock:
            if self._is_shown:
                self._write(_ERASE)
                self._is_shown = False

    def _show(self) -> None:
        turn = 0
        while not self._ended.wait(_SECONDS_BETWEEN):
            with self._lock:
                text = self._describe()
                if text is None:
                    continue
                turn += 1
                self._write(f"{_ERASE}{_SPINNER[turn % len(_SPINNER)]} {text}")
                self._is_shown = True

    def _write(self, text: str) -> None:
        with suppress(OSError):
            os.write(self._descriptor, text.encode("utf-8", "replace"))
