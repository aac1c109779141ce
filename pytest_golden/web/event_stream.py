"""Report a running gate as server-sent events.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import StorageError
from pytest_golden.gate.live import LiveEvent, find_events
from pytest_golden.web.access import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from pytest_golden.gate.live import LiveLook
    from pytest_golden.web.rendering import Site

_SECONDS_BETWEEN_LOOKS = 1.0
# Proxies close connections that are silent for a minute.
_MOST_SILENT_SECONDS = 15.0
_MOST_WATCHERS = 200
_RETRY_MS = 2000


def list_routes(site: Site) -> list[Route]:
    """Return the routes of the stream."""
    return [Route("/events", _Events(site).watch)]


class _Events:
    def __init__(self, site: Site) -> None:
        self._gates = site.services.live_gates
        self._is_ending = site.is_ending
        self._watchers = 0

    async def watch(self, request: Request) -> Response:
        before = await run_in_threadpool(self._gates.resume, request.headers.get("last-event-id"))
        # Nothing is awaited from here until the stream counts: many come at the same time.
        if self._watchers >= _MOST_WATCHERS:
            raise Refusal(503, "Too many watch already: try again later.", {"Retry-After": "30"})
        self._watchers += 1
        return _Stream(self._tell(before), self._forget_watcher)

    def _forget_watcher(self) -> None:
        self._watchers -= 1

    async def _tell(self, before: LiveLook) -> AsyncIterator[str]:
        yield f"retry: {_RETRY_MS}\n\n"
        last_word = monotonic_seconds()
        while not self._is_ending():
            now = await self._look(before)
            for event in find_events(before, now):
                yield _write(event)
                last_word = monotonic_seconds()
            before = now
            if monotonic_seconds() - last_word >= _MOST_SILENT_SECONDS:
                yield ": still here\n\n"
                last_word = monotonic_seconds()
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)

    async def _look(self, before: LiveLook) -> LiveLook:
        try:
            return await run_in_threadpool(self._gates.look)
        except StorageError:
            # The store may be readable again in a second, so the stream goes on.
            return before


class _Stream(StreamingResponse):
    """A stream of events that calls `forget` when the watcher disconnects, also before the first event."""

    def __init__(self, events: AsyncIterator[str], forget: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._forget = forget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._forget()


def _write(event: LiveEvent) -> str:
    return f"id: {event.id}\nevent: {event.kind}\ndata: {json.dumps(event.data)}\n\n"
