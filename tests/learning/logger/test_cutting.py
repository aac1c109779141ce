from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.outcomes import cut_json, cut_middle, cut_steps, cut_text, measure

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


def test_what_fits_is_kept_as_it_is() -> None:
    assert cut_text("load", 4) == ("load", False)
    assert cut_middle("load", 4) == ("load", False)
    assert cut_steps(("a", "b"), 2, 100) == (("a", "b"), False)
    assert cut_json({"rows": [1, 2.5, None, True]}, 100) == ({"rows": [1, 2.5, None, True]}, False)


def test_long_text_keeps_its_beginning_and_says_how_much_is_gone() -> None:
    kept, is_cut = cut_text("x" * 300, 100)
    assert is_cut
    assert len(kept) <= 100
    assert kept == "x" * 36 + " [cut: 264 characters]"


def test_long_error_keeps_both_ends() -> None:
    kept, is_cut = cut_middle("begin" + "x" * 1000 + "end", 200)
    assert is_cut
    assert len(kept) <= 200
    assert kept.startswith("begin")
    assert kept.endswith("end")
    assert "[cut: 872 characters]" in kept


def test_long_path_keeps_both_ends_and_says_how_many_steps_are_gone() -> None:
    steps = tuple(f"step {number}" for number in range(5_000))
    kept, is_cut = cut_steps(steps, 1_000, 1 << 20)
    assert is_cut
    assert len(kept) == 1_000
    assert (kept[0], kept[500], kept[-1]) == ("step 0", "[cut: 4,001 steps]", "step 4999")


def test_names_of_steps_that_are_too_long_together_are_shortened() -> None:
    kept, is_cut = cut_steps(("a" * 5_000, "ü" * 5_000, "short"), 10, 3_000)
    assert is_cut
    assert measure(kept) <= 3_000
    assert kept[2] == "short"
    assert kept[0].startswith("aaa")
    assert kept[0].endswith("characters]")


def test_small_members_stay_beside_a_large_one() -> None:
    kept, is_cut = cut_json({"rows": "x" * 10_000, "status": "success", "count": 3}, 2_000)
    assert is_cut
    assert (kept["status"], kept["count"]) == ("success", 3)
    assert list(kept) == ["rows", "status", "count"]
    assert 1_500 < measure(kept) <= 2_000
    assert "[cut: " in kept["rows"]


def test_long_list_keeps_its_first_items_and_counts_the_rest() -> None:
    kept, is_cut = cut_json(list(range(10_000)), 1_000)
    assert is_cut
    assert kept[:3] == [0, 1, 2]
    assert kept[-1] == f"[cut: {10_000 - len(kept) + 1:,} items]"


def test_the_item_at_the_cut_is_kept_in_part() -> None:
    kept, _ = cut_json([1, {"rows": "x" * 10_000, "status": "ok"}, 2], 2_000)
    assert kept[1]["status"] == "ok"
    assert kept[2] == "[cut: 1 items]"
    assert measure(kept) <= 2_000


def test_of_very_many_members_the_first_are_kept() -> None:
    kept, is_cut = cut_json({f"key{number}": number for number in range(50_000)}, 10_000)
    assert is_cut
    assert kept["key0"] == 0
    assert kept["[cut]"].endswith("members")
    assert measure(kept) <= 10_000


def test_one_large_text_many_times_over_is_never_written_out() -> None:
    text = "x" * (1 << 20)
    kept, is_cut = cut_json([[text] * 300] * 300, 100_000)
    assert is_cut
    assert measure(kept) <= 100_000


def test_of_bytes_only_those_that_may_be_kept_are_read() -> None:
    kept, is_cut = cut_json(b"\xff" * (50 << 20), 10_000)
    assert is_cut
    assert kept.startswith("\\xff\\xff")
    assert measure(kept) <= 10_000
    assert cut_json(b"plain", 10) == ("plain", False)


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class OddMapping(dict[Any, Any]):
    def items(self) -> Any:
        raise RuntimeError("no")


@dataclasses.dataclass
class Report:
    rows: int
    by: Any


@pytest.mark.parametrize(
    "value",
    [
        Odd(),
        OddMapping(a=1),
        {1, 2},
        {(1, 2): Odd()},
        float("nan"),
        b"\xff\x00",
        Report(3, Odd()),
        ValueError("no"),
        iter([1]),
        "\ud800\0",
        [10**5000],
        {"a": {"b": object}},
        type,
    ],
)
def test_strange_values_become_json(value: Any) -> None:
    kept, is_cut = cut_json(value, 10_000)
    assert not is_cut
    json.dumps(kept, allow_nan=False)


def test_what_holds_itself_ends() -> None:
    inner: list[Any] = []
    inner.append(inner)
    assert cut_json(inner, 1_000).kept == ["<cycle>"]


def test_what_is_nested_deeply_is_cut() -> None:
    deep: Any = "x" * 100_000
    for _ in range(90):
        deep = {"in": [deep]}
    kept, is_cut = cut_json(deep, 50_000)
    assert is_cut
    assert measure(kept) <= 50_000


@given(value=JSON, room=st.integers(0, 400))
def test_cut_content_is_json_and_fits(value: Any, room: int) -> None:
    kept, is_cut = cut_json(value, room)
    assert json.loads(json.dumps(kept)) == kept
    if not is_cut:
        assert kept == value
        assert measure(kept) <= room
    else:
        assert measure(kept) <= max(room, 96) + 64


@given(steps=st.lists(st.text(), max_size=40), most=st.integers(4, 20), room=st.integers(400, 900))
def test_cut_paths_are_texts_and_few(steps: list[str], most: int, room: int) -> None:
    kept, is_cut = cut_steps(tuple(steps), most, room)
    assert len(kept) <= max(most, 0)
    assert measure(kept) <= room + 64
    assert is_cut == (kept != tuple(steps))
