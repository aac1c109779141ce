"""Read the query and path of a request, and answer OPTIONS and HEAD."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Match

from pytest_golden.web.access import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = ("GET", "POST", "DELETE")
_MOST_CHARACTERS = 4096


def asked(request: Request, name: str) -> str | None:
    """Return a word of the query; None where it is missing or blank.

    Raises:
        Refusal: it holds NUL, which no database accepts, or is far too long.
    """
    told = request.query_params.get(name)
    if told is None or not told.strip():
        return None
    if "\0" in told or len(told) > _MOST_CHARACTERS:
        raise Refusal(400, f"{name} holds what cannot be looked for.")
    return told


def named(request: Request, name: str) -> str:
    """Return a part of the path.

    Raises:
        Refusal: no record can have such a name.
    """
    told: str = request.path_params[name]
    if "\0" in told or len(told) > _MOST_CHARACTERS:
        raise Refusal(404, "There is nothing of that name.")
    return told


def answer_options(refusal: Refusal, request: Request) -> Response | None:
    """Answer an OPTIONS request for which the router found no endpoint; return None for anything else.

    If the refusal is for a method that is not allowed, it gets the `Allow` header.
    """
    if refusal.status is not HTTPStatus.METHOD_NOT_ALLOWED:
        return None
    refusal.headers = {"Allow": ", ".join(_list_methods(request.app.routes, request.scope))}
    return Response(None, 204, refusal.headers) if request.method == "OPTIONS" else None


class AnsweringHead:
    """Middleware for an application without HEAD: it is asked for the whole answer, and the body is left out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET"}, receive, send_head)


def _list_methods(routes: Iterable[BaseRoute], scope: Scope) -> list[str]:
    """Return the methods of an address, which may stand in several routes; the router names those of the first only."""
    found = [
        method
        for method in _METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    return [*found, "HEAD"] if "GET" in found else found
