"""Request a page once: from the address that was checked, within one time limit for everything.

No redirect is followed, no proxy is used, and nothing but the request is sent. Every failure is an `UnansweredError`.
"""

from __future__ import annotations

import errno
import io
import os
import selectors
import socket
import ssl
import threading
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import GoldenError
from pytest_golden.journal.checks.model import is_refused
from pytest_golden.journal.checks.rules import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import WriteableBuffer

#: More of a reply's body is not read.
MOST_BYTES = 1 << 20
# Nor more of all that comes: lines, headers, and what a body is cut into.
_MOST_RECEIVED = 8 * MOST_BYTES
_PORTS = {"http": 80, "https": 443}
_HEADERS = {"Accept": "application/json, */*", "Connection": "close", "User-Agent": "pytest-golden-projects"}
# How often the time limit and `stop` are checked.
_GLANCE_SECONDS = 0.1
#: A family of addresses, and an address of it as `socket` takes it.
_Address: TypeAlias = tuple[int, Any]
_CONNECTING = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK})


class UnansweredError(GoldenError):
    """No reply came."""


def fetch(url: str, *, timeout_seconds: float, wants_body: bool, stop: threading.Event | None = None) -> Reply:
    """Request a page and return its reply; with its body if it is wanted, None if that is too large.

    Raises:
        UnansweredError: no reply came in time, or the host's address is one that is never requested, or `stop` was set.
    """
    patience = _Patience(timeout_seconds, stop or threading.Event())
    try:
        return _fetch(url, patience, wants_body=wants_body)
    except ssl.SSLCertVerificationError as error:
        raise UnansweredError(f"its certificate is not trusted: {error.verify_message}") from error
    except OSError as error:
        raise UnansweredError(f"no connection: {error.strerror or error}") from error
    except HTTPException as error:
        raise UnansweredError(f"its reply is no HTTP ({type(error).__name__})") from error
    except ValueError as error:
        raise UnansweredError(f"it cannot be requested: {error}") from error


class _Patience:
    """One time limit for all steps of a request."""

    def __init__(self, seconds: float, stop: threading.Event) -> None:
        self._seconds = seconds
        self._deadline = monotonic_seconds() + seconds
        self._stop = stop

    def wait_for(self, happens: Callable[[float], Any]) -> None:
        """Wait until `happens` returns a true value; its argument is how many seconds one call may take."""
        while True:
            left = self._deadline - monotonic_seconds()
            if left <= 0:
                raise UnansweredError(f"no whole reply within {self._seconds:g} s")
            if self._stop.is_set():
                raise UnansweredError("it was interrupted")
            if happens(min(left, _GLANCE_SECONDS)):
                return

    def wait(self, sock: socket.socket, *, to_write: bool = False) -> None:
        """Wait until a socket can be read or written."""
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_WRITE if to_write else selectors.EVENT_READ)
            self.wait_for(selector.select)

    def run(self, sock: socket.socket, work: Callable[[], Any], *, to_write: bool = False) -> Any:
        """Repeat `work` on a non-blocking socket until it succeeds; `to_write` tells whether it waits for writing."""
        while True:
            try:
                return work()
            except ssl.SSLWantReadError:
                self.wait(sock)
            except ssl.SSLWantWriteError:
                self.wait(sock, to_write=True)
            except BlockingIOError:
                self.wait(sock, to_write=to_write)


class _Line:
    """A socket for `http.client` whose waits are within the time limit. Its maker closes it."""

    def __init__(self, sock: socket.socket, patience: _Patience) -> None:
        self._sock = sock
        self._patience = patience

    def sendall(self, data: bytes) -> None:
        while data:
            data = data[self._patience.run(self._sock, partial(self._sock.send, data), to_write=True) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self._sock, self._patience))

    def close(self) -> None:
        pass


class _Incoming(io.RawIOBase):
    def __init__(self, sock: socket.socket, patience: _Patience) -> None:
        super().__init__()
        self._sock = sock
        self._patience = patience
        self._received = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        # Checked each time: a server that sends byte after byte never lets the socket wait.
        self._patience.wait_for(lambda _: True)
        received: int = self._patience.run(self._sock, lambda: self._sock.recv_into(buffer))
        self._received += received
        if self._received > _MOST_RECEIVED:
            raise UnansweredError(f"its reply is larger than {_MOST_RECEIVED >> 20} MiB")
        return received


def _fetch(url: str, patience: _Patience, *, wants_body: bool) -> Reply:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    sock = _connect(_find_addresses(host, port, patience), patience)
    try:
        if parts.scheme == "https":
            context = ssl.create_default_context()
            sock = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
            patience.run(sock, sock.do_handshake)
        connection = HTTPConnection(host, port)
        connection.default_port = _PORTS[parts.scheme]
        connection.sock = _Line(sock, patience)
        target = parts._replace(scheme="", netloc="", path=parts.path or "/", fragment="").geturl()
        connection.request("GET", target, headers=_HEADERS)
        with connection.getresponse() as response:
            body = _read_body(response) if wants_body else None
            return Reply(response.status, response.getheader("Location"), body)
    finally:
        sock.close()


def _read_body(response: HTTPResponse) -> bytes | None:
    body = response.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        return None
    if response.length:
        # A number that was cut off is still a number.
        raise IncompleteRead(body, response.length)
    return body


def _find_addresses(host: str, port: int, patience: _Patience) -> list[_Address]:
    found: list[Any] = []
    is_known = threading.Event()

    def look_up() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.append(error)
        is_known.set()

    # A look-up has no time limit of its own; a thread that never ends is abandoned.
    threading.Thread(target=look_up, daemon=True).start()
    patience.wait_for(is_known.wait)
    if isinstance(found[0], BaseException):
        raise found[0]
    addresses = [(family, address) for family, _, _, _, address in found[0]]
    # One refused address is enough: a name that has such an address beside others is not to be trusted.
    for _, address in addresses:
        if is_refused(address[0]):
            raise UnansweredError(f"the host's address {address[0]} is one that is never requested")
    return addresses


def _connect(addresses: list[_Address], patience: _Patience) -> socket.socket:
    trouble = OSError(errno.EADDRNOTAVAIL, "the host has no address")
    for family, address in addresses:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            _connect_one(sock, address, patience)
        except BaseException as error:
            sock.close()
            if not isinstance(error, OSError):
                raise
            trouble = error
        else:
            return sock
    raise trouble


def _connect_one(sock: socket.socket, address: Any, patience: _Patience) -> None:
    sock.setblocking(False)
    number = sock.connect_ex(address)
    if number in _CONNECTING:
        patience.wait(sock, to_write=True)
        number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if number:
        raise OSError(number, os.strerror(number))
