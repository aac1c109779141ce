"""The file that a recorder streams to: a line is with the kernel when `write` returns, and no line is ever half there.

A file that is full or gone costs lines, with one warning and a count; nothing here raises for it.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from pytest_golden.trajectory.step_line import END_DIGITS

_LOG = logging.getLogger(__name__)
# A pipe that nobody reads must not hold the caller up.
_FLAGS = os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class StepStream:
    """An open file of JSON Lines. It replaces what was there at once, with its header; a device or pipe it writes into.

    Not safe between threads by itself. After a fork only the process that opened it may use it; the other `abandon`s it.
    """

    def __init__(self, path: Path, header: bytes) -> None:
        self.path = path
        self.lost_count = 0
        self.is_file = False
        self._descriptor: int | None = None
        self._size = 0
        # What has to come before the next line: the header, or the end of a line that could not be taken back.
        self._pending = header
        self._was_told = False
        try:
            self._open()
        except OSError as error:
            self._tell(error)

    def write(self, line: bytes, *, counts: bool = True) -> int | None:
        """Write one whole line and give the place where it begins, or None when it is lost."""
        start = self._size + len(self._pending)
        if self._push(self._pending + line):
            self._pending = b""
            return start
        self.lost_count += counts
        return None

    def note_place(self, place: int, number: int) -> None:
        """Write a number into the room that a line has for it; not where nothing can be written in place."""
        if self._descriptor is None or not self.is_file:
            return
        with suppress(OSError):
            try:
                os.lseek(self._descriptor, place, os.SEEK_SET)
                os.write(self._descriptor, b"%*d" % (END_DIGITS, number))
            finally:
                os.lseek(self._descriptor, self._size, os.SEEK_SET)

    def close(self) -> None:
        """Write no more."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)

    def abandon(self) -> None:
        """Leave the file to the process that this one was forked from."""
        self._was_told = False
        self._tell(OSError("the recorder belongs to the process that made it, and this one was forked from it"))
        self.close()

    def _open(self) -> None:
        with suppress(FileNotFoundError):
            mode = self.path.stat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                self._descriptor = os.open(self.path, _FLAGS)
                self._push_header()
                return
        self._descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=".trajectory-")
        self.is_file = True
        try:
            self._push_header()
            Path(name).replace(self.path)
        except OSError:
            self.close()
            Path(name).unlink(missing_ok=True)
            raise

    def _push_header(self) -> None:
        if self._push(self._pending):
            self._pending = b""

    def _push(self, data: bytes) -> bool:
        descriptor = self._descriptor
        if descriptor is None:
            return False
        done = 0
        try:
            while done < len(data):
                done += os.write(descriptor, data[done:] if done else data)
        except OSError as error:
            self._take_back(done)
            self._tell(error)
            return False
        except BaseException:  # a signal's handler may raise anything
            self._take_back(1)
            raise
        self._size += done
        return True

    def _take_back(self, done: int) -> None:
        """Cut a line off that is half there; where that cannot be done, let the next one begin on its own line."""
        if not done or self._descriptor is None:
            return
        try:
            os.ftruncate(self._descriptor, self._size)
            os.lseek(self._descriptor, self._size, os.SEEK_SET)
        except OSError:
            self._pending = b"\n" + self._pending.lstrip(b"\n")

    def _tell(self, error: OSError) -> None:
        if not self._was_told:
            self._was_told = True
            told = error.strerror or str(error)
            _LOG.warning("steps cannot be written and are lost: %s: %s", self.path, told)
