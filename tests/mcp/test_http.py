from __future__ import annotations

import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client

from pytest_golden.mcp.transport.guard import Door, is_loopback
from tests.mcp.talking import MODES, talk_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

TOKEN = "a-token-that-nobody-guesses"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


class Served:
    def __init__(self, process: subprocess.Popen[str], url: str, token: str | None) -> None:
        self.process, self.url, self.token = process, url, token

    def post(self, body: Any = LIST, **headers: str) -> httpx2.Response:
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        sent = {**ACCEPT, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return httpx2.post(self.url, headers=sent, timeout=30, **content)

    @asynccontextmanager
    async def transport(self, token: str) -> AsyncIterator[Any]:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as client,
            streamable_http_client(self.url, http_client=client) as streams,
        ):
            yield streams


class Serve(Protocol):
    def __call__(self, *words: str, token: str | None = None) -> Served: ...


@pytest.fixture
def serve(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, token: str | None = None) -> Served:
        if token is not None:
            monkeypatch.setenv("GOLDEN_SERVE_TOKEN", token)
        code = "import sys; from pytest_golden.cli.main import main; sys.exit(main())"
        process = subprocess.Popen(
            [sys.executable, "-c", code, "mcp", "--http", "--port", "0", *words],
            cwd=workspace,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        return Served(process, process.stdout.readline().strip(), token)

    yield start
    for process in started:
        with process:
            process.kill()


def test_clients_of_both_protocols_call_tools_on_loopback(serve: Serve) -> None:
    served = serve()
    assert served.url.startswith("http://127.0.0.1:")
    assert served.url.endswith("/mcp")
    sessions = set()
    for mode in MODES:
        with talk_to(served.url, mode=mode) as one, talk_to(served.url, mode=mode) as other:
            for talk in (one, other):
                assert len(talk.tools()) == 9
                talk.ask("log_intent", intent="a")
                talk.ask("log_intent", intent="b")
            sessions |= {entry["session_key"] for entry in one.ask("review_journal")["entries"]}
    assert len(sessions) == 4

    # Strangers, whatever they send.
    assert served.post(Host="evil.example").status_code == 421
    assert served.post(Origin="http://evil.example").status_code == 403
    assert served.post(Sec_Fetch_Site="cross-site").status_code == 403
    assert served.post(b"x" * ((1 << 20) + 1)).status_code == 413
    assert served.post(b"no json").status_code == 400
    assert httpx2.get(served.url.removesuffix("/mcp")).status_code == 404

    # One that goes away in the middle of its request.
    address = httpx2.URL(served.url)
    with socket.create_connection((address.host, address.port or 0)) as gone:
        said = "".join(f"{name}: {value}\r\n" for name, value in ACCEPT.items())
        gone.sendall(f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n{said}Content-Length: 99\r\n\r\n{{".encode())
    with talk_to(served.url) as talk:
        talk.ask("review_journal")

    served.process.send_signal(signal.SIGINT)
    out, err = served.process.communicate(timeout=60)
    assert served.process.returncode in {0, 130}
    assert (out, err) == ("", "")


def test_a_token_that_is_set_is_asked_for_and_wrong_ones_are_slowed_down(serve: Serve) -> None:
    served = serve("--read-only", token=TOKEN)
    missing = served.post()
    assert missing.status_code == 401
    assert missing.headers["WWW-Authenticate"].startswith("Bearer")
    assert served.post(Authorization=f"Basic {TOKEN}").status_code == 401
    with talk_to(served.transport(TOKEN)) as talk:
        assert len(talk.tools()) == 6
    with httpx2.Client(headers={**ACCEPT, "Authorization": "Bearer wrong"}) as client:
        statuses = [client.post(served.url, json=LIST).status_code for _ in range(70)]
        refused = client.post(served.url, json=LIST)
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert int(refused.headers["Retry-After"]) > 0
    # Whoever has the token is not locked out by others.
    with talk_to(served.transport(TOKEN)) as talk:
        assert len(talk.tools()) == 6


def test_on_another_host_there_is_always_a_token_and_a_warning(serve: Serve) -> None:
    served = serve("--host", "0.0.0.0")
    port = served.url.rpartition(":")[2]
    assert served.url == f"http://0.0.0.0:{port}"
    served.url = f"http://127.0.0.1:{port}"
    assert served.post().status_code == 401
    served.process.terminate()
    _, err = served.process.communicate(timeout=60)
    assert served.process.returncode == 0
    warning, told = err.splitlines()[:2]
    assert warning.startswith("golden: warning: 0.0.0.0 is reached from other machines")
    assert told.startswith("golden: token: ")


@pytest.mark.parametrize(
    ("bound", "host", "is_allowed"),
    [
        ("127.0.0.1", "127.0.0.1:8766", True),
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "LOCALHOST:1", True),
        ("127.0.0.1", "[::1]:8766", True),
        ("127.0.0.1", "evil.example:8766", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "10.0.0.5:8766", False),
        ("10.0.0.5", "10.0.0.5:8766", True),
        ("0.0.0.0", "10.0.0.5:8766", True),
        ("0.0.0.0", "evil.example", False),
        ("::", "[fe80::1]:8766", True),
        ("build.example", "build.example:8766", True),
    ],
)
def test_only_a_servers_own_names_are_answered(bound: str, host: str, is_allowed: bool) -> None:
    assert Door(bound, None).allows_host(host) is is_allowed


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.0.0.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("example.org", False),
    ],
)
def test_loopback_is_told_from_what_others_reach(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_token_is_never_shown_by_its_door() -> None:
    assert TOKEN not in repr(Door("127.0.0.1", TOKEN))


def test_a_token_of_any_letters_opens_as_clients_send_it() -> None:
    # Headers come as bytes, and are read as if they were Latin-1.
    assert Door("127.0.0.1", "schl\u00fcssel").is_token("schl\u00fcssel".encode().decode("latin-1"))
    assert not Door("127.0.0.1", "schl\u00fcssel").is_token("schl?ssel")
