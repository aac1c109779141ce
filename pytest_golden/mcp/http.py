"""The tools over streamable HTTP at `/mcp`, behind a guard that checks each request's host, origin, token and body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse

from pytest_golden.web.access import BearerCheck, PublicPlace, ask_for_token
from pytest_golden.web.boundary import MOST_BYTES, Guard
from pytest_golden.web.listening import run_app, write_address

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from mcp.server import Server
    from starlette.datastructures import Headers
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from pytest_golden.web.access import Refusal

PATH = "/mcp"
_MOST_ENDING_SECONDS = 3
# A client that is idle for a while keeps its connection, and with it its session.
_KEPT_ALIVE_SECONDS = 300


def serve_http(
    server: Server[Any], host: str, token: str | None, bound: socket.socket, *, say: Callable[[str], None]
) -> None:
    """Serve until a Ctrl-C or SIGTERM. `say` is called with the URL as soon as the server answers.

    Without a token, all who reach the host are let in.

    Raises:
        KeyboardInterrupt: a Ctrl-C ended it.
    """
    address = write_address(host, bound) + PATH
    # The protocol's own application; the guard checks hosts and origins already.
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MOST_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    run_app(
        lambda _: ToolGuard(inner, host, token, lambda: say(address)),
        bound,
        most_ending_seconds=_MOST_ENDING_SECONDS,
        kept_alive_seconds=_KEPT_ALIVE_SECONDS,
    )


class ToolGuard(Guard):
    """Guards the protocol's own application; `say_ready` is called when requests are answered.

    A request with the right token passes, however often others at the same address were wrong.
    """

    def __init__(self, app: ASGIApp, host: str, token: str | None, say_ready: Callable[[], None]) -> None:
        super().__init__(app, PublicPlace(host))
        self._say_ready = say_ready
        self._bearers = None if token is None else BearerCheck(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on; notice when the application has started."""

        async def send_and_say(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                self._say_ready()

        await super().__call__(scope, receive, send_and_say)

    def check(self, scope: Scope, headers: Headers, host: str) -> None:
        """Check origin and token."""
        self.refuse_other_sites(headers, host)
        address = str((scope.get("client") or [""])[0])
        if self._bearers is not None and not self._bearers.is_right(headers, address):
            raise ask_for_token("Send the header `Authorization: Bearer TOKEN`.")

    def refuse(self, refusal: Refusal, path: str) -> Response:  # noqa: ARG002 - there is one path
        """Return the refusal as plain text."""
        return PlainTextResponse(refusal.detail, refusal.status, refusal.headers)
