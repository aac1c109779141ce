"""The routes of the JSON API: gate runs, projects, the journal, lessons and plans.

Endpoints call one service each. Their answers are the services' `to_dict`.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.routing import APIRoute

from pytest_golden.clock import utc_now
from pytest_golden.errors import JournalError
from pytest_golden.history.recorded_model import ListedProject, ListedRun, ProjectDetails, RecordedResult
from pytest_golden.journal.model import JournalEntry, Signal
from pytest_golden.journal.review import (
    ALL,
    JournalSummary,
    ListedAgent,
    ListedEntry,
    ListedSignal,
    OpenExpectation,
    SignalDetails,
    parse_timestamp,
)
from pytest_golden.journal.rules import check_free_source
from pytest_golden.learning.learned_pages import CURRENT, LessonDetails, ListedLesson
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.report.gate_report import recorded_report
from pytest_golden.storage.paging import DEFAULT_ITEMS, MOST_ITEMS
from pytest_golden.values.shape_model import model_of
from pytest_golden.web.access import Refusal
from pytest_golden.web.api import schemas
from pytest_golden.web.api.schemas import page_of
from pytest_golden.web.boundary import refuse_other_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.rendering import Site

#: No database takes NUL.
NO_NUL = r"^[^\x00]*$"
Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="How many items at most.")]
Cursor = Annotated[str | None, Query(max_length=4_096, description="The `next_cursor` of the page before.")]
Word = Annotated[str | None, Query(min_length=1, max_length=4_096, pattern=NO_NUL)]
# At most 800 bytes are looked up, and a character may have four.
Id = Annotated[str, Path(min_length=1, max_length=200, pattern=NO_NUL)]
DEFAULT_LIMIT = DEFAULT_ITEMS
_TOLD = {
    400: "The query or the body has a value that is not allowed.",
    401: "The token is missing or wrong.",
    403: "Another site sends it, or this server only shows.",
    404: "There is no such thing.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    421: "The Host header names another server.",
    422: "The body, the query or the path has another shape.",
    429: "Too many wrong tokens.",
    503: "The store is busy.",
}
Name = Annotated[str, Path(min_length=1, max_length=200, pattern=NO_NUL)]
Filter = Annotated[str, Query(description="Where entries stand: all, open, success, failure, partial or expired.")]
Since = Annotated[str | None, Query(max_length=64, description="An age such as `30d`, or a time.")]
Words = Annotated[str | None, Query(max_length=4_096, pattern=NO_NUL, description="Any of these words.")]
Standing = Annotated[str, Query(description="current, all, shown, waits, harmful, superseded or rejected.")]


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems that a route may answer with, for OpenAPI."""
    content = {"application/problem+json": {"schema": schemas.Problem.model_json_schema()}}
    told: dict[int | str, dict[str, Any]] = {
        code: {"description": _TOLD[code], "content": content} for code in (*codes, 401, 421, 422, 429, 503)
    }
    told[401]["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}, "required": True}}
    for code in (429, 503):
        told[code]["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return told


def leads_on(code: int, operation: str, parameter: str = "id", *, by: str = "items/0/id") -> dict[int | str, Any]:
    """Return a link for OpenAPI: which operation takes a value of an answer, found at `by` in its body."""
    link = {"operationId": operation, "parameters": {parameter: f"$response.body#/{by}"}}
    return {code: {"description": "Successful Response", "links": {operation: link}}}


class JsonRoute(APIRoute):
    """A route of the API: POST requests must declare JSON, and every answer can be written as JSON."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        # A key that a value leaves out while it is None is left out of the answer too.
        options["response_model_exclude_unset"] = True
        super().__init__(path, _answering_encodable(endpoint), **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which checks the content type first."""
        answer = super().get_route_handler()

        async def answer_json(request: Request) -> Response:
            refuse_other_kinds(request.method, request.headers)
            return await answer(request)

        return answer_json


def _answering_encodable(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(endpoint)
    def answer(**told: Any) -> Any:
        return make_encodable(endpoint(**told))

    return answer


def make_encodable(content: Any) -> Any:
    """Return JSON content with surrogates as escapes: what others have recorded may hold them, and UTF-8 may not.

    Content without any is returned as it is: to find that out is many times faster than to copy it.
    """
    return content if _is_encodable(content) else _escape(content)


def _is_encodable(content: Any) -> bool:
    try:
        json.dumps(content, ensure_ascii=False, default=_pass_over).encode()
    except (TypeError, ValueError):
        # The error of an encoding is a ValueError.
        return False
    return True


def _pass_over(_other: object) -> None:
    """Ignore what JSON does not know, such as times: the caller writes that."""


def _escape(content: Any) -> Any:
    if isinstance(content, str):
        return content if content.isascii() else content.encode("utf-8", "backslashreplace").decode()
    if isinstance(content, dict):
        return {_escape(key): _escape(item) for key, item in content.items()}
    return [_escape(item) for item in content] if isinstance(content, list | tuple) else content


def make_routers(site: Site) -> tuple[APIRouter, ...]:
    """Return all routes, grouped by tags."""
    return _make_gates_routes(site), _make_journal_routes(site), _make_learning_routes(site)


def _make_gates_routes(site: Site) -> APIRouter:
    router = APIRouter(tags=["gates"], route_class=JsonRoute)
    services = site.services

    @router.get(
        "/runs", response_model=page_of(model_of(ListedRun)), responses=problems(400) | leads_on(200, "get_run")
    )
    def list_runs(limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Any:
        """List the gate runs, newest first."""
        return services.gates.list_runs(limit, cursor).to_dict()

    @router.get(
        "/runs/{id}",
        response_model=schemas.RUN,
        responses=problems(404) | leads_on(200, "get_result", by="results/0/entry_id"),
    )
    def get_run(id: Id) -> Any:  # noqa: A002 - the public name
        """Get a run: the gate report, with the entry of each result."""
        services.gates.get_listed_run(id)
        return recorded_report(services.gates.get_run(id))

    @router.get("/results/{id}", response_model=model_of(RecordedResult), responses=problems(404))
    def get_result(id: Id) -> Any:  # noqa: A002 - the public name
        """Get one project's result in a run with all that is kept of it."""
        return services.gates.get_result(id).to_dict()

    @router.get(
        "/projects",
        response_model=page_of(model_of(ListedProject)),
        responses=problems(400) | leads_on(200, "get_project", "name", by="items/0/name"),
    )
    def list_projects(limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Any:
        """List the declared projects in their order, then those that were declared once."""
        return services.gates.list_projects(services.manifest.read(), limit, cursor).to_dict()

    @router.get("/projects/{name:path}", response_model=model_of(ProjectDetails), responses=problems(404))
    def get_project(name: Name) -> Any:
        """Get a project with its history, its figures, its last difference and what is known about it."""
        return services.gates.get_project(name, services.manifest.read()).to_dict()

    return router


def _make_journal_routes(site: Site) -> APIRouter:
    router = APIRouter(tags=["journal"], route_class=JsonRoute)
    _add_journal_reading(router, site)
    _add_signals(router, site)
    _add_writing(router, site)
    return router


def _add_journal_reading(router: APIRouter, site: Site) -> None:
    pages, journal = site.services.journal_pages, site.services.journal

    @router.get(
        "/entries", response_model=page_of(model_of(ListedEntry)), responses=problems(400) | leads_on(200, "get_entry")
    )
    def list_entries(
        agent: Word = None,
        filter: Filter = ALL,  # noqa: A002 - the public name
        type: Word = None,  # noqa: A002 - the public name
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> Any:
        """List the entries, newest first."""
        return pages.list_entries(agent, filter, type, limit, cursor).to_dict()

    @router.get("/entries/{id}", response_model=model_of(JournalEntry), responses=problems(404))
    def get_entry(id: Id) -> Any:  # noqa: A002 - the public name
        """Get an entry with its expectations, signals and history."""
        return journal.get(id).to_dict()

    @router.get(
        "/expectations",
        response_model=page_of(model_of(OpenExpectation)),
        responses=problems(400) | leads_on(200, "get_entry", by="items/0/entry_id"),
    )
    def list_expectations(agent: Word = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Any:
        """List the open expectations, the soonest first."""
        return pages.list_expectations(agent, limit, cursor).to_dict()

    @router.get("/agents", response_model=page_of(model_of(ListedAgent)), responses=problems(400))
    def list_agents(limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Any:
        """List the agents, by name."""
        return pages.list_agents(limit, cursor).to_dict()

    @router.get("/summary", response_model=model_of(JournalSummary), responses=problems(400))
    def sum_up(agent: Word = None, since: Since = None) -> Any:
        """Get how often entries succeeded: in all, by intent type, and by day."""
        return journal.summary(agent, None if since is None else parse_timestamp(since, utc_now())).to_dict()


def _add_signals(router: APIRouter, site: Site) -> None:
    pages, journal = site.services.journal_pages, site.services.journal

    @router.get(
        "/signals",
        response_model=page_of(model_of(ListedSignal)),
        responses=problems(400) | leads_on(200, "get_signal"),
    )
    def list_signals(
        routed_by: Word = None, agent: Word = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
    ) -> Any:
        """List the signals, newest first."""
        return pages.list_signals(routed_by, agent, limit, cursor).to_dict()

    @router.get("/signals/{id}", response_model=model_of(SignalDetails), responses=problems(404))
    def get_signal(id: Id) -> Any:  # noqa: A002 - the public name
        """Get a signal, and how it was routed."""
        return pages.get_signal(id).to_dict()

    @router.post("/signals", response_model=model_of(Signal), status_code=201, responses=problems(400, 403, 413, 415))
    def add_signal(news: schemas.NewSignal) -> Any:
        """Add a signal. Its source cannot be a person, the gate or GitHub."""
        check_free_source(news.source)
        with _refusing_parts():
            return journal.add_signal(**news.model_dump()).to_dict()


def _add_writing(router: APIRouter, site: Site) -> None:
    journal = site.services.journal

    @router.post(
        "/entries", response_model=model_of(JournalEntry), status_code=201, responses=problems(400, 403, 413, 415)
    )
    def log_intent(told: schemas.NewEntry) -> Any:
        """Log an intent, before the work begins."""
        with _refusing_parts():
            return journal.log_intent(**told.model_dump()).to_dict()

    @router.post(
        "/entries/{id}/outcome", response_model=model_of(JournalEntry), responses=problems(400, 403, 404, 413, 415)
    )
    def log_outcome(id: Id, told: schemas.NewOutcome) -> Any:  # noqa: A002 - the public name
        """Log how the work ended, and what is expected now."""
        return journal.log_outcome(id, **told.model_dump()).to_dict()

    @router.post(
        "/entries/{id}/assessment", response_model=model_of(JournalEntry), responses=problems(400, 403, 404, 413, 415)
    )
    def assess(id: Id, told: schemas.NewAssessment) -> Any:  # noqa: A002 - the public name
        """Record a person's assessment, which overrides all rules."""
        return journal.assess(id, told.assessment, told.notes, by=told.by).to_dict()


@contextmanager
def _refusing_parts() -> Iterator[None]:
    """Turn an unknown entry into a refusal of the body that names it: the address exists."""
    try:
        yield
    except JournalError as error:
        raise Refusal(400, str(error)) from None


def _make_learning_routes(site: Site) -> APIRouter:
    router = APIRouter(tags=["learning"], route_class=JsonRoute)
    _add_lesson_reading(router, site)
    _add_judging(router, site)
    return router


def _add_lesson_reading(router: APIRouter, site: Site) -> None:
    lessons, plans = site.services.lesson_pages, site.services.plan_pages

    @router.get(
        "/lessons",
        response_model=page_of(model_of(ListedLesson)),
        responses=problems(400) | leads_on(200, "get_lesson"),
    )
    def list_lessons(
        q: Words = None,
        agent: Word = None,
        filter: Standing = CURRENT,  # noqa: A002 - as the journal's lists have it
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> Any:
        """List the lessons, newest first, or those that have the words, best first."""
        return lessons.list_lessons(q, agent, filter, limit, cursor).to_dict()

    @router.get("/lessons/{id}", response_model=model_of(LessonDetails), responses=problems(404))
    def get_lesson(id: Id) -> Any:  # noqa: A002 - the public name
        """Get a lesson with its evidence and its history."""
        return lessons.get_lesson(id).to_dict()

    @router.get("/plans", response_model=page_of(schemas.PLAN), responses=problems(400) | leads_on(200, "get_plan"))
    def list_plans(q: Words = None, agent: Word = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Any:
        """List the plans, newest first, or those that have the words, best first."""
        return plans.list_plans(q, agent, limit, cursor).to_dict()

    @router.get("/plans/{id}", response_model=schemas.PLAN, responses=problems(404))
    def get_plan(id: Id) -> Any:  # noqa: A002 - the public name
        """Get a plan with the outcome that it was read out of."""
        return plans.get_plan(id).to_dict()


def _add_judging(router: APIRouter, site: Site) -> None:
    lessons = site.services.lessons

    @router.post(
        "/lessons/{id}/approve", response_model=model_of(SkillMemory), responses=problems(400, 403, 404, 413, 415)
    )
    def approve(id: Id, judged: schemas.Judged) -> Any:  # noqa: A002 - the public name
        """Let a person approve a lesson."""
        return lessons.approve(id, judged.by).to_dict()

    @router.post(
        "/lessons/{id}/reject", response_model=model_of(SkillMemory), responses=problems(400, 403, 404, 413, 415)
    )
    def reject(id: Id, judged: schemas.Judged) -> Any:  # noqa: A002 - the public name
        """Let a person reject a lesson: it is not shown, and not learned again."""
        return lessons.reject(id, judged.by).to_dict()

    @router.delete("/lessons/{id}", response_model=model_of(SkillMemory), responses=problems(400, 403, 404))
    def delete(id: Id) -> Any:  # noqa: A002 - the public name
        """Delete a lesson with all its versions, and give what it was."""
        return lessons.delete(id).to_dict()
