"""What a gate of one project that does nothing costs over one bare pytest test that runs the same subprocess.

Counts the processor's seconds of all processes of a session, since other programs may run beside it, and the modules that
the session has imported at its end.

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
from pathlib import Path

_COMMAND = (
    sys.executable,
    "-m",
    "pytest",
    "-q",
    *(f"-pno:{name}" for name in ("cacheprovider", "randomly", "hypothesispytest")),
)
_MOST_SECONDS = {"a store": 0.50, "no store": 0.25}
_CONFTEST = """
import atexit, json, pathlib, sys

@atexit.register
def write():
    pathlib.Path(__file__).with_name("modules.json").write_text(json.dumps(list(sys.modules)))
"""


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
            more = statistics.median(ours - bare for bare, ours in pairs)
            bare = statistics.median(one for one, _ in pairs)
            missed = " MISSED" if more > _MOST_SECONDS[name] else ""
            print(
                f"with {name}: {more:.2f} s more than {bare:.2f} s{missed}; modules {count_modules(workspace, *options)}"
            )


def declare(workspace: Path) -> None:
    """Write the project, and the test that does the same."""
    (workspace / "pytest.ini").write_text("[pytest]\n")
    (workspace / "test_bare.py").write_text(
        "import subprocess\n\ndef test_bare():\n    subprocess.run(['sh', 'one.sh'], check=True)\n"
    )
    (workspace / "one.sh").write_text("true\n")
    (workspace / "golden_projects.yaml").write_text("version: 1\ngolden_projects:\n  - {name: one, path: one.sh}\n")


def run(workspace: Path, *options: str) -> float:
    """Run one session, which must pass; returns the processor's seconds of all its processes."""
    before = os.times()
    subprocess.run([*_COMMAND, *options], cwd=workspace, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


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
