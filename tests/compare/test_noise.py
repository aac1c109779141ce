"""Differences that are noise, and those that only look like it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pytest_golden.compare.noise import KnownMovements, RunTime, explain_noise
from pytest_golden.manifest.model import DeclaredOutput
from tests.compare.tables.parquet import write_parquet

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BEGAN = datetime(2026, 11, 26, 10, 0, tzinfo=UTC)
RUN = RunTime(BEGAN, BEGAN + timedelta(seconds=30))
TIMES = "declare `ignore_columns: [{}]`, or let `golden calibrate` find it"


def look(
    folder: Path,
    output: str,
    baseline: str,
    *,
    known: Mapping[str, object] | None = None,
    run: RunTime = RUN,
    **rules: object,
) -> str | None:
    (folder / "t.csv").write_text(output)
    (folder / "old.csv").write_text(baseline)
    entry = DeclaredOutput("t.csv", **rules)  # type: ignore[arg-type]
    return explain_noise([entry], folder / "t.csv", folder / "old.csv", {"t.csv": known or {}}, run)


@pytest.mark.parametrize(
    "now", ["2026-11-26T10:00:12", "2026-11-26 10:00:30.5+00", "2026-11-26T11:00:05+01:00", "2026-11-26"]
)
def test_column_of_times_of_the_run(tmp_path: Path, now: str) -> None:
    told = look(tmp_path, f"id,at\n1,{now}\n2,{now}\n", "id,at\n1,2026-01-01\n2,\n")
    assert told is not None
    assert told.startswith("this looks like noise, not a regression: ")
    assert TIMES.format("at") in told


@pytest.mark.parametrize(
    ("output", "baseline"),
    [
        # One value is not a time of the run.
        ("id,at\n1,2026-11-26T10:00:12\n2,2026-11-25T10:00:12\n", "id,at\n1,2026-01-01\n2,2026-01-01\n"),
        # All are empty.
        ("id,at\n1,\n2,\n", "id,at\n1,2026-01-01\n2,2026-01-01\n"),
        # Something else differs too.
        ("id,at,n\n1,2026-11-26T10:00:12,3\n", "id,at,n\n1,2026-01-01,4\n"),
        # A row is missing.
        ("id,at\n1,2026-11-26T10:00:12\n", "id,at\n1,2026-01-01\n2,2026-01-01\n"),
        # A year is not a time.
        ("id,at\n1,2026\n", "id,at\n1,2025\n"),
    ],
)
def test_no_noise(tmp_path: Path, output: str, baseline: str) -> None:
    assert look(tmp_path, output, baseline) is None


def test_clock_of_the_project_may_have_another_zone(tmp_path: Path) -> None:
    texts = ("id,at\n1,2026-11-26T15:30:12\n", "id,at\n1,2026-01-01T00:00:00\n")
    assert look(tmp_path, *texts) is None
    assert look(tmp_path, *texts, run=RunTime(RUN.began, RUN.ended, 14)) is not None


def test_typed_columns(tmp_path: Path) -> None:
    for name, at in (("t.parquet", "2026-11-26 10:00:10"), ("old.parquet", "2026-01-01 00:00:00")):
        columns = f"i AS id, TIMESTAMP '{at}' AS a, TIMESTAMPTZ '{at}+00' AS b, DATE '{at[:10]}' AS c"
        write_parquet(tmp_path / name, f"SELECT {columns} FROM range(3) t(i)")
    entry = DeclaredOutput("t.parquet", key=("id",))
    told = explain_noise([entry], tmp_path / "t.parquet", tmp_path / "old.parquet", {}, RUN)
    assert told is not None
    assert TIMES.format("a, b, c") in told


def test_what_calibration_found_is_noise(tmp_path: Path) -> None:
    texts = ("id,who\n1,b\n2,a\n", "id,who\n1,a\n2,b\n")
    assert look(tmp_path, *texts) is None
    told = look(tmp_path, *texts, known={"ignore_columns": ("who",)})
    assert told is not None
    assert "it holds with `ignore_columns: [who]`, which `golden calibrate` found" in told


def test_known_rules_and_times_together(tmp_path: Path) -> None:
    told = look(
        tmp_path, "id,who,at\n1,b,2026-11-26\n", "id,who,at\n1,a,2026-01-01\n", known={"ignore_columns": ("who",)}
    )
    assert told is not None
    assert TIMES.format("who, at") in told


def test_kept_movements_survive_and_a_broken_file_is_no_error(tmp_path: Path) -> None:
    movements = KnownMovements(tmp_path)
    movements.keep({"sales": {"out/*.csv": {"key": ("id",), "relative_tolerance": 3e-16, "unordered": True}}})
    movements.keep({"other": {}})
    found = KnownMovements(tmp_path).find_rules("sales", "out/*.csv")
    assert found == {"key": ("id",), "relative_tolerance": 3e-16, "unordered": True}
    assert KnownMovements(tmp_path).find_rules("sales", "x") == {}
    for broken in ("{", "[]", '{"sales": 3}', "\0"):
        (tmp_path / "calibrated.json").write_text(broken)
        assert KnownMovements(tmp_path).find_rules("sales", "out/*.csv") == {}
