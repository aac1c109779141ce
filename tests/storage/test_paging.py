from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.storage.paging import MOST_ITEMS, Listing, Page, check_page_limit

NUMBERS = Listing("numbers", "odd", None, True, kinds=(int, str))
REFUSED = "leave it out to begin with the first page"


@dataclass(frozen=True)
class Item:
    number: int

    def to_dict(self) -> dict[str, Any]:
        return {"number": self.number}


def cut(rows: list[int], limit: int) -> Page[Item]:
    return NUMBERS.cut(rows, limit, lambda row: (row, "x"), Item)


def encode(told: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")


def test_page_has_what_it_may_and_tells_where_the_next_one_begins() -> None:
    page = cut([7, 5, 3], 2)
    assert page.items == (Item(7), Item(5))
    assert NUMBERS.read_cursor(page.next_cursor) == (5, "x")
    assert page.to_dict() == {"items": [{"number": 7}, {"number": 5}], "next_cursor": page.next_cursor}
    assert cut([7, 5], 2).next_cursor is None
    assert cut([], 2) == Page(())
    assert NUMBERS.read_cursor(None) is None


@given(st.integers(-(2**63), 2**63 - 1), st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_cursor_gives_back_what_was_written(number: int, text: str) -> None:
    assert NUMBERS.read_cursor(NUMBERS.write_cursor((number, text))) == (number, text)


@pytest.mark.parametrize(
    "other",
    [
        Listing("texts", "odd", None, True, kinds=(int, str)),
        Listing("numbers", "even", None, True, kinds=(int, str)),
        Listing("numbers", "odd", None, False, kinds=(int, str)),
        Listing("numbers", "odd", None, True, kinds=(int, str, int)),
    ],
)
def test_cursor_of_another_list_is_refused(other: Listing) -> None:
    position = (1, "x") if other.write_cursor((1, "x")) != NUMBERS.write_cursor((1, "x")) else (1, "x", 2)
    with pytest.raises(ValueError, match=REFUSED):
        NUMBERS.read_cursor(other.write_cursor(position))


@given(st.text(max_size=40))
def test_broken_cursor_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=REFUSED):
        NUMBERS.read_cursor(text)


@pytest.mark.parametrize(
    "position", [(True, "x"), (1.5, "x"), (2**63, "x"), ("1", "x"), (1, 1), (1, None), (1, "\0"), (1, "\udc80"), (1,)]
)
def test_cursor_whose_values_no_database_takes_is_refused(position: tuple[Any, ...]) -> None:
    digest = json.loads(base64.urlsafe_b64decode(NUMBERS.write_cursor((1, "x")) + "=="))[0]
    with pytest.raises(ValueError, match=REFUSED):
        NUMBERS.read_cursor(encode([digest, *position]))


@pytest.mark.parametrize("told", [{}, [], None, 1, ["x"], "9" * 3000])
def test_cursor_that_holds_something_else_is_refused(told: object) -> None:
    with pytest.raises(ValueError, match=REFUSED):
        NUMBERS.read_cursor(encode(told))


def test_cursor_that_is_no_text_is_refused() -> None:
    with pytest.raises(ValueError, match=REFUSED):
        NUMBERS.read_cursor(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [0, -1, MOST_ITEMS + 1, True, 1.0, "5", None])
def test_limit_out_of_bounds_is_refused(limit: object) -> None:
    with pytest.raises(ValueError, match="limit must be a whole number from 1 to 200, not"):
        check_page_limit(limit)


def test_limit_in_bounds_is_given() -> None:
    assert (check_page_limit(1), check_page_limit(MOST_ITEMS)) == (1, MOST_ITEMS)
