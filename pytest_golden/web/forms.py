"""Forms that change something: the field that ties them to the page they were shown on, and what they bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from pytest_golden.serving.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_golden.web.site import Site

TOKEN_FIELD = "csrf_token"
_MOST_FIELDS = 50
_FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


def form_action(
    site: Site, act: Callable[[Request, Mapping[str, str]], Response]
) -> Callable[[Request], Awaitable[Response]]:
    """Give the endpoint of a form: `act` is given its fields, in a thread of its own.

    A form that does not bring back what its page was given is refused with 403, one that is no form with 415.
    """

    async def answer(request: Request) -> Response:
        if not request.headers.get("content-type", "").lower().startswith(_FORM_TYPES):
            raise Refusal(415, "Send a form.")
        fields = await _read_fields(request)
        visit = site.doorkeeper.sessions.find_visit(request.cookies)
        if not site.doorkeeper.sessions.fits_form(visit, fields.get(TOKEN_FIELD, "")):
            raise Refusal(403, "The form is from another visit: go back, load the page again, and send it once more.")
        return await run_in_threadpool(act, request, fields)

    return answer


async def _read_fields(request: Request) -> dict[str, str]:
    async with request.form(max_files=0, max_fields=_MOST_FIELDS) as form:
        fields: dict[str, Any] = dict(form)
    return {name: value for name, value in fields.items() if not isinstance(value, UploadFile)}
