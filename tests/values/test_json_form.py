from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from pytest_golden.values.json_form import MAX_DEPTH, MAX_VALUES, FrozenDict, FrozenList, json_form

if TYPE_CHECKING:
    from collections.abc import Callable


class Level(IntEnum):
    ONE = 1


class Colour(Enum):
    RED = ("r", 1)


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class HostileError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Text(str):
    __slots__ = ()


@dataclass
class Order:
    number: int
    tags: set[str]


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ({"a": [1, 2.5, None, True, "x"]}, {"a": [1, 2.5, None, True, "x"]}),
        (b"caf\xc3\xa9 \xff", "café \\xff"),
        ({3, 1, 2}, [1, 2, 3]),
        ((1, (2,)), [1, [2]]),
        (float("nan"), "NaN"),
        (-math.inf, "-Infinity"),
        (ValueError("boom"), "ValueError: boom"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00.000000Z"),
        (datetime(2026, 1, 1), "2026-01-01T00:00:00"),  # noqa: DTZ001
        (date(2026, 1, 1), "2026-01-01"),
        (timedelta(seconds=1.5), 1.5),
        (Decimal("1.10"), "1.10"),
        (Fraction(1, 2), 0.5),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("a/b"), "a/b"),
        (Level.ONE, 1),
        (Colour.RED, ["r", 1]),
        (Text("x"), "x"),
        (Order(1, {"b", "a"}), {"number": 1, "tags": ["a", "b"]}),
        ({1: "a", "1": "b", None: "c", False: "d", 1.5: "e", (1,): "f", Colour.RED: "g", b"k": "h"}, None),
        (Hostile(), "<Hostile that cannot be shown>"),
        (HostileError(), None),
        pytest.param(10**5000, hex(10**5000), id="huge integer"),
        (1 + 2j, "(1+2j)"),
        (Order, repr(Order)),
    ],
)
def test_any_value_becomes_json_safe(value: Any, form: Any) -> None:
    plain = json_form(value)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    if form is not None:
        assert plain == form


def test_keys_that_read_alike_are_kept_apart() -> None:
    assert json_form({1: "a", "1": "b", None: "c", False: "d"}) == {"1": "a", "1 (str)": "b", "null": "c", "false": "d"}


def test_cycles_depth_and_endless_sharing_are_cut() -> None:
    ring: dict[str, Any] = {"x": 1}
    ring["self"] = ring
    assert json_form(ring) == {"x": 1, "self": "<cycle>"}
    deep: Any = "end"
    for _ in range(100_000):
        deep = [deep]
    assert f"deeper than {MAX_DEPTH} levels" in json.dumps(json_form(deep))
    doubled: Any = []
    for _ in range(60):
        doubled = {"a": doubled, "b": [doubled]}
    assert "left out: more than" in json.dumps(json_form(doubled))
    assert json_form([0] * (MAX_VALUES + 10))[-1].startswith("<left out")


def test_shared_parts_are_no_cycle() -> None:
    shared = [1]
    assert json_form([shared, shared]) == [[1], [1]]


WAYS_TO_WRITE_A_DICT: list[Callable[[Any], Any]] = [
    lambda kept: kept.__setitem__("a", 2),
    lambda kept: kept.__delitem__("a"),
    lambda kept: kept.update(a=2),
    lambda kept: kept.setdefault("b", 2),
    lambda kept: kept.pop("a"),
    lambda kept: kept.popitem(),
    lambda kept: kept.clear(),
    lambda kept: kept.__ior__({"b": 2}),
    lambda kept: kept.__setstate__({"b": 2}),
]
WAYS_TO_WRITE_A_LIST: list[Callable[[Any], Any]] = [
    lambda kept: kept.__setitem__(0, 2),
    lambda kept: kept.__delitem__(0),
    lambda kept: kept.append(2),
    lambda kept: kept.extend([2]),
    lambda kept: kept.insert(0, 2),
    lambda kept: kept.pop(),
    lambda kept: kept.remove(1),
    lambda kept: kept.clear(),
    lambda kept: kept.reverse(),
    lambda kept: kept.sort(),
    lambda kept: kept.__iadd__([2]),
    lambda kept: kept.__imul__(2),
    lambda kept: kept.__setstate__([2]),
]


@pytest.mark.parametrize("write", WAYS_TO_WRITE_A_DICT)
def test_a_kept_dict_refuses_to_be_written(write: Callable[[Any], Any]) -> None:
    kept = FrozenDict(a=1)
    with pytest.raises(TypeError, match="a kept dict cannot be written; make a copy"):
        write(kept)
    assert kept == {"a": 1}


@pytest.mark.parametrize("write", WAYS_TO_WRITE_A_LIST)
def test_a_kept_list_refuses_to_be_written(write: Callable[[Any], Any]) -> None:
    kept = FrozenList([1])
    with pytest.raises(TypeError, match="a kept list cannot be written; make a copy"):
        write(kept)
    assert kept == [1]


def test_kept_values_travel_and_stay_what_they_are() -> None:
    kept = FrozenDict(a=FrozenList([1]))
    for travelled in (pickle.loads(pickle.dumps(kept)), copy.deepcopy(kept), copy.copy(kept)):
        assert travelled == {"a": [1]}
        assert (type(travelled), type(travelled["a"])) == (FrozenDict, FrozenList)
    assert json.dumps(kept) == '{"a": [1]}'


def test_a_copy_by_its_own_method_may_be_written() -> None:
    writable = FrozenDict(a=1).copy()
    writable["a"] = 2
    assert writable == {"a": 2}
