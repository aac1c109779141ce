"""Lessons and plans by JSON, and a person's word on a lesson."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from pytest_golden.learning.lessons.lesson_pages import CURRENT
from pytest_golden.web.api.asked import DEFAULT_LIMIT, NO_NUL, Cursor, Id, JsonRoute, Limit, Word, leads_on, problems
from pytest_golden.web.api.schemas import Judged, Lesson, PageOf, Plan

if TYPE_CHECKING:
    from pytest_golden.web.site import Site

Words = Annotated[str | None, Query(max_length=4_096, pattern=NO_NUL, description="Any of these words.")]
Standing = Annotated[str, Query(description="current, all, shown, waits, harmful, superseded or rejected.")]


def make_router(site: Site) -> APIRouter:
    """Return the routes of this part."""
    router = APIRouter(tags=["learning"], route_class=JsonRoute)
    _add_reading(router, site)
    _add_judging(router, site)
    return router


def _add_reading(router: APIRouter, site: Site) -> None:
    lessons, plans = site.services.lesson_pages, site.services.plan_pages

    @router.get("/lessons", response_model=PageOf[Lesson], responses=problems(400) | leads_on(200, "get_lesson"))
    def list_lessons(
        q: Words = None,
        agent: Word = None,
        filter: Standing = CURRENT,  # noqa: A002 - as the journal's lists have it
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> Any:
        """List the lessons, newest first, or those that have the words, best first."""
        return lessons.list_lessons(q, agent, filter, limit, cursor).to_dict()

    @router.get("/lessons/{id}", response_model=Lesson, responses=problems(404))
    def get_lesson(id: Id) -> Any:  # noqa: A002 - the public name
        """Get a lesson with its evidence and its history."""
        return lessons.get_lesson(id).to_dict()

    @router.get("/plans", response_model=PageOf[Plan], responses=problems(400) | leads_on(200, "get_plan"))
    def list_plans(q: Words = None, agent: Word = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Any:
        """List the plans, newest first, or those that have the words, best first."""
        return plans.list_plans(q, agent, limit, cursor).to_dict()

    @router.get("/plans/{id}", response_model=Plan, responses=problems(404))
    def get_plan(id: Id) -> Any:  # noqa: A002 - the public name
        """Get a plan with the outcome that it was read out of."""
        return plans.get_plan(id).to_dict()


def _add_judging(router: APIRouter, site: Site) -> None:
    lessons = site.services.lessons

    @router.post("/lessons/{id}/approve", response_model=Lesson, responses=problems(400, 403, 404, 413, 415))
    def approve(id: Id, judged: Judged) -> Any:  # noqa: A002 - the public name
        """Let a person approve a lesson."""
        return lessons.approve(id, judged.by).to_dict()

    @router.post("/lessons/{id}/reject", response_model=Lesson, responses=problems(400, 403, 404, 413, 415))
    def reject(id: Id, judged: Judged) -> Any:  # noqa: A002 - the public name
        """Let a person reject a lesson: it is not shown, and not learned again."""
        return lessons.reject(id, judged.by).to_dict()

    @router.delete("/lessons/{id}", response_model=Lesson, responses=problems(400, 403, 404))
    def delete(id: Id) -> Any:  # noqa: A002 - the public name
        """Delete a lesson with all its versions, and give what it was."""
        return lessons.delete(id).to_dict()
