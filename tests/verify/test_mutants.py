"""What is changed, one place at a time, and what is left alone."""

from __future__ import annotations

import ast
import csv
import io
import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_golden.verify import mutants
from pytest_golden.verify.mutants import MOST_BYTES, Mutant, is_mutable, order_by_telling

if TYPE_CHECKING:
    from collections.abc import Callable


def make_mutants(path: str, content: bytes, random: Random) -> list[tuple[Mutant, bytes]]:
    """Return the mutants with the contents that can be read."""
    made = ((mutant, make()) for mutant, make in mutants.make_mutants(path, content, random))
    return [(mutant, new) for mutant, new in made if new is not None]


def changes(path: str, text: str) -> list[tuple[str, str]]:
    """Return what was and what is, of the lines that differ, for each mutant."""
    found = []
    for _, content in make_mutants(path, text.encode(), Random(1)):
        old, new = text.splitlines(), content.decode().splitlines()
        same = set(old) & set(new)
        found.append(
            (
                "|".join(line.strip() for line in old if line not in same),
                "|".join(line.strip() for line in new if line not in same),
            )
        )
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x = a < 3", ["x = a <= 3", "x = a < 4"]),
        ("x = a == b", ["x = a != b"]),
        ("x = a and b", ["x = a or b"]),
        ("x = not a", ["x = a"]),
        ("x = df[~mask]", ["x = df[mask]"]),
        ("x = a // b", ["x = a * b"]),
        ("x = f(how='left')", ["x = f(how='inner')"]),
        ("x = f(sort=True)", ["x = f(sort=False)"]),
        ("x = df.dropna(how=z).sum()", ["x = df.sum()"]),
        ("x = 1.5", ["x = 2.5"]),
        ("x = 'é' < y", ["x = 'é' <= y"]),
        ("x = y  # a < 3", []),
        ("x = 'a' + y", []),
        ("x = 'left over'", []),
        ("x = 0x10", []),
        ('"""Doc: 3 < 4"""', []),
        ("import os", []),
    ],
)
def test_python_is_changed_at_one_place(old: str, new: list[str]) -> None:
    assert [after for _, after in changes("a.py", old)] == new


def test_sql_in_python_is_changed_inside_its_quotes() -> None:
    text = 'db.sql("select sum(a) from t where b > 1")'
    told = [after for _, after in changes("a.py", text)]
    assert 'db.sql("select AVG(a) from t where b > 1")' in told
    assert 'db.sql("select sum(a) from t where 1 = 1 OR b > 1")' in told
    for one in told:
        ast.parse(one)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("select a from t join u", ["select a from t LEFT join u"]),
        ("select a from t left join u", ["select a from t INNER join u"]),
        ("select a from t cross join u", []),
        ("select distinct a from t", ["select  a from t"]),
        ("select a where b is null", ["select a where 1 = 1 OR b is null", "select a where b is NOT null"]),
        ("select a where b is not null", ["select a where 1 = 1 OR b is not null", "select a where b is  null"]),
        ("select count(*) from t", []),
        ("select a * b from t", ["select a / b from t"]),
        ("order by a desc", ["order by a ASC"]),
        ("a union all b", ["a union  b"]),
        ("select a from {{ ref('t', 3) }} {% if a < 3 %} {# 4 #}", []),
        ("-- where a > 3", []),
        ("select '3 < 4' from t", []),
    ],
)
def test_sql_is_changed_outside_of_templates_texts_and_comments(old: str, new: list[str]) -> None:
    assert [after for _, after in changes("m.sql", old)] == new


def test_yaml_loses_a_step_and_changes_constants_choices_and_queries() -> None:
    text = (
        "steps:\n  - {name: a, least: 3}\n  - name: b\n    how: left\n    on: true\n"
        '    sql: "select a from t where b >= 2"\n    description: select what is < 3 from it\nlast: 1.5\n'
    )
    told = changes("p.yaml", text)
    for one in (
        ("- {name: a, least: 3}", ""),
        ("- {name: a, least: 3}", "- {name: a, least: 4}"),
        ("how: left", "how: inner"),
        ("on: true", "on: false"),
        ('sql: "select a from t where b >= 2"', 'sql: "select a from t where b > 2"'),
        ("last: 1.5", "last: 2.5"),
    ):
        assert one in told
    assert not any(before.startswith("description") for before, _ in told)
    for _, content in make_mutants("p.yaml", text.encode(), Random(1)):
        yaml.safe_load(content)
    assert {
        mutant.after for mutant, _ in make_mutants("p.yaml", text.encode(), Random(1)) if mutant.kind == "dropped step"
    } == {"(nothing)"}


def test_table_loses_a_row_and_has_other_cells() -> None:
    text = 'id,day,total\n1,2026-12-31,"3,5"\n2,2026-12-31,\n'
    found = make_mutants("d.csv", text.encode(), Random(1))
    kinds = [mutant.kind for mutant, _ in found]
    for kind in ("dropped row", "row twice", "null", "date", "swapped columns"):
        assert kind in kinds
    (moved,) = (content for mutant, content in found if mutant.kind == "date")
    assert b"2027-01-01" in moved
    for _, content in found:
        rows = list(csv.reader(io.StringIO(content.decode())))
        assert {len(row) for row in rows} == {3}
        assert rows[0] == ["id", "day", "total"]
    assert {mutant.line for mutant, _ in found} <= {2, 3}


@pytest.mark.parametrize(
    ("path", "write", "read"),
    [
        ("d.json", json.dumps, json.loads),
        ("d.json", lambda rows: json.dumps({"v": 1, "rows": rows}, indent=1), lambda text: json.loads(text)["rows"]),
        (
            "d.jsonl",
            lambda rows: "".join(f"{json.dumps(row)}\n" for row in rows),
            lambda text: [*map(json.loads, text.splitlines())],
        ),
    ],
)
def test_records_are_lost_and_have_other_members(
    path: str, write: Callable[[Any], str], read: Callable[[str], Any]
) -> None:
    rows = [
        {"day": "2026-12-31", "total": 1.5, "ok": True, "name": "\ud800"},
        {"day": "2026-12-31", "total": 2, "ok": None},
    ]
    found = {
        (mutant.kind, mutant.after): read(content.decode())
        for mutant, content in make_mutants(path, write(rows).encode(), Random(1))
    }
    kinds = [kind for kind, _ in found]
    for kind in ("dropped row", "row twice", "null", "date", "constant", "swapped columns"):
        assert kind in kinds
    assert all(made != rows for made in found.values())
    (moved,) = (made for (kind, _), made in found.items() if kind == "date")
    assert [row["day"] for row in moved].count("2027-01-01") == 1
    assert [len(made) for (kind, _), made in found.items() if kind in {"dropped row", "row twice"}] == [1, 3]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.json", b'{"a": [1, 2]}'),
        ("a.json", b'[{"a": 1}, 2]'),
        ("a.json", b'[{"a": 1}'),
        ("a.json", b"[" * 100_000),
        ("a.jsonl", b'{"a": 1}\n[2]\n'),
        ("a.py", b"def ("),
        ("a.py", b"\xff\xfe"),
        ("a.yaml", b"a: [1"),
        ("a.yaml", b"{{ template }}: 3: 4"),
        ("a.csv", b"a,b\n1\n"),
        ("a.csv", b"a,b\n"),
        ("a.csv", b""),
        ("a.csv", b'a,b\n1,"' + b"x" * 200_000),
        ("a.txt", b"3 < 4"),
        ("a.py", b"x = 1\n" * MOST_BYTES),
    ],
)
def test_what_cannot_be_read_is_left_alone(path: str, content: bytes) -> None:
    assert make_mutants(path, content, Random(1)) == []


def test_ids_are_those_of_the_same_edit_of_the_same_content() -> None:
    one, again, other = (
        [mutant.id for mutant, _ in make_mutants("a.py", text, Random(1))]
        for text in (b"x = 1 < y\n", b"x = 1 < y\n", b"x = 1 < y\n\n")
    )
    assert one == again
    assert len({*one, *other}) == len(one) + len(other) == 4


def test_one_of_each_kind_comes_first() -> None:
    made = mutants.make_mutants("a.py", b"x = a < 1\ny = b < 2\nz = c < 3\nw = not d\n", Random(1))
    ordered = order_by_telling(made, Random(1))
    assert {mutant.kind for mutant, _ in ordered[:3]} == {"comparison", "constant", "condition"}
    assert sorted(mutant.id for mutant, _ in ordered) == sorted(mutant.id for mutant, _ in made)


@example("\r0", "a.csv")
@example("{{}}", "a.yaml")
@given(st.text(max_size=200), st.sampled_from(["a.py", "a.sql", "a.yaml", "a.csv", "a.json", "a.jsonl"]))
def test_any_text_is_changed_or_left_alone(text: str, path: str) -> None:
    content = text.encode("utf-8", "replace")
    for mutant, new in make_mutants(path, content, Random(1)):
        assert new != content
        assert mutant.line >= 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["x", "2024-02-28", "9999-12-31"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1), min_size=1, max_size=4), st.booleans())
def test_any_records_are_changed_into_others_that_can_be_read(records: list[dict[str, Any]], by_line: bool) -> None:
    text = "".join(f"{json.dumps(one)}\n" for one in records) if by_line else json.dumps({"rows": records})
    for mutant, new in make_mutants("a.jsonl" if by_line else "a.json", text.encode(), Random(1)):
        assert 1 <= mutant.line <= len(records)
        told = [json.loads(line) for line in new.decode().splitlines()] if by_line else json.loads(new)["rows"]
        assert abs(len(told) - len(records)) == (mutant.kind in {"dropped row", "row twice"})


def test_only_known_kinds_are_mutable() -> None:
    assert is_mutable("models/a.sql")
    assert not is_mutable("a.xlsx")


def test_secrets_of_the_code_are_not_shown() -> None:
    token = "ghp_" + "a1B2" * 9
    made = make_mutants("a.py", f"load('{token}', 3 < limit)\n".encode(), Random(1))
    assert made
    assert all(token not in mutant.before + mutant.after for mutant, _ in made)
    assert all(token in content.decode() for _, content in made)


def test_secret_at_the_edge_of_what_is_shown_is_not_cut_in_half() -> None:
    token = "ghp_" + "a1B2" * 9
    for spaces in range(0, 60, 7):
        for mutant, _ in make_mutants("a.py", f"load('{token}', {' ' * spaces}3 < limit)\n".encode(), Random(1)):
            assert "a1B2a1B2" not in mutant.before + mutant.after
    (_, *_) = made = make_mutants("a.csv", f"id,key\n1,{'x' * 50}{token}\n".encode(), Random(1))
    assert all("a1B2a1B2" not in mutant.before + mutant.after for mutant, _ in made)


def test_large_file_has_a_thousand_mutants_at_most_and_none_is_made_before_it_is_tried() -> None:
    text = "".join(f"x{number} = {number} < y\n" for number in range(9_000))
    made = mutants.make_mutants("a.py", text.encode(), Random(1))
    assert len(made) == 1_000
    assert mutants.make_mutants("a.py", text.encode() * 2, Random(1)) == []


def test_signs_that_end_no_line_of_python_move_nothing() -> None:
    told = [after for _, after in changes("a.py", "x = 'a\x0cb\u2028c' + y\nz = 3 < w\n")]
    assert told == ["z = 4 < w", "z = 3 <= w"]
