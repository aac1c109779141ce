"""Serve the pages: a socket, the application, and the heartbeat beside it. Ends within seconds of a Ctrl-C."""

from __future__ import annotations

import gc
import logging
import threading
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from anyio.to_thread import current_default_thread_limiter

from pytest_golden.errors import GoldenError, StorageError, StorageTrouble
from pytest_golden.journal.checks.heartbeat import Heartbeat
from pytest_golden.web.app import make_app
from pytest_golden.web.listening import bind, run_app, write_address
from pytest_golden.web.services import Services

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from starlette.applications import Starlette

    from pytest_golden.storage.store import Store
    from pytest_golden.web.services import ServeOptions

_LOG = logging.getLogger(__name__)
_MOST_HEARTBEAT_ENDING_SECONDS = 0.5
# How long slow clients and open streams are waited for: a server should end within five seconds.
_MOST_ENDING_SECONDS = 2
# Requests beyond these wait in line. More threads would take turns at one interpreter, and each of them would be slower; and
# each wants a connection to the store, of which there are a few more.
_THREADS = 12


def serve(store: Store, options: ServeOptions, port: int, *, say: Callable[[str], None]) -> None:
    """Serve until a Ctrl-C or SIGTERM. `say` is called with the URL as soon as the server answers.

    Raises:
        SettingsError: the address cannot be bound, or a file that is needed cannot be used.
        KeyboardInterrupt: a Ctrl-C ended it.
    """
    services = Services.on(store, options.manifest)
    with bind(options.place.bound_host, port) as bound:

        @asynccontextmanager
        async def live(_: Starlette) -> AsyncIterator[None]:
            current_default_thread_limiter().total_tokens = _THREADS
            # What is loaded now stays: the garbage collector need not examine it during requests.
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


@contextmanager
def beating(services: Services, options: ServeOptions) -> Iterator[None]:
    """Run the heartbeat while the block lasts; a read-only server has none."""
    seconds = options.heartbeat_seconds
    if seconds is None or options.is_read_only:
        yield
        return
    heart = Heartbeat(
        services.journal,
        workspace_root=options.manifest.parent,
        view=options.sandbox,
        budget_seconds=max(60.0, seconds),
    )
    is_over = threading.Event()
    # A check may take a minute: the server ends without waiting for it, and the check stays due.
    thread = threading.Thread(target=_beat, args=(heart, seconds, is_over), name="golden-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        heart.stop()
        thread.join(_MOST_HEARTBEAT_ENDING_SECONDS)


def _beat(heart: Heartbeat, seconds: float, is_over: threading.Event) -> None:
    while not is_over.is_set():
        # What hinders one beat may be over by the next.
        try:
            heart.beat()
        except GoldenError as error:
            if not (isinstance(error, StorageError) and error.trouble is StorageTrouble.LOCKED):
                _LOG.warning("the heartbeat could not do its work: %s", error)
        except Exception:
            _LOG.exception("the heartbeat could not do its work")
        is_over.wait(seconds)
