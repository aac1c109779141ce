"""Listen on a socket, and run an application on it until it is ended. Connections are bounded in number and time."""

from __future__ import annotations

import json
import logging
import socket
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import SettingsError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp

_MOST_WAITING = 512
_QUIET_SECONDS = 60.0
_MOST_SENTENCES = 500
# Clients that send invalid requests get an answer, so the log need not repeat it.
_OF_STRANGERS = ("Invalid HTTP request received.", "Unsupported upgrade request.", "No supported WebSocket library")
_READERS_OF_FORMS = ("python_multipart", "multipart")
MOST_CONNECTIONS = 600
_MOST_HEAD_SECONDS = 20.0
_MOST_READING_SECONDS = 30.0
_NOT_HTTP = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": "The request is not valid HTTP."}


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 chooses a free one.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    try:
        return _listen(host, port)
    # An invalid host name is a TypeError or a UnicodeError, depending on the version of Python.
    except (OSError, TypeError, UnicodeError) as error:
        told = getattr(error, "strerror", None) or error
        raise SettingsError(f"cannot listen on {host} port {port}: {told}; give another --host or --port") from None


def write_address(host: str, bound: socket.socket) -> str:
    """Return the URL of a server."""
    port = bound.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_app(
    make_app: Callable[[Callable[[], bool]], ASGIApp],
    bound: socket.socket,
    *,
    most_ending_seconds: int,
    kept_alive_seconds: int = 5,
) -> None:
    """Serve an application until a Ctrl-C or SIGTERM. `make_app` receives a function that tells whether the server is ending.

    An idle connection is kept for `kept_alive_seconds`. At the end, open answers have `most_ending_seconds` to finish.

    Raises:
        KeyboardInterrupt: a Ctrl-C ended it.
    """

    def is_ending() -> bool:
        return server.should_exit

    config = uvicorn.Config(
        make_app(is_ending),
        lifespan="on",
        # Fixed, because other installed parsers would read requests differently; WebSocket is not used.
        http=PatientProtocol,
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=kept_alive_seconds,
        timeout_graceful_shutdown=most_ending_seconds,
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = uvicorn.Server(config)
    with saying(is_ending):
        server.run(sockets=[bound])


@contextmanager
def saying(is_ending: Callable[[], bool]) -> Iterator[None]:
    """Log to the terminal while the block runs."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("golden: %(message)s"))
    handler.addFilter(SaidOnce(is_ending))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


class SaidOnce(logging.Filter):
    """Lets each message pass once a minute at most, so that a stranger cannot fill a disk with them.

    While `is_ending`, nothing passes about connections that the end cuts off.
    """

    def __init__(self, is_ending: Callable[[], bool], clock: Callable[[], float] = monotonic_seconds) -> None:
        super().__init__()
        self._is_ending = is_ending
        self._clock = clock
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is logged."""
        sentence = record.getMessage()
        if record.name.startswith(_READERS_OF_FORMS):
            return False
        if record.name == "uvicorn.error" and (self._is_ending() or sentence.startswith(_OF_STRANGERS)):
            return False
        now = self._clock()
        before = self._said.pop(sentence, None)
        is_news = before is None or now - before >= _QUIET_SECONDS
        self._said[sentence] = now if is_news or before is None else before
        if len(self._said) > _MOST_SENTENCES:
            self._said.pop(next(iter(self._said)))
        return is_news


def _listen(host: str, port: int) -> socket.socket:
    # asyncio turns Nagle's algorithm off only where the protocol is named: with it, an answer waits for 40 ms.
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(_MOST_WAITING)
    except BaseException:
        bound.close()
        raise
    return bound


class PatientProtocol(H11Protocol):
    """One connection. It is closed when a request's head does not come in time, or when others need its place."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.idle_since = 0.0
        self._head_timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, and close another one if there are too many."""
        super().connection_made(transport)
        # Any unread byte pauses writing, also when the connection is to be closed after it.
        transport.set_write_buffer_limits(high=0)
        self._await_head()
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    @property
    def is_idle(self) -> bool:
        """Tell whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def may_give_way(self) -> bool:
        """Tell whether the server waits for the client (to ask, send or read), or the client asks on before it was answered."""
        is_their_turn = self.is_idle or self._reading_timer is not None or self.conn.their_state is h11.SEND_BODY
        return is_their_turn or self.flow.read_paused

    @property
    def is_closed(self) -> bool:
        """Tell whether it is closing, and does not wait for the client to read the end of an answer."""
        return self.transport.is_closing() and self._reading_timer is None

    def give_way(self) -> None:
        """Close it to make room for another connection."""
        if self._reading_timer is None:
            self.transport.close()
        else:
            # Unread data would keep it open.
            self._stop_reading_timer()
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        self._forget_timer()
        self._stop_reading_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a client that does not read its answer, for a limited time."""
        super().pause_writing()
        self._reading_timer = self.loop.call_later(_MOST_READING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop that time limit."""
        super().resume_writing()
        self._stop_reading_timer()

    def data_received(self, data: bytes) -> None:
        """Read on. The first byte of a head ends the time limit of keep-alive, so that the one for heads begins."""
        super().data_received(data)
        if not self.is_idle:
            self._forget_timer()
        elif self._head_timer is None:
            self._await_head()

    def on_response_complete(self) -> None:
        """Prepare for the next request: until it begins, only the time limit of keep-alive counts.

        The rest of a refused body is waited for no longer than a head.
        """
        self.idle_since = monotonic_seconds()
        super().on_response_complete()
        is_begun = self.conn.their_state is not h11.IDLE or self.conn.trailing_data[0]
        if self.is_idle and is_begun and not self.transport.is_closing():
            self._await_head()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the words are ours
        """Answer a client that does not send HTTP, in the form of all problems."""
        body = json.dumps(_NOT_HTTP).encode()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"connection", b"close"),
        ]
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            head = h11.Response(status_code=400, headers=headers, reason=HTTPStatus.BAD_REQUEST.phrase.encode())
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _make_room(self) -> None:
        """Close the connection that has been idle longest of those that may give way."""
        # Many come at once, and a closed connection stays in the set for a while.
        open_ones = [one for one in self.connections if isinstance(one, PatientProtocol) and not one.is_closed]
        if len(open_ones) > MOST_CONNECTIONS:
            min((one for one in open_ones if one.may_give_way), key=lambda one: one.idle_since).give_way()

    def _await_head(self) -> None:
        self._forget_timer()
        self.idle_since = monotonic_seconds()
        self._head_timer = self.loop.call_later(_MOST_HEAD_SECONDS, self._lose_patience)

    def _lose_patience(self) -> None:
        self._head_timer = None
        if self.is_idle and not self.transport.is_closing():
            self.transport.close()

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_reading_timer(self) -> None:
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None
