"""Signing in with the token, and out again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse
from starlette.routing import Route

from pytest_golden.serving.refusal import Refusal
from pytest_golden.web.boundary.visitor import SIGN_IN
from pytest_golden.web.forms import form_action

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.site import Site

_SEE_OTHER = 303
_UNAUTHORIZED = 401


def list_routes(site: Site) -> list[Route]:
    """Give the addresses of this part."""
    pages = _SignInPages(site)
    return [
        Route(SIGN_IN, pages.show, methods=["GET"]),
        Route(SIGN_IN, form_action(site, pages.sign_in), methods=["POST"]),
        Route("/sign-out", form_action(site, pages.sign_out), methods=["POST"]),
    ]


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
    """Give a path of this site; anything that a browser may take for another site's address becomes the first page."""
    is_inside = path.startswith("/") and path.isascii() and path.isprintable() and "\\" not in path
    return path if is_inside and not path.startswith("//") else "/"
