"""What may be done at an address, for whoever asks or tries something else. HEAD is answered wherever GET is."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Match

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from pytest_golden.serving.refusal import Refusal

_METHODS = ("GET", "POST", "DELETE")


def answer_options(refusal: Refusal, request: Request) -> Response | None:
    """Answer an OPTIONS for which the router found nothing to call; None for anything else.

    Where a method is not allowed, the refusal is given the header that names those that are.
    """
    if refusal.status is not HTTPStatus.METHOD_NOT_ALLOWED:
        return None
    refusal.headers = {"Allow": ", ".join(_list_methods(request.app.routes, request.scope))}
    return Response(None, 204, refusal.headers) if request.method == "OPTIONS" else None


class AnsweringHead:
    """Around an application that knows no HEAD: it is asked for the whole answer, and its body is left out."""

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
    """One address may stand in several routes, of which the router names the first one's methods alone."""
    found = [
        method
        for method in _METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    return [*found, "HEAD"] if "GET" in found else found
