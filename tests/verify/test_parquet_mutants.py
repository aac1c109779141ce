"""Tables in Parquet: what is changed in them, and what is left alone."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.compare.tables import duckdb_engine
from pytest_golden.verify.mutants import is_mutable, make_mutants

if TYPE_CHECKING:
    from pathlib import Path

duckdb = pytest.importorskip("duckdb")
TABLE = (
    "SELECT i AS id, i * 1.5 AS amount, i * 2.5 AS \"odd {0} 'name\", DATE '2026-12-31' AS day, i % 2 = 0 AS ok,"
    " CASE WHEN i = 0 THEN [i] END AS list FROM range(5) t(i)"
)


def write(folder: Path, select: str) -> bytes:
    place = folder / "written.parquet"
    duckdb.sql(f"COPY ({select}) TO '{place}' (FORMAT parquet)")
    return place.read_bytes()


def read(folder: Path, content: bytes) -> list[tuple[Any, ...]]:
    place = folder / "read.parquet"
    place.write_bytes(content)
    rows: list[tuple[Any, ...]] = duckdb.sql(f"SELECT * FROM '{place}'").fetchall()
    return rows


def test_rows_are_lost_and_cells_are_others(tmp_path: Path) -> None:
    content = write(tmp_path, TABLE)
    rows = read(tmp_path, content)
    made = make_mutants("data/d.parquet", content, Random(1))
    kinds = [mutant.kind for mutant, _ in made]
    for kind in ("dropped row", "row twice", "null", "date", "constant", "swapped columns"):
        assert kind in kinds
    for mutant, make in made:
        new = make()
        assert new is not None, mutant
        told = read(tmp_path, new)
        assert len(told) == len(rows) + {"dropped row": -1, "row twice": 1}.get(mutant.kind, 0)
        changed = [one for one, other in zip(told, rows, strict=False) if one != other]
        if mutant.kind in {"null", "date", "constant"}:
            assert len(changed) == 1
            before, now = rows[mutant.line - 1], told[mutant.line - 1]
            (after,) = (cell for cell, old in zip(now, before, strict=True) if cell != old)
            assert (after is None) == (mutant.kind == "null")
        else:
            assert changed
    assert [mutant.id for mutant, _ in made] == [
        mutant.id for mutant, _ in make_mutants("data/d.parquet", content, Random(1))
    ]


def test_what_is_no_table_or_empty_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_mutable("a.parquet")
    for content in (
        b"",
        b"PAR1",
        write(tmp_path, "SELECT 1 AS a WHERE false"),
        write(tmp_path, "SELECT 1 AS file_row_number"),
    ):
        assert make_mutants("a.parquet", content, Random(1)) == []
    monkeypatch.setattr(duckdb_engine, "import_module", _refuse)
    assert make_mutants("a.parquet", write(tmp_path, TABLE), Random(1)) == []


def _refuse(name: str) -> Any:
    raise ImportError(name)
