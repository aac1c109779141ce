"""Posts in a file that has no name, so that memory stays flat however many come. What is in them is not looked at."""

from __future__ import annotations

import struct
import tempfile
import threading
import weakref
from collections import Counter
from typing import TYPE_CHECKING

from pytest_golden.trajectory.otel.posts import Post

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_SPOOL_BYTES = 128 << 20
_HEAD = struct.Struct("<??I")


class Spool:
    """The posts of one receiver. Written by one thread, read by any; it is gone with this object."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - lives as long as this object
        self._close = weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._end = 0
        #: How many posts are not in it, by the reason.
        self.refused: Counter[str] = Counter()

    def add(self, post: Post) -> None:
        """Write a post; one for which there is no room is refused."""
        record = _HEAD.pack(post.is_json, post.is_gzip, len(post.body)) + post.body
        with self._lock:
            if self._end + len(record) > MAX_SPOOL_BYTES:
                self.refused[f"more than {MAX_SPOOL_BYTES >> 20} MiB came"] += 1
                return
            try:
                self._write(record)
            except OSError as error:
                self.refused[f"they could not be kept: {error.strerror}"] += 1
                return
            self._end += len(record)

    def _write(self, record: bytes) -> None:
        """Write at the end of the last whole post, whatever an earlier attempt left there."""
        self._file.seek(self._end)
        rest = memoryview(record)
        while rest:
            rest = rest[self._file.write(rest) :]

    def posts(self) -> Iterator[Post]:
        """Give all posts that have come so far."""
        position = 0
        while position < self._end:
            with self._lock:
                self._file.seek(position)
                is_json, is_gzip, size = _HEAD.unpack(self._file.read(_HEAD.size))
                body = self._file.read(size)
            position += _HEAD.size + size
            yield Post(body, is_json, is_gzip)

    def close(self) -> None:
        """Remove it; safe to call twice."""
        self._close()
