"""The body of a request, read to its end before anything is done with it: bounded in size and in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pytest_golden.web.refusal import Refusal

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Message, Receive

_MOST_SECONDS = 30.0
_JSON = "application/json"
_KIB = 1024
_MOST_BYTES = 1024 * _KIB
_MOST_WEBHOOK_BYTES = 2048 * _KIB
_MOST_PASSED_BYTES = 64 * 1024 * _KIB
_MOST_PASSING_SECONDS = 5.0


def most_bytes(path: str) -> int:
    """Give how large a body may be that is sent to a path."""
    return _MOST_WEBHOOK_BYTES if path.startswith("/webhooks/") else _MOST_BYTES


def refuse_other_kinds(method: str, headers: Headers) -> None:
    """Let the API be told JSON alone, which no form of another site can send.

    Raises:
        Refusal: it is something else.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method == "POST" and kind != _JSON:
        raise Refusal(415, f"Send JSON, with the header `Content-Type: {_JSON}`.")


async def read_body(receive: Receive, declared: str | None, most: int) -> bytes:
    """Read a body of at most so many bytes; `declared` is its Content-Length.

    Raises:
        Refusal: it is larger, it does not come to its end in time, or the sender has gone.
    """
    if declared is not None and (not declared.isascii() or not declared.isdigit() or int(declared[:12]) > most):
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_MOST_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "The request ended before its body did.")
                part = message.get("body", b"")
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Refusal(408, f"The body did not come within {_MOST_SECONDS:.0f} seconds.") from None


async def pass_over(receive: Receive, headers: Headers) -> bool:
    """Read what is left of a body that nobody wants, for a while; tell whether there is more.

    Whoever asks first whether to send it (`Expect: 100-continue`) is not told to.
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
    """Give what hands a body over once, and from then on what the client does."""
    is_told = False

    async def receive_again() -> Message:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


def _too_large(most: int) -> Refusal:
    return Refusal(413, f"The body is larger than {most // _KIB} KiB.")
