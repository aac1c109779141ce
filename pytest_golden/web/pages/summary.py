"""How often what was intended succeeded: in all, by intent type, and by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from pytest_golden.clock import utc_now
from pytest_golden.journal.reading.moments import parse_moment
from pytest_golden.web.queries import asked
from pytest_golden.web.shown.stacks import stack_periods

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.site import Site

#: How far back one may look; blank is all.
SPANS = (("", "all time"), ("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days"), ("365d", "a year"))


def list_routes(site: Site) -> list[Route]:
    """Give the addresses of this part."""
    return [Route("/summary", _SummaryPage(site).show)]


class _SummaryPage:
    def __init__(self, site: Site) -> None:
        self._services = site.services
        self._renderer = site.renderer

    def show(self, request: Request) -> Response:
        agent, since = asked(request, "agent"), asked(request, "since")
        summary = self._services.journal.summary(agent, None if since is None else parse_moment(since, utc_now()))
        return self._renderer.render(
            request,
            "summary.html",
            current="Summary",
            summary=summary,
            stacks=stack_periods(summary.by_time),
            agents=self._services.journal_pages.list_agents(limit=200).items,
            agent=agent,
            since=since or "",
            spans=SPANS if (since or "") in dict(SPANS) else (*SPANS, (since, since)),
        )
