"""Forms that change something, tied to the page that they were shown on; signing in with the token, and out again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from pytest_golden.web.access import Refusal
from pytest_golden.web.visitor import SIGN_IN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from pytest_golden.web.rendering import Site

TOKEN_FIELD = "csrf_token"
_MOST_FIELDS = 50
_FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")
_SEE_OTHER = 303
_UNAUTHORIZED = 401


def list_routes(site: Site) -> list[Route]:
    """Return the routes of these pages."""
    pages = _SignInPages(site)
    return [
        Route(SIGN_IN, pages.show, methods=["GET"]),
        Route(SIGN_IN, form_action(site, pages.sign_in), methods=["POST"]),
        Route("/sign-out", form_action(site, pages.sign_out), methods=["POST"]),
    ]


def form_action(
    site: Site, act: Callable[[Request, Mapping[str, str]], Response]
) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a form: it calls `act` with the form's fields, in a worker thread.

    A form without the token that its page was given is refused with 403, a body that is not a form with 415.
    """

    async def answer(request: Request) -> Response:
        if not request.headers.get("content-type", "").lower().startswith(_FORM_TYPES):
            raise Refusal(415, "Send a form.")
        fields = await _read_fields(request)
        visit = site.doorkeeper.sessions.find_visit(request.cookies)
        if not site.doorkeeper.sessions.fits_form(visit, fields.get(TOKEN_FIELD, "")):
            raise Refusal(403, "The form is from another visit: go back, load the page again, and send it once more.")
        return await run_in_threadpool(act, request, fields)

    return answer


async def _read_fields(request: Request) -> dict[str, str]:
    async with request.form(max_files=0, max_fields=_MOST_FIELDS) as form:
        fields: dict[str, Any] = dict(form)
    return {name: value for name, value in fields.items() if not isinstance(value, UploadFile)}


class _SignInPages:
    def __init__(self, site: Site) -> None:
        self._site = site

    def show(self, request: Request) -> Response:
        return self._show(request, request.query_params.get("next", "/"), None, 200)

    def sign_in(self, request: Request, fields: Mapping[str, str]) -> Response:
        asked = fields.get("next", "/")
        doorkeeper = self._site.doorkeeper
        if not doorkeeper.is_token(fields.get("token", "").strip()):
            try:
                doorkeeper.refuse_wrong_token(request.scope["golden.address"])
            except Refusal as refusal:
                page = self._show(request, asked, refusal.detail, refusal.status)
                page.headers.update(refusal.headers)
                return page
            return self._show(request, asked, "That is not the token.", _UNAUTHORIZED)
        response = RedirectResponse(f"{self._site.options.place.prefix}{_stay_inside(asked)}", _SEE_OTHER)
        doorkeeper.sessions.open(response)
        return response

    def sign_out(self, request: Request, fields: Mapping[str, str]) -> Response:  # noqa: ARG002 - a form's action
        response = RedirectResponse(self._site.renderer.url("sign-in"), _SEE_OTHER)
        self._site.doorkeeper.sessions.close(response, request.cookies)
        return response

    def _show(self, request: Request, asked: str, problem: str | None, status: int) -> Response:
        inside = _stay_inside(asked)
        told = {"is_inside": False, "next": inside, "problem": problem}
        return self._site.renderer.render(request, "sign_in.html", status=status, **told)


def _stay_inside(path: str) -> str:
    """Return a path of this site; the first page for anything that a browser may take for another site's address."""
    is_inside = path.startswith("/") and path.isascii() and path.isprintable() and "\\" not in path
    return path if is_inside and not path.startswith("//") else "/"
