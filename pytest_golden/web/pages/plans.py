"""Plans: the strategies that were read out of what agents and pipelines did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from pytest_golden.web.queries import asked, named

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.site import Site

_CURRENT = "Plans"


def list_routes(site: Site) -> list[Route]:
    """Give the addresses of this part."""
    pages = _PlanPages(site)
    return [Route("/plans", pages.show_list), Route("/plans/{plan}", pages.show_plan)]


class _PlanPages:
    def __init__(self, site: Site) -> None:
        self._pages = site.services.plan_pages
        self._renderer = site.renderer

    def show_list(self, request: Request) -> Response:
        words = asked(request, "q")
        page = self._pages.list_plans(words, cursor=asked(request, "cursor"))
        return self._renderer.render(request, "plans.html", current=_CURRENT, page=page, words=words)

    def show_plan(self, request: Request) -> Response:
        details = self._pages.get_plan(named(request, "plan"))
        return self._renderer.render(request, "plan.html", current=_CURRENT, details=details)
