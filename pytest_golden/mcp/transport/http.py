"""The tools over streamable HTTP, at `/mcp`. Ends within seconds of a Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.transport_security import TransportSecuritySettings

from pytest_golden.mcp.transport.guard import MOST_BODY_BYTES, Guard
from pytest_golden.serving.running import run_app
from pytest_golden.serving.sockets import write_address

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from mcp.server import Server
    from starlette.types import ASGIApp

    from pytest_golden.mcp.transport.guard import Door

PATH = "/mcp"
_MOST_ENDING_SECONDS = 3
# A client that thinks for a while keeps its connection, and with it its session.
_KEPT_ALIVE_SECONDS = 300


def serve_http(server: Server[Any], door: Door, bound: socket.socket, *, say: Callable[[str], None]) -> None:
    """Serve until a Ctrl-C or SIGTERM. `say` is told the address as soon as it answers.

    Raises:
        KeyboardInterrupt: it was ended by a Ctrl-C.
    """
    address = write_address(door.host, bound) + PATH
    run_app(
        lambda _: make_app(server, door, lambda: say(address)),
        bound,
        most_ending_seconds=_MOST_ENDING_SECONDS,
        kept_alive_seconds=_KEPT_ALIVE_SECONDS,
    )


def make_app(server: Server[Any], door: Door, say_ready: Callable[[], None]) -> ASGIApp:
    """Make the application: the protocol's own behind the guard, which has checked hosts and origins already."""
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MOST_BODY_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return Guard(inner, door, say_ready)
