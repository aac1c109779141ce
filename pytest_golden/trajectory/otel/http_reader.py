"""Requests out of the bytes of one HTTP/1.1 connection, piece by piece, with bounded memory. Opens no socket.

Source: RFC 9112 (framing, chunked transfer coding), RFC 9110 (100-continue).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MAX_HEAD_BYTES = 16 << 10
_MAX_LINE_BYTES = 1 << 10
_REQUEST_LINE = re.compile(r"([A-Za-z]+) (\S+) HTTP/1\.([01])", re.ASCII)
_LENGTH = re.compile(r"[0-9]{1,18}", re.ASCII)
_CHUNK_SIZE = re.compile(rb"\s*([0-9A-Fa-f]{1,15})\s*(?:;.*)?", re.DOTALL)


class Request(NamedTuple):
    """One request. `body` is None when it was larger than allowed, and was skipped; `headers` have small letters."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None
    is_last: bool


class BadRequestError(Exception):
    """What came is no HTTP, after which nothing on this connection can be understood."""


class HttpReader:
    """The reading end of one connection.

    `awaits_continue` is True when the client waits for `100 Continue`; whoever sends that sets it back.
    """

    def __init__(self, max_body_bytes: int) -> None:
        self.awaits_continue = False
        self._max = max_body_bytes
        self._buffer = bytearray()
        self._body = bytearray()
        self._next: Callable[[], Request | bool] = self._read_head
        self._head: tuple[str, str, Mapping[str, str], bool] = ("", "", {}, False)
        self._left = 0
        self._skips = False

    @property
    def held_bytes(self) -> int:
        """Give how much of an unfinished request is in memory."""
        return len(self._buffer) + len(self._body)

    @property
    def is_within_request(self) -> bool:
        """Tell whether a request has begun and not ended."""
        return bool(self._buffer) or self._next != self._read_head

    def feed(self, data: bytes | memoryview) -> list[Request]:
        """Take bytes as they come and give the requests that they complete.

        Raises:
            BadRequestError: this is no HTTP.
        """
        self._buffer += data
        requests = []
        while True:
            step = self._next()
            if isinstance(step, Request):
                requests.append(step)
            elif not step:
                return requests

    def _read_head(self) -> bool:
        if self._buffer.startswith((b"\r", b"\n")):
            del self._buffer[:1]  # an empty line before a request is to be ignored
            return True
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or end > _MAX_HEAD_BYTES:
            if len(self._buffer) > _MAX_HEAD_BYTES:
                raise BadRequestError("a request's head is too long")
            return False
        first, *rest = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        found = _REQUEST_LINE.fullmatch(first)
        if found is None:
            raise BadRequestError("there is no request line")
        pairs = (line.partition(":") for line in rest)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        self._head = (found[1].upper(), found[2].partition("?")[0], headers, _is_last(found[3], headers))
        self._begin_body(headers)
        return True

    def _begin_body(self, headers: Mapping[str, str]) -> None:
        self._body = bytearray()
        self._skips = False
        self._left = 0
        if headers.get("transfer-encoding", "").lower().endswith("chunked"):
            self._next = self._read_chunk_size
        else:
            length = headers.get("content-length", "0")
            if _LENGTH.fullmatch(length) is None:
                raise BadRequestError("the content's length is no number")
            self._left = int(length)
            self._skips = self._left > self._max
            self._next = self._read_body
        self.awaits_continue = headers.get("expect", "").lower() == "100-continue"

    def _read_body(self) -> Request | bool:
        return self._take_data() and self._finish()

    def _read_chunk_size(self) -> bool:
        line = self._take_line()
        if line is None:
            return False
        found = _CHUNK_SIZE.fullmatch(line)
        if found is None:
            raise BadRequestError("a chunk has no size")
        self._left = int(found[1], 16)
        self._skips = self._skips or len(self._body) + self._left > self._max
        self._next = self._read_chunk if self._left else self._read_trailer
        return True

    def _read_chunk(self) -> bool:
        if self._take_data():
            self._next = self._read_chunk_end
            return True
        return False

    def _read_chunk_end(self) -> bool:
        line = self._take_line()
        if line:
            raise BadRequestError("a chunk is longer than its size")
        self._next = self._read_chunk_size if line is not None else self._next
        return line is not None

    def _read_trailer(self) -> Request | bool:
        line = self._take_line()
        if line is None:
            return False
        return True if line else self._finish()

    def _take_data(self) -> bool:
        """Move what has come of the body out of the buffer; tells whether it is all there."""
        taken = min(self._left, len(self._buffer))
        if self._skips:
            self._body.clear()
        else:
            self._body += memoryview(self._buffer)[:taken]
        del self._buffer[:taken]
        self._left -= taken
        return not self._left

    def _take_line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n", 0, _MAX_LINE_BYTES)
        if end < 0:
            if len(self._buffer) >= _MAX_LINE_BYTES:
                raise BadRequestError("a chunk's line is too long")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _finish(self) -> Request:
        method, path, headers, is_last = self._head
        body = None if self._skips else bytes(self._body)
        self._body = bytearray()
        self._next = self._read_head
        self.awaits_continue = False
        return Request(method, path, headers, body, is_last)


def _is_last(minor: str, headers: Mapping[str, str]) -> bool:
    wish = headers.get("connection", "").lower()
    return "close" in wish or (minor == "0" and "keep-alive" not in wish)
