"""Connections and the bodies of requests, bounded in number, size and time: a slow or silent client keeps nobody else out.

A body is read to its end before anything is done with it. What a request asks for is checked elsewhere.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from pytest_golden.clock import monotonic_seconds
from pytest_golden.web.access import Refusal

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Message, Receive

MOST_CONNECTIONS = 600
_KIB = 1024
_MOST_HEAD_SECONDS = 20.0
_MOST_READING_SECONDS = 30.0
_MOST_BODY_SECONDS = 30.0
_MOST_TOGETHER_BYTES = 64 * 1024 * _KIB
_MOST_PASSED_BYTES = 64 * 1024 * _KIB
_MOST_PASSING_SECONDS = 5.0
# So much of each body is not counted: large ones that fill the room keep nobody from signing in.
_FREE_BYTES = 64 * _KIB
_NOT_HTTP = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": "That is no request of HTTP."}


class Bodies:
    """Reads bodies. The bytes of all unfinished ones are bounded together, however many connections send one."""

    def __init__(self, most_together_bytes: int = _MOST_TOGETHER_BYTES) -> None:
        self._room_bytes = most_together_bytes

    async def read(self, receive: Receive, declared: str | None, most_bytes: int) -> bytes:
        """Read a body of at most `most_bytes`; `declared` is its Content-Length.

        Raises:
            Refusal: it is larger, there is no room for it, it does not end in time, or the sender has disconnected.
        """
        if declared is not None and not _is_at_most(declared, most_bytes):
            raise _too_large(most_bytes)
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(_MOST_BODY_SECONDS):
                await self._read_into(parts, receive, most_bytes)
        except TimeoutError:
            raise Refusal(408, f"The body did not come within {_MOST_BODY_SECONDS:.0f} seconds.") from None
        finally:
            self._room_bytes += _counted(sum(map(len, parts)))
        return b"".join(parts)

    async def _read_into(self, parts: list[bytes], receive: Receive, most_bytes: int) -> None:
        size, has_more = 0, True
        while has_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "The request ended before its body did.")
            part, has_more = message.get("body", b""), message.get("more_body", False)
            if size + len(part) > most_bytes:
                raise _too_large(most_bytes)
            needed = _counted(size + len(part)) - _counted(size)
            if needed > self._room_bytes:
                wait = f"{_MOST_BODY_SECONDS:.0f}"
                raise Refusal(
                    503, f"Too much is being sent at once: try again in {wait} seconds.", {"Retry-After": wait}
                )
            self._room_bytes -= needed
            parts.append(part)
            size += len(part)


def refuse_two_lengths(headers: Headers) -> None:
    """Raise an error for a request that tells the length of its body in two ways.

    A proxy may have believed the other length, and have let in what it took for a part of the body (RFC 9112, 6.1).

    Raises:
        Refusal: it does; the connection is closed after it.
    """
    if "transfer-encoding" in headers and "content-length" in headers:
        raise Refusal(400, "The request tells the length of its body in two ways.", {"Connection": "close"})


def until_end(receive: Receive) -> Receive:
    """Return a `receive` that passes the body on; after its end it reports a disconnect instead of waiting for the client."""
    is_ended = False

    async def receive_on() -> Message:
        nonlocal is_ended
        if is_ended:
            return {"type": "http.disconnect"}
        message = await receive()
        is_ended = not message.get("more_body", False)
        return message

    return receive_on


async def pass_over(receive: Receive, headers: Headers) -> bool:
    """Read the rest of an unwanted body for a limited time; return whether there is more.

    A client that asks first whether to send it (`Expect: 100-continue`) is not told to.
    """
    if "expect" in headers:
        return True
    size = 0
    try:
        async with asyncio.timeout(_MOST_PASSING_SECONDS):
            while size <= _MOST_PASSED_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return False
    except TimeoutError:
        pass
    return True


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body once, and from then on what the client sends."""
    is_told = False

    async def receive_again() -> Message:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


def _is_at_most(declared: str, most_bytes: int) -> bool:
    return declared.isascii() and declared.isdigit() and int(declared[:12]) <= most_bytes


def _counted(size: int) -> int:
    return max(0, size - _FREE_BYTES)


def _too_large(most_bytes: int) -> Refusal:
    return Refusal(413, f"The body is larger than {most_bytes // _KIB} KiB.")


class PatientProtocol(H11Protocol):
    """One connection. It is closed when a request's head does not come in time, or when others need its place."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.idle_since = 0.0
        self._head_timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, if need be in the place of another one."""
        super().connection_made(transport)
        # Any unread byte pauses writing, also when the connection is to be closed after it.
        transport.set_write_buffer_limits(high=0)
        self._await_head()
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    @property
    def is_idle(self) -> bool:
        """Tell whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def may_give_way(self) -> bool:
        """Tell whether the server waits for the client (to ask, send or read), or the client asks on before it was answered."""
        is_their_turn = self.is_idle or self._reading_timer is not None or self.conn.their_state is h11.SEND_BODY
        return is_their_turn or self.flow.read_paused

    @property
    def is_closed(self) -> bool:
        """Tell whether it is closing, and does not wait for the client to read the end of an answer."""
        return self.transport.is_closing() and self._reading_timer is None

    def give_way(self) -> None:
        """Close it to make room for another connection."""
        if self._reading_timer is None:
            self.transport.close()
        else:
            # Unread data would keep it open.
            self._stop_reading_timer()
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        self._forget_timer()
        self._stop_reading_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a client that does not read its answer, for a limited time."""
        super().pause_writing()
        self._reading_timer = self.loop.call_later(_MOST_READING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop that time limit."""
        super().resume_writing()
        self._stop_reading_timer()

    def data_received(self, data: bytes) -> None:
        """Read on. The first byte of a head ends the time limit of keep-alive, so that the one for heads begins."""
        super().data_received(data)
        if not self.is_idle:
            self._forget_timer()
        elif self._head_timer is None:
            self._await_head()

    def on_response_complete(self) -> None:
        """Prepare for the next request: until it begins, only the time limit of keep-alive counts.

        The rest of a refused body is waited for no longer than a head.
        """
        self.idle_since = monotonic_seconds()
        super().on_response_complete()
        is_begun = self.conn.their_state is not h11.IDLE or self.conn.trailing_data[0]
        if self.is_idle and is_begun and not self.transport.is_closing():
            self._await_head()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the words are ours
        """Answer a client that does not send HTTP, in the form of all problems."""
        body = json.dumps(_NOT_HTTP).encode()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"connection", b"close"),
        ]
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            head = h11.Response(status_code=400, headers=headers, reason=HTTPStatus.BAD_REQUEST.phrase.encode())
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _make_room(self) -> None:
        """Close the connection that has been idle longest of those that may give way."""
        # Many come at once, and a closed connection stays in the set for a moment.
        open_ones = [one for one in self.connections if isinstance(one, PatientProtocol) and not one.is_closed]
        if len(open_ones) > MOST_CONNECTIONS:
            min((one for one in open_ones if one.may_give_way), key=lambda one: one.idle_since).give_way()

    def _await_head(self) -> None:
        self._forget_timer()
        self.idle_since = monotonic_seconds()
        self._head_timer = self.loop.call_later(_MOST_HEAD_SECONDS, self._lose_patience)

    def _lose_patience(self) -> None:
        self._head_timer = None
        if self.is_idle and not self.transport.is_closing():
            self.transport.close()

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_reading_timer(self) -> None:
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None
