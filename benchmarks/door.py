"""What the plug-in costs those who do not use it: importing the door, and pytest without `--golden`.

Run: python benchmarks/door.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from side_by_side import in_turns

_IMPORT = """
import sys, time
import pytest
before = set(sys.modules)
started = time.perf_counter()
__import__(sys.argv[1], fromlist=["x"])
print((time.perf_counter() - started) * 1000, len(set(sys.modules) - before))
"""


def measure_import(module: str) -> tuple[float, int]:
    """Return the median milliseconds and the number of modules that importing it after pytest brings in."""
    runs = []
    for _ in range(15):
        done = subprocess.run([sys.executable, "-c", _IMPORT, module], capture_output=True, text=True, check=True)
        runs.append(done.stdout.split())
    return statistics.median(float(run[0]) for run in runs), int(runs[0][1])


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    for module in ("pytest_golden.pytest_plugin", "xdist.plugin"):
        milliseconds, modules = measure_import(module)
        print(f"import {module}: {milliseconds:.2f} ms, {modules} modules")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_one.py").write_text("def test_one():\n    pass\n")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]

        def run(*more: str) -> None:
            subprocess.run([*command, *more], cwd=folder, stdout=subprocess.DEVNULL, check=True)

        without, present, ratio = in_turns(lambda: run("-p", "no:golden_projects"), run, 25)
        print(f"pytest, plug-in blocked {without * 1000:.0f} ms, installed {present * 1000:.0f} ms, ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
