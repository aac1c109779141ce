"""What a request asks for by its query: a word that is left blank asks for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.serving.refusal import Refusal

if TYPE_CHECKING:
    from starlette.requests import Request

_MOST_SIGNS = 4096


def asked(request: Request, name: str) -> str | None:
    """Give a word of the query, or None.

    Raises:
        Refusal: it holds NUL, which no database takes, or is far too long.
    """
    told = request.query_params.get(name)
    if told is None or not told.strip():
        return None
    if "\0" in told or len(told) > _MOST_SIGNS:
        raise Refusal(400, f"{name} holds what cannot be looked for.")
    return told


def named(request: Request, name: str) -> str:
    """Give a part of the path.

    Raises:
        Refusal: nothing can be called so.
    """
    told: str = request.path_params[name]
    if "\0" in told or len(told) > _MOST_SIGNS:
        raise Refusal(404, "There is nothing of that name.")
    return told
