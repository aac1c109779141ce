"""The bodies of requests, read to their end before anything is done with them: bounded in size, in time and all together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pytest_golden.serving.refusal import Refusal

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Message, Receive

_KIB = 1024
_MOST_SECONDS = 30.0
_MOST_TOGETHER_BYTES = 64 * 1024 * _KIB
_MOST_PASSED_BYTES = 64 * 1024 * _KIB
_MOST_PASSING_SECONDS = 5.0
# So much of each is not counted: whoever fills the room with large ones keeps nobody from signing in.
_FREE_BYTES = 64 * _KIB


class Bodies:
    """Reads bodies. What has come of those that are not at their end is bounded, however many connections send one."""

    def __init__(self, most_together_bytes: int = _MOST_TOGETHER_BYTES) -> None:
        self._room_bytes = most_together_bytes

    async def read(self, receive: Receive, declared: str | None, most_bytes: int) -> bytes:
        """Read a body of at most so many bytes; `declared` is its Content-Length.

        Raises:
            Refusal: it is larger, there is no room for it, it does not come to its end in time, or the sender has gone.
        """
        if declared is not None and not _is_at_most(declared, most_bytes):
            raise _too_large(most_bytes)
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(_MOST_SECONDS):
                await self._read_into(parts, receive, most_bytes)
        except TimeoutError:
            raise Refusal(408, f"The body did not come within {_MOST_SECONDS:.0f} seconds.") from None
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
                wait = f"{_MOST_SECONDS:.0f}"
                raise Refusal(
                    503, f"Too much is being sent at once: try again in {wait} seconds.", {"Retry-After": wait}
                )
            self._room_bytes -= needed
            parts.append(part)
            size += len(part)


def refuse_two_lengths(headers: Headers) -> None:
    """Take no request that tells the length of its body in two ways.

    A proxy may have believed the other one, and have let in what it took for a part of the body (RFC 9112, 6.1).

    Raises:
        Refusal: it does; the connection is closed after it.
    """
    if "transfer-encoding" in headers and "content-length" in headers:
        raise Refusal(400, "The request tells the length of its body in two ways.", {"Connection": "close"})


def until_end(receive: Receive) -> Receive:
    """Give what hands a body on; after its end, where a client would be waited for, it says that nothing comes."""
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


def _is_at_most(declared: str, most_bytes: int) -> bool:
    return declared.isascii() and declared.isdigit() and int(declared[:12]) <= most_bytes


def _counted(size: int) -> int:
    return max(0, size - _FREE_BYTES)


def _too_large(most_bytes: int) -> Refusal:
    return Refusal(413, f"The body is larger than {most_bytes // _KIB} KiB.")
