"""The pages as a server: a socket, the application, and what goes on beside it. Ends within seconds of a Ctrl-C."""

from __future__ import annotations

import gc
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from anyio.to_thread import current_default_thread_limiter

from pytest_golden.serving.running import run_app
from pytest_golden.serving.sockets import bind, write_address
from pytest_golden.web.app import make_app
from pytest_golden.web.beating import beating
from pytest_golden.web.services import Services

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.applications import Starlette

    from pytest_golden.storage.store import Store
    from pytest_golden.web.model import ServeOptions

# Less than the five seconds within which a server should end: slow clients and open streams are not waited for longer.
_MOST_ENDING_SECONDS = 2
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
    with bind(options.place.bound_host, port) as bound:

        @asynccontextmanager
        async def live(_: Starlette) -> AsyncIterator[None]:
            current_default_thread_limiter().total_tokens = _THREADS
            # What was loaded stays: not to be looked through in the middle of requests, each time for as long as some of them take.
            gc.collect()
            gc.freeze()
            with beating(services, options):
                say(write_address(options.place.bound_host, bound))
                yield

        run_app(
            lambda is_ending: make_app(options, services, live, is_ending),
            bound,
            most_ending_seconds=_MOST_ENDING_SECONDS,
        )
