"""The pages of what was learned: lessons with their evidence and a person's word on them, and plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse
from starlette.routing import Route

from pytest_golden.learning.learned_pages import CURRENT, LESSON_FILTERS
from pytest_golden.web.problems import asked, named
from pytest_golden.web.sign_in import form_action

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.rendering import Site

_LESSONS = "Lessons"
_PLANS = "Plans"
_PERSON = "a person at the web page"
_SEE_OTHER = 303


def list_routes(site: Site) -> list[Route]:
    """Return the routes of these pages."""
    lessons, plans = _LessonPages(site), _PlanPages(site)
    return [
        Route("/lessons", lessons.show_list),
        Route("/lessons/{lesson}", lessons.show_lesson),
        Route("/lessons/{lesson}/approve", form_action(site, lessons.approve), methods=["POST"]),
        Route("/lessons/{lesson}/reject", form_action(site, lessons.reject), methods=["POST"]),
        Route("/lessons/{lesson}/delete", form_action(site, lessons.delete), methods=["POST"]),
        Route("/plans", plans.show_list),
        Route("/plans/{plan}", plans.show_plan),
    ]


class _LessonPages:
    def __init__(self, site: Site) -> None:
        self._pages = site.services.lesson_pages
        self._lessons = site.services.lessons
        self._renderer = site.renderer

    def show_list(self, request: Request) -> Response:
        words, standing = asked(request, "q"), asked(request, "filter") or CURRENT
        return self._renderer.render(
            request,
            "lessons.html",
            current=_LESSONS,
            page=self._pages.list_lessons(words, filter=standing, cursor=asked(request, "cursor")),
            standings=LESSON_FILTERS,
            chosen={"q": words, "filter": standing},
        )

    def show_lesson(self, request: Request) -> Response:
        details = self._pages.get_lesson(named(request, "lesson"))
        return self._renderer.render(request, "lesson.html", current=_LESSONS, details=details)

    def approve(self, request: Request, fields: Mapping[str, str]) -> Response:  # noqa: ARG002 - a form's action
        lesson = self._lessons.approve(named(request, "lesson"), _PERSON)
        return RedirectResponse(self._renderer.url("lessons", lesson.id), _SEE_OTHER)

    def reject(self, request: Request, fields: Mapping[str, str]) -> Response:  # noqa: ARG002 - a form's action
        lesson = self._lessons.reject(named(request, "lesson"), _PERSON)
        return RedirectResponse(self._renderer.url("lessons", lesson.id), _SEE_OTHER)

    def delete(self, request: Request, fields: Mapping[str, str]) -> Response:  # noqa: ARG002 - a form's action
        self._lessons.delete(named(request, "lesson"))
        return RedirectResponse(self._renderer.url("lessons"), _SEE_OTHER)


class _PlanPages:
    def __init__(self, site: Site) -> None:
        self._pages = site.services.plan_pages
        self._renderer = site.renderer

    def show_list(self, request: Request) -> Response:
        words = asked(request, "q")
        page = self._pages.list_plans(words, cursor=asked(request, "cursor"))
        return self._renderer.render(request, "plans.html", current=_PLANS, page=page, words=words)

    def show_plan(self, request: Request) -> Response:
        details = self._pages.get_plan(named(request, "plan"))
        return self._renderer.render(request, "plan.html", current=_PLANS, details=details)
