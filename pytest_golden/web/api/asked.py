"""What the routes of the API share: query parameters, problems and links for OpenAPI, and answers that UTF-8 can hold."""

from __future__ import annotations

import json
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path, Query
from fastapi.routing import APIRoute

from pytest_golden.storage.paging import DEFAULT_ITEMS, MOST_ITEMS
from pytest_golden.web.api.schemas import Problem
from pytest_golden.web.boundary import refuse_other_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.requests import Request
    from starlette.responses import Response

#: No database takes NUL.
NO_NUL = r"^[^\x00]*$"

Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="How many items at most.")]
Cursor = Annotated[str | None, Query(max_length=4_096, description="The `next_cursor` of the page before.")]
Word = Annotated[str | None, Query(min_length=1, max_length=4_096, pattern=NO_NUL)]
# At most 800 bytes are looked up, and a character may have four.
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
    """Return the problems that a route may answer with, for OpenAPI."""
    content = {"application/problem+json": {"schema": Problem.model_json_schema()}}
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
    """A route of the API: what is posted to it must be declared as JSON, and every answer can be written as JSON."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
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
