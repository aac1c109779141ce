"""The headers that every answer carries: what a browser may load and do, and who may frame or read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders

if TYPE_CHECKING:
    from starlette.types import Message, Send

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS = {
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
_YEAR = 365 * 24 * 60 * 60


def with_headers(send: Send, *, is_secure: bool) -> Send:
    """Give what sends an answer with these headers. What says nothing of caches is not kept in any."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(_ALWAYS)
            headers.setdefault("Cache-Control", "no-store")
            if is_secure:
                headers["Strict-Transport-Security"] = f"max-age={_YEAR}"
        await send(message)

    return send_with_headers
