"""How even shards come out: the longest of them, as it really took, over the ideal. `python benchmarks/shards.py [--projects N] [--shards N]`.

A gate over pipelines that sleep for lognormally spread times is run once and recorded; a plan is made from that, and every shard is run by itself. The ideal is the
time that the pipelines took in the shards, divided by how many shards there are.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

_LONGEST_SECONDS = 1.5


def main() -> None:
    """Measure, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--projects", type=int, default=100)
    parser.add_argument("--shards", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        _declare(workspace, arguments.projects)
        _run_gate(workspace, "--golden-json=all.json")
        plan = [sys.executable, "-m", "pytest_golden", "shards", "plan", "--shards", str(arguments.shards), "--json"]
        planned = json.loads(subprocess.run(plan, cwd=workspace, check=True, capture_output=True).stdout)
        took = [_time_shard(workspace, f"{index}/{arguments.shards}") for index in range(1, arguments.shards + 1)]
    expected = [shard["seconds"] for shard in planned["shards"]]
    ideal = sum(took) / len(took)
    print(
        f"{arguments.projects} projects in {arguments.shards} shards: planned {_show(expected)} s, took {_show(took)} s"
    )
    print(
        f"longest over ideal: planned {max(expected) / (sum(expected) / len(expected)):.3f}, real {max(took) / ideal:.3f}"
    )


def _declare(workspace: Path, count: int) -> None:
    spread = random.Random(1)
    projects = []
    for number in range(count):
        path = workspace / f"p{number}.sh"
        path.write_text(f"sleep {min(spread.lognormvariate(-2.3, 0.8), _LONGEST_SECONDS):.3f}\n")
        projects.append({"name": path.stem, "path": path.name})
    (workspace / "golden_projects.yaml").write_text(json.dumps({"version": 1, "golden_projects": projects}))


def _run_gate(workspace: Path, *options: str) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--golden", *options]
    subprocess.run(command, cwd=workspace, check=True, stdout=subprocess.DEVNULL)


def _time_shard(workspace: Path, shard: str) -> float:
    _run_gate(
        workspace, f"--golden-shard={shard}", f"--golden-store={shard.replace('/', '-')}.db", "--golden-json=one.json"
    )
    told = json.loads((workspace / "one.json").read_text())
    return sum(one["execution_time_seconds"] for one in told["results"])


def _show(seconds: list[float]) -> str:
    return ", ".join(f"{one:.2f}" for one in seconds)


if __name__ == "__main__":
    main()
