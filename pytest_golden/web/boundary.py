"""The boundary: refuse what may not come in, read bodies within limits, and add headers to answers.

A slow or silent client keeps nobody else out. A body is read to its end before anything is done with it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from pytest_golden.web.access import Refusal, refuse_cross_site, refuse_foreign_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from pytest_golden.web.access import PublicPlace
    from pytest_golden.web.services import ServeOptions
    from pytest_golden.web.visitor import Doorkeeper

_KIB = 1024
_MOST_BODY_SECONDS = 30.0
_MOST_TOGETHER_BYTES = 64 * 1024 * _KIB
_MOST_PASSED_BYTES = 64 * 1024 * _KIB
_MOST_PASSING_SECONDS = 5.0
# The first bytes of each body are not counted, so that large bodies never prevent a sign-in.
_FREE_BYTES = 64 * _KIB
_JSON_TYPE = "application/json"
MOST_BYTES = 1024 * _KIB
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
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Signing in and out changes no record.
_ALWAYS_WRITABLE = frozenset({"/sign-in", "/sign-out"})


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
    """Raise an error for a request that gives the length of its body in two ways.

    A proxy may have believed the other length, and have let in what it took for a part of the body (RFC 9112, 6.1).

    Raises:
        Refusal: it does; the connection is closed after it.
    """
    if "transfer-encoding" in headers and "content-length" in headers:
        raise Refusal(400, "The request gives the length of its body in two ways.", {"Connection": "close"})


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


class Guard:
    """An application around another one, which lets requests in that pass the checks of every network face.

    `check` refuses what one face does not let in, `refuse` renders a refusal in the form that fits the path.
    """

    def __init__(self, app: ASGIApp, place: PublicPlace) -> None:
        self.place = place
        self._app = app
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self.admit(scope, receive, send)

    def check(self, scope: Scope, headers: Headers, host: str) -> None:
        """Raise a Refusal for a request that this face does not let in."""
        raise NotImplementedError

    def refuse(self, refusal: Refusal, path: str) -> Response:
        """Return the answer for a refusal."""
        raise NotImplementedError

    async def admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole body, or answer with a refusal."""
        headers, body = Headers(scope=scope), until_end(receive)
        is_safe = scope["method"] in SAFE_METHODS
        try:
            refuse_two_lengths(headers)
            self.check(scope, headers, refuse_foreign_host(headers, self.place.allows))
            if not is_safe:
                read = await self._bodies.read(body, headers.get("content-length"), most_bytes(scope["path"]))
                receive = replay(read, receive)
        except Refusal as refusal:
            # A client that is still sending would see the connection closed, and not the answer.
            if not is_safe and await pass_over(body, headers):
                refusal.headers["Connection"] = "close"
            await self.refuse(refusal, scope["path"])(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def refuse_other_sites(self, headers: Headers, host: str) -> None:
        """Raise a Refusal for a request that the page of another site sends."""
        refuse_cross_site(headers, lambda origin: self.place.allows_origin(origin, host))


class Boundary(Guard):
    """Guards the site by its doorkeeper; `answer` renders refusals."""

    def __init__(
        self, app: ASGIApp, options: ServeOptions, doorkeeper: Doorkeeper, answer: Callable[[Refusal, str], Response]
    ) -> None:
        super().__init__(app, options.place)
        self._is_read_only = options.is_read_only
        self._doorkeeper = doorkeeper
        self._answer = answer

    async def admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the public prefix off, and add headers to the answer."""
        inner = {**scope, "path": self.place.strip_prefix(scope["path"]), "raw_path": None, "root_path": ""}
        await super().admit(inner, receive, with_headers(send, is_secure=self.place.is_secure))

    def check(self, scope: Scope, headers: Headers, host: str) -> None:
        """Check origin and token, and refuse to write on a server that only shows."""
        path, is_safe = scope["path"], scope["method"] in SAFE_METHODS
        if not is_safe and not path.startswith("/webhooks/"):
            self.refuse_other_sites(headers, host)
        self._doorkeeper.check(scope, headers, path, host)
        scope["golden.address"] = self._doorkeeper.find_address(scope, headers)
        if self._is_read_only and not is_safe and path not in _ALWAYS_WRITABLE:
            raise Refusal(403, "This server only shows: it was started with --read-only.")

    def refuse(self, refusal: Refusal, path: str) -> Response:
        """Return the page or the problem."""
        return self._answer(refusal, path)


def most_bytes(path: str) -> int:
    """Return the size limit of a body sent to a path."""
    return _MOST_WEBHOOK_BYTES if path.startswith("/webhooks/") else MOST_BYTES


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
