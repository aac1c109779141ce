"""Listen on a socket, run an application on it until it is ended, and limit what is logged on the terminal."""

from __future__ import annotations

import logging
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import SettingsError
from pytest_golden.web.requests import PatientProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp

_MOST_WAITING = 512
_QUIET_SECONDS = 60.0
_MOST_SENTENCES = 500
# Clients that send invalid requests are told so themselves.
_OF_STRANGERS = ("Invalid HTTP request received.", "Unsupported upgrade request.", "No supported WebSocket library")
_READERS_OF_FORMS = ("python_multipart", "multipart")


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 picks a free one.

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
        # Fixed, whatever else is installed: other parsers read requests in other ways, and nothing here speaks WebSocket.
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
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(_MOST_WAITING)
    except BaseException:
        bound.close()
        raise
    return bound
