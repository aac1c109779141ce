"""What the addresses of the API have in common: the words of their queries, and the problems they may tell."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query

from pytest_golden.storage.paging import DEFAULT_ITEMS, MOST_ITEMS
from pytest_golden.web.api.model import Problem

#: No database takes NUL.
NO_NUL = r"^[^\x00]*$"

Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="How many items at most.")]
Cursor = Annotated[str | None, Query(max_length=4_096, description="The `next_cursor` of the page before.")]
Word = Annotated[str | None, Query(min_length=1, max_length=4_096, pattern=NO_NUL)]
Id = Annotated[str, Path(min_length=1, max_length=4_096, pattern=NO_NUL)]
DEFAULT_LIMIT = DEFAULT_ITEMS

_TOLD = {
    400: "The query or the body says something that is not allowed.",
    401: "The token is missing or wrong.",
    403: "Another site sends it, or this server only shows.",
    404: "There is no such thing.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "The body, the query or the path has another shape.",
    429: "Too many wrong tokens.",
    503: "The store is busy.",
}


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Give the problems that an address may answer with, for OpenAPI."""
    content = {"application/problem+json": {"schema": Problem.model_json_schema()}}
    return {code: {"description": _TOLD[code], "content": content} for code in (*codes, 401, 422, 429, 503)}
