"""Reading and comparing the tables of one DuckDB file with equal baselines, beside DuckDB writing them over one bare connection.

    python benchmarks/database_tables.py [TABLES] [--rows N] [--rounds N]

Both run in turns in this process: tables of 1,000 rows, as a warehouse of dbt has. The bare one only writes each table to a sorted
Parquet file. Ours does so too, and compares each with its baseline. Prints the medians, and the medians of the ratios. With
`1 --rows 5000000` the table is so large that its baseline is a profile.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import duckdb

from pytest_golden.compare.baselines import match_outputs
from pytest_golden.compare.comparing import compare_with
from pytest_golden.compare.tables.database_outputs import export_outputs
from pytest_golden.compare.tables.profiles import put_profile
from pytest_golden.gateway.write_set import WrittenFiles
from pytest_golden.manifest.model import DeclaredOutput

_TABLE = "SELECT i AS id, hash(i + {at}) % 1000 AS amount, 'name ' || i AS name, DATE '2026-01-01' + i::INTEGER AS day FROM range({rows}) t(i)"
_OUTPUT = DeclaredOutput("wh.duckdb", tables=("*",))


def write_bare(database: Path, tables: int, folder: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{database}' AS wh (READ_ONLY)")
        for at in range(tables):
            query = f"SELECT * FROM wh.t{at} ORDER BY ALL"
            connection.execute(f"COPY ({query}) TO '{folder}/t{at}.parquet' (FORMAT parquet)")


def export(database: Path, folder: Path) -> dict[str, Path]:
    return export_outputs((_OUTPUT,), WrittenFiles(database.parent, (database.name,), str), folder).files


def compare(files: dict[str, Path], baselines: dict[str, Path]) -> None:
    for file in match_outputs((_OUTPUT,), files, (), files).files:
        assert compare_with(file, files[file.path], baselines[file.path]) is None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="?", type=int, default=82)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    turns = []
    with tempfile.TemporaryDirectory(prefix="golden-benchmark-") as name:
        database = Path(name, "wh.duckdb")
        with duckdb.connect(str(database)) as connection:
            for at in range(asked.tables):
                connection.execute(f"CREATE TABLE t{at} AS {_TABLE.format(at=at, rows=asked.rows)}")
        (kept := Path(name, "baselines")).mkdir()
        baselines = export(database, kept)
        for file in match_outputs((_OUTPUT,), baselines, (), baselines).files:
            put_profile(file, baselines[file.path], str)
        for number in range(asked.rounds):
            folders = [Path(name, f"{way}-{number}") for way in ("bare", "ours")]
            for folder in folders:
                folder.mkdir()
            started = time.perf_counter()
            write_bare(database, asked.tables, folders[0])
            bare = time.perf_counter()
            files = export(database, folders[1])
            exported = time.perf_counter()
            compare(files, baselines)
            turns.append((bare - started, exported - bare, time.perf_counter() - exported))
    bare, read, compared = (statistics.median(turn[at] for turn in turns) for at in range(3))
    print(
        f"{asked.tables} tables of {asked.rows:,} rows: bare {bare:.2f} s, read {read:.2f} s, compared {compared:.2f} s"
    )
    print(f"  reading: {statistics.median(turn[1] / turn[0] for turn in turns):.2f} times the bare one")
    print(f"  all of it: {statistics.median((turn[1] + turn[2]) / turn[0] for turn in turns):.2f} times the bare one")


if __name__ == "__main__":
    main()
