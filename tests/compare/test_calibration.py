"""What moves between the outputs of two runs, and the rules that make them equal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_golden.compare.calibration import calibrate
from pytest_golden.compare.opening import propose_tolerance
from pytest_golden.manifest.model import DeclaredOutput
from tests.compare.tables.parquet import write_parquet

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.compare.calibration import Calibration


def compare_runs(folder: Path, name: str, *texts: str, entry: DeclaredOutput | None = None) -> Calibration:
    runs = []
    for number, text in enumerate(texts):
        file = folder / str(number) / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
        runs.append({name: file})
    return calibrate((entry or DeclaredOutput(name),), runs)


def lines(*rows: str) -> str:
    return "".join(f"{row}\n" for row in rows)


@pytest.mark.parametrize(
    ("first", "second", "rules"),
    [
        (["id,at", "1,10:00", "2,10:00"], ["id,at", "1,11:30", "2,11:30"], {"ignore_columns": ("at",)}),
        (["id,n", "1,a", "2,b"], ["id,n", "2,b", "1,a"], {"key": ("id",)}),
        (["k,l", "1,1", "1,2", "2,1"], ["k,l", "2,1", "1,2", "1,1"], {"key": ("k", "l")}),
        (["n", "a", "a", "b"], ["n", "b", "a", "a"], {"unordered": True}),
        (["id,x", "1,0.1", "2,5"], ["id,x", "1,0.10000000000000002", "2,5"], {"relative_tolerance": 1e-9}),
        (["id,x", "1,3", "2,5"], ["id,x", "1,4", "2,5"], {"ignore_columns": ("x",)}),
        (["id,x,at", "1,a,7", "2,b,7"], ["id,x,at", "2,b,8", "1,a,8"], {"key": ("id",), "ignore_columns": ("at",)}),
    ],
)
def test_table_gets_the_fewest_rules(
    tmp_path: Path, first: list[str], second: list[str], rules: dict[str, object]
) -> None:
    found = compare_runs(tmp_path, "t.csv", lines(*first), lines(*second))
    assert found.rules == {0: rules}
    assert found.is_solved
    assert not found.is_stable


def test_equal_runs_need_no_rule(tmp_path: Path) -> None:
    found = compare_runs(tmp_path, "t.csv", "id\n1\n", "id\n1\n", "id\n1\n")
    assert found.is_stable
    assert not found.rules


def test_rules_that_are_declared_are_kept_and_not_proposed_again(tmp_path: Path) -> None:
    entry = DeclaredOutput("t.csv", ignore_columns=("at",), key=("id",), relative_tolerance=1e-12)
    found = compare_runs(tmp_path, "t.csv", "id,at,by\n1,7,a\n", "id,at,by\n1,8,b\n", entry=entry)
    assert found.rules == {0: {"ignore_columns": ("by",)}}
    assert found.outputs[0].ignore_columns == ("at", "by")
    assert found.outputs[0].relative_tolerance == 1e-12


def test_third_run_adds_to_the_rules_of_the_second(tmp_path: Path) -> None:
    found = compare_runs(tmp_path, "t.csv", "id,at,by\n1,7,a\n", "id,at,by\n1,8,a\n", "id,at,by\n1,8,b\n")
    assert found.rules == {0: {"ignore_columns": ("at", "by")}}


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("id\n1\n", "id\n1\n2\n", "1 row in one run and 2 in another"),
        ("id\n1\n", "id,n\n1,2\n", "columns are not the same in both runs: `n`"),
        ("x\n0.2\n0.7\n", "x\n0.4\n0.1\n", "every column moves"),
    ],
)
def test_table_that_no_rule_makes_stable(tmp_path: Path, first: str, second: str, told: str) -> None:
    found = compare_runs(tmp_path, "t.csv", first, second)
    assert not found.rules
    assert not found.is_solved
    assert told in found.files[0].unsolved[0]


def test_typed_columns(tmp_path: Path) -> None:
    columns = "i AS id, 'n' || i AS \"a.b\", [i, {plus}] AS l, now() + INTERVAL ({plus}) DAY AS at, i * 1.5::DOUBLE{times} AS x"
    runs = []
    for plus, times, order in ((1, "", ""), (2, " * (1 + 3e-16)", "ORDER BY i DESC")):
        file = tmp_path / str(plus) / "t.parquet"
        file.parent.mkdir()
        write_parquet(file, f"SELECT {columns.format(plus=plus, times=times)} FROM range(1, 30) t(i) {order}")
        runs.append({"t.parquet": file})
    found = calibrate((DeclaredOutput("t.parquet"),), runs)
    rules = found.rules[0]
    assert (rules["key"], rules["ignore_columns"]) == (("id",), ("l", "at"))
    assert rules["relative_tolerance"] == 1e-9
    assert found.is_solved


@pytest.mark.parametrize(
    ("first", "second", "rules"),
    [
        ({"run": {"id": "x", "n": 1}}, {"run": {"id": "y", "n": 1}}, {"ignore_paths": ("$.run.id",)}),
        ({"rows": [{"at": 1}, {"at": 2}]}, {"rows": [{"at": 3}, {"at": 4}]}, {"ignore_paths": ("$.rows[*].at",)}),
        ({"a b": {"c'd": 1}}, {"a b": {"c'd": 2}}, {"ignore_paths": (r"$['a b']['c\'d']",)}),
        ({x: {"at": 1} for x in "abc"}, {x: {"at": 2} for x in "abc"}, {"ignore_paths": ("$..at",)}),
        ({"s": [1, 2]}, {"s": [2, 1]}, {"unordered": True}),
        ({"s": 0.1}, {"s": 0.10000000000000002}, {"relative_tolerance": 1e-9}),
    ],
)
def test_json_gets_the_fewest_rules(tmp_path: Path, first: object, second: object, rules: dict[str, object]) -> None:
    found = compare_runs(tmp_path, "d.json", json.dumps(first), json.dumps(second))
    assert found.rules == {0: rules}
    assert found.is_solved


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ({"s": [1]}, {"s": [1, 2]}, "$.s has 1 item in one run and 2 in another"),
        ({"s": 1}, {"s": 1, "t": 2}, "$.t is written in one run only"),
        (1, 2, "the whole document moves"),
    ],
)
def test_json_that_no_rule_makes_stable(tmp_path: Path, first: object, second: object, told: str) -> None:
    found = compare_runs(tmp_path, "d.json", json.dumps(first), json.dumps(second))
    assert found.files[0].unsolved == (told,)
    assert not found.rules


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("at 2026-01-01 10:00:00.5Z ok", "at 2026-01-02 17:13:00.6Z ok"),
        ("run 907645a0-36ba-42f6-b33b-92abe577642b", "run 8bf4d437-78b0-4f43-919c-e23e92ea11e0"),
        ("took 1.5s, then 20 ms", "took 2.5s, then 30 ms"),
        ("<object at 0x7f1d2c3b4a50>", "<object at 0x7f9d2c3b4a50>"),
        ("wrote /tmp/a1b2/x.csv", "wrote /var/tmp/zz/x.csv"),
        ("INFO 10:00:00,123 read 5 rows of 2026-01-01", "INFO 17:13:00,999 read 5 rows of 2026-01-02"),
    ],
)
def test_text_gets_masks(tmp_path: Path, first: str, second: str) -> None:
    found = compare_runs(tmp_path, "run.log", lines("start", first, "end"), lines("start", second, "end"))
    assert set(found.rules[0]) == {"masks"}
    assert found.is_solved


def test_lines_that_no_mask_covers_are_ignored_by_how_they_begin(tmp_path: Path) -> None:
    texts = (lines("winner is: anna", "count 3"), lines("winner is: bert", "count 3"))
    found = compare_runs(tmp_path, "run.log", *texts)
    assert found.rules == {0: {"ignore_lines": (r"^winner\ is:\ ",)}}
    assert found.is_solved


def test_a_line_like_others_is_not_ignored(tmp_path: Path) -> None:
    texts = (lines("winner is: anna", "winner is: zoe"), lines("winner is: bert", "winner is: zoe"))
    found = compare_runs(tmp_path, "run.log", *texts)
    assert not found.rules
    assert "'winner is: anna' is 'winner is: bert' in another run" in found.files[0].unsolved[0]


def test_lines_in_another_order(tmp_path: Path) -> None:
    assert compare_runs(tmp_path, "a.txt", "a\nb\n", "b\na\n").rules == {0: {"unordered": True}}


def test_pattern_that_cannot_have_the_rules_says_what_to_declare(tmp_path: Path) -> None:
    found = compare_runs(tmp_path, "t.csv", "id,at\n1,7\n", "id,at\n1,8\n", entry=DeclaredOutput("*"))
    assert not found.rules
    assert "declare the file in an entry of its own" in found.files[0].unsolved[0]


def test_bytes_and_pictures(tmp_path: Path) -> None:
    found = compare_runs(tmp_path, "model.pkl", "a", "b")
    assert "its bytes move" in found.files[0].unsolved[0]
    picture = '<svg width="10" height="20"><!-- {} --></svg>'
    found = compare_runs(tmp_path / "svg", "plot.svg", picture.format(1), picture.format(2))
    assert found.rules == {0: {"compare": "image_size"}}


def test_broken_file_is_said(tmp_path: Path) -> None:
    found = compare_runs(tmp_path, "d.json", "{", "[")
    assert "is not JSON" in found.files[0].unsolved[0]


def test_file_of_one_run_only_is_missing(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("x")
    found = calibrate((DeclaredOutput("*.txt"),), [{"a.txt": tmp_path / "a.txt"}, {"b.txt": tmp_path / "b.txt"}])
    assert found.missing == ("a.txt", "b.txt")
    assert not found.is_stable
    assert not found.is_solved


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    runs = []
    for number, secret in (("1", "hunter22"), ("2", "hunter23")):
        for name, text in (
            ("t.csv", f"id,k\n1,{secret}\n"),
            ("d.json", f'{{"k": "{secret}"}}'),
            ("r.log", f"key is: {secret}\n"),
        ):
            (tmp_path / number / name).write_text(text)
        runs.append({file.name: file for file in (tmp_path / number).iterdir()})

    def redact(text: str) -> str:
        return text.replace("hunter22", "[REDACTED]").replace("hunter23", "[REDACTED]")

    found = calibrate((DeclaredOutput("t.csv"), DeclaredOutput("d.json"), DeclaredOutput("r.log")), runs, redact)
    assert len(found.files) == 3
    assert "hunter" not in repr([(file.seen, file.unsolved) for file in found.files])


@pytest.mark.parametrize(
    ("share", "tolerance"), [(2.2e-16, 1e-9), (1e-10, 1e-9), (3.1e-10, 4e-9), (2e-7, 2e-6), (9.5e-6, 1e-4)]
)
def test_a_tolerance_covers_more_than_two_runs_showed(share: float, tolerance: float) -> None:
    assert propose_tolerance(share) == pytest.approx(tolerance)


def test_a_tolerance_is_for_all_outputs_with_computed_numbers(tmp_path: Path) -> None:
    texts = {
        "moves.json": ('{"s": 0.1234567891234}', '{"s": 0.1234567891235}'),
        "computed.csv": ("x\n0.333333333333\n",) * 2,
        "typed.csv": ("x\n0.25\n",) * 2,
        "plain.txt": ("0.333333333333\n",) * 2,
        "own.json": ("[0.333333333333]",) * 2,
        "only.csv": ("x\n0.333333333333\n",) * 2,
    }
    runs: list[dict[str, Path]] = [{}, {}]
    for name, some in texts.items():
        for number, text in enumerate(some):
            runs[number][name] = tmp_path / f"{number}{name}"
            runs[number][name].write_text(text)
    entries = [DeclaredOutput(name) for name in texts]
    entries[4:] = [DeclaredOutput("own.json", relative_tolerance=1e-6), DeclaredOutput("only.csv", compare="exists")]
    found = calibrate(entries, runs)
    assert found.rules == {0: {"relative_tolerance": 1e-9}, 1: {"relative_tolerance": 1e-9}}
    assert [output.relative_tolerance for output in found.outputs[4:]] == [1e-6, 0.0]
