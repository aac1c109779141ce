"""The server: a socket, an application, and what goes on beside it. Ends within seconds of a Ctrl-C."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import uvicorn

from pytest_golden.errors import SettingsError
from pytest_golden.web.app import make_app
from pytest_golden.web.beating import beating
from pytest_golden.web.services import Services

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.applications import Starlette

    from pytest_golden.storage.store import Store
    from pytest_golden.web.model import ServeOptions

# Less than the five seconds within which a server should end: slow clients and open streams are not waited for longer.
_MOST_ENDING_SECONDS = 3
_MOST_WAITING = 512


def serve(store: Store, options: ServeOptions, port: int, *, say: Callable[[str], None]) -> None:
    """Serve until a Ctrl-C or SIGTERM. `say` is told the address as soon as it answers.

    Raises:
        SettingsError: the address cannot be bound, or a file that is needed cannot be used.
        KeyboardInterrupt: it was ended by a Ctrl-C.
    """
    services = Services.on(store, options.manifest)
    with _bind(options.place.bound_host, port) as bound:

        @asynccontextmanager
        async def live(_: Starlette) -> AsyncIterator[None]:
            with beating(services, options):
                say(_write_address(options.place.bound_host, bound.getsockname()[1]))
                yield

        config = uvicorn.Config(
            make_app(options, services, live),
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_MOST_ENDING_SECONDS,
            h11_max_incomplete_event_size=64 * 1024,
        )
        uvicorn.Server(config).run(sockets=[bound])


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(_MOST_WAITING)
    except OSError as error:
        bound.close()
        raise SettingsError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; give another --host or --port"
        ) from None
    return bound


def _write_address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
