"""The boundary: an ASGI application around the others that lets through what may come in, and refuses the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from pytest_golden.serving.bodies import Bodies, pass_over, refuse_two_lengths, replay, until_end
from pytest_golden.serving.origin import refuse_cross_site, refuse_foreign_host
from pytest_golden.serving.refusal import Refusal
from pytest_golden.web.boundary.body import most_bytes
from pytest_golden.web.boundary.headers import with_headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pytest_golden.web.boundary.visitor import Doorkeeper
    from pytest_golden.web.model import ServeOptions

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Signing in and out changes no record.
_ALWAYS_WRITABLE = frozenset({"/sign-in", "/sign-out"})


class Boundary:
    """`answer` tells a visitor of a refusal, in the form that fits the path."""

    def __init__(
        self, app: ASGIApp, options: ServeOptions, doorkeeper: Doorkeeper, answer: Callable[[Refusal, str], Response]
    ) -> None:
        self._app = app
        self._place = options.place
        self._is_read_only = options.is_read_only
        self._doorkeeper = doorkeeper
        self._answer = answer
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer_request(scope, receive, send)

    async def _answer_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        send = with_headers(send, is_secure=self._place.is_secure)
        path = self._place.strip_prefix(scope["path"])
        inner = {**scope, "path": path, "raw_path": None, "root_path": ""}
        body = until_end(receive)
        try:
            heard = await self._let_in(inner, receive, body)
        except Refusal as refusal:
            # Whoever is still sending would find the connection cut, and not the answer.
            if scope["method"] not in _SAFE_METHODS and await pass_over(body, Headers(scope=scope)):
                refusal.headers["Connection"] = "close"
            await self._answer(refusal, path)(scope, receive, send)
        else:
            await self._app(inner, heard, send)

    async def _let_in(self, scope: Scope, receive: Receive, body: Receive) -> Receive:
        headers, path = Headers(scope=scope), scope["path"]
        refuse_two_lengths(headers)
        host = refuse_foreign_host(headers, self._place.allows)
        is_safe = scope["method"] in _SAFE_METHODS
        if not is_safe and not path.startswith("/webhooks/"):
            refuse_cross_site(headers, lambda origin: self._place.allows_origin(origin, host))
        self._doorkeeper.check(scope, headers, path, host)
        scope["golden.address"] = self._doorkeeper.find_address(scope, headers)
        if is_safe:
            return receive
        if self._is_read_only and path not in _ALWAYS_WRITABLE:
            raise Refusal(403, "This server only shows: it was started with --read-only.")
        return replay(await self._bodies.read(body, headers.get("content-length"), most_bytes(path)), receive)
