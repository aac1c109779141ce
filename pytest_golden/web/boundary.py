"""The boundary: an ASGI application around the others that refuses what may not come in, and adds headers to answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from pytest_golden.web.access import Refusal, refuse_cross_site, refuse_foreign_host
from pytest_golden.web.requests import Bodies, pass_over, refuse_two_lengths, replay, until_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from pytest_golden.web.services import ServeOptions
    from pytest_golden.web.visitor import Doorkeeper

_JSON_TYPE = "application/json"
_KIB = 1024
_MOST_BYTES = 1024 * _KIB
_MOST_WEBHOOK_BYTES = 2048 * _KIB
# What a browser may load and do, and who may frame or read it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: with it browsers send `Origin: null` with the forms of our own pages.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Robots-Tag": "noindex",
}
_YEAR_SECONDS = 365 * 24 * 60 * 60
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Signing in and out changes no record.
_ALWAYS_WRITABLE = frozenset({"/sign-in", "/sign-out"})


class Boundary:
    """Checks host, origin, token and body of each request; `answer` renders a refusal in the form that fits the path."""

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
        """Answer a request, or pass it on."""
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
            # A client that is still sending would see the connection closed, and not the answer.
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


def most_bytes(path: str) -> int:
    """Return the size limit of a body sent to a path."""
    return _MOST_WEBHOOK_BYTES if path.startswith("/webhooks/") else _MOST_BYTES


def refuse_other_kinds(method: str, headers: Headers) -> None:
    """Let the API receive JSON only, which no form of another site can send.

    Raises:
        Refusal: it is something else.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method == "POST" and kind != _JSON_TYPE:
        raise Refusal(415, f"Send JSON, with the header `Content-Type: {_JSON_TYPE}`.")


def with_headers(send: Send, *, is_secure: bool) -> Send:
    """Return a `send` that adds these headers; answers that do not mention caches are not cached."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(_HEADERS)
            headers.setdefault("Cache-Control", "no-store")
            if is_secure:
                headers["Strict-Transport-Security"] = f"max-age={_YEAR_SECONDS}"
        await send(message)

    return send_with_headers
