"""Gate runs: the overview, which is the first page, and one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from pytest_golden.web.queries import asked, named

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.site import Site

_FIRST = "Gate runs"
_MOST_RESULTS = 200


def list_routes(site: Site) -> list[Route]:
    """Give the addresses of this part."""
    pages = _RunPages(site)
    return [Route("/", pages.show_overview), Route("/runs/{entry}", pages.show_run)]


class _RunPages:
    def __init__(self, site: Site) -> None:
        self._gates = site.services.gates
        self._live = site.services.live_gates
        self._renderer = site.renderer

    def show_overview(self, request: Request) -> Response:
        cursor = asked(request, "cursor")
        page = self._gates.list_runs(cursor=cursor)
        running = () if cursor else self._live.look().gates
        return self._renderer.render(request, "runs.html", current=_FIRST, page=page, running=running)

    def show_run(self, request: Request) -> Response:
        entry, cursor = named(request, "entry"), asked(request, "cursor")
        return self._renderer.render(
            request,
            "run.html",
            current=_FIRST,
            run=self._gates.get_listed_run(entry),
            facts=self._gates.get_run_facts(entry),
            page=self._gates.list_results(entry, _MOST_RESULTS, cursor),
            live=next((gate for gate in self._live.look().gates if gate.run_id == entry), None),
        )
