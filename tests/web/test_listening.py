from __future__ import annotations

import asyncio
import json
import logging
import socket
from typing import TYPE_CHECKING, Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from pytest_golden.errors import SettingsError
from pytest_golden.web import listening as connections
from pytest_golden.web.listening import PatientProtocol, SaidOnce, bind, write_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Open = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
    from collections.abc import Callable


def test_a_free_port_is_picked_and_told() -> None:
    with bind("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        assert port > 0
        assert write_address("127.0.0.1", bound) == f"http://127.0.0.1:{port}"
        assert write_address("::1", bound) == f"http://[::1]:{port}"


def test_what_cannot_be_listened_on_is_told_in_one_sentence() -> None:
    with bind("127.0.0.1", 0) as bound:
        for host, port in (
            ("127.0.0.1", bound.getsockname()[1]),
            ("192.0.2.1", 0),
            ("\u00e4" * 64, 0),
            ("2001:db8::1", 0),
        ):
            with pytest.raises(
                SettingsError, match=f"cannot listen on {host} port {port}: .*; give another --host or --port"
            ):
                bind(host, port)


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
        server = await loop.create_server(
            lambda: PatientProtocol(config, known, {"end": end}), sock=bind("127.0.0.1", 0)
        )
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


def test_second_answer_on_a_connection_is_sent_at_once() -> None:
    async def visit(connect: Open) -> None:
        _, writer = await connect()
        while not state.connections:
            await asyncio.sleep(0.001)
        (connection,) = state.connections
        sent_through = connection.transport.get_extra_info("socket")
        assert sent_through.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        writer.close()

    state = ServerState()
    serve(visit, state)


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
        writer.write(b"this is not a request\r\n\r\n")
        head, _, told = (await reader.read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request")
        assert b"application/problem+json" in head
        assert json.loads(told)["status"] == 400
        writer.close()

    serve(visit)


now = [0.0]


def says(sentence: str, name: str = "pytest_golden.web", *, by: SaidOnce) -> bool:
    return bool(by.filter(logging.LogRecord(name, logging.ERROR, "", 0, sentence, None, None)))


def make(is_ending: Callable[[], bool] = lambda: False) -> SaidOnce:
    return SaidOnce(is_ending, lambda: now[0])


def test_same_sentence_is_said_once_a_minute() -> None:
    book, told = make(), []
    for second in range(130):
        now[0] = float(second)
        told += [second] if says("the store is gone", by=book) else []
    assert told == [0, 60, 120]
    assert says("another", by=book)


def test_what_strangers_cause_is_not_said() -> None:
    assert not says("Invalid HTTP request received.", "uvicorn.error", by=make())
    assert not says("Expected boundary character 45", "python_multipart.multipart", by=make())
    assert says("Invalid HTTP request received.", by=make())


def test_what_an_end_cuts_off_is_not_said() -> None:
    assert not says("Exception in ASGI application\n", "uvicorn.error", by=make(lambda: True))
    assert says("Exception in ASGI application\n", "uvicorn.error", by=make())
    assert says("the store is gone", by=make(lambda: True))


def test_very_many_sentences_are_forgotten_again() -> None:
    book = make()
    for number in range(2000):
        assert says(f"sentence {number}", by=book)
    assert len(book._said) <= 500
