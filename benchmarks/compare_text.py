"""Comparing two text files of 1 GiB, beside the tools that do the same with the same files; and how much memory it takes.

Run: python benchmarks/compare_text.py [MIB]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from side_by_side import seconds

SCRIPT = """
import resource, sys, time
from pathlib import Path
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.compare.comparing import compare_files
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
found = compare_files(eval(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), shown_as="load.log")
took = time.perf_counter() - started
more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(f"{took:.2f} {more / 1024:.0f} {child / 1024:.0f} {'equal' if found is None else found.kind}")
"""
LINE = "2026-03-04 05:06:07 INFO row {:09d} of the daily load was written to the warehouse\n"
STAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}"
CASES: tuple[tuple[str, str, dict[str, Any], tuple[str, ...]], ...] = (
    ("equal", "DeclaredOutput('load.log')", {}, ('cmp "$1" "$2"', 'diff -q "$1" "$2"')),
    ("one more line at the end", "DeclaredOutput('load.log')", {"last": "and one more\n"}, ('cmp "$1" "$2"',)),
    (
        "another day in each line, masked",
        f"DeclaredOutput('load.log', masks=[r'{STAMP}'], ignore_lines=['^DEBUG '])",
        {"day": "2026-09-10"},
        (f"cmp <(sed -E 's/{STAMP}/M/; /^DEBUG /d' \"$1\") <(sed -E 's/{STAMP}/M/; /^DEBUG /d' \"$2\")",),
    ),
    (
        "another order",
        "DeclaredOutput('load.log', unordered=True)",
        {"shift": 5_000_000},
        ('cmp <(LC_ALL=C sort "$1") <(LC_ALL=C sort "$2")',),
    ),
)


def write_load(path: Path, size_mib: int, *, day: str = "2026-03-04", last: str = "", shift: int = 0) -> None:
    """Write lines of a log up to a size; `shift` moves the first ones to the end."""
    count = (size_mib << 20) // len(LINE.format(0))
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, count, 10_000):
            numbers = range(start, min(start + 10_000, count))
            file.write("".join(LINE.format((number + shift) % count) for number in numbers).replace("2026-03-04", day))
        file.write(last)


def ours(declared: str, actual: Path, baseline: Path) -> tuple[float, str, str, str]:
    command = [sys.executable, "-c", SCRIPT, declared, str(actual), str(baseline)]
    took, memory, child, verdict = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(took), memory, child, verdict


def time_tool(command: str, actual: Path, baseline: Path) -> float:
    argv = ["bash", "-c", command, "bash", str(actual), str(baseline)]
    return seconds(lambda: subprocess.run(argv, stdout=subprocess.DEVNULL, check=False))


def main() -> None:
    size_mib = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    with tempfile.TemporaryDirectory() as name:
        actual, baseline = Path(name, "load.log"), Path(name, "baseline.log")
        write_load(baseline, size_mib)
        for title, declared, changes, tools in CASES:
            write_load(actual, size_mib, **changes)
            took, memory, child, verdict = ours(declared, actual, baseline)
            print(f"{title}: {verdict} in {took:.2f} s, {memory} MiB more memory, {child} MiB in the patterns' process")
            for tool in tools:
                floor = time_tool(tool, actual, baseline)
                name_of_tool = next((word for word in ("sed", "sort", "diff") if word in tool), "cmp")
                print(f"    {name_of_tool}: {floor:.2f} s, ratio {took / floor:.1f}")


if __name__ == "__main__":
    main()
