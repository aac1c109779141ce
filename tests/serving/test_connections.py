from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from pytest_golden.web import listening as connections
from pytest_golden.web.listening import PatientProtocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Open = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
UNREAD_BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx"
SLOWLY_TOLD = 64 * 1024 * 1024


async def answer(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/body":
        await receive()
        await receive()
    elif scope["path"] == "/held":
        await scope["state"]["end"].wait()
    body = b"x" * SLOWLY_TOLD if scope["path"] == "/large" else b"ok"
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]}
    )
    await send({"type": "http.response.body", "body": body})


def serve(visit: Callable[[Open], Awaitable[None]], state: ServerState | None = None) -> None:
    """Let somebody visit a server that gives this answer."""

    async def run() -> None:
        config, known = Config(answer, lifespan="off", log_config=None, timeout_keep_alive=300), state or ServerState()
        loop, end = asyncio.get_running_loop(), asyncio.Event()
        server = await loop.create_server(lambda: PatientProtocol(config, known, {"end": end}), "127.0.0.1")
        address = server.sockets[0].getsockname()
        try:
            async with asyncio.timeout(30):
                await visit(lambda: asyncio.open_connection(*address))
        finally:
            server.close()
            end.set()
            for one in list(known.connections):
                one.transport.abort()

    asyncio.run(run())


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD + b"GET", UNREAD_BODY])
def test_who_never_ends_what_they_send_is_sent_away(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(connections, "_MOST_HEAD_SECONDS", 0.05)

    async def visit(connect: Open) -> None:
        reader, writer = await connect()
        writer.write(sent)
        assert (await reader.read()).endswith(b"ok" if sent in {HEAD + b"GET", UNREAD_BODY} else b"")
        writer.close()

    serve(visit)


def test_who_thinks_between_two_requests_is_not_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_HEAD_SECONDS", 0.05)

    async def visit(connect: Open) -> None:
        reader, writer = await connect()
        writer.write(HEAD)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        slow_reader, slow_writer = await connect()
        slow_writer.write(b"GET / HT")
        assert await slow_reader.read() == b""
        writer.write(HEAD)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        for one in (writer, slow_writer):
            one.close()

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


@pytest.mark.parametrize(
    "slow",
    [
        b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx",
        HEAD.replace(b"/ ", b"/large ") * 2,
        HEAD.replace(b"/ ", b"/held ") * 2,
    ],
    ids=["sends a body slowly", "reads an answer slowly", "asks on before it is answered"],
)
def test_newcomers_take_the_place_of_who_is_slow_or_greedy(monkeypatch: pytest.MonkeyPatch, slow: bytes) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)

    async def visit(connect: Open) -> None:
        slow_ones = []
        for number in range(3):
            _, writer = await connect()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(slow)
            slow_ones.append(writer)
            while len(state.connections) <= number or any(one.is_idle for one in state.connections):  # type: ignore[union-attr]
                await asyncio.sleep(0.001)
        for _ in range(2):
            reader, writer = await connect()
            writer.write(HEAD)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            writer.close()
        for one in slow_ones:
            one.transport.abort()

    state = ServerState()
    serve(visit, state)


def test_what_is_left_of_an_answer_is_not_waited_for_when_the_connection_is_to_be_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "_MOST_READING_SECONDS", 0.05)

    async def visit(connect: Open) -> None:
        _, writer = await connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        while not state.connections:
            await asyncio.sleep(0.001)
        # As much as the kernel takes, and then a little.
        (protocol,) = state.connections
        left = protocol.transport.get_write_buffer_size
        while not left():
            protocol.transport.write(b"x" * 1024)
            await asyncio.sleep(0)
        protocol.transport.close()
        while state.connections:
            await asyncio.sleep(0.001)
        writer.transport.abort()

    state = ServerState()
    serve(visit, state)


def test_who_sends_no_http_is_told_so_in_the_form_for_programs() -> None:
    async def visit(connect: Open) -> None:
        reader, writer = await connect()
        writer.write(b"this is no request\r\n\r\n")
        head, _, told = (await reader.read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request")
        assert b"application/problem+json" in head
        assert json.loads(told)["status"] == 400
        writer.close()

    serve(visit)
