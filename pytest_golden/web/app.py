"""The application: its addresses, and the boundary around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pytest_golden.errors import GoldenError
from pytest_golden.web import event_stream, sign_in, webhooks
from pytest_golden.web.access import Refusal
from pytest_golden.web.api import api_app
from pytest_golden.web.boundary import Boundary
from pytest_golden.web.pages import journal_pages, learning_pages, run_pages
from pytest_golden.web.problems import explain, read_http_error, tell
from pytest_golden.web.queries import answer_options
from pytest_golden.web.rendering import Renderer
from pytest_golden.web.site import Site
from pytest_golden.web.visitor import Doorkeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from pytest_golden.web.services import ServeOptions, Services

#: The parts of the site; each has a `list_routes(site)`.
PARTS = (run_pages, journal_pages, learning_pages, sign_in, event_stream, webhooks, api_app)
_YEAR = 365 * 24 * 60 * 60


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
        refusal = explain(read_http_error(error))
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
