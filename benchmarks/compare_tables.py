"""Two Parquet tables of 10,000,000 rows compared by key with a tolerance, beside DuckDB's own bare query that counts differences.

    python benchmarks/compare_tables.py [ROWS] [--rounds N]

All run in processes of their own, in turns: with equal tables in another order, with ten rows that differ, and with one row in a
hundred changed. The bare query is a join written by hand, with all the memory that there is, and once more with as much as the
comparison has; for the changed rows it is the anti-join that finds them. The comparison explains what differs, too. Prints the
medians, the medians of the ratios (promised: 3 at most over the bare query, and 1.5 over the anti-join in the same memory) and the
largest peaks of memory (promised: less than 1 GiB).
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_TABLE = """SELECT range AS id, (hash(range) % 100000) / 100.0::DOUBLE AS amount, 'customer_' || (hash(range * 7) % 1000000) AS name,
 TIMESTAMP '2024-01-01' + to_seconds(range % 10000000) AS at_time, (hash(range * 3) % 1000)::INTEGER AS quantity FROM range({rows})"""
_MOVED = "SELECT id, {amount} AS amount, name, at_time, quantity FROM ({table}) ORDER BY hash(id)"
_SLIGHTLY_OFF = "amount * (1 + 1e-12)"
_BARE = """SELECT count(*) FROM read_parquet('{here}') AS x FULL OUTER JOIN read_parquet('{there}') AS y USING (id)
 WHERE x.id IS NULL OR y.id IS NULL OR abs(x.amount - y.amount) > 1e-6 OR x.name <> y.name OR x.at_time <> y.at_time
 OR x.quantity <> y.quantity"""

_WAYS = ("bare", "bounded", "ours")
_ANTI_JOIN = """SELECT count(*) FROM read_parquet('{here}') AS x ANTI JOIN read_parquet('{there}') AS y ON x.id = y.id
 AND x.amount IS NOT DISTINCT FROM y.amount AND x.name IS NOT DISTINCT FROM y.name
 AND x.at_time IS NOT DISTINCT FROM y.at_time AND x.quantity IS NOT DISTINCT FROM y.quantity"""


def make_tables(folder: Path, rows: int) -> None:
    import duckdb

    table = _TABLE.format(rows=rows)
    wrong = f"CASE WHEN id % {max(1, rows // 10)} = 7 THEN amount + 1 ELSE {_SLIGHTLY_OFF} END"
    queries = {
        "output": table,
        "equal": _MOVED.format(amount=_SLIGHTLY_OFF, table=table),
        "different": _MOVED.format(amount=wrong, table=table),
        "changed": _MOVED.format(amount="CASE WHEN id % 100 = 7 THEN amount + 1 ELSE amount END", table=table),
    }
    for name, query in queries.items():
        with duckdb.connect() as connection:
            connection.execute(f"SET temp_directory = '{folder / 'spilled'}'")
            connection.execute(f"COPY ({query}) TO '{folder / name}.parquet' (FORMAT parquet)")


def run_bare(here: Path, there: Path, *, is_bounded: bool = False) -> str:
    import duckdb

    query = _ANTI_JOIN if there.stem == "changed" else _BARE
    connection = duckdb.connect()
    if is_bounded:
        from pytest_golden.compare.tables.duckdb_engine import MEMORY_BYTES

        connection.execute(f"SET memory_limit = '{MEMORY_BYTES}B'")
        connection.execute(f"SET temp_directory = '{here.parent / 'spilled'}'")
        connection.execute("SET preserve_insertion_order = false")
    return str(connection.execute(query.format(here=here, there=there)).fetchall())


def run_ours(here: Path, there: Path) -> str:
    from pytest_golden.compare.comparing import compare_files
    from pytest_golden.manifest.model import DeclaredOutput

    tolerance = 0 if there.stem == "changed" else 1e-6
    declared = DeclaredOutput(path="*.parquet", key=("id",), absolute_tolerance=tolerance)
    found = compare_files(declared, here, there, shown_as="output.parquet")
    return "equal" if found is None else found.message.splitlines()[0]


def measure(way: str, here: Path, there: Path) -> tuple[float, float, str]:
    """Return seconds, MiB at the peak and the answer, from a process of its own."""
    script = [sys.executable, __file__, "--way", way, "--tables", str(here), str(there)]
    done = subprocess.run(script, check=True, capture_output=True, text=True)
    seconds, peak, answer = json.loads(done.stdout)
    return seconds, peak, answer


def be_measured(way: str, here: Path, there: Path) -> None:
    started = time.perf_counter()
    answer = run_ours(here, there) if way == "ours" else run_bare(here, there, is_bounded=way == "bounded")
    seconds = time.perf_counter() - started
    print(json.dumps([seconds, peak_mib(), answer]))


def peak_mib() -> float:
    """Return the most resident memory that this process has had; what getrusage gives on Linux was the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="?", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", choices=_WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--tables", nargs=2, type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.way:
        be_measured(asked.way, *asked.tables)
        return
    with tempfile.TemporaryDirectory(prefix="golden-benchmark-") as name:
        folder = Path(name)
        make_tables(folder, asked.rows)
        for kind in ("equal", "different", "changed"):
            here, there = folder / "output.parquet", folder / f"{kind}.parquet"
            turns = [[measure(way, here, there) for way in _WAYS] for _ in range(asked.rounds)]
            bare, bounded, ours = (statistics.median(turn[at][0] for turn in turns) for at in range(len(_WAYS)))
            over_bare, over_bounded = (statistics.median(turn[2][0] / turn[at][0] for turn in turns) for at in (0, 1))
            print(
                f"{asked.rows:,} rows, {kind}: bare {bare:.2f} s, bare in the same memory {bounded:.2f} s, compared {ours:.2f} s;"
                f" ratios {over_bare:.2f}, {over_bounded:.2f}"
            )
            peaks = [max(turn[at][1] for turn in turns) for at in range(len(_WAYS))]
            print(
                f"  peak: bare {peaks[0]:.0f} MiB, bare in the same memory {peaks[1]:.0f} MiB, compared {peaks[2]:.0f} MiB"
            )
            print(f"  bare says {turns[0][0][2]}, compared: {turns[0][2][2]}")


if __name__ == "__main__":
    main()
