"""Signals, and why each went where it went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from pytest_golden.journal.model import RoutedBy
from pytest_golden.web.queries import asked, named

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.site import Site


def list_routes(site: Site) -> list[Route]:
    """Give the addresses of this part."""
    pages = _SignalPages(site)
    return [Route("/signals", pages.show_list), Route("/signals/{signal}", pages.show_signal)]


class _SignalPages:
    def __init__(self, site: Site) -> None:
        self._pages = site.services.journal_pages
        self._renderer = site.renderer

    def show_list(self, request: Request) -> Response:
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
