"""Receive OpenTelemetry spans over OTLP/HTTP on loopback.

`HttpReader` takes requests out of the bytes of one connection, with bounded memory. `Spool` keeps the posts in a file without a name, so that memory stays
flat. `SpanServer` serves all connections from one thread: it never waits for a client, holds a bounded number of connections and bytes, and closes
those that were silent longest when more come. `OtlpReceiver` puts them together. Posts are read when the run has ended; only the structure of JSON is checked at once,
because programs write JSON by hand and need to know their mistakes.

Source: RFC 9112 (framing, chunked transfer coding), RFC 9110 (100-continue).
"""

from __future__ import annotations

import errno
import logging
import re
import selectors
import socket
import struct
import tempfile
import threading
import weakref
from collections import Counter, OrderedDict, deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Self

from pytest_golden.clock import monotonic_seconds
from pytest_golden.trajectory.otel import posts
from pytest_golden.trajectory.otel.posts import MAX_BODY_BYTES, Post

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from pathlib import Path

    from pytest_golden.trajectory.readers.model import StepReading

_LOG = logging.getLogger(__name__)
LOOPBACK = "127.0.0.1"
_BACKLOG = 1024
# The exporter drops spans that end while its queue is full, and the last ones of a run come at its end.
_SETTINGS = {
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
    "OTEL_BSP_SCHEDULE_DELAY": "200",
    "OTEL_BSP_MAX_QUEUE_SIZE": "65536",
}


class OtlpReceiver:
    """Receives spans from the beginning of a with-block to its end.

    Args:
        service_name: the name of instrumented programs, unless they set another.
        folder: where posts are kept until they are read; a temporary one by default.
        endpoint: the base URL, if the listening socket is opened elsewhere and passed to `adopt`.
    """

    def __init__(
        self, *, service_name: str | None = None, folder: Path | None = None, endpoint: str | None = None
    ) -> None:
        self._service_name = service_name
        self._folder = folder
        self._given_endpoint = endpoint
        self._endpoint = endpoint
        self._spool: Spool | None = None
        self._server: SpanServer | None = None

    def __enter__(self) -> Self:
        self._spool = Spool(self._folder)
        if self._given_endpoint is None:
            listener = socket.create_server((LOOPBACK, 0), backlog=_BACKLOG)
            self._endpoint = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        self._server = SpanServer(self._spool)
        if self._given_endpoint is None:
            self._server.adopt(listener)
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def endpoint(self) -> str:
        """Return the base URL, to which exporters append `/v1/traces`.

        Raises:
            RuntimeError: the with-block has not begun.
        """
        if self._endpoint is None:
            raise RuntimeError("the receiver has no endpoint before its with-block")
        return self._endpoint

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that lead an instrumented program's spans here."""
        named = {"OTEL_SERVICE_NAME": self._service_name} if self._service_name else {}
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint, **_SETTINGS, **named}

    def adopt(self, listener: socket.socket) -> None:
        """Serve a listening socket that was opened elsewhere, and close it at the end."""
        if self._server is None:
            listener.close()
        else:
            self._server.adopt(listener)

    def stop(self) -> None:
        """Read what clients have already sent, for up to a second, then stop. Safe to call twice."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def read_steps(self) -> StepReading:
        """Return the steps received so far, inside the with-block or after it."""
        if self._spool is None:
            raise RuntimeError("the receiver has received nothing before its with-block")
        return posts.read_posts(self._spool.posts(), self._spool.refused)

    def discard(self) -> None:
        """Stop, and remove what was received."""
        self.stop()
        if self._spool is not None:
            self._spool.close()


MAX_CONNECTIONS = 256
_MAX_HELD_BYTES = 64 << 20
_PIECE_BYTES = 256 << 10
_DRAIN_SECONDS, _QUIET_SECONDS = 1.0, 0.05
_OK, _CONTINUE = "200 OK", b"HTTP/1.1 100 Continue\r\n\r\n"
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_IGNORED = frozenset({"/v1/metrics", "/v1/logs"})
_PROTOBUF = frozenset({"application/x-protobuf", "application/protobuf"})


class SpanServer:
    """Serves from its own thread, from `start` to `stop`. It adopts listening sockets at any time."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._selector = selectors.DefaultSelector()
        self._connections: OrderedDict[_Connection, None] = OrderedDict()
        self._held_bytes = 0
        self._reads_protobuf = posts.can_read_protobuf()
        self._adopted: deque[socket.socket] = deque()
        self._wake_read, self._wake_write = socket.socketpair()
        for end in (self._wake_read, self._wake_write):
            end.setblocking(False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._piece = bytearray(_PIECE_BYTES)
        self._stops_at: float | None = None
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="golden-otlp", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def adopt(self, listener: socket.socket) -> None:
        """Serve a listening socket too, and close it at the end. Safe from any thread."""
        self._adopted.append(listener)
        self._wake()

    def stop(self) -> None:
        """Read what clients have sent already, for a second at most, then close everything. Safe to call twice."""
        self._is_stopping.set()
        self._wake()
        self._thread.join()

    def _wake(self) -> None:
        with suppress(OSError):  # it is awake already, or has ended
            self._wake_write.send(b"\0")

    def _serve(self) -> None:
        try:
            while not self._has_stopped():
                self._turn()
        except Exception as error:  # no client may harm the run
            _LOG.warning("the receiver of spans broke down", extra={"error": repr(error)})
            self._spool.refused["the receiver broke down"] += 1
        finally:
            self._close_all()

    def _has_stopped(self) -> bool:
        if not self._is_stopping.is_set():
            return False
        if self._stops_at is None:
            self._stops_at = monotonic_seconds() + _DRAIN_SECONDS
            return False
        return monotonic_seconds() >= self._stops_at

    def _turn(self) -> None:
        """Handle the sockets that are ready. While it drains, nothing ready means the end."""
        ready = self._selector.select(None if self._stops_at is None else _QUIET_SECONDS)
        while self._adopted:
            listener = self._adopted.popleft()
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ, listener)
        if not ready and self._stops_at is not None:
            self._stops_at = 0.0
        for key, _ in ready:
            if isinstance(key.data, _Connection):
                if key.data in self._connections:
                    self._receive(key.data)
            elif key.data is not None:
                self._accept(key.data)
            else:
                self._wake_read.recv(_PIECE_BYTES)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    continue  # the client has disconnected
                # Close a silent connection first; without any, other parts of the process hold all files.
                if not self._give_up_one() and not self._is_stopping.wait(_QUIET_SECONDS):
                    return
                continue
            client.setblocking(False)
            with suppress(OSError):
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = _Connection(client)
            self._connections[connection] = None
            self._selector.register(client, selectors.EVENT_READ, connection)
            if len(self._connections) > MAX_CONNECTIONS:
                self._give_up_one()

    def _give_up_one(self) -> bool:
        """Close the connection that was silent longest, and tell whether there was one."""
        silent = next(iter(self._connections), None)
        if silent is not None:
            self._end(silent)
        return silent is not None

    def _receive(self, connection: _Connection) -> None:
        self._connections.move_to_end(connection)
        try:
            is_over = self._take(connection)
        except BlockingIOError:
            return
        except BadRequestError:
            with suppress(OSError):
                self._send(connection, _BAD_REQUEST)
            is_over = True
        except OSError:
            is_over = True
        if is_over:
            self._end(connection)
            return
        self._held_bytes += connection.reader.held_bytes - connection.held_bytes
        connection.held_bytes = connection.reader.held_bytes
        while self._held_bytes > _MAX_HELD_BYTES:
            # The one silent longest of those that hold at least the average: closing others would free little.
            average = self._held_bytes / len(self._connections)
            self._end(next(one for one in self._connections if one.held_bytes >= average))

    def _take(self, connection: _Connection) -> bool:
        """Read once, answer complete requests, and tell whether the connection has ended."""
        count = connection.client.recv_into(self._piece)
        if not count:
            return True
        for request in connection.reader.feed(memoryview(self._piece)[:count]):
            self._send(connection, _response(self._answer(request), request))
            if request.is_last:
                return True
        if connection.reader.awaits_continue:
            connection.reader.awaits_continue = False
            self._send(connection, _CONTINUE)
        return False

    def _send(self, connection: _Connection, answer: bytes) -> None:
        """Send all at once; a client that does not read its answers is disconnected."""
        if connection.client.send(answer) != len(answer):
            raise ConnectionError("the client does not read")

    def _end(self, connection: _Connection) -> None:
        if connection.reader.is_within_request:
            self._spool.refused["they ended too early"] += 1
        self._held_bytes -= connection.held_bytes
        del self._connections[connection]
        self._selector.unregister(connection.client)
        connection.client.close()

    def _answer(self, request: Request) -> str:
        if request.path != "/v1/traces":
            return _OK if request.path in _IGNORED else "404 Not Found"
        if request.method != "POST":
            return "405 Method Not Allowed"
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        encoding = request.headers.get("content-encoding", "identity").lower() or "identity"
        if encoding not in {"identity", "gzip"} or kind not in {"application/json", *_PROTOBUF}:
            return self._refuse(
                "415 Unsupported Media Type", f"neither JSON nor protobuf, or packed unknown: {kind} {encoding}"[:80]
            )
        if kind in _PROTOBUF and not self._reads_protobuf:
            return self._refuse("415 Unsupported Media Type", posts.PROTOBUF_MISSING)
        if request.body is None:
            return self._refuse("413 Content Too Large", f"they are larger than {MAX_BODY_BYTES >> 20} MiB")
        return self._keep(Post(request.body, kind not in _PROTOBUF, encoding == "gzip")) if request.body else _OK

    def _refuse(self, status: str, reason: str) -> str:
        self._spool.refused[reason] += 1
        return status

    def _keep(self, post: Post) -> str:
        try:
            if post.is_json:
                posts.check_json(post)
        except ValueError as error:
            return self._refuse("400 Bad Request", posts.describe_refusal(error))
        self._spool.add(post)
        return _OK

    def _close_all(self) -> None:
        for connection in list(self._connections):
            self._end(connection)
        sockets = [key.data for key in self._selector.get_map().values() if isinstance(key.data, socket.socket)]
        for opened in (*sockets, *self._adopted, self._wake_read, self._wake_write):
            opened.close()
        self._selector.close()


class _Connection:
    """One client, its unfinished request, and the bytes of it that are counted as held."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.reader = HttpReader(MAX_BODY_BYTES)
        self.held_bytes = 0


def _response(status: str, request: Request) -> bytes:
    is_json = status == _OK and "json" in request.headers.get("content-type", "")
    body = b"{}" if is_json else b""
    kind = "application/json" if is_json else "application/x-protobuf"
    end = "Connection: close\r\n" if request.is_last else ""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{end}\r\n"
    return head.encode("ascii") + body


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
    """The bytes are not HTTP; nothing after them can be understood."""


class HttpReader:
    """The reading end of one connection.

    `awaits_continue` is True when the client waits for `100 Continue`; the sender of that resets it.
    """

    def __init__(self, max_body_bytes: int) -> None:
        self.awaits_continue = False
        self.is_within_request = False
        self._max = max_body_bytes
        self._buffer = bytearray()
        self._body = bytearray()
        self._requests = self._read_requests()

    @property
    def held_bytes(self) -> int:
        """Return how much of an unfinished request is in memory."""
        return len(self._buffer) + len(self._body)

    def feed(self, data: bytes | memoryview) -> list[Request]:
        """Take bytes as they come and return the requests that they complete.

        Raises:
            BadRequestError: this is not HTTP.
        """
        self._buffer += data
        return list(iter(self._requests.__next__, None))

    def _read_requests(self) -> Iterator[Request | None]:
        """Yield each request, and None where more bytes are needed."""
        while True:
            while self._buffer.startswith((b"\r", b"\n")):
                del self._buffer[:1]  # an empty line before a request is ignored
            self.is_within_request = bool(self._buffer)
            if not self._buffer:
                yield None
                continue
            first, *rest = (yield from self._read_until(b"\r\n\r\n", _MAX_HEAD_BYTES)).decode("latin-1").split("\r\n")
            found = _REQUEST_LINE.fullmatch(first)
            if found is None:
                raise BadRequestError("there is no request line")
            pairs = (line.partition(":") for line in rest)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            self.awaits_continue = headers.get("expect", "").lower() == "100-continue"
            is_whole = yield from self._read_body(headers)
            body, self._body = bytes(self._body) if is_whole else None, bytearray()
            self.awaits_continue = False
            yield Request(found[1].upper(), found[2].partition("?")[0], headers, body, _is_last(found[3], headers))

    def _read_body(self, headers: Mapping[str, str]) -> Generator[None, None, bool]:
        """Read the body and return True; return False for one that is larger than allowed, and was skipped."""
        if not headers.get("transfer-encoding", "").lower().endswith("chunked"):
            length = headers.get("content-length", "0")
            if _LENGTH.fullmatch(length) is None:
                raise BadRequestError("the content length is not a number")
            return (yield from self._read_data(int(length), skips=int(length) > self._max))
        is_whole = True
        while True:
            found = _CHUNK_SIZE.fullmatch((yield from self._read_until(b"\r\n", _MAX_LINE_BYTES)))
            if found is None:
                raise BadRequestError("a chunk has no size")
            size = int(found[1], 16)
            if not size:
                break
            is_whole = is_whole and len(self._body) + size <= self._max
            yield from self._read_data(size, skips=not is_whole)
            if (yield from self._read_until(b"\r\n", _MAX_LINE_BYTES)):
                raise BadRequestError("a chunk is longer than its size")
        while (yield from self._read_until(b"\r\n", _MAX_LINE_BYTES)):
            pass  # a trailer
        return is_whole

    def _read_data(self, size: int, *, skips: bool) -> Generator[None, None, bool]:
        """Move the next bytes out of the buffer into the body, or drop them and the body."""
        if skips:
            self._body.clear()
        while True:
            taken = min(size, len(self._buffer))
            if not skips:
                self._body += memoryview(self._buffer)[:taken]
            del self._buffer[:taken]
            size -= taken
            if not size:
                return not skips
            yield None

    def _read_until(self, mark: bytes, limit_bytes: int) -> Generator[None, None, bytes]:
        """Return the bytes before a mark, and remove both."""
        while (end := self._buffer.find(mark, 0, limit_bytes + len(mark))) < 0:
            if len(self._buffer) >= limit_bytes + len(mark):
                raise BadRequestError("a request's head, or a line of it, is too long")
            yield None
        found = bytes(self._buffer[:end])
        del self._buffer[: end + len(mark)]
        return found


def _is_last(minor: str, headers: Mapping[str, str]) -> bool:
    wish = headers.get("connection", "").lower()
    return "close" in wish or (minor == "0" and "keep-alive" not in wish)


MAX_SPOOL_BYTES = 128 << 20
_HEAD = struct.Struct("<??I")


class Spool:
    """The posts of one receiver, in a file that ends with this object. One thread writes, any reads."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - lives as long as this object
        self._close = weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._end = 0
        #: The number of posts that are not in it, by the reason.
        self.refused: Counter[str] = Counter()

    def add(self, post: Post) -> None:
        """Write a post; refuse it when there is no room."""
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
        """Write after the last whole post, over what a failed attempt left there."""
        self._file.seek(self._end)
        rest = memoryview(record)
        while rest:
            rest = rest[self._file.write(rest) :]

    def posts(self) -> Iterator[Post]:
        """Yield all posts received so far."""
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
