from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from pytest_golden.mcp.http import MOST_BODY_BYTES, Door, Guard

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

BASE = "http://127.0.0.1:8766"
TOKEN = "a-token-that-nobody-guesses"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(await Request(scope, receive).body())(scope, receive, send)


def visit(token: str | None = None) -> TestClient:
    return TestClient(Guard(echo, Door("127.0.0.1", token), lambda: None), BASE)


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
    whole = b"x" * MOST_BODY_BYTES
    assert visit().post("/mcp", content=whole).content == whole
    refused = visit().post("/mcp", content=(whole for _ in range(2)))
    assert (refused.status_code, refused.text) == (413, "The body is larger than 1024 KiB.")
    # Who asks first whether to send it is told not to.
    asked = visit().post("/mcp", headers={"Content-Length": str(MOST_BODY_BYTES + 1), "Expect": "100-continue"})
    assert (asked.status_code, asked.headers["connection"]) == (413, "close")


def test_who_says_no_token_is_asked_for_it_before_the_body_is_read() -> None:
    answer = visit(TOKEN).post("/mcp", content=b"x" * (MOST_BODY_BYTES + 1))
    assert answer.status_code == 401
    assert "Authorization: Bearer TOKEN" in answer.text
    assert visit(TOKEN).get("/mcp", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
