"""A request that is refused, wherever that is found out. How it is told is elsewhere."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Refusal(Exception):  # noqa: N818 - it is the visitor's mistake, and none of ours
    """An HTTP status from 400 on and one sentence for the visitor, with headers that belong to it."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        self.status = HTTPStatus(status)
        self.detail = detail
        self.headers = dict(headers or {})
        super().__init__(detail)
