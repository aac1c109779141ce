"""How often a pipeline's exit code is Odibi's own verdict: plain `odibi run` beside the odibi runner's script.

Usage: python benchmarks/odibi_verdict.py [--runs 50] [--odibi PATH]

Runs examples/orders in fresh copies, alternating between both ways: one pipeline that must end with 0 and one that must
end with 1. Prints how often each exit code came. An exit code of 134 or a hang is Odibi's interpreter at its shutdown.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CHILD = REPOSITORY / "pytest_golden" / "gateway" / "runners" / "odibi_child.py"
PIPELINES = {"clean_and_join.yaml": 0, "reject_negative_amounts.yaml": 1}
TIMEOUT_SECONDS = 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument(
        "--odibi", default=str(Path(sys.executable).with_name("odibi")), help="a script whose Python is beside it"
    )
    options = parser.parse_args()
    python = str(Path(options.odibi).with_name("python"))
    ways = {"plain odibi run": [options.odibi], "runner's script": [python, str(CHILD)]}
    codes: dict[tuple[str, str], Counter[str]] = {(way, name): Counter() for way in ways for name in PIPELINES}
    seconds: dict[str, float] = dict.fromkeys(ways, 0.0)
    for _ in range(options.runs):
        for way, start in ways.items():
            for name in PIPELINES:
                started = time.monotonic()
                codes[way, name][run(start, name)] += 1
                seconds[way] += time.monotonic() - started
    return show(codes, seconds, options.runs)


def run(start: list[str], name: str) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "orders")
        shutil.copytree(REPOSITORY / "examples" / "orders", folder)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": scratch,
            "TMPDIR": scratch,
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "1000",
            "NO_COLOR": "1",
        }
        command = [*start, "run", str(folder / name)]
        try:
            ended = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, check=False, timeout=TIMEOUT_SECONDS
            )
        except subprocess.TimeoutExpired:
            return "hang"
    return str(ended.returncode)


def show(codes: dict[tuple[str, str], Counter[str]], seconds: dict[str, float], runs: int) -> int:
    right_by_runner = True
    for (way, name), counts in codes.items():
        expected = str(PIPELINES[name])
        right = counts[expected]
        others = ", ".join(f"{code}: {count}" for code, count in sorted(counts.items()) if code != expected) or "none"
        print(f"{way:16} {name:28} exit code {expected}: {right} of {runs}; others: {others}")
        right_by_runner = right_by_runner and (right == runs or way == "plain odibi run")
    for way, total in seconds.items():
        print(f"{way:16} {total / (runs * len(PIPELINES)):.2f} s a run")
    return 0 if right_by_runner else 1


if __name__ == "__main__":
    sys.exit(main())
