"""A server that runs: an application on a socket, until it is ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uvicorn

from pytest_golden.serving.connections import PatientProtocol
from pytest_golden.serving.logbook import saying

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from starlette.types import ASGIApp


def run_app(
    make_app: Callable[[Callable[[], bool]], ASGIApp],
    bound: socket.socket,
    *,
    most_ending_seconds: int,
    kept_alive_seconds: int = 5,
) -> None:
    """Serve an application until a Ctrl-C or SIGTERM. It is made with what tells that the server ends.

    `kept_alive_seconds`: how long a connection is kept on which nothing is asked. `most_ending_seconds`: how long what is
    being answered is waited for at the end.

    Raises:
        KeyboardInterrupt: it was ended by a Ctrl-C.
    """

    def is_ending() -> bool:
        return server.should_exit

    config = uvicorn.Config(
        make_app(is_ending),
        lifespan="on",
        # What else is installed decides nothing: other parsers read requests in other ways, and nothing here speaks WebSocket.
        http=PatientProtocol,
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=kept_alive_seconds,
        timeout_graceful_shutdown=most_ending_seconds,
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = uvicorn.Server(config)
    with saying(is_ending):
        server.run(sockets=[bound])
