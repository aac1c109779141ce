"""The application of the JSON API: its addresses, its description, and its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Mount

from pytest_golden.errors import GoldenError
from pytest_golden.web.access import Refusal
from pytest_golden.web.api.routes import make_routers
from pytest_golden.web.problems import AnsweringHead, answer_options, explain, tell_program

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.rendering import Site

_PATH = "/api/v1"
_BEARER = {"token": {"type": "http", "scheme": "bearer"}}


def list_routes(site: Site) -> list[Mount]:
    """Return the routes of this part."""
    app = FastAPI(
        title="Golden projects",
        version="1",
        description="Gate runs, the journal and what was learned. Lists are paged by `next_cursor`; errors are problem JSON.",
        servers=[{"url": f"{site.options.place.prefix}{_PATH}"}],
        root_path_in_servers=False,
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        exception_handlers={
            **dict.fromkeys((HTTPException, Refusal, GoldenError, ValueError, Exception), _tell),
            RequestValidationError: _tell_shape,
        },
    )
    for router in make_routers(site):
        app.include_router(router)
    _describe_token(app, is_demanded=site.options.demands_token)
    return [Mount(_PATH, AnsweringHead(app))]


def _describe_token(app: FastAPI, *, is_demanded: bool) -> None:
    make: Callable[[], dict[str, Any]] = app.openapi

    def describe() -> dict[str, Any]:
        told = make()
        told.setdefault("components", {})["securitySchemes"] = _BEARER
        told["security"] = [{"token": []}] if is_demanded else [{"token": []}, {}]
        return told

    app.openapi = describe  # type: ignore[method-assign]


async def _tell(request: Request, error: Exception) -> Response:
    refusal = explain(error)
    return answer_options(refusal, request) or tell_program(refusal)


async def _tell_shape(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    told = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5]]
    return tell_program(Refusal(422, "; ".join(told)[:2_000]))
