"""A real HTTP server that speaks both protocols, and misbehaves as it is told: one behaviour a request, the last one for all further."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class Exchange(BaseHTTPRequestHandler):
    """One request at hand; behaviours answer it."""

    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        behave = self.server.note(self.path, dict(self.headers.items()), body)
        try:
            behave(self)
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base
        return

    def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


Behaviour = "Callable[[Exchange], object]"


class ModelServer(ThreadingHTTPServer):
    """Listens on loopback; `requests` are those that came, `release` lets all who hang go."""

    daemon_threads = True
    # As http.server has it: the server's end does not wait for those who hang.
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.behaviours: list[Callable[[Exchange], object]] = []
        self.release = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def behave(self, *behaviours: Callable[[Exchange], object]) -> None:
        self.behaviours = list(behaviours)

    def note(self, path: str, headers: dict[str, str], body: bytes) -> Callable[[Exchange], object]:
        self.requests.append((path, {name.lower(): value for name, value in headers.items()}, json.loads(body)))
        return self.behaviours[min(len(self.requests), len(self.behaviours)) - 1]


@contextmanager
def run_model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.release.set()
            server.shutdown()
            thread.join()


def says(content: Any, **more: Any) -> Callable[[Exchange], object]:
    """Reply in the protocol of the path that was asked."""

    def behave(exchange: Exchange) -> None:
        if exchange.path.endswith("/messages"):
            parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
            answer: dict[str, Any] = {"content": parts, "stop_reason": "end_turn", **more}
        else:
            answer = {"choices": [{"message": {"content": content}, "finish_reason": "stop", **more}]}
        exchange.send(200, json.dumps(answer).encode())

    return behave


def answers(status: int, body: bytes = b"{}", **headers: str) -> Callable[[Exchange], object]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(status, body, named)


def hangs(exchange: Exchange) -> None:
    """Say nothing at all."""
    exchange.server.release.wait(600)
    exchange.close_connection = True


def drips(exchange: Exchange) -> None:
    """Return a good reply, a byte every twentieth of a second."""
    exchange.send_response(200)
    exchange.send_header("content-length", "1000")
    exchange.end_headers()
    while not exchange.server.release.wait(0.05):
        exchange.wfile.write(b" ")


def drips_headers(exchange: Exchange) -> None:
    exchange.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not exchange.server.release.wait(0.05):
        exchange.wfile.write(b"x-more: 1\r\n")


def drops(exchange: Exchange) -> None:
    """Close the connection instead of answering."""
    exchange.close_connection = True


def breaks_off(exchange: Exchange) -> None:
    """Close the connection in the middle of the body."""
    exchange.send_response(200)
    exchange.send_header("content-length", "1000")
    exchange.end_headers()
    exchange.wfile.write(b'{"choices": [')
    exchange.close_connection = True
