"""The journal by JSON: entries, expectations, signals, agents, the summary, and what may be written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from pytest_golden.clock import utc_now
from pytest_golden.errors import JournalError
from pytest_golden.journal.review import ALL, parse_moment
from pytest_golden.journal.rules import check_free_source
from pytest_golden.web.access import Refusal
from pytest_golden.web.api.asked import DEFAULT_LIMIT, Cursor, Id, JsonRoute, Limit, Word, leads_on, problems
from pytest_golden.web.api.schemas import (
    Agent,
    Entry,
    Expectation,
    NewAssessment,
    NewEntry,
    NewOutcome,
    NewSignal,
    PageOf,
    RoutedSignal,
    Signal,
    Summary,
)

if TYPE_CHECKING:
    from pytest_golden.web.site import Site

Filter = Annotated[str, Query(description="Where entries stand: all, open, success, failure, partial or expired.")]
Since = Annotated[str | None, Query(max_length=64, description="An age such as `30d`, or a time.")]


def make_router(site: Site) -> APIRouter:
    """Return the routes of this part."""
    router = APIRouter(tags=["journal"], route_class=JsonRoute)
    _add_reading(router, site)
    _add_signals(router, site)
    _add_writing(router, site)
    return router


def _add_reading(router: APIRouter, site: Site) -> None:
    pages, journal = site.services.journal_pages, site.services.journal

    @router.get("/entries", response_model=PageOf[Entry], responses=problems(400) | leads_on(200, "get_entry"))
    def list_entries(
        agent: Word = None,
        filter: Filter = ALL,  # noqa: A002 - the public name
        type: Word = None,  # noqa: A002 - the public name
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
    ) -> Any:
        """List the entries, newest first."""
        return pages.list_entries(agent, filter, type, limit, cursor).to_dict()

    @router.get("/entries/{id}", response_model=Entry, responses=problems(404))
    def get_entry(id: Id) -> Any:  # noqa: A002 - the public name
        """Get an entry with its expectations, signals and history."""
        return journal.get(id).to_dict()

    @router.get(
        "/expectations",
        response_model=PageOf[Expectation],
        responses=problems(400) | leads_on(200, "get_entry", by="items/0/entry_id"),
    )
    def list_expectations(agent: Word = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Any:
        """List the open expectations, the soonest first."""
        return pages.list_expectations(agent, limit, cursor).to_dict()

    @router.get("/agents", response_model=PageOf[Agent], responses=problems(400))
    def list_agents(limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Any:
        """List the agents, by name."""
        return pages.list_agents(limit, cursor).to_dict()

    @router.get("/summary", response_model=Summary, responses=problems(400))
    def sum_up(agent: Word = None, since: Since = None) -> Any:
        """Tell how often entries succeeded: in all, by intent type, and by day."""
        return journal.summary(agent, None if since is None else parse_moment(since, utc_now())).to_dict()


def _add_signals(router: APIRouter, site: Site) -> None:
    pages, journal = site.services.journal_pages, site.services.journal

    @router.get("/signals", response_model=PageOf[Signal], responses=problems(400) | leads_on(200, "get_signal"))
    def list_signals(
        routed_by: Word = None, agent: Word = None, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
    ) -> Any:
        """List the signals, newest first."""
        return pages.list_signals(routed_by, agent, limit, cursor).to_dict()

    @router.get("/signals/{id}", response_model=RoutedSignal, responses=problems(404))
    def get_signal(id: Id) -> Any:  # noqa: A002 - the public name
        """Get a signal, and why it went where it went."""
        return pages.get_signal(id).to_dict()

    @router.post("/signals", response_model=Signal, status_code=201, responses=problems(400, 403, 413, 415))
    def add_signal(news: NewSignal) -> Any:
        """Take news in. It cannot speak as a person, as the gate or as GitHub."""
        check_free_source(news.source)
        with _RefusingParts():
            return journal.add_signal(**news.model_dump()).to_dict()


def _add_writing(router: APIRouter, site: Site) -> None:
    journal = site.services.journal

    @router.post("/entries", response_model=Entry, status_code=201, responses=problems(400, 403, 413, 415))
    def log_intent(told: NewEntry) -> Any:
        """Say what is about to be done, before it is done."""
        with _RefusingParts():
            return journal.log_intent(**told.model_dump()).to_dict()

    @router.post("/entries/{id}/outcome", response_model=Entry, responses=problems(400, 403, 404, 413, 415))
    def log_outcome(id: Id, told: NewOutcome) -> Any:  # noqa: A002 - the public name
        """Say how it ended, and what is expected of it now."""
        return journal.log_outcome(id, **told.model_dump()).to_dict()

    @router.post("/entries/{id}/assessment", response_model=Entry, responses=problems(400, 403, 404, 413, 415))
    def assess(id: Id, told: NewAssessment) -> Any:  # noqa: A002 - the public name
        """Let a person say where an entry stands, above all rules."""
        return journal.assess(id, told.assessment, told.notes, by=told.by).to_dict()


class _RefusingParts:
    """Where a body names an entry that is not there, the body is wrong, and no address."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, JournalError):
            raise Refusal(400, str(error)) from None
