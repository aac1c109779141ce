"""What holds of any table."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.regression.baselines.files import Files

if TYPE_CHECKING:
    import random

CELLS = st.one_of(
    st.sampled_from(["", "0", "1", "1.0", "1.50", "-2", "007", "NaN", "NULL", "a", "b", " ", "1e3"]),
    st.floats(allow_nan=False).map(repr),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=5),
)
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=6).map(
        lambda rows: [[f"c{at}" for at in range(width)], *rows]
    )
)
RULES: list[dict[str, Any]] = [{}, {"unordered": True}, {"absolute_tolerance": 0.5}]
RULES.append({"unordered": True, "relative_tolerance": 0.1})
FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def write(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue()


def tell(output: list[list[str]], baseline: list[list[str]], **rules: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return Files(Path(folder)).tell("t.csv", write(output), write(baseline), **rules)


@FEW
@given(TABLES, st.sampled_from(RULES))
def test_a_table_equals_itself(table: list[list[str]], rules: dict[str, Any]) -> None:
    assert tell(table, table, **rules) == ""


@FEW
@given(TABLES, TABLES, st.sampled_from(RULES))
def test_a_difference_is_one_from_either_side(
    one: list[list[str]], other: list[list[str]], rules: dict[str, Any]
) -> None:
    assert bool(tell(one, other, **rules)) is bool(tell(other, one, **rules))


@FEW
@given(TABLES, st.randoms(use_true_random=False), st.sampled_from(RULES[1::2]))
def test_a_shuffle_is_nothing_to_an_unordered_table(
    table: list[list[str]], order: random.Random, rules: dict[str, Any]
) -> None:
    shuffled = [table[0], *order.sample(table[1:], len(table) - 1)]
    assert tell(table, shuffled, **rules) == ""


@FEW
@given(TABLES, st.data(), st.sampled_from(RULES))
def test_any_other_text_is_found(table: list[list[str]], data: st.DataObject, rules: dict[str, Any]) -> None:
    changed = [list(row) for row in table]
    if len(table) == 1:
        changed.append(["x"] * len(table[0]))
    else:
        row, at = data.draw(st.integers(1, len(table) - 1)), data.draw(st.integers(0, len(table[0]) - 1))
        changed[row][at] += "x"
    assert tell(table, changed, **rules) != ""
