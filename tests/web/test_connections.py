from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from pytest_golden.web import connections
from pytest_golden.web.connections import PatientProtocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Open = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SLOWLY_TOLD = 64 * 1024 * 1024


async def answer(scope: Any, receive: Any, send: Any) -> None:
    body = b"x" * SLOWLY_TOLD if scope["path"] == "/large" else b"ok"
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]}
    )
    await send({"type": "http.response.body", "body": body})


def serve(visit: Callable[[Open], Awaitable[None]], state: ServerState | None = None) -> None:
    """Let somebody visit a server that gives this answer."""

    async def run() -> None:
        config, known = Config(answer, lifespan="off", log_config=None), state or ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: PatientProtocol(config, known, {}), "127.0.0.1")
        address = server.sockets[0].getsockname()
        try:
            await visit(lambda: asyncio.open_connection(*address))
        finally:
            server.close()
            for one in list(known.connections):
                one.transport.abort()

    asyncio.run(run())


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD + b"GET"])
def test_who_never_ends_a_head_is_sent_away(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(connections, "_MOST_HEAD_SECONDS", 0.05)

    async def visit(connect: Open) -> None:
        reader, writer = await connect()
        writer.write(sent)
        assert (await reader.read()).endswith(b"ok" if sent.startswith(HEAD) else b"")
        writer.close()

    serve(visit)


def test_who_does_not_read_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_READING_SECONDS", 0.05)

    async def visit(connect: Open) -> None:
        _, writer = await connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(HEAD.replace(b"/ ", b"/large "))
        while not state.connections:
            await asyncio.sleep(0.001)
        while state.connections:
            await asyncio.sleep(0.001)
        writer.transport.abort()

    state = ServerState()
    serve(visit, state)


def test_newcomers_take_the_place_of_the_longest_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)

    async def visit(connect: Open) -> None:
        opened = []
        for _ in range(5):
            reader, writer = await connect()
            writer.write(HEAD)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            opened.append((reader, writer))
        for reader, _ in opened[:2]:
            assert await reader.read() == b""
        for reader, writer in opened[2:]:
            writer.write(HEAD)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        for _, writer in opened:
            writer.close()

    serve(visit)
