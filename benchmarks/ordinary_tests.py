"""What one golden project beside 3,000 trivial tests costs under pytest-xdist, for each `--dist`.

Both sessions run in turns, with and without `--golden`, and are compared round by round. The clock of the processor (of
pytest, its workers and the pipeline together) counts where other programs run.

Run: python benchmarks/ordinary_tests.py [--tests N] [--rounds N] [--dist MODE ...]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

MODES = ("load", "worksteal", "loadscope", "loadfile", "loadgroup")
_TESTS_A_FILE = 100
_MOST = 1.1
# Plugins of others cost both the same, which would hide what ours costs.
_COMMAND = (
    sys.executable,
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:randomly",
    "-p",
    "no:hypothesispytest",
)


class Took(NamedTuple):
    """Seconds by the clock, and seconds of the processor in all processes of a session."""

    clock: float
    processor: float


def main() -> None:
    """Measure each mode and print the medians of both and of their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dist", nargs="+", choices=MODES, default=MODES)
    arguments = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        declare(workspace, arguments.tests)
        run(workspace, "load", "--golden")  # makes the store, as any gate before has done
        for mode in arguments.dist:
            pairs = [measure_pair(workspace, mode, number) for number in range(arguments.rounds)]
            print(describe(mode, pairs), flush=True)


def declare(workspace: Path, count: int) -> None:
    """Write the tests, a hundred in a file, and one golden project that does nothing."""
    (workspace / "pytest.ini").write_text("[pytest]\n")
    (workspace / "tests").mkdir()
    for first in range(0, count, _TESTS_A_FILE):
        numbers = range(first, min(count, first + _TESTS_A_FILE))
        tests = "".join(f"def test_{number}():\n    pass\n" for number in numbers)
        (workspace / "tests" / f"test_from_{first}.py").write_text(tests)
    (workspace / "one.sh").write_text("true\n")
    (workspace / "golden_projects.yaml").write_text("version: 1\ngolden_projects:\n  - {name: one, path: one.sh}\n")


def measure_pair(workspace: Path, mode: str, number: int) -> tuple[Took, Took]:
    """Run both sessions, every other time the second one first."""
    if number % 2:
        ours = run(workspace, mode, "--golden")
        return run(workspace, mode), ours
    return run(workspace, mode), run(workspace, mode, "--golden")


def run(workspace: Path, mode: str, *options: str) -> Took:
    """Run one session over all tests; it must pass."""
    command = [*_COMMAND, "-n2", f"--dist={mode}", *options]
    before, started = os.times(), time.perf_counter()
    subprocess.run([*command, "tests"], cwd=workspace, stdout=subprocess.DEVNULL, check=True)
    ended, after = time.perf_counter(), os.times()
    processor = after.children_user - before.children_user + after.children_system - before.children_system
    return Took(ended - started, processor)


def describe(mode: str, pairs: list[tuple[Took, Took]]) -> str:
    """Say what both took by either clock, and how many times as long ours took."""
    told = []
    for kind in Took._fields:
        without, ours = ([getattr(one, kind) for one in side] for side in zip(*pairs, strict=True))
        ratio = statistics.median(mine / floor for floor, mine in zip(without, ours, strict=True))
        missed = " MISSED" if ratio > _MOST else ""
        told.append(f"{kind} {statistics.median(without):.2f} s, {statistics.median(ours):.2f} s, {ratio:.2f}{missed}")
    return f"{mode:9} without and with --golden, ratio: {'; '.join(told)}"


if __name__ == "__main__":
    main()
