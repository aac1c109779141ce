"""Lists in pages. A cursor tells where the next page begins; it is opaque and valid for its own list only.

A page starts behind a position in the list's order, never after a number of rows: the last page costs as much as the first
one, and rows that are added meanwhile move nothing. The `*store.py` modules find the rows.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pytest_golden.storage.columns import storable
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEFAULT_ITEMS, MOST_ITEMS = 50, 200
_DIGITS = 12
_LONGEST_CURSOR = 2_000
# The limit of a BIGINT in every database.
_LARGEST = 2**63
_REFUSED = "cursor is not one that this list gave with these filters: leave it out to begin with the first page"

_Row = TypeVar("_Row")
#: The end of a page: the values by which rows are ordered, of its last row.
Position = tuple[int | str, ...]


class Listed(Protocol):
    """An item of a list."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        ...


_Item = TypeVar("_Item", bound=Listed)


@dataclass(frozen=True, slots=True)
class Page(Shape, Generic[_Item]):
    """A part of a list; `next_cursor` is the cursor of the next part, None after the last one."""

    items: tuple[_Item, ...]
    next_cursor: str | None = None


class Listing:
    """A list with given filters. `kinds` are the types of a position's values, in order."""

    def __init__(self, name: str, *filters: str | bool | None, kinds: tuple[type[int | str], ...]) -> None:
        identity = json.dumps([name, *filters])
        self._digest = hashlib.sha256(identity.encode("ascii")).hexdigest()[:_DIGITS]
        self._kinds = kinds

    def read_cursor(self, cursor: str | None) -> Any:
        """Return the position of a cursor; None without a cursor.

        Raises:
            ValueError: the cursor is broken, or belongs to another list or other filters.
        """
        if cursor is None:
            return None
        values = _decode(cursor)
        if values is None or values[0] != self._digest or len(values) != len(self._kinds) + 1:
            raise ValueError(_REFUSED)
        if not all(_is_of(value, kind) for value, kind in zip(values[1:], self._kinds, strict=True)):
            raise ValueError(_REFUSED)
        return tuple(values[1:])

    def write_cursor(self, position: Position) -> str:
        """Return the cursor of a position."""
        written = json.dumps([self._digest, *position], separators=(",", ":"))
        return base64.urlsafe_b64encode(written.encode("ascii")).decode("ascii").rstrip("=")

    def cut(
        self, rows: Sequence[_Row], limit: int, position: Callable[[_Row], Position], make: Callable[[_Row], _Item]
    ) -> Page[_Item]:
        """Return a page of `limit` rows; one further row in `rows` shows that another page follows."""
        shown = rows[:limit]
        has_more = len(rows) > limit and bool(shown)
        return Page(tuple(map(make, shown)), self.write_cursor(position(shown[-1])) if has_more else None)


def check_page_limit(limit: object) -> int:
    """Return a valid number of items of a page.

    Raises:
        ValueError: it is not a whole number from 1 to 200.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_ITEMS:
        raise ValueError(f"limit must be a whole number from 1 to {MOST_ITEMS}, not {limit!r:.40}")
    return limit


def _decode(cursor: object) -> list[Any] | None:
    if not isinstance(cursor, str) or not cursor.isascii() or len(cursor) > _LONGEST_CURSOR:
        return None
    try:
        values = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return values if isinstance(values, list) and values else None


def _is_of(value: object, kind: type) -> bool:
    if isinstance(value, str):
        return kind is str and storable(value) == value
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return kind is int and -_LARGEST <= value < _LARGEST
