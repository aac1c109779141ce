"""Read the query of a request, and make the answers to requests that cannot be served: problem JSON (RFC 9457) or a page.

No answer names a path of this machine.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match

from pytest_golden.errors import GoldenError, JournalError, ManifestError, StorageError, StorageTrouble
from pytest_golden.web.access import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from pytest_golden.web.rendering import Renderer

_METHODS = ("GET", "POST", "DELETE")
_MOST_CHARACTERS = 4096
_LOG = logging.getLogger(__name__)
_FOR_PROGRAMS = ("/api/", "/webhooks/", "/events", "/healthz")
_RETRY_SECONDS = "1"
_TOLD_OF_STORE = {
    StorageTrouble.LOCKED: "Somebody else is writing to the store: try again in a moment.",
    StorageTrouble.GONE: (
        "The store's file was moved or removed while this server ran: put it back, or run `pytest --golden`, which makes one."
    ),
    StorageTrouble.NEWER: "The store was brought up to date by a newer pytest-golden-projects: restart this server with that.",
    StorageTrouble.OLDER: "The store is of an older version, and this server only shows: run `golden store upgrade`.",
}
_ROUTED = {404: "There is no such page.", 405: "That cannot be done here."}


def asked(request: Request, name: str) -> str | None:
    """Return a value of the query; None if it is missing or blank.

    Raises:
        Refusal: it holds NUL, which no database accepts, or is far too long.
    """
    told = request.query_params.get(name)
    if told is None or not told.strip():
        return None
    if "\0" in told or len(told) > _MOST_CHARACTERS:
        raise Refusal(400, f"{name} holds a NUL character, or is too long.")
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
    """Middleware for an application without HEAD: it answers GET, and the body is left out."""

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


def explain(error: Exception) -> Refusal:
    """Return the refusal for an error. If the visitor cannot correct it, the log has the details."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, HTTPException):
        return Refusal(error.status_code, _ROUTED.get(error.status_code, str(error.detail)), error.headers)
    # An unknown lesson or plan has no error class of its own.
    if isinstance(error, JournalError) or type(error) is GoldenError:
        return Refusal(404, str(error))
    if isinstance(error, StorageError) and error.trouble is StorageTrouble.LOCKED:
        return Refusal(503, _TOLD_OF_STORE[error.trouble], {"Retry-After": _RETRY_SECONDS})
    if isinstance(error, StorageError):
        _LOG.error("the store cannot be used: %s", error)
        told = f"The store cannot be used ({error.trouble.value}): the server's log says why."
        return Refusal(503, _TOLD_OF_STORE.get(error.trouble, told), {"Retry-After": _RETRY_SECONDS})
    if isinstance(error, ManifestError):
        _LOG.error("the manifest cannot be used: %s", error)
        return Refusal(503, "The manifest cannot be used: `golden check` says why.")
    if isinstance(error, ValueError | GoldenError):
        return Refusal(400, str(error))
    _LOG.error("a request failed", exc_info=error)
    return Refusal(500, "Something went wrong here: the server's log says what.")


def tell_program(refusal: Refusal) -> Response:
    """Return the problem as JSON."""
    body = {
        "type": "about:blank",
        "title": refusal.status.phrase,
        "status": int(refusal.status),
        "detail": refusal.detail,
    }
    return JSONResponse(body, refusal.status, refusal.headers, "application/problem+json")


def tell(refusal: Refusal, path: str, renderer: Renderer) -> Response:
    """Return the answer in the form that fits the path."""
    if refusal.status is HTTPStatus.SEE_OTHER:
        return RedirectResponse(refusal.headers["Location"], refusal.status)
    if path.startswith(_FOR_PROGRAMS):
        return tell_program(refusal)
    return renderer.render_refusal(refusal)
