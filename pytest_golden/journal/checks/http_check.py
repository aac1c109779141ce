"""Request a page once: from the address that was checked, within one time limit for everything.

No redirect is followed, no proxy is used, and nothing but the request is sent. Every failure is an `UnansweredError`.
"""

from __future__ import annotations

import errno
import io
import socket
import ssl
from concurrent.futures import Future, wait
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import GoldenError
from pytest_golden.journal.checks.rules import Reply, is_refused

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: More of a reply's body is not read.
MOST_BYTES = 1 << 20
# Nor more of all that comes: lines, headers, and what a body is cut into.
_MOST_RECEIVED = 8 * MOST_BYTES
_PORTS = {"http": 80, "https": 443}
_HEADERS = {"Accept": "application/json, */*", "Connection": "close", "User-Agent": "pytest-golden-projects"}
# How often the time limit and `stop` are checked.
_GLANCE_SECONDS = 0.1


class UnansweredError(GoldenError):
    """No reply came."""


def fetch(url: str, *, timeout_seconds: float, wants_body: bool, stop: Event | None = None) -> Reply:
    """Request a page and return its reply; with its body if it is wanted, None if that is too large.

    Raises:
        UnansweredError: no reply came in time, or the host's address is one that is never requested, or `stop` was set.
    """
    exchange = _Exchange(url, timeout_seconds, wants_body=wants_body)
    try:
        return exchange.wait(stop or Event())
    except ssl.SSLCertVerificationError as error:
        raise UnansweredError(f"its certificate is not trusted: {error.verify_message}") from error
    except OSError as error:
        raise UnansweredError(f"no connection: {error.strerror or error}") from error
    except HTTPException as error:
        raise UnansweredError(f"its reply is not HTTP ({type(error).__name__})") from error
    except ValueError as error:
        raise UnansweredError(f"it cannot be requested: {error}") from error


class _Exchange:
    """One request, in a thread of its own: the look-up of a name has no time limit, so that thread may be abandoned."""

    def __init__(self, url: str, seconds: float, *, wants_body: bool) -> None:
        self._url = url
        self._seconds = seconds
        self._wants_body = wants_body
        self._deadline = monotonic_seconds() + seconds
        self._is_abandoned = False
        self._sock: socket.socket | None = None
        self._reply: Future[Reply] = Future()
        Thread(target=self._run, name="golden-page", daemon=True).start()

    def wait(self, stop: Event) -> Reply:
        """Return the reply, or raise what prevented it."""
        try:
            while not self._reply.done():
                left = self._deadline - monotonic_seconds()
                if left <= 0:
                    raise UnansweredError(f"no whole reply within {self._seconds:g} s")
                if stop.is_set():
                    raise UnansweredError("it was interrupted")
                wait([self._reply], min(left, _GLANCE_SECONDS))
            return self._reply.result()
        finally:
            self._is_abandoned = True
            if self._sock is not None:
                with suppress(OSError):
                    # The socket's own method, also for TLS: it wakes the thread.
                    socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def _run(self) -> None:
        try:
            self._reply.set_result(self._fetch())
        except Exception as error:
            self._reply.set_exception(error)
        finally:
            if self._sock is not None:
                self._sock.close()

    def _fetch(self) -> Reply:
        parts = urlsplit(self._url)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        self._connect(_find_addresses(host, port))
        assert self._sock is not None
        if parts.scheme == "https":
            context = ssl.create_default_context()
            wrapped = context.wrap_socket(self._sock, server_hostname=host, do_handshake_on_connect=False)
            self._sock = wrapped
            wrapped.do_handshake()
        connection = HTTPConnection(host, port)
        connection.default_port = _PORTS[parts.scheme]
        connection.sock = _Line(self._sock)
        target = parts._replace(scheme="", netloc="", path=parts.path or "/", fragment="").geturl()
        connection.request("GET", target, headers=_HEADERS)
        with connection.getresponse() as response:
            body = _read_body(response) if self._wants_body else None
            return Reply(response.status, response.getheader("Location"), body)

    def _connect(self, addresses: list[tuple[int, Any]]) -> None:
        trouble = OSError(errno.EADDRNOTAVAIL, "the host has no address")
        for family, address in addresses:
            if self._is_abandoned:
                break
            self._sock = socket.socket(family, socket.SOCK_STREAM)
            # Longer than the request has: the deadline, and not this, ends it.
            self._sock.settimeout(self._seconds + 1)
            try:
                self._sock.connect(address)
            except OSError as error:
                self._sock.close()
                trouble = error
            else:
                return
        raise trouble


class _Line:
    """A socket for `http.client` that counts what is received. Its maker closes it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.sendall = sock.sendall

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self._sock))

    def close(self) -> None:
        pass


class _Incoming(io.RawIOBase):
    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._sock = sock
        self._received = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        received = self._sock.recv_into(buffer)
        self._received += received
        if self._received > _MOST_RECEIVED:
            raise UnansweredError(f"its reply is larger than {_MOST_RECEIVED >> 20} MiB")
        return received


def _read_body(response: HTTPResponse) -> bytes | None:
    body = response.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        return None
    if response.length:
        # A number that was cut off is still a number.
        raise IncompleteRead(body, response.length)
    return body


def _find_addresses(host: str, port: int) -> list[tuple[int, Any]]:
    """Return the families and addresses of a host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # One refused address is enough: a name that has such an address beside others is not to be trusted.
    for *_, address in found:
        if is_refused(str(address[0])):
            raise UnansweredError(f"the host's address {address[0]} is one that is never requested")
    return [(family, address) for family, _, _, _, address in found]
