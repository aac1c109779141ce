"""One project's result in a run: why, where, what it printed, wrote and ran in."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from starlette.routing import Route

from pytest_golden.web.queries import named
from pytest_golden.web.shown.waterfall import MOST_BARS, lay_out_steps

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.site import Site


def list_routes(site: Site) -> list[Route]:
    """Give the addresses of this part."""
    return [Route("/results/{entry}", _ResultPage(site).show)]


class _ResultPage:
    def __init__(self, site: Site) -> None:
        self._gates = site.services.gates
        self._renderer = site.renderer

    def show(self, request: Request) -> Response:
        recorded = self._gates.get_result(named(request, "entry"))
        return self._renderer.render(
            request,
            "result.html",
            current="Gate runs",
            recorded=recorded,
            result=recorded.result,
            bars=lay_out_steps(recorded.result.steps),
            left_out=max(0, recorded.result.steps_total - MOST_BARS),
            command=shlex.join(recorded.result.command),
            written={name: getattr(recorded.result.write_set, name) for name in ("created", "changed", "removed")},
        )
