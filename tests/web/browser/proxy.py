"""A reverse proxy that shows a server below a prefix, as nginx and others do: it says that it is there, and may take the prefix off."""

from __future__ import annotations

import socket
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ADDED = "X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: http\r\nVia: 1.1 front\r\nConnection: close\r\n\r\n"
_NOT_HERE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_PART = 65_536


class Proxy(ThreadingTCPServer):
    """`strays` are the paths that were asked for outside of the prefix."""

    # What streams ends when the server behind does, or with this process.
    daemon_threads = True
    block_on_close = False

    def __init__(self, prefix: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.prefix = prefix
        self.port: int = self.server_address[1]
        self.upstream_port = 0
        self.takes_prefix_off = False
        self.strays: list[str] = []

    def inside(self, path: str) -> str:
        """Return a path as the server behind is asked for it."""
        return path.removeprefix(self.prefix) if self.takes_prefix_off else path


class _Handler(StreamRequestHandler):
    server: Proxy

    def handle(self) -> None:
        """Hand one request on, and its answer back until either side has gone."""
        with suppress(OSError, ValueError):
            method, path, version = self.rfile.readline().decode("latin-1").split(" ", 2)
            if not path.startswith(f"{self.server.prefix}/"):
                self.server.strays.append(path)
                self.wfile.write(_NOT_HERE)
                return
            headers, size = self._read_headers()
            head = f"{method} {self.server.inside(path)} {version}{headers}{_ADDED}"
            with socket.create_connection(("127.0.0.1", self.server.upstream_port)) as upstream:
                upstream.sendall(head.encode("latin-1") + self.rfile.read(size))
                while part := upstream.recv(_PART):
                    self.wfile.write(part)

    def _read_headers(self) -> tuple[str, int]:
        kept, size = [], 0
        while (line := self.rfile.readline().decode("latin-1")).strip():
            name, _, value = line.partition(":")
            if name.lower() == "content-length":
                size = int(value)
            if name.lower() != "connection":
                kept.append(line)
        return "".join(kept), size


@contextmanager
def proxying(prefix: str) -> Iterator[Proxy]:
    """Run a proxy on a free port; what it stands before is said by its `upstream_port`."""
    with Proxy(prefix) as proxy:
        thread = Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
