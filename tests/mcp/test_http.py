from __future__ import annotations

import signal
import socket
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from pytest_golden.mcp.http import ToolGuard
from pytest_golden.web.boundary import MOST_BYTES
from tests.mcp.talking import MODES, talk_to
from tests.running import running

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

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
    def __call__(self, *words: str, token: str | None = None, before: str = "") -> Served: ...


@pytest.fixture
def serve(workspace: Path, warm_starts: Path) -> Iterator[Serve]:
    with ExitStack() as started:

        def start(*words: str, token: str | None = None, before: str = "") -> Served:
            environment = {} if token is None else {"GOLDEN_SERVE_TOKEN": token}
            server = running(
                workspace, "mcp", "--http", *words, environment=environment, before=before, programs=warm_starts
            )
            return Served(*started.enter_context(server), token)

        yield start


def test_clients_of_both_protocols_call_tools_on_loopback(serve: Serve) -> None:
    served = serve()
    assert served.url.startswith("http://127.0.0.1:")
    assert served.url.endswith("/mcp")
    sessions = set()
    for mode in MODES:
        with talk_to(served.url, mode=mode) as one, talk_to(served.url, mode=mode) as other:
            for talk in (one, other):
                assert len(talk.tools()) == 18
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
        assert len(talk.tools()) == 10
    with httpx2.Client(headers={**ACCEPT, "Authorization": "Bearer wrong"}) as client:
        statuses = [client.post(served.url, json=LIST).status_code for _ in range(70)]
        refused = client.post(served.url, json=LIST)
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert int(refused.headers["Retry-After"]) > 0
    # Whoever has the token is not locked out by others.
    with talk_to(served.transport(TOKEN)) as talk:
        assert len(talk.tools()) == 10


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
    assert told.startswith(("golden: token: ", "golden: the token is in "))


def test_newcomers_take_the_place_of_those_who_ask_nothing(serve: Serve) -> None:
    served = serve(before="from pytest_golden.web import listening\nlistening.MOST_CONNECTIONS = 3")
    address = httpx2.URL(served.url)
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection((address.host, address.port or 0))) for _ in range(4)]
        # Less than the patience with who sends no head.
        opened[0].settimeout(15)
        assert opened[0].recv(1) == b""
        opened[3].sendall(b"this is not a request\r\n\r\n")
        opened[3].settimeout(15)
        assert opened[3].recv(4096).startswith(b"HTTP/1.1 400")
    served.process.send_signal(signal.SIGINT)
    assert served.process.communicate(timeout=60) == ("", "")


BASE = "http://127.0.0.1:8766"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(await Request(scope, receive).body())(scope, receive, send)


def visit(token: str | None = None) -> TestClient:
    return TestClient(ToolGuard(echo, "127.0.0.1", token, lambda: None), BASE)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": BASE, "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Host": "localhost:80", "Origin": "http://localhost"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1:x"}, 421),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Length": "0", "Transfer-Encoding": "chunked"}, 400),
    ],
)
def test_strangers_reach_no_tool_whatever_they_ask(headers: dict[str, str], status: int) -> None:
    for method in ("GET", "POST", "DELETE"):
        assert visit().request(method, "/mcp", headers=headers).status_code == status


def test_a_body_is_read_before_the_protocol_sees_it_and_handed_on_whole() -> None:
    whole = b"x" * MOST_BYTES
    assert visit().post("/mcp", content=whole).content == whole
    refused = visit().post("/mcp", content=(whole for _ in range(2)))
    assert (refused.status_code, refused.text) == (413, "The body is larger than 1024 KiB.")
    # Who asks first whether to send it is told not to.
    asked = visit().post("/mcp", headers={"Content-Length": str(MOST_BYTES + 1), "Expect": "100-continue"})
    assert (asked.status_code, asked.headers["connection"]) == (413, "close")


def test_who_says_no_token_is_asked_for_it_before_the_body_is_read() -> None:
    answer = visit(TOKEN).post("/mcp", content=b"x" * (MOST_BYTES + 1))
    assert answer.status_code == 401
    assert "Authorization: Bearer TOKEN" in answer.text
    assert visit(TOKEN).get("/mcp", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
