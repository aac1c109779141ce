"""The tools over the process's own stdin and stdout: nothing but the protocol goes there.

The SDK reads stdin in a thread that nothing can interrupt; here a Ctrl-C ends the server although nothing comes in.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

import anyio
from mcp.server.stdio import stdio_server

from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mcp.server import Server, ServerRequestContext

_READ_AT_ONCE = 1 << 16
# How many lines are read ahead.
_MOST_WAITING = 16
# How long the last answers may take after stdin has ended, and how long ending itself may take.
_MOST_LINGERING_SECONDS, _MOST_ENDING_SECONDS = 10.0, 3.0
_PAUSE_SECONDS = 0.02
_INTERRUPTED = 130


def serve_stdio(server: Server[Any]) -> None:
    """Serve until stdin ends, or the client disconnects.

    Raises:
        KeyboardInterrupt: it was ended by a Ctrl-C.
        GoldenError: nothing can be written to stdout.
    """
    if sys.stdout is None:
        raise GoldenError("stdout is closed: the protocol's answers go there")
    trouble: BaseException | None = None
    last_resort = threading.Timer(_MOST_ENDING_SECONDS, os._exit, (_INTERRUPTED,))
    last_resort.daemon = True
    with _reserve(0, os.open(os.devnull, os.O_RDONLY)) as stdin, _reserve(1, _open_stderr()) as stdout:
        answers = os.fdopen(stdout, "w", encoding="utf-8", closefd=False)
        try:
            anyio.run(_serve, server, stdin, answers, last_resort)
        except* (BrokenPipeError, ConnectionError, anyio.BrokenResourceError):
            # The client has disconnected.
            pass
        except* OSError as errors:
            trouble = errors
        finally:
            last_resort.cancel()
    while isinstance(trouble, BaseExceptionGroup):
        trouble = trouble.exceptions[0]
    if trouble is not None:
        raise GoldenError(f"stdout takes no answers: {getattr(trouble, 'strerror', trouble)}")


async def _serve(server: Server[Any], stdin: int, stdout: TextIO, last_resort: threading.Timer) -> None:
    busy = _Busy()
    server.middleware.append(busy)
    lines = cast("anyio.AsyncFile[str]", _read_lines(stdin, busy))
    async with stdio_server(stdin=lines, stdout=anyio.wrap_file(stdout)) as (incoming, outgoing):
        try:
            await server.run(incoming, _Outgoing(outgoing, busy), server.create_initialization_options())
        finally:
            # A client that stops reading would block the last answers, and so the end.
            last_resort.start()


class _Busy:
    """Counts what is being answered, and what waits to be written."""

    def __init__(self) -> None:
        self._count = 0

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: Any) -> Any:
        with self.at_work():
            return await call_next(ctx)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count the work of the block."""
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    async def wait(self) -> None:
        """Wait until every request has been answered."""
        quiet = 0
        while quiet < 2:
            await anyio.sleep(_PAUSE_SECONDS)
            quiet = 0 if self._count else quiet + 1


class _Outgoing:
    """The stream of answers: each counts until it is taken, so that the end waits for unwritten answers."""

    def __init__(self, taken_by: Any, busy: _Busy) -> None:
        self._taken_by = taken_by
        self._busy = busy

    async def send(self, item: Any, /) -> None:
        with self._busy.at_work():
            await self._taken_by.send(item)

    async def aclose(self) -> None:
        await self._taken_by.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def _read_lines(stdin: int, busy: _Busy) -> AsyncIterator[str]:
    """Yield the lines of stdin; after the last one, wait for the answers."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[str | None] = asyncio.Queue()
    room = threading.Semaphore(_MOST_WAITING)

    def read() -> None:
        # The loop is closed when the server has ended.
        with suppress(RuntimeError):
            for line in _split(stdin):
                room.acquire()
                loop.call_soon_threadsafe(waiting.put_nowait, line)
            loop.call_soon_threadsafe(waiting.put_nowait, None)

    threading.Thread(target=read, name="golden mcp stdin", daemon=True).start()
    while (line := await waiting.get()) is not None:
        room.release()
        yield line
    with anyio.move_on_after(_MOST_LINGERING_SECONDS):
        await busy.wait()


def _split(stdin: int) -> Iterator[str]:
    held = bytearray()
    while read := _read(stdin):
        begin = len(held)
        held += read
        while (end := held.find(b"\n", begin)) >= 0:
            yield held[: end + 1].decode("utf-8", "replace")
            del held[: end + 1]
            begin = 0
    if held.strip():
        yield held.decode("utf-8", "replace")


def _read(stdin: int) -> bytes:
    try:
        return os.read(stdin, _READ_AT_ONCE)
    except OSError:
        return b""


@contextmanager
def _reserve(standard: int, substitute: int) -> Iterator[int]:
    """Reserve stdin or stdout for the protocol; a process that is started meanwhile gets the substitute."""
    private = os.dup(standard)
    os.dup2(substitute, standard)
    os.close(substitute)
    try:
        yield private
    finally:
        os.dup2(private, standard)
        # Python tries once more to write what is left in a stream, and complains if it cannot.
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, private)
        os.close(nothing)


def _open_stderr() -> int:
    try:
        return os.dup(2)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
