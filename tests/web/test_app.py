"""What only a real server shows: what stands in a request's bytes, streams that stay open, and how it all ends."""

from __future__ import annotations

import signal
import socket
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_golden.journal.service import Journal
from pytest_golden.storage.store import Store
from tests.patience import wait_until
from tests.web.seeded import seed, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAD = b"Host: 127.0.0.1\r\nConnection: close\r\n"
JSON = b"Content-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
WATCH = b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
MIB = 1024 * 1024
MOST_WATCHERS = 200


class Server(NamedTuple):
    """A server for all tests here, and where its store is."""

    port: int
    store: Path

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def send(self, request: bytes) -> bytes:
        """Send bytes, and give all that comes back."""
        with self.connect() as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def ask(self, target: bytes, method: bytes = b"GET", headers: bytes = b"", body: bytes = b"") -> bytes:
        return self.send(method + b" " + target + b" HTTP/1.1\r\n" + HEAD + headers + b"\r\n" + body)


def code_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@contextmanager
def running(folder: Path, programs: Path, *words: str, end: int = signal.SIGINT, code: int = 130) -> Iterator[Server]:
    """Serve, and see that the server ends as it should, with nothing said on the way."""
    secret = {"GOLDEN_WEBHOOK_SECRET": "shared"}
    with serving(folder, *words, environment=secret, programs=programs) as (process, address):
        yield Server(int(address.rpartition(":")[2]), folder / ".golden" / "golden.db")
        process.send_signal(end)
        assert process.wait(timeout=10) == code
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, warm_starts: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    seed(folder)
    with running(folder, warm_starts, "--heartbeat-seconds", "0.2") as served:
        yield served


def post(length: bytes, body: bytes = b"{}", target: bytes = b"/api/v1/entries") -> bytes:
    return b"POST " + target + b" HTTP/1.1\r\n" + HEAD + JSON + length + b"\r\n" + body


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /healthz\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.0\r\n\r\n", 421),
        (b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n" + HEAD + b"\r\n", 400),
        (b"GET http://evil.example/healthz HTTP/1.1\r\n" + HEAD + b"\r\n", 404),
        (b"CONNECT evil.example:443 HTTP/1.1\r\n" + HEAD + b"\r\n", 404),
        (b"GET //evil.example/%2e%2e HTTP/1.1\r\n" + HEAD + b"\r\n", 404),
        (b"GET /healthz/ HTTP/1.1\r\n" + HEAD + b"\r\n", 404),
        (b"GET /journal/%00 HTTP/1.1\r\n" + HEAD + b"\r\n", 404),
        (b"GET /journal/%ff%fe HTTP/1.1\r\n" + HEAD + b"\r\n", 404),
        (b"GET /api/v1/entries/%ff HTTP/1.1\r\n" + HEAD + b"\r\n", 404),
        (b"GET /static/%2e%2e%2fapp.py HTTP/1.1\r\n" + HEAD + b"\r\n", 404),
        (b"GET /journal?agent=%ff&cursor=%00 HTTP/1.1\r\n" + HEAD + b"\r\n", 400),
        (b"GET /journal HTTP/1.1\r\n" + HEAD + b"Cookie: golden_visit=\xff; =;;\r\nAuthorization: \xff\r\n\r\n", 200),
        (b"TRACE / HTTP/1.1\r\n" + HEAD + b"\r\n", 405),
        (post(b"Content-Length: 2\r\nContent-Length: 5\r\n"), 400),
        (post(b"Content-Length: -1\r\n"), 400),
        (post(b"Content-Length: 99999999999999999999999\r\n"), 400),
        (post(b"Transfer-Encoding: xchunked\r\n"), 400),
        (post(b"Transfer-Encoding : chunked\r\n", b"2\r\n{}\r\n0\r\n\r\n"), 400),
        (post(CHUNKED, b"zz\r\n{}\r\n0\r\n\r\n"), 400),
        (post(CHUNKED, b"2\r\n{}\r\n0\r\n\r\n"), 422),
        (post(b"Content-Length: 200000\r\n", b"[" * 200_000), 400),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else str(value),
)
def test_odd_requests_are_answered_and_end_nothing(server: Server, request_bytes: bytes, code: int) -> None:
    answer = server.send(request_bytes)
    assert code_of(answer) == code
    if code == 400 and b"content-security-policy" not in answer:
        assert b"application/problem+json" in answer
    assert server.ask(b"/healthz").endswith(b"ok\n")


def test_upgrade_to_a_websocket_is_passed_over(server: Server) -> None:
    asked = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
    answer = server.send(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" + asked + b"\r\n" + b"GET / HTTP/0.9\r\n\r\n")
    assert code_of(answer) == 200


def test_requests_in_one_piece_are_answered_in_turn(server: Server) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    assert server.send(one * 9 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")).count(b"ok\n") == 10


def test_bodies_far_too_large_are_refused_and_who_sends_them_learns_it(server: Server) -> None:
    body = b"x" * (20 * MIB)
    length = b"Content-Length: %d\r\n" % len(body)
    chunks = b"".join(b"100000\r\n" + body[:MIB] + b"\r\n" for _ in range(20)) + b"0\r\n\r\n"
    for request in (post(length, body), post(CHUNKED, chunks), post(length, body, b"/webhooks/callback")):
        assert code_of(server.send(request)) == 413
    foreign = post(length, body).replace(b"Host: 127.0.0.1", b"Host: evil.example")
    assert code_of(server.send(foreign)) == 421
    # Who asks first is not told to go on.
    assert code_of(server.send(post(length + b"Expect: 100-continue\r\n", b""))) == 413


def test_who_goes_in_the_middle_of_a_request_is_forgotten(server: Server) -> None:
    for begun in (b"GET / HT", post(b"Content-Length: 100\r\n"), post(CHUNKED, b"5\r\n{"), WATCH):
        with server.connect() as connection:
            connection.sendall(begun)
    assert server.ask(b"/healthz").endswith(b"ok\n")


def test_watchers_are_so_many_at_most_and_make_room_when_they_go(server: Server) -> None:
    def watch() -> tuple[socket.socket, int]:
        connection = server.connect()
        connection.sendall(WATCH)
        return connection, code_of(connection.recv(65536))

    connections = [server.connect() for _ in range(MOST_WATCHERS + 20)]
    for connection in connections:
        connection.sendall(WATCH)
    codes = [code_of(connection.recv(65536)) for connection in connections]
    assert (codes.count(200), codes.count(503)) == (MOST_WATCHERS, 20)
    assert code_of(server.ask(b"/journal")) == 200
    for connection in connections:
        connection.close()

    def has_room() -> bool:
        connection, code = watch()
        with closing(connection):
            return code == 200

    wait_until(has_room)


def test_what_is_due_is_resolved_while_it_serves(server: Server) -> None:
    with Store.open(server.store) as store:
        journal = Journal(store)
        entry = journal.log_intent("Rebuild orders", agent_id="builder")
        soon = {"description": "an answer", "expires_minutes": 0.0001}
        journal.log_outcome(entry.id, "success", expectations=[soon])
        wait_until(lambda: journal.get(entry.id).expectations[0].status.value == "expired")


def test_it_ends_soon_whoever_is_connected(tmp_path: Path, warm_starts: Path) -> None:
    with (
        running(tmp_path, warm_starts) as server,
        closing(server.connect()) as watcher,
        closing(server.connect()) as sender,
    ):
        watcher.sendall(WATCH)
        assert code_of(watcher.recv(65536)) == 200
        sender.sendall(post(b"Content-Length: 100\r\n"))
        # Another server on the same store ends when it is asked to, and with 0.
        with running(tmp_path, warm_starts, "--read-only", end=signal.SIGTERM, code=0) as other:
            assert code_of(other.ask(b"/journal")) == 200
            assert code_of(other.send(post(b"Content-Length: 2\r\n"))) == 403


def test_check_that_hangs_does_not_hold_up_the_end(tmp_path: Path, warm_starts: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with Store.open(tmp_path / ".golden" / "golden.db") as store:
            journal = Journal(store)
            entry = journal.log_intent("Deploy", agent_id="builder")
            check = {"after": "1ms", "url": address, "status": 200}
            journal.log_outcome(entry.id, "success", expectations=[{"description": "it is up", "check": check}])
        with running(tmp_path, warm_starts, "--heartbeat-seconds", "0.2"):
            asked, _ = silent.accept()
        asked.close()
