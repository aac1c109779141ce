"""Connections, bounded in number and in patience: whoever sends a request slowly, or never, keeps nobody else out.

What a request says is bounded elsewhere; here it is not there yet.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from pytest_golden.clock import monotonic_seconds

if TYPE_CHECKING:
    import asyncio

MOST_CONNECTIONS = 600
_MOST_HEAD_SECONDS = 20.0
_MOST_READING_SECONDS = 30.0
_PROBLEM = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": "That is no request of HTTP."}


class PatientProtocol(H11Protocol):
    """One connection. It is closed when a request's head does not come in time, or when others need its place."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.idle_since = 0.0
        self._head_timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or one's place."""
        super().connection_made(transport)
        # The least that is not read counts as that, and also when the connection is to be closed after it.
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
        """Tell whether it is the client's turn (to ask, to send on, to read), or it asks on before it was answered."""
        is_their_turn = self.is_idle or self._reading_timer is not None or self.conn.their_state is h11.SEND_BODY
        return is_their_turn or self.flow.read_paused

    @property
    def is_closed(self) -> bool:
        """Tell whether it is over, and does not wait for the last of an answer to be read."""
        return self.transport.is_closing() and self._reading_timer is None

    def give_way(self) -> None:
        """Close it for somebody else's sake."""
        if self._reading_timer is None:
            self.transport.close()
        else:
            # What is not read would keep it open.
            self._stop_reading_timer()
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._forget_timer()
        self._stop_reading_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for who does not read what they asked for, and not for ever."""
        super().pause_writing()
        self._reading_timer = self.loop.call_later(_MOST_READING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        self._stop_reading_timer()

    def data_received(self, data: bytes) -> None:
        """Read on. The first byte of a head ends the keep-alive's own patience, so that ours begins."""
        super().data_received(data)
        if not self.is_idle:
            self._forget_timer()
        elif self._head_timer is None:
            self._await_head()

    def on_response_complete(self) -> None:
        """Be ready for the next request: until it begins, what counts is how long a connection is kept.

        What is still sent of a body that was refused is not waited for longer than a head.
        """
        self.idle_since = monotonic_seconds()
        super().on_response_complete()
        is_begun = self.conn.their_state is not h11.IDLE or self.conn.trailing_data[0]
        if self.is_idle and is_begun and not self.transport.is_closing():
            self._await_head()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the words are ours
        """Tell whoever sends no HTTP, in the form that all programs are told in."""
        body = json.dumps(_PROBLEM).encode()
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
        """Close the connection that has been so for longest of those that may give way, as this one may."""
        # Many come at once, and what is closed is among the others for a moment yet.
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
