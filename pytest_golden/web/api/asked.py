"""What the addresses of the API have in common: the words of their queries, what leads on, and the problems they may tell."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path, Query
from fastapi.routing import APIRoute

from pytest_golden.storage.paging import DEFAULT_ITEMS, MOST_ITEMS
from pytest_golden.web.api.encodable import make_encodable
from pytest_golden.web.api.model import Problem
from pytest_golden.web.boundary.body import refuse_other_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.requests import Request
    from starlette.responses import Response

#: No database takes NUL.
NO_NUL = r"^[^\x00]*$"

Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="How many items at most.")]
Cursor = Annotated[str | None, Query(max_length=4_096, description="The `next_cursor` of the page before.")]
Word = Annotated[str | None, Query(min_length=1, max_length=4_096, pattern=NO_NUL)]
# At most 800 bytes are looked up, and a sign may have four.
Id = Annotated[str, Path(min_length=1, max_length=200, pattern=NO_NUL)]
DEFAULT_LIMIT = DEFAULT_ITEMS

_TOLD = {
    400: "The query or the body says something that is not allowed.",
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


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Give the problems that an address may answer with, for OpenAPI."""
    content = {"application/problem+json": {"schema": Problem.model_json_schema()}}
    told: dict[int | str, dict[str, Any]] = {
        code: {"description": _TOLD[code], "content": content} for code in (*codes, 401, 421, 422, 429, 503)
    }
    told[401]["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}, "required": True}}
    for code in (429, 503):
        told[code]["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return told


def leads_on(code: int, operation: str, parameter: str = "id", *, by: str = "items/0/id") -> dict[int | str, Any]:
    """Say what may be asked for with what an answer holds, for OpenAPI: `by` is where it stands in the body."""
    link = {"operationId": operation, "parameters": {parameter: f"$response.body#/{by}"}}
    return {code: {"description": "Successful Response", "links": {operation: link}}}


class JsonRoute(APIRoute):
    """An address of the API: whatever is posted to it must be said to be JSON, and whatever it answers can be written as that."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, _answering_encodable(endpoint), **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Give what answers."""
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
