"""The thread behind a receiver: accepts connections, keeps what is posted to /v1/traces, and answers.

It never waits for a client, holds a bounded number of connections and bytes, and gives up those that were silent
longest when more come: for bytes only such as hold their share of them. What is in the posts is not looked at.
"""

from __future__ import annotations

import errno
import logging
import selectors
import socket
import threading
from collections import OrderedDict, deque
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_golden.clock import monotonic_seconds
from pytest_golden.trajectory.otel.http_reader import BadRequestError, HttpReader
from pytest_golden.trajectory.otel.posts import MAX_BODY_BYTES, Post

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.trajectory.otel.http_reader import Request
    from pytest_golden.trajectory.otel.spool import Spool

_LOG = logging.getLogger(__name__)

MAX_CONNECTIONS = 256
_MAX_HELD_BYTES = 64 << 20
_PIECE_BYTES = 256 << 10
_DRAIN_SECONDS, _QUIET_SECONDS = 1.0, 0.05
_OK, _CONTINUE = "200 OK", b"HTTP/1.1 100 Continue\r\n\r\n"
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_IGNORED = frozenset({"/v1/metrics", "/v1/logs"})
_PROTOBUF = frozenset({"application/x-protobuf", "application/protobuf"})


class _Connection:
    """One client: what it has sent of a request, and how much of that was counted as held."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.reader = HttpReader(MAX_BODY_BYTES)
        self.held_bytes = 0


class SpanServer:
    """Serves from its own thread, from `start` to `stop`. Listening sockets may be handed to it at any time."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._selector = selectors.DefaultSelector()
        self._connections: OrderedDict[_Connection, None] = OrderedDict()
        self._held_bytes = 0
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
        with suppress(OSError):  # it is awake, or has ended
            self._wake_write.send(b"\0")

    def _serve(self) -> None:
        try:
            while not self._has_stopped():
                self._turn()
        except Exception as error:  # whatever a client did, the run must not suffer from it
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
        """Do what is there to be done; with nothing left to drain, the end has come."""
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
                    continue  # the client has gone already
                # Somebody has to go first; where nobody is there to go, others hold everything.
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
        """Close the connection that was silent longest; tells whether there was one."""
        silent = next(iter(self._connections), None)
        if silent is not None:
            self._end(silent)
        return silent is not None

    def _find_silent_holder(self) -> _Connection:
        """Give who was silent longest of those that hold no less than the average: ending others would free little."""
        count = len(self._connections)
        return next(one for one in self._connections if one.held_bytes * count >= self._held_bytes)

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
            self._end(self._find_silent_holder())

    def _take(self, connection: _Connection) -> bool:
        """Read once and answer what is complete; tells whether the connection has come to its end."""
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
        """Send all at once; who does not read answers has no claim to more of them."""
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
            self._spool.refused[f"neither JSON nor protobuf, or packed unknown: {kind} {encoding}"[:80]] += 1
            return "415 Unsupported Media Type"
        if request.body is None:
            self._spool.refused[f"they are larger than {MAX_BODY_BYTES >> 20} MiB"] += 1
            return "413 Content Too Large"
        if request.body:
            self._spool.add(Post(request.body, kind not in _PROTOBUF, encoding == "gzip"))
        return _OK

    def _close_all(self) -> None:
        for connection in list(self._connections):
            self._end(connection)
        for opened in (*self._listeners(), *self._adopted, self._wake_read, self._wake_write):
            opened.close()
        self._selector.close()

    def _listeners(self) -> Iterator[socket.socket]:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, socket.socket):
                yield key.data


def _response(status: str, request: Request) -> bytes:
    is_json = status == _OK and "json" in request.headers.get("content-type", "")
    body = b"{}" if is_json else b""
    kind = "application/json" if is_json else "application/x-protobuf"
    end = "Connection: close\r\n" if request.is_last else ""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{end}\r\n"
    return head.encode("ascii") + body
