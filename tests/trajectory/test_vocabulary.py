from __future__ import annotations

from collections import Counter, OrderedDict, deque, namedtuple
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pytest

from pytest_golden.trajectory.vocabulary import MAX_CONTENT_BYTES, cut_content, cut_mapping, freeze
from pytest_golden.values.json_form import FrozenDict


@dataclass
class Order:
    rows: list[int] = field(default_factory=list)


class Unequal:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


def test_kinds_of_mappings_and_sequences_stay_equal() -> None:
    Point = namedtuple("Point", "x y")  # noqa: PYI024 - the untyped kind is meant
    for value in (
        OrderedDict(a=[1]),
        Counter("aab"),
        MappingProxyType({"a": 1}),
        Point([1], 2),
        deque([1]),
        {1, 2},
        (1, [2]),
    ):
        assert freeze("content", value) == value
    assert freeze("content", Point([1], 2)).x == [1]


def test_objects_that_compare_by_content_are_copied_and_others_kept() -> None:
    order, unequal, plain = Order([1]), Unequal(), object()
    kept = freeze("content", [order, unequal, plain])
    order.rows.append(2)
    assert kept[0] == Order([1])
    assert isinstance(kept[1], Unequal)
    assert kept[2] is plain


def test_object_whose_comparison_gives_no_answer_is_copied() -> None:
    class Rows:
        def __init__(self) -> None:
            self.rows = [1]

        def __eq__(self, other: object) -> bool:
            raise ValueError("the truth value of an array is ambiguous")

        __hash__ = object.__hash__

    given = Rows()
    kept = freeze("content", [given])[0]
    given.rows.append(2)
    assert kept.rows == [1]


def test_a_cycle_stays_a_cycle_and_shared_parts_stay_shared() -> None:
    ring: dict[str, Any] = {}
    ring["self"] = ring["again"] = ring
    frozen = freeze("content", ring)
    assert frozen["self"] is frozen["again"] is frozen


def test_depth_costs_no_stack_for_lists_and_is_refused_for_tuples() -> None:
    deep_list: Any = []
    deep_tuple: Any = ()
    for _ in range(50_000):
        deep_list, deep_tuple = [deep_list], (deep_tuple,)
    assert len(freeze("content", deep_list)) == 1
    with pytest.raises(ValueError, match="content is nested too deeply"):
        freeze("content", deep_tuple)


def test_frozen_values_are_not_frozen_again() -> None:
    frozen = freeze("content", {"a": [1]})
    assert freeze("content", frozen) is frozen
    assert isinstance(frozen, FrozenDict)
    assert frozen.copy() == {"a": [1]}


def test_what_fits_is_not_touched() -> None:
    for content in ("x" * MAX_CONTENT_BYTES, b"x", None, 5, {"a": [1]}, "é" * 300_000):
        assert cut_content(content) == (content, 0)


def test_text_is_cut_between_characters_and_the_rest_counted() -> None:
    assert cut_content("aéb", 2) == ("a", 3)
    assert cut_content("aéb", 3) == ("aé", 1)
    kept, left_out = cut_content("é" * MAX_CONTENT_BYTES)
    assert len(kept.encode()) + left_out == 2 * MAX_CONTENT_BYTES


def test_other_content_is_cut_as_json_text() -> None:
    assert cut_content(bytearray(b"abc"), 2) == (b"ab", 1)
    assert cut_content(["a", "b"], 5) == ('["a",', 5)


def test_mapping_that_fits_is_not_touched() -> None:
    for mapping in ({}, {"rows": 5}, {"rows": [1, {"a": "x" * 1000}]}):
        assert cut_mapping(mapping) == (mapping, 0)


def test_mapping_keeps_its_small_values_and_its_large_ones_are_cut() -> None:
    kept, left_out = cut_mapping({"rows": 5, "sql": "x" * 100, "error": "boom"}, 60)
    assert (kept, left_out) == ({"rows": 5, "sql": "x" * 60, "error": "boom"}, 40)
    several = {str(number): "x" * 50 for number in range(4)}
    assert cut_mapping(several, 60)[0] is several


def test_values_that_are_too_many_together_get_a_share() -> None:
    kept, left_out = cut_mapping({str(number): "x" * 50 for number in range(10)}, 60)
    assert (kept, left_out) == ({str(number): "x" * 36 for number in range(10)}, 140)


def test_mapping_of_many_or_long_keys_is_cut_too() -> None:
    kept, left_out = cut_mapping({**dict.fromkeys(range(200_000), "x"), "k" * MAX_CONTENT_BYTES: 1}, 100_000)
    assert (len(kept), left_out > MAX_CONTENT_BYTES) == (1000, True)
    kept, left_out = cut_mapping({"k" * 7 * MAX_CONTENT_BYTES: ""})
    assert kept == {"k" * 1000: ""}
    assert left_out == 7 * MAX_CONTENT_BYTES - 1000
