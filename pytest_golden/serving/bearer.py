"""The token in the header `Authorization`, by which programs come in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.clock import monotonic_seconds
from pytest_golden.serving.attempts import Attempts
from pytest_golden.serving.refusal import Refusal
from pytest_golden.serving.token import is_same

if TYPE_CHECKING:
    from starlette.datastructures import Headers

_MOST_WRONG, _WINDOW_SECONDS = 60, 300.0


class BearerCheck:
    """Knows the token, and counts who was wrong."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._wrongs = Attempts(_MOST_WRONG, _WINDOW_SECONDS, monotonic_seconds)

    def is_right(self, headers: Headers, address: str) -> bool:
        """Tell whether a request from this address says the token; it need not.

        Raises:
            Refusal: it says another one.
        """
        scheme, _, told = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return False
        # Headers are bytes that were read as Latin-1, where more than blanks counts as a space.
        if is_same(told.strip(" \t").encode("latin-1", "replace"), self._token):
            return True
        self._wrongs.count(address)
        raise ask_for_token("The token is wrong.")


def ask_for_token(detail: str) -> Refusal:
    """Make what asks for it."""
    return Refusal(401, detail, {"WWW-Authenticate": 'Bearer realm="golden"'})
