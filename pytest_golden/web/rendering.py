"""Pages out of templates. Every value that a template writes is made visible and escaped, so that none can be forgotten."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from pytest_golden.web.drawing import make_visible
from pytest_golden.web.filters import FILTERS

if TYPE_CHECKING:
    from starlette.requests import Request

    from pytest_golden.web.access import Refusal
    from pytest_golden.web.services import ServeOptions
    from pytest_golden.web.visitor import Doorkeeper


class Renderer:
    """Fills templates. `render` binds their forms to the visit of whoever asks."""

    def __init__(self, options: ServeOptions, doorkeeper: Doorkeeper) -> None:
        self._options = options
        self._doorkeeper = doorkeeper
        self._sessions = doorkeeper.sessions
        self._templates = Environment(
            loader=PackageLoader("pytest_golden.web"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(FILTERS)
        self._templates.globals.update(
            url=self.url,
            static=self._static,
            is_read_only=options.is_read_only,
            current="",
            form_token="",
            is_inside=False,
            signs_out=False,
        )

    def url(self, *parts: str, **query: Any) -> str:
        """Return the address of a page: `url("journal", entry_id)`; parts are quoted, query values that are None left out."""
        path = "/".join(quote(part, safe="") for part in parts)
        told = urlencode([(name, value) for name, value in query.items() if value is not None])
        return f"{self._options.place.prefix}/{path}{'?' if told else ''}{told}"

    def render(self, request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page. A browser without a visit is given one, since the page's forms are bound to it."""
        visit = self._sessions.find_visit(request.cookies)
        begun = visit or self._sessions.begin_visit()
        values["form_token"] = self._sessions.sign_form(begun)
        values.setdefault("is_inside", True)
        values["signs_out"] = self._doorkeeper.demands_token(request.headers, request.headers.get("host", ""))
        response = HTMLResponse(self._templates.get_template(template).render(values), status)
        if visit is None:
            self._sessions.set_visit(response, begun)
        return response

    def render_refusal(self, refusal: Refusal) -> HTMLResponse:
        """Return the page that tells a refusal."""
        page = self._templates.get_template("refusal.html").render(refusal=refusal)
        return HTMLResponse(page, refusal.status, refusal.headers)

    def _static(self, name: str) -> str:
        return f"{self._options.place.prefix}/static/{name}?v={_digest(name)}"


def _finalize(value: Any) -> Any:
    """Show a value that a template writes; None is nothing."""
    if value is None:
        return ""
    return value if isinstance(value, Markup) else make_visible(str(value))


@cache
def _digest(name: str) -> str:
    content = files("pytest_golden.web").joinpath("static", name).read_bytes()
    return hashlib.sha256(content).hexdigest()[:12]
