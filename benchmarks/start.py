"""What a gate of one project that does nothing costs over one bare pytest test that runs the same subprocess.

Counts the processor's seconds of all processes of a session, since other programs may run beside it, the time by the clock
until the pipeline starts, and the modules that the session has imported at its end. Machines differ in speed by more than
what is measured here: the limits for the processor are multiples of the bare test.

Run: python benchmarks/start.py [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

_COMMAND = (
    sys.executable,
    "-m",
    "pytest",
    "-q",
    *(f"-pno:{name}" for name in ("cacheprovider", "randomly", "hypothesispytest", "anyio")),
)
_MOST_TIMES = {"a store": 3.5, "no store": 2.3}
_MOST_SECONDS_UNTIL_START = 0.30
_CONFTEST = """
import atexit, json, pathlib, sys

@atexit.register
def write():
    pathlib.Path(__file__).with_name("modules.json").write_text(json.dumps(list(sys.modules)))
"""


class Took(NamedTuple):
    """Seconds of the processor in all processes of a session, and seconds by the clock until its subprocess started."""

    processor: float
    until_start: float


def main() -> None:
    """Measure a gate with a store and one without, in turns with the bare test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        declare(workspace)
        ways = {"a store": ("--golden",), "no store": ("--golden", "--golden-store=none")}
        for name, options in ways.items():
            run(workspace, *options, "golden_projects.yaml")  # makes the store and the bytecode
            pairs = [(run(workspace, "test_bare.py"), run(workspace, *options)) for _ in range(arguments.rounds)]
            more = statistics.median(ours.processor - bare.processor for bare, ours in pairs)
            times = statistics.median(ours.processor / bare.processor for bare, ours in pairs)
            bare = statistics.median(one.processor for one, _ in pairs)
            later = statistics.median(ours.until_start - bare.until_start for bare, ours in pairs)
            print(
                f"with {name}: processor {more:.2f} s more than {bare:.2f} s, {times:.1f} times{tell(times, _MOST_TIMES[name])}; "
                f"the pipeline starts {later:.2f} s later{tell(later, _MOST_SECONDS_UNTIL_START)}; "
                f"modules {count_modules(workspace, *options)}"
            )


def tell(value: float, most: float) -> str:
    """Return a word for a value above its limit."""
    return " MISSED" if value > most else ""


def declare(workspace: Path) -> None:
    """Write the project, and the test that does the same."""
    (workspace / "pytest.ini").write_text("[pytest]\n")
    (workspace / "test_bare.py").write_text(
        "import subprocess\n\ndef test_bare():\n    subprocess.run(['sh', 'one.sh'], check=True)\n"
    )
    (workspace / "marks").mkdir()
    (workspace / "one.sh").write_text(f"date +%s%N > {workspace}/marks/start\n")
    mounts = f"[{{path: {workspace}/marks, mode: write}}]"
    (workspace / "golden_projects.yaml").write_text(
        f"version: 1\ngolden_projects:\n  - {{name: one, path: one.sh, mounts: {mounts}}}\n"
    )


def run(workspace: Path, *options: str) -> Took:
    """Run one session, which must pass."""
    before, began = os.times(), time.time_ns()
    subprocess.run([*_COMMAND, *options], cwd=workspace, stdout=subprocess.DEVNULL, check=True)
    after, started = os.times(), int((workspace / "marks" / "start").read_text())
    processor = after.children_user - before.children_user + after.children_system - before.children_system
    return Took(processor, (started - began) / 1e9)


def count_modules(workspace: Path, *options: str) -> str:
    """Count the modules that a session has imported at its end: ours, and all."""
    conftest = workspace / "conftest.py"
    conftest.write_text(_CONFTEST)
    run(workspace, *options)
    conftest.unlink()
    names = json.loads((workspace / "modules.json").read_text())
    return f"{sum(name.partition('.')[0] == 'pytest_golden' for name in names)} of ours, {len(names)} in all"


if __name__ == "__main__":
    main()
