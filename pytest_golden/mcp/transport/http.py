"""The tools over streamable HTTP, at `/mcp`. Ends within seconds of a Ctrl-C."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server import streamable_http
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import ClientDisconnect

from pytest_golden.errors import SettingsError
from pytest_golden.mcp.transport.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server import Server
    from starlette.types import ASGIApp

    from pytest_golden.mcp.transport.guard import Door

PATH = "/mcp"
_MOST_BODY_BYTES = 1 << 20
_MOST_ENDING_SECONDS = 3
_MOST_WAITING = 512
# A client that thinks for a while keeps its connection, and with it its session.
_KEPT_ALIVE_SECONDS = 300


def bind(host: str, port: int) -> socket.socket:
    """Give a socket that listens; port 0 picks a free one.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(_MOST_WAITING)
    except (OSError, UnicodeError) as error:
        bound.close()
        told = getattr(error, "strerror", None) or error
        raise SettingsError(f"cannot listen on {host} port {port}: {told}; give another --host or --port") from None
    return bound


def serve_http(server: Server[Any], door: Door, bound: socket.socket, *, say: Callable[[str], None]) -> None:
    """Serve until a Ctrl-C or SIGTERM. `say` is told the address as soon as it answers.

    Raises:
        KeyboardInterrupt: it was ended by a Ctrl-C.
    """
    logging.getLogger(streamable_http.__name__).addFilter(_is_news)
    address = _write_address(door.host, bound.getsockname()[1])
    config = uvicorn.Config(
        make_app(server, door, lambda: say(address)),
        lifespan="on",
        # What else is installed decides nothing: other parsers read requests in other ways.
        http="h11",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=_KEPT_ALIVE_SECONDS,
        timeout_graceful_shutdown=_MOST_ENDING_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[bound])


def make_app(server: Server[Any], door: Door, say_ready: Callable[[], None]) -> ASGIApp:
    """Make the application: the protocol's own behind the guard, which has checked hosts and origins already."""
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=_MOST_BODY_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return Guard(inner, door, say_ready)


def _is_news(record: logging.LogRecord) -> bool:
    """Leave out clients that went away in the middle of a request: the SDK logs a traceback of each."""
    return record.exc_info is None or not isinstance(record.exc_info[1], ClientDisconnect)


def _write_address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}{PATH}" if ":" in host else f"http://{host}:{port}{PATH}"
