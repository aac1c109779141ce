"""The pages of gate runs and projects: the overview, one run, one project's result, and the history of a project."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from starlette.routing import Route

from pytest_golden.web.drawing import MOST_STEP_BARS, lay_out_steps, plot_runs
from pytest_golden.web.problems import asked, named

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.rendering import Site

_RUNS = "Gate runs"
_PROJECTS = "Projects"
_MOST_RESULTS = 200
_SHOWN_RUNS = 100


def list_routes(site: Site) -> list[Route]:
    """Return the routes of these pages."""
    pages = _RunPages(site)
    return [
        Route("/", pages.show_overview),
        Route("/runs/{entry}", pages.show_run),
        Route("/results/{entry}", pages.show_result),
        Route("/projects", pages.list_projects),
        Route("/projects/{name:path}", pages.show_project),
    ]


class _RunPages:
    def __init__(self, site: Site) -> None:
        self._services = site.services
        self._gates = site.services.gates
        self._live = site.services.live_gates
        self._renderer = site.renderer

    def show_overview(self, request: Request) -> Response:
        cursor = asked(request, "cursor")
        page = self._gates.list_runs(cursor=cursor)
        running = () if cursor else self._live.look().gates
        return self._renderer.render(request, "runs.html", current=_RUNS, page=page, running=running)

    def show_run(self, request: Request) -> Response:
        entry, cursor = named(request, "entry"), asked(request, "cursor")
        return self._renderer.render(
            request,
            "run.html",
            current=_RUNS,
            run=self._gates.get_listed_run(entry),
            facts=self._gates.get_run_facts(entry),
            page=self._gates.list_results(entry, _MOST_RESULTS, cursor),
            live=next((gate for gate in self._live.look().gates if gate.run_id == entry), None),
        )

    def show_result(self, request: Request) -> Response:
        recorded = self._gates.get_result(named(request, "entry"))
        return self._renderer.render(
            request,
            "result.html",
            current=_RUNS,
            recorded=recorded,
            result=recorded.result,
            bars=lay_out_steps(recorded.result.steps),
            left_out=max(0, recorded.result.steps_total - MOST_STEP_BARS),
            command=shlex.join(recorded.result.command),
            written={name: getattr(recorded.result.write_set, name) for name in ("created", "changed", "removed")},
        )

    def list_projects(self, request: Request) -> Response:
        page = self._gates.list_projects(self._services.manifest.read(), cursor=asked(request, "cursor"))
        return self._renderer.render(request, "projects.html", current=_PROJECTS, page=page)

    def show_project(self, request: Request) -> Response:
        name = named(request, "name")
        details = self._gates.get_project(name, self._services.manifest.read(), _SHOWN_RUNS)
        trend = details.history.trend
        figures = details.history.to_dict()
        return self._renderer.render(
            request,
            "project.html",
            current=_PROJECTS,
            name=name,
            details=details,
            figures=figures,
            plot=plot_runs(details.history.runs, figures["median_seconds"], trend.limit_seconds if trend else None),
        )
