"""What every HTTP request passes before the protocol sees it: its host, its origin, its token."""

from __future__ import annotations

import hmac
import ipaddress
from collections import OrderedDict
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from pytest_golden.clock import monotonic_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_OWN_SITES = frozenset({"same-origin", "none"})
_MOST_WRONG_TOKENS, _WINDOW_SECONDS, _MOST_ADDRESSES = 60, 300.0, 10_000


@dataclass(frozen=True, slots=True)
class Door:
    """Where a server listens, and the token that opens it; None opens it to all who reach it."""

    host: str
    token: str | None = field(repr=False)

    def allows_host(self, host: str) -> bool:
        """Tell whether a Host header names this server: a site's own name can be made to point at this machine."""
        name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
        name = name.lower()
        if name in _LOOPBACK_NAMES or name.strip("[]") == self.host.lower():
            return True
        # Bound to all addresses, each of them may be typed.
        bound = _address_of(self.host)
        return bound is not None and bound.is_unspecified and _address_of(name.strip("[]")) is not None

    def is_token(self, told: str) -> bool:
        """Tell whether a header's text is the token, in a time that says nothing of how much of it is right."""
        # Headers are bytes that were read as Latin-1.
        return self.token is None or hmac.compare_digest(
            told.encode("latin-1", "replace"), self.token.encode("utf-8", "surrogateescape")
        )


class _Wrongs(NamedTuple):
    since: float
    times: int


class _Refusal(NamedTuple):
    status: int
    told: str
    headers: dict[str, str] = {}  # noqa: RUF012 - never written


class Guard:
    """An application around the protocol's. `say_ready` is called when requests are answered.

    Whoever has the token is let in however often others at the same address were wrong.
    """

    def __init__(self, app: ASGIApp, door: Door, say_ready: Callable[[], None]) -> None:
        self._app = app
        self._door = door
        self._say_ready = say_ready
        self._wrongs: OrderedDict[str, _Wrongs] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, self._with_word(send))
            return
        refusal = self._check(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            # The body is not read, so the connection cannot be used again.
            headers = {**refusal.headers, "Connection": "close"}
            await PlainTextResponse(refusal.told, refusal.status, headers)(scope, receive, send)

    def _with_word(self, send: Send) -> Send:
        async def send_and_say(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                self._say_ready()

        return send_and_say

    def _check(self, scope: Scope) -> _Refusal | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._door.allows_host(hosts[0]):
            return _Refusal(421, "this server does not answer to that host name")
        site, origins = headers.get("sec-fetch-site"), headers.getlist("origin")
        is_foreign = any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins)
        if is_foreign or (site is not None and site not in _OWN_SITES):
            return _Refusal(403, "a page of another site may not call these tools")
        return self._check_token(scope, headers)

    def _check_token(self, scope: Scope, headers: Headers) -> _Refusal | None:
        if self._door.token is None:
            return None
        scheme, _, told = headers.get("authorization", "").partition(" ")
        is_bearer = scheme.lower() == "bearer"
        if is_bearer and self._door.is_token(told.strip()):
            return None
        if is_bearer and (wait := self._count_wrong(str((scope.get("client") or [""])[0]))):
            return _Refusal(429, f"too many wrong tokens: try again in {wait} seconds", {"Retry-After": str(wait)})
        told = "the token is wrong" if is_bearer else "send the header `Authorization: Bearer TOKEN`"
        return _Refusal(401, told, {"WWW-Authenticate": 'Bearer realm="golden"'})

    def _count_wrong(self, address: str) -> int:
        """Count a wrong token, and give how many seconds no more are looked at; 0: they still are."""
        now = monotonic_seconds()
        wrongs = self._wrongs.pop(address, None)
        if wrongs is None or now - wrongs.since >= _WINDOW_SECONDS:
            wrongs = _Wrongs(now, 0)
        self._wrongs[address] = wrongs._replace(times=wrongs.times + 1)
        if len(self._wrongs) > _MOST_ADDRESSES:
            self._wrongs.popitem(last=False)
        return ceil(max(1.0, wrongs.since + _WINDOW_SECONDS - now)) if wrongs.times >= _MOST_WRONG_TOKENS else 0


def is_loopback(host: str) -> bool:
    """Tell whether a host to listen on is reached from this machine alone."""
    address = _address_of(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address_of(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
