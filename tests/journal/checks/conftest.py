from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_golden.journal.model import JournalEntry
    from pytest_golden.journal.service import Journal


class Site:
    """A page on this machine. It answers as it is told, and keeps what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body = b"{}"
        self.asked: list[str] = []
        self.seen_headers: dict[str, str] = {}
        self.before: Callable[[], object] = lambda: None
        site = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                site.seen_headers = dict(self.headers)
                site.before()
                self.send_response(site.status)
                for name, value in site.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(site.body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def says(self, value: Any) -> None:
        self.body = json.dumps(value).encode()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture
def talk() -> Iterator[Callable[[Callable[[socket.socket], object]], str]]:
    """Let a function speak with whoever connects; gives the address as a URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threads = []

        def begin(speak: Callable[[socket.socket], object]) -> str:
            def serve() -> None:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                with line:
                    line.settimeout(60)
                    with suppress(OSError):
                        line.recv(65536)
                        speak(line)

            threads.append(threading.Thread(target=serve))
            threads[-1].start()
            return f"http://127.0.0.1:{server.getsockname()[1]}/"

        yield begin
        server.close()
        for thread in threads:
            thread.join(60)


def expect(journal: Journal, *checks: dict[str, Any], agent_id: str = "builder", **more: Any) -> JournalEntry:
    """Log an entry with an expectation for each check, due after a minute where it does not say."""
    entry = journal.log_intent("deploy", agent_id=agent_id)
    asked = [
        {"description": f"check {number}", "check": {"after": 1, **one}, **more} for number, one in enumerate(checks)
    ]
    return journal.log_outcome(entry.id, "success", expectations=asked)
