"""The server: a socket, an application, and what goes on beside it. Ends within seconds of a Ctrl-C."""

from __future__ import annotations

import logging
import socket
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import uvicorn
from anyio.to_thread import current_default_thread_limiter

from pytest_golden.errors import SettingsError
from pytest_golden.web.app import make_app
from pytest_golden.web.beating import beating
from pytest_golden.web.connections import PatientProtocol
from pytest_golden.web.logbook import SaidOnce
from pytest_golden.web.services import Services

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from starlette.applications import Starlette

    from pytest_golden.storage.store import Store
    from pytest_golden.web.model import ServeOptions

# Less than the five seconds within which a server should end: slow clients and open streams are not waited for longer.
_MOST_ENDING_SECONDS = 2
_MOST_WAITING = 512
# Requests beyond these wait in line. More threads would take turns at one interpreter, and each of them would be slower; and
# each wants a connection to the store, of which there are a few more.
_THREADS = 12


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
            current_default_thread_limiter().total_tokens = _THREADS
            with beating(services, options):
                say(_write_address(options.place.bound_host, bound.getsockname()[1]))
                yield

        def is_ending() -> bool:
            return server.should_exit

        config = uvicorn.Config(
            make_app(options, services, live, is_ending),
            lifespan="on",
            # What else is installed decides nothing: other parsers read requests in other ways, and nothing here speaks WebSocket.
            http=PatientProtocol,
            ws="none",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_MOST_ENDING_SECONDS,
            h11_max_incomplete_event_size=64 * 1024,
        )
        server = uvicorn.Server(config)
        with _saying(is_ending):
            server.run(sockets=[bound])


@contextmanager
def _saying(is_ending: Callable[[], bool]) -> Iterator[None]:
    """Let what is logged be said on the terminal."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("golden: %(message)s"))
    handler.addFilter(SaidOnce(is_ending))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


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
