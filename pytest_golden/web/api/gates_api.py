"""Gate runs, results and projects by JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path

from pytest_golden.report.gate_report import recorded_report
from pytest_golden.web.api.asked import DEFAULT_LIMIT, NO_NUL, Cursor, Id, JsonRoute, Limit, leads_on, problems
from pytest_golden.web.api.schemas import ListedProject, ListedRun, PageOf, Project, Result, Run

if TYPE_CHECKING:
    from pytest_golden.web.site import Site

Name = Annotated[str, Path(min_length=1, max_length=200, pattern=NO_NUL)]


def make_router(site: Site) -> APIRouter:
    """Return the routes of this part."""
    router = APIRouter(tags=["gates"], route_class=JsonRoute)
    services = site.services

    @router.get("/runs", response_model=PageOf[ListedRun], responses=problems(400) | leads_on(200, "get_run"))
    def list_runs(limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Any:
        """List the gate runs, newest first."""
        return services.gates.list_runs(limit, cursor).to_dict()

    @router.get(
        "/runs/{id}", response_model=Run, responses=problems(404) | leads_on(200, "get_result", by="results/0/entry_id")
    )
    def get_run(id: Id) -> Any:  # noqa: A002 - the public name
        """Get a run: the gate report, with the entry of each result."""
        services.gates.get_listed_run(id)
        return recorded_report(services.gates.get_run(id))

    @router.get("/results/{id}", response_model=Result, responses=problems(404))
    def get_result(id: Id) -> Any:  # noqa: A002 - the public name
        """Get one project's result in a run with all that is kept of it."""
        return services.gates.get_result(id).to_dict()

    @router.get(
        "/projects",
        response_model=PageOf[ListedProject],
        responses=problems(400) | leads_on(200, "get_project", "name", by="items/0/name"),
    )
    def list_projects(limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Any:
        """List the declared projects in their order, then those that were declared once."""
        return services.gates.list_projects(services.read_manifest(), limit, cursor).to_dict()

    @router.get("/projects/{name:path}", response_model=Project, responses=problems(404))
    def get_project(name: Name) -> Any:
        """Get a project with its history, its figures, its last difference and what is known of it."""
        return services.gates.get_project(name, services.read_manifest()).to_dict()

    return router
