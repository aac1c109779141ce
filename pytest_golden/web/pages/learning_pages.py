"""The pages of what was learned: lessons, which a person may approve or reject, and plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from pytest_golden.learning.learned_pages import CURRENT, LESSON_FILTERS
from pytest_golden.web.problems import asked, named
from pytest_golden.web.sign_in import form_action

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.web.rendering import Site

_LESSONS = "Lessons"
_PLANS = "Plans"
_PERSON = "a person at the web page"
_SEE_OTHER = 303


def list_routes(site: Site) -> list[Route]:
    """Return the routes of these pages."""
    pages = _LearningPages(site)
    return [
        Route("/lessons", pages.list_lessons),
        Route("/lessons/{lesson}", pages.show_lesson),
        Route("/lessons/{lesson}/approve", form_action(site, pages.approve), methods=["POST"]),
        Route("/lessons/{lesson}/reject", form_action(site, pages.reject), methods=["POST"]),
        Route("/lessons/{lesson}/delete", form_action(site, pages.delete), methods=["POST"]),
        Route("/plans", pages.list_plans),
        Route("/plans/{plan}", pages.show_plan),
    ]


class _LearningPages:
    def __init__(self, site: Site) -> None:
        self._services = site.services
        self._lessons = site.services.lessons
        self._renderer = site.renderer

    def list_lessons(self, request: Request) -> Response:
        words, standing = asked(request, "q"), asked(request, "filter") or CURRENT
        return self._renderer.render(
            request,
            "lessons.html",
            current=_LESSONS,
            page=self._services.lesson_pages.list_lessons(words, filter=standing, cursor=asked(request, "cursor")),
            standings=LESSON_FILTERS,
            chosen={"q": words, "filter": standing},
        )

    def show_lesson(self, request: Request) -> Response:
        details = self._services.lesson_pages.get_lesson(named(request, "lesson"))
        return self._renderer.render(request, "lesson.html", current=_LESSONS, details=details)

    def approve(self, request: Request, fields: Mapping[str, str]) -> Response:  # noqa: ARG002 - a form's action
        return self._show_again(self._lessons.approve(named(request, "lesson"), _PERSON))

    def reject(self, request: Request, fields: Mapping[str, str]) -> Response:  # noqa: ARG002 - a form's action
        return self._show_again(self._lessons.reject(named(request, "lesson"), _PERSON))

    def _show_again(self, lesson: SkillMemory) -> Response:
        return RedirectResponse(self._renderer.url("lessons", lesson.id), _SEE_OTHER)

    def delete(self, request: Request, fields: Mapping[str, str]) -> Response:  # noqa: ARG002 - a form's action
        self._lessons.delete(named(request, "lesson"))
        return RedirectResponse(self._renderer.url("lessons"), _SEE_OTHER)

    def list_plans(self, request: Request) -> Response:
        words = asked(request, "q")
        page = self._services.plan_pages.list_plans(words, cursor=asked(request, "cursor"))
        return self._renderer.render(request, "plans.html", current=_PLANS, page=page, words=words)

    def show_plan(self, request: Request) -> Response:
        details = self._services.plan_pages.get_plan(named(request, "plan"))
        return self._renderer.render(request, "plan.html", current=_PLANS, details=details)
