"""Multisets within a tolerance: a pairing is found whenever there is one."""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_golden.compare.documents import document_values as matching
from pytest_golden.compare.documents.document_values import Alone, Equality, match_equal

if TYPE_CHECKING:
    import pytest

NUMBERS = st.integers(0, 6).map(lambda number: b"%d" % number)
ITEMS = st.lists(st.one_of(NUMBERS, NUMBERS.map(lambda number: {"v": number}), st.just("x")), max_size=5)


@given(st.lists(st.sampled_from([b"a", b"b", b"c"])), st.lists(st.sampled_from([b"a", b"b", b"c"])))
def test_equal_items_are_partners_and_the_rest_is_alone(ours: list[bytes], theirs: list[bytes]) -> None:
    alone = match_equal(ours, theirs)
    assert not {ours[at] for at in alone.ours} & {theirs[at] for at in alone.theirs}
    assert len(ours) - len(alone.ours) == len(theirs) - len(alone.theirs)


@settings(deadline=None)
@given(ITEMS, ITEMS)
def test_a_pairing_is_found_whenever_there_is_one(ours: list[object], theirs: list[object]) -> None:
    near = Equality(absolute=Decimal(1))
    alone = Equality(unordered=True, absolute=Decimal(1)).match(ours, theirs)
    most = max(
        sum(near.is_equal(one, other) for one, other in zip(ours, turned, strict=False))
        for turned in permutations([*theirs, *["nobody"] * (len(ours) - len(theirs))])
    )
    assert len(ours) - len(alone.ours) == most
    assert len(theirs) - len(alone.theirs) == most


def test_when_too_much_was_tried_nothing_more_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_MOST_TRIALS", 0)
    assert Equality(unordered=True, absolute=Decimal(1)).match([b"1"], [b"2"]) == Alone([0], [0])


def test_items_of_any_kind_can_be_sorted() -> None:
    many = [b"%d" % number for number in range(500)]
    ours: list[object] = [
        None,
        True,
        "a",
        {"b": [b"1", b"2.5"]},
        [],
        b"NaN",
        b"1" * 400,
        {"b": many},
        b"1e999999999999999999999",
    ]
    assert Equality(unordered=True, absolute=Decimal(1)).match(ours, [*ours[::-1], b"5"]) == Alone([], [9])
