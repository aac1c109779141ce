"""The JSON API: its routes, its description, and its errors.

Endpoints call one service each, and answer with the JSON form of what it returns.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Path, Query
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request  # noqa: TC002 - FastAPI reads the annotations
from starlette.routing import Mount

from pytest_golden.clock import utc_now
from pytest_golden.cycle import past_cycles
from pytest_golden.cycle.past_cycles import CycleDetails, PastCycle
from pytest_golden.errors import GoldenError, JournalError
from pytest_golden.gate.inbox_items import Inbox, open_inbox
from pytest_golden.history.recorded_model import ListedProject, ListedRun, ProjectDetails, RecordedResult
from pytest_golden.journal import review
from pytest_golden.journal.model import JournalEntry, Signal
from pytest_golden.journal.rules import check_free_name
from pytest_golden.learning.learned_pages import CURRENT, LessonDetails, ListedLesson
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.recalling import SHOWN
from pytest_golden.learning.outcome_summary import OutcomeSummary, sum_up_outcomes
from pytest_golden.report.gate_report import make_encodable, recorded_report
from pytest_golden.storage.paging import DEFAULT_ITEMS, MOST_ITEMS
from pytest_golden.values.shape_model import model_of
from pytest_golden.web import schemas
from pytest_golden.web.access import Refusal
from pytest_golden.web.boundary import refuse_other_kinds
from pytest_golden.web.problems import AnsweringHead, answer_options, explain, tell_program
from pytest_golden.web.visitor import check_person, is_person

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from starlette.responses import Response

    from pytest_golden.web.rendering import Site

    Endpoint = Callable[[Callable[..., Any]], Callable[..., Any]]

_PATH = "/api/v1"
_BEARER = {"token": {"type": "http", "scheme": "bearer"}}
#: No database takes NUL.
NO_NUL = r"^[^\x00]*$"
Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="How many items at most.")]
Cursor = Annotated[str | None, Query(max_length=4_096, description="The `next_cursor` of the page before.")]
Word = Annotated[str | None, Query(min_length=1, max_length=4_096, pattern=NO_NUL)]
# At most 800 bytes are looked up, and a character may have four.
Id = Annotated[str, Path(min_length=1, max_length=200, pattern=NO_NUL)]
Filter = Annotated[str, Query(description="Where entries stand: all, open, success, failure, partial or expired.")]
Since = Annotated[str | None, Query(max_length=64, description="An age such as `30d`, or a time.")]
Words = Annotated[str | None, Query(max_length=4_096, pattern=NO_NUL, description="Any of these words.")]


async def _check_person(request: Request) -> None:
    check_person(request)


async def _is_person(request: Request) -> bool:
    return is_person(request)


_FOR_PEOPLE = (Depends(_check_person),)
IsPerson = Annotated[bool, Depends(_is_person)]
Standing = Annotated[str, Query(description="current, all, shown, waits, harmful, superseded or rejected.")]
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


def list_routes(site: Site) -> list[Mount]:
    """Return the routes of this part."""
    app = FastAPI(
        title="Golden projects",
        version="1",
        description="Gate runs, the journal and what was learned. Lists are paged by `next_cursor`; errors are problem JSON.",
        servers=[{"url": f"{site.options.place.prefix}{_PATH}"}],
        root_path_in_servers=False,
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        exception_handlers={
            **dict.fromkeys((HTTPException, Refusal, GoldenError, ValueError, Exception), _tell),
            RequestValidationError: _tell_shape,
        },
    )
    parts = {
        _add_waiting: "gates",
        _add_gates: "gates",
        _add_journal: "journal",
        _add_signals: "journal",
        _add_writing: "journal",
    }
    for add_routes, tag in {**parts, _add_learning: "learning", _add_judging: "learning"}.items():
        router = _Router(tags=[tag], route_class=_Route)
        add_routes(router, site)
        app.include_router(router)
    _describe_token(app, is_demanded=site.options.demands_token)
    return [Mount(_PATH, AnsweringHead(app))]


def _describe_token(app: FastAPI, *, is_demanded: bool) -> None:
    make: Callable[[], dict[str, Any]] = app.openapi

    def describe() -> dict[str, Any]:
        told = make()
        told.setdefault("components", {})["securitySchemes"] = _BEARER
        told["security"] = [{"token": []}] if is_demanded else [{"token": []}, {}]
        return told

    app.openapi = describe  # type: ignore[method-assign]


async def _tell(request: Request, error: Exception) -> Response:
    refusal = explain(error)
    return answer_options(refusal, request) or tell_program(refusal)


async def _tell_shape(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    told = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5]]
    return tell_program(Refusal(422, "; ".join(told)[:2_000]))


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


def leads_on(operation: str, parameter: str, by: str) -> dict[int | str, Any]:
    """Return a link for OpenAPI: which operation takes a value of an answer, found at `by` in its body."""
    link = {"operationId": operation, "parameters": {parameter: f"$response.body#/{by}"}}
    return {200: {"description": "Successful Response", "links": {operation: link}}}


class _Route(APIRoute):
    """A route of the API: POST requests must declare JSON, and every answer can be written as JSON."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        # A key that a value leaves out while it is None is left out of the answer too.
        options["response_model_exclude_unset"] = True

        @wraps(endpoint)
        def answer(**told: Any) -> Any:
            return answer_encodable(endpoint(**told))

        super().__init__(path, answer, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which checks the content type first."""
        answer = super().get_route_handler()

        async def answer_json(request: Request) -> Response:
            refuse_other_kinds(request.method, request.headers)
            return await answer(request)

        return answer_json


def answer_encodable(content: Any) -> Any:
    """Return JSON content that can be encoded: what others have recorded may hold surrogates, and UTF-8 may not.

    Content that can be encoded is returned as it is: to find that out is many times faster than to copy it.
    """
    try:
        # What JSON does not know, such as times, is written by the caller.
        json.dumps(content, ensure_ascii=False, default=lambda _: None).encode()
    except (TypeError, ValueError):
        # The error of an encoding is a ValueError.
        return make_encodable(content)
    else:
        return content


class _Router(APIRouter):
    """Routes by what they do; each is described with the model of its answer and the problems that it may have."""

    def page(self, path: str, item: Any, leads_to: str = "", parameter: str = "id", by: str = "id") -> Endpoint:
        """Declare a list in pages; the operation `leads_to` takes the value `by` of an item as `parameter`."""
        links = leads_on(leads_to, parameter, f"items/0/{by}") if leads_to else {}
        return self.get(path, response_model=schemas.page_of(_model(item)), responses=problems(400) | links)

    def one(self, path: str, kind: Any, *codes: int) -> Endpoint:
        """Declare what is got by its id, or has the problems with these codes."""
        return self.get(path, response_model=_model(kind), responses=problems(*(codes or (404,))))

    def write(self, path: str, kind: Any, *codes: int, status: int = 200, by_person: bool = False) -> Endpoint:
        """Declare what changes something, or is a person's word."""
        told = problems(400, 403, *codes, 413, 415)
        needs = _FOR_PEOPLE if by_person else ()
        return self.post(path, response_model=_model(kind), status_code=status, responses=told, dependencies=needs)


def _model(kind: Any) -> type[BaseModel]:
    return kind if issubclass(kind, BaseModel) else model_of(kind)


def _add_waiting(router: _Router, site: Site) -> None:
    services = site.services

    @router.one("/inbox", Inbox, 400)
    def get_inbox(*, by_person: IsPerson) -> Any:
        """Get what waits for a person, each with its one action; without the token, without the words of lessons."""
        return open_inbox(services.store, services.manifest.read(), utc_now(), by_person=by_person).to_dict()

    @router.page("/cycles", PastCycle, "get_cycle", by="cycle_id")
    def list_cycles(limit: Limit = DEFAULT_ITEMS) -> Any:
        """List the newest improvement cycles, and where their branches are now."""
        cycles = past_cycles.list_cycles(services.journal, services.manifest.folder, limit=limit)
        return {"items": [one.to_dict() for one in cycles], "next_cursor": None}

    @router.one("/cycles/{id}", CycleDetails)
    def get_cycle(id: Id) -> Any:  # noqa: A002 - the public name
        """Get a cycle: its verdict and why, its steps, and what it changed."""
        return past_cycles.get_cycle(services.journal, services.manifest.folder, id).to_dict()


def _add_gates(router: _Router, site: Site) -> None:
    services = site.services

    @router.page("/runs", ListedRun, "get_run")
    def list_runs(limit: Limit = DEFAULT_ITEMS, cursor: Cursor = None) -> Any:
        """List the gate runs, newest first."""
        return services.gates.list_runs(limit, cursor).to_dict()

    @router.get(
        "/runs/{id}",
        response_model=schemas.RUN,
        responses=problems(404) | leads_on("get_result", "id", "results/0/entry_id"),
    )
    def get_run(id: Id) -> Any:  # noqa: A002 - the public name
        """Get a run: the gate report, with the entry of each result."""
        services.gates.get_listed_run(id)
        return recorded_report(services.gates.get_run(id))

    @router.one("/results/{id}", RecordedResult)
    def get_result(id: Id) -> Any:  # noqa: A002 - the public name
        """Get one project's result in a run with all that is kept of it."""
        return services.gates.get_result(id).to_dict()

    @router.page("/projects", ListedProject, "get_project", "name", "name")
    def list_projects(limit: Limit = DEFAULT_ITEMS, cursor: Cursor = None) -> Any:
        """List the declared projects in their order, then those that were declared once."""
        return services.gates.list_projects(services.manifest.read(), limit, cursor).to_dict()

    @router.one("/projects/{name:path}", ProjectDetails)
    def get_project(name: Id) -> Any:
        """Get a project with its history, its figures, its last difference and what is known about it."""
        return services.gates.get_project(name, services.manifest.read()).to_dict()


def _add_journal(router: _Router, site: Site) -> None:
    pages, journal = site.services.journal_pages, site.services.journal

    @router.page("/entries", review.ListedEntry, "get_entry")
    def list_entries(
        agent: Word = None,
        filter: Filter = review.ALL,  # noqa: A002 - the public name
        type: Word = None,  # noqa: A002 - the public name
        session: Word = None,
        limit: Limit = DEFAULT_ITEMS,
        cursor: Cursor = None,
    ) -> Any:
        """List the entries, newest first."""
        return pages.list_entries(agent, filter, type, limit, cursor, session).to_dict()

    @router.one("/entries/{id}", JournalEntry)
    def get_entry(id: Id) -> Any:  # noqa: A002 - the public name
        """Get an entry with its expectations, signals and history."""
        return journal.get(id).to_dict()

    @router.page("/expectations", review.OpenExpectation, "get_entry", by="entry_id")
    def list_expectations(agent: Word = None, limit: Limit = DEFAULT_ITEMS, cursor: Cursor = None) -> Any:
        """List the open expectations, the soonest first."""
        return pages.list_expectations(agent, limit, cursor).to_dict()

    @router.page("/agents", review.ListedAgent)
    def list_agents(limit: Limit = DEFAULT_ITEMS, cursor: Cursor = None) -> Any:
        """List the agents, by name."""
        return pages.list_agents(limit, cursor).to_dict()

    @router.one("/summary", review.JournalSummary, 400)
    def sum_up(agent: Word = None, since: Since = None) -> Any:
        """Get how often entries succeeded: in all, by intent type, and by day."""
        return journal.summary(agent, None if since is None else review.parse_timestamp(since, utc_now())).to_dict()


def _add_signals(router: _Router, site: Site) -> None:
    pages, journal = site.services.journal_pages, site.services.journal

    @router.page("/signals", review.ListedSignal, "get_signal")
    def list_signals(
        routed_by: Word = None, agent: Word = None, limit: Limit = DEFAULT_ITEMS, cursor: Cursor = None
    ) -> Any:
        """List the signals, newest first."""
        return pages.list_signals(routed_by, agent, limit, cursor).to_dict()

    @router.one("/signals/{id}", review.SignalDetails)
    def get_signal(id: Id) -> Any:  # noqa: A002 - the public name
        """Get a signal, and how it was routed."""
        return pages.get_signal(id).to_dict()

    @router.write("/signals", Signal, status=201)
    def add_signal(news: schemas.NewSignal) -> Any:
        """Add a signal. Its source cannot be a person, the gate or GitHub."""
        check_free_name(news.source)
        with _refusing_parts():
            return journal.add_signal(**news.model_dump()).to_dict()


def _add_writing(router: _Router, site: Site) -> None:
    journal = site.services.journal

    @router.write("/entries", JournalEntry, status=201)
    def log_intent(told: schemas.NewEntry) -> Any:
        """Log an intent, before the work begins. The agent cannot be a person or the gate."""
        check_free_name(told.agent_id, "agent_id")
        with _refusing_parts():
            return journal.log_intent(**told.model_dump()).to_dict()

    @router.write("/entries/{id}/outcome", JournalEntry, 404)
    def log_outcome(id: Id, told: schemas.NewOutcome, by_person: IsPerson) -> Any:  # noqa: A002 - the public name
        """Log how the work ended, and what is expected now. Without the token, only of the entry of the agent that is named."""
        if not by_person:
            check_free_name(told.agent_id, "agent_id")
        return journal.log_outcome(id, **told.model_dump()).to_dict()

    @router.write("/entries/{id}/assessment", JournalEntry, 404, by_person=True)
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


def _add_learning(router: _Router, site: Site) -> None:
    learned = site.services.learned

    @router.one("/outcomes", OutcomeSummary, 400)
    def sum_up_agents(agent: Word = None, since: Since = None) -> Any:
        """Get how often agents succeeded, what failed again and again, and whether hints helped."""
        began = None if since is None else review.parse_timestamp(since, utc_now())
        return sum_up_outcomes(site.services.store, agent, began).to_dict()

    @router.page("/lessons", ListedLesson, "get_lesson")
    def list_lessons(
        q: Words = None,
        agent: Word = None,
        filter: Standing = CURRENT,  # noqa: A002 - as the journal's lists have it
        limit: Limit = DEFAULT_ITEMS,
        cursor: Cursor = None,
        *,
        by_person: IsPerson,
    ) -> Any:
        """List the lessons, newest first, or those that have the words, best first; without the token, those that are shown."""
        filter = filter if by_person else SHOWN  # noqa: A001 - as above
        return learned.list_lessons(q, agent, filter, limit, cursor).to_dict()

    @router.one("/lessons/{id}", LessonDetails)
    def get_lesson(id: Id, request: Request) -> Any:  # noqa: A002 - the public name
        """Get a lesson with its evidence and its history; without the token, one that is shown."""
        details = learned.get_lesson(id)
        if details.state != SHOWN:
            check_person(request)
        return details.to_dict()

    @router.page("/plans", schemas.PLAN, "get_plan")
    def list_plans(q: Words = None, agent: Word = None, limit: Limit = DEFAULT_ITEMS, cursor: Cursor = None) -> Any:
        """List the plans, newest first, or those that have the words, best first."""
        return learned.list_plans(q, agent, limit, cursor).to_dict()

    @router.one("/plans/{id}", schemas.PLAN)
    def get_plan(id: Id) -> Any:  # noqa: A002 - the public name
        """Get a plan with the outcome that it was read out of."""
        return learned.get_plan(id).to_dict()


def _add_judging(router: _Router, site: Site) -> None:
    lessons = site.services.lessons

    @router.write("/lessons/{id}/approve", SkillMemory, 404, by_person=True)
    def approve(id: Id, judged: schemas.Judged) -> Any:  # noqa: A002 - the public name
        """Let a person approve a lesson."""
        return lessons.approve(id, judged.by).to_dict()

    @router.write("/lessons/{id}/reject", SkillMemory, 404, by_person=True)
    def reject(id: Id, judged: schemas.Judged) -> Any:  # noqa: A002 - the public name
        """Let a person reject a lesson: it is not shown, and not learned again."""
        return lessons.reject(id, judged.by).to_dict()

    @router.delete(
        "/lessons/{id}",
        response_model=model_of(SkillMemory),
        responses=problems(400, 403, 404),
        dependencies=_FOR_PEOPLE,
    )
    def delete(id: Id) -> Any:  # noqa: A002 - the public name
        """Delete a lesson with all its versions, and give what it was."""
        return lessons.delete(id).to_dict()
