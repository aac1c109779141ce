"""The pages of the journal: its timeline, one entry with the form for an assessment, expectations, signals, and the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from pytest_golden.clock import utc_now
from pytest_golden.journal.model import Assessment, RoutedBy
from pytest_golden.journal.review import ALL, FILTERS, parse_timestamp
from pytest_golden.storage.paging import DEFAULT_ITEMS
from pytest_golden.web.access import Refusal
from pytest_golden.web.drawing import stack_periods
from pytest_golden.web.problems import asked, named
from pytest_golden.web.sign_in import form_action

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from pytest_golden.web.rendering import Site

#: The periods of the summary; blank is all time.
SPANS = (("", "all time"), ("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days"), ("365d", "a year"))
_SEE_OTHER = 303
_PERSON = "a person at the web page"
_WORDS = tuple(word.value for word in (Assessment.SUCCESS, Assessment.PARTIAL, Assessment.FAILURE))


def list_routes(site: Site) -> list[Route]:
    """Return the routes of these pages."""
    pages = _JournalPages(site)
    return [
        Route("/journal", pages.show_timeline),
        Route("/journal/{entry}", pages.show_entry),
        Route("/journal/{entry}/assess", form_action(site, pages.assess), methods=["POST"]),
        Route("/expectations", pages.show_expectations),
        Route("/summary", pages.show_summary),
        Route("/signals", pages.list_signals),
        Route("/signals/{signal}", pages.show_signal),
    ]


class _JournalPages:
    def __init__(self, site: Site) -> None:
        self._journal = site.services.journal
        self._pages = site.services.journal_pages
        self._renderer = site.renderer

    def show_timeline(self, request: Request) -> Response:
        agent, intent_type = asked(request, "agent"), asked(request, "type")
        standing = asked(request, "filter") or ALL
        page = self._pages.list_entries(agent, standing, intent_type, cursor=asked(request, "cursor"))
        return self._renderer.render(
            request,
            "journal.html",
            current="Journal",
            page=page,
            agents=self._pages.list_agents(limit=200).items,
            standings=FILTERS,
            chosen={"agent": agent, "filter": standing, "type": intent_type},
        )

    def show_entry(self, request: Request) -> Response:
        details = self._pages.get_entry(named(request, "entry"), DEFAULT_ITEMS)
        return self._renderer.render(request, "entry.html", current="Journal", details=details, words=_WORDS)

    def assess(self, request: Request, fields: Mapping[str, str]) -> Response:
        entry = named(request, "entry")
        word = fields.get("assessment", "")
        if word not in _WORDS:
            raise Refusal(400, f"The assessment is one of {', '.join(_WORDS)}.")
        notes = fields.get("notes", "").strip() or None
        self._journal.assess(entry, word, notes, by=_PERSON)
        return RedirectResponse(self._renderer.url("journal", entry), _SEE_OTHER)

    def show_expectations(self, request: Request) -> Response:
        agent = asked(request, "agent")
        page = self._pages.list_expectations(agent, cursor=asked(request, "cursor"))
        return self._renderer.render(
            request,
            "expectations.html",
            current="Expectations",
            page=page,
            agents=self._pages.list_agents(limit=200).items,
            agent=agent,
        )

    def list_signals(self, request: Request) -> Response:
        rule, agent = asked(request, "routed_by"), asked(request, "agent")
        return self._renderer.render(
            request,
            "signals.html",
            current="Signals",
            page=self._pages.list_signals(rule, agent, cursor=asked(request, "cursor")),
            rules=tuple(RoutedBy),
            agents=self._pages.list_agents(limit=200).items,
            chosen={"routed_by": rule, "agent": agent},
        )

    def show_signal(self, request: Request) -> Response:
        details = self._pages.get_signal(named(request, "signal"))
        return self._renderer.render(request, "signal.html", current="Signals", details=details)

    def show_summary(self, request: Request) -> Response:
        agent, since = asked(request, "agent"), asked(request, "since")
        summary = self._journal.summary(agent, None if since is None else parse_timestamp(since, utc_now()))
        return self._renderer.render(
            request,
            "summary.html",
            current="Summary",
            summary=summary,
            stacks=stack_periods(summary.by_time),
            agents=self._pages.list_agents(limit=200).items,
            agent=agent,
            since=since or "",
            spans=SPANS if (since or "") in dict(SPANS) else (*SPANS, (since, since)),
        )
