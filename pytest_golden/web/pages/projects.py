"""Projects: what is declared, how it went lately, and the history of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from pytest_golden.web.queries import asked, named
from pytest_golden.web.shown.durations import plot_runs

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.site import Site

_CURRENT = "Projects"
_SHOWN_RUNS = 100


def list_routes(site: Site) -> list[Route]:
    """Give the addresses of this part."""
    pages = _ProjectPages(site)
    return [Route("/projects", pages.show_list), Route("/projects/{name:path}", pages.show_project)]


class _ProjectPages:
    def __init__(self, site: Site) -> None:
        self._services = site.services
        self._renderer = site.renderer

    def show_list(self, request: Request) -> Response:
        page = self._services.gates.list_projects(self._services.read_manifest(), cursor=asked(request, "cursor"))
        return self._renderer.render(request, "projects.html", current=_CURRENT, page=page)

    def show_project(self, request: Request) -> Response:
        name = named(request, "name")
        details = self._services.gates.get_project(name, self._services.read_manifest(), _SHOWN_RUNS)
        trend = details.history.trend
        figures = details.history.to_dict()
        return self._renderer.render(
            request,
            "project.html",
            current=_CURRENT,
            name=name,
            details=details,
            figures=figures,
            plot=plot_runs(details.history.runs, figures["median_seconds"], trend.limit_seconds if trend else None),
        )
