"""The application: its addresses, and serving it with the heartbeat beside. It ends within seconds of a Ctrl-C."""

from __future__ import annotations

import gc
import logging
import threading
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from anyio.to_thread import current_default_thread_limiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pytest_golden.cycle.past_cycles import record_merges_and_reverts
from pytest_golden.errors import GoldenError, StorageError, StorageTrouble
from pytest_golden.journal.checks.heartbeat import Heartbeat
from pytest_golden.report.notification import Channel
from pytest_golden.web import api, event_stream, pages, webhooks
from pytest_golden.web.access import Refusal
from pytest_golden.web.boundary import Boundary
from pytest_golden.web.listening import bind, run_app, write_address
from pytest_golden.web.problems import answer_options, explain, tell
from pytest_golden.web.rendering import Renderer, Site
from pytest_golden.web.services import ServeOptions, Services
from pytest_golden.web.visitor import Doorkeeper

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from pytest_golden.storage.store import Store

#: The parts of the site; each has a `list_routes(site)`.
PARTS = (pages, event_stream, webhooks, api)
_YEAR = 365 * 24 * 60 * 60
_LOG = logging.getLogger(__name__)
_MOST_HEARTBEAT_ENDING_SECONDS = 0.5
# How long slow clients and open streams are waited for: a server should end within five seconds.
_MOST_ENDING_SECONDS = 2
# Requests beyond these wait in line. More threads would slow each other down in one interpreter, and
# each needs a connection to the store, which has a few more.
_THREADS = 12


def make_app(
    options: ServeOptions,
    services: Services,
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]] | None = None,
    is_ending: Callable[[], bool] = lambda: False,
) -> ASGIApp:
    """Make the application on services that stay the caller's; `lifespan` is what runs beside it.

    When `is_ending` becomes true, streams end by themselves.
    """
    doorkeeper = Doorkeeper(options)
    renderer = Renderer(options, doorkeeper)
    site = Site(options, services, doorkeeper, renderer, is_ending)

    def answer(request: Request, error: Exception) -> Response:
        refusal = explain(error)
        return answer_options(refusal, request) or tell(refusal, request.scope["path"], renderer)

    app = Starlette(
        routes=list(_list_routes(site)),
        exception_handlers=dict.fromkeys((HTTPException, Refusal, GoldenError, ValueError, Exception), answer),
        lifespan=lifespan,
    )
    # Behind a proxy it would lead to where the pages are not.
    app.router.redirect_slashes = False
    return Boundary(app, options, doorkeeper, lambda refusal, path: tell(refusal, path, renderer))


def _list_routes(site: Site) -> Iterator[Route | Mount]:
    for part in PARTS:
        yield from part.list_routes(site)
    yield Route("/healthz", lambda _: PlainTextResponse("ok\n"))
    yield Mount("/static", _KeptFiles(packages=[("pytest_golden.web", "static")]))


class _KeptFiles(StaticFiles):
    """Files whose addresses change with their content, so that browsers may keep them."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = f"public, max-age={_YEAR}, immutable"
        return response


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
            # The garbage collector need not examine what is loaded now during requests.
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
    place = options.place
    link = f"{place.scheme}://{place.host}{place.prefix}/runs/" if place.is_behind_proxy else ""
    work: list[Callable[[], object]] = [
        heart.beat,
        partial(record_merges_and_reverts, services.journal, options.manifest.parent),
    ]
    if options.notify_url is not None:
        work.append(Channel(services.store, options.notify_url, link).look)
    thread = threading.Thread(target=_beat, args=(work, seconds, is_over), name="golden-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        heart.stop()
        thread.join(_MOST_HEARTBEAT_ENDING_SECONDS)


def _beat(work: Iterable[Callable[[], object]], seconds: float, is_over: threading.Event) -> None:
    while not is_over.is_set():
        # The next beat may succeed.
        try:
            for do in work:
                do()
        except GoldenError as error:
            if not (isinstance(error, StorageError) and error.trouble is StorageTrouble.LOCKED):
                _LOG.warning("the heartbeat could not do its work: %s", error)
        except Exception:
            _LOG.exception("the heartbeat could not do its work")
        is_over.wait(seconds)
