"""The tools over streamable HTTP at `/mcp`, behind a guard that checks each request's host, origin, token and body."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from pytest_golden.web.access import (
    BearerCheck,
    Refusal,
    ask_for_token,
    is_own_host,
    is_own_origin,
    refuse_cross_site,
    refuse_foreign_host,
)
from pytest_golden.web.boundary import Bodies, pass_over, refuse_two_lengths, replay, until_end
from pytest_golden.web.listening import run_app, write_address

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from mcp.server import Server
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATH = "/mcp"
MOST_BODY_BYTES = 1 << 20
_MOST_ENDING_SECONDS = 3
# A client that is idle for a while keeps its connection, and with it its session.
_KEPT_ALIVE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Door:
    """The host that a server listens on, and the token that opens it; None opens it to all who reach it."""

    host: str
    token: str | None = field(repr=False)


def serve_http(server: Server[Any], door: Door, bound: socket.socket, *, say: Callable[[str], None]) -> None:
    """Serve until a Ctrl-C or SIGTERM. `say` is called with the URL as soon as the server answers.

    Raises:
        KeyboardInterrupt: a Ctrl-C ended it.
    """
    address = write_address(door.host, bound) + PATH
    run_app(
        lambda _: make_app(server, door, lambda: say(address)),
        bound,
        most_ending_seconds=_MOST_ENDING_SECONDS,
        kept_alive_seconds=_KEPT_ALIVE_SECONDS,
    )


def make_app(server: Server[Any], door: Door, say_ready: Callable[[], None]) -> ASGIApp:
    """Make the application: the protocol's own behind the guard, which already checks hosts and origins."""
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MOST_BODY_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return Guard(inner, door, say_ready)


class Guard:
    """An ASGI application around the protocol's. `say_ready` is called when requests are answered.

    A request with the right token passes, however often others at the same address were wrong.
    """

    def __init__(self, app: ASGIApp, door: Door, say_ready: Callable[[], None]) -> None:
        self._app = app
        self._host = door.host
        self._say_ready = say_ready
        self._bearers = None if door.token is None else BearerCheck(door.token)
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, self._with_word(send))
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = until_end(receive)
        try:
            received = await self._let_in(scope, receive, body)
        except Refusal as refusal:
            # A client that is still sending would see the connection closed, and not the answer.
            if await pass_over(body, Headers(scope=scope)):
                refusal.headers["Connection"] = "close"
            await PlainTextResponse(refusal.detail, refusal.status, refusal.headers)(scope, receive, send)
        else:
            await self._app(scope, received, send)

    async def _let_in(self, scope: Scope, receive: Receive, body: Receive) -> Receive:
        headers = Headers(scope=scope)
        refuse_two_lengths(headers)
        host = refuse_foreign_host(headers, lambda name: is_own_host(name, self._host))
        refuse_cross_site(headers, lambda origin: is_own_origin(origin, host))
        address = str((scope.get("client") or [""])[0])
        if self._bearers is not None and not self._bearers.is_right(headers, address):
            raise ask_for_token("Send the header `Authorization: Bearer TOKEN`.")
        if scope["method"] != "POST":
            return receive
        return replay(await self._bodies.read(body, headers.get("content-length"), MOST_BODY_BYTES), receive)

    def _with_word(self, send: Send) -> Send:
        async def send_and_say(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                self._say_ready()

        return send_and_say
