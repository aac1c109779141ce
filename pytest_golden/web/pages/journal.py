"""The journal: its timeline, one entry, what is still expected, and a person's word on an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse
from starlette.routing import Route

from pytest_golden.journal.model import Assessment
from pytest_golden.journal.reading.filters import ALL, FILTERS
from pytest_golden.serving.refusal import Refusal
from pytest_golden.storage.paging import DEFAULT_ITEMS
from pytest_golden.web.forms import form_action
from pytest_golden.web.queries import asked, named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.site import Site

_SEE_OTHER = 303
_PERSON = "a person at the web page"
_WORDS = tuple(word.value for word in (Assessment.SUCCESS, Assessment.PARTIAL, Assessment.FAILURE))


def list_routes(site: Site) -> list[Route]:
    """Give the addresses of this part."""
    pages = _JournalPages(site)
    return [
        Route("/journal", pages.show_timeline),
        Route("/journal/{entry}", pages.show_entry),
        Route("/journal/{entry}/assess", form_action(site, pages.assess), methods=["POST"]),
        Route("/expectations", pages.show_expectations),
    ]


class _JournalPages:
    def __init__(self, site: Site) -> None:
        self._services = site.services
        self._renderer = site.renderer

    def show_timeline(self, request: Request) -> Response:
        agent, intent_type = asked(request, "agent"), asked(request, "type")
        standing = asked(request, "filter") or ALL
        page = self._services.journal_pages.list_entries(agent, standing, intent_type, cursor=asked(request, "cursor"))
        return self._renderer.render(
            request,
            "journal.html",
            current="Journal",
            page=page,
            agents=self._services.journal_pages.list_agents(limit=200).items,
            standings=FILTERS,
            chosen={"agent": agent, "filter": standing, "type": intent_type},
        )

    def show_entry(self, request: Request) -> Response:
        details = self._services.journal_pages.get_entry(named(request, "entry"), DEFAULT_ITEMS)
        return self._renderer.render(request, "entry.html", current="Journal", details=details, words=_WORDS)

    def assess(self, request: Request, fields: Mapping[str, str]) -> Response:
        entry = named(request, "entry")
        word = fields.get("assessment", "")
        if word not in _WORDS:
            raise Refusal(400, f"The assessment is one of {', '.join(_WORDS)}.")
        notes = fields.get("notes", "").strip() or None
        self._services.journal.assess(entry, word, notes, by=_PERSON)
        return RedirectResponse(self._renderer.url("journal", entry), _SEE_OTHER)

    def show_expectations(self, request: Request) -> Response:
        agent = asked(request, "agent")
        page = self._services.journal_pages.list_expectations(agent, cursor=asked(request, "cursor"))
        return self._renderer.render(
            request,
            "expectations.html",
            current="Expectations",
            page=page,
            agents=self._services.journal_pages.list_agents(limit=200).items,
            agent=agent,
        )
