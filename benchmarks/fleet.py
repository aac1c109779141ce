"""What a fleet costs and gains: the overhead of each project, and how much faster four workers are than one.

A scheduler and workers are started on loopback. Overhead: gates of 1 and of COUNT pipelines that do nothing, on one worker and
without a fleet, in turns. Gain: gates of pipelines that only sleep, on one worker and on four,
over a gate of nothing.

    python benchmarks/fleet.py [--count COUNT] [--rounds N] [--sleep SECONDS]
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
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SLEEPERS = 16
_GATE = (sys.executable, "-m", "pytest", "--golden", "-q", "-p", "no:randomly", "-p", "no:cacheprovider")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sleep", type=float, default=3.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        overhead = measure_overhead(folder, given.count, given.rounds)
        print(f"overhead of a project: {1000 * overhead:.1f} ms (promised: 50)")
        gain = measure_gain(folder, given.sleep)
        print(f"four workers over one: {gain:.2f} x (promised: 3.5)")


def measure_overhead(folder: Path, count: int, rounds: int) -> float:
    """Return the seconds that a project costs more on a fleet of one worker than here."""
    one, many = write_gate(folder / "one", 1, "true"), write_gate(folder / "many", count, "true")
    here, there = [], []
    with start_cluster(folder / "single", 1) as url:
        for _ in range(rounds):
            here.append((run_gate(many) - run_gate(one)) / (count - 1))
            there.append((run_gate(many, url) - run_gate(one, url)) / (count - 1))
    print(f"a project that does nothing: {1000 * statistics.median(here):.1f} ms here,", end=" ")
    print(f"{1000 * statistics.median(there):.1f} ms on a worker")
    return statistics.median(there) - statistics.median(here)


def measure_gain(folder: Path, sleep: float) -> float:
    """Return how many times faster four workers are than one, over a gate of one project that does nothing."""
    gate, nothing = write_gate(folder / "sleeping", _SLEEPERS, f"sleep {sleep}"), write_gate(folder / "none", 1, "true")
    took = []
    for workers in (1, 4):
        with start_cluster(folder / f"cluster-{workers}", workers) as url:
            start = statistics.median(run_gate(nothing, url) for _ in range(3))
            took.append(run_gate(gate, url) - start)
            print(f"{workers} at work: {took[-1]:.1f} s beside {start:.1f} s for a gate of nothing")
    return took[0] / took[1]


def write_gate(folder: Path, count: int, script: str) -> Path:
    projects = []
    for number in range(count):
        place = folder / f"p{number}"
        place.mkdir(parents=True)
        (place / "run.sh").write_text(f"{script}\n")
        projects.append({"name": place.name, "path": f"{place.name}/run.sh", "independent": True})
    (folder / "golden_projects.yaml").write_text(json.dumps({"version": 1, "golden_projects": projects}))
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


def run_gate(folder: Path, url: str | None = None) -> float:
    """Run a gate in a process of its own and give the seconds that it took."""
    fleet = () if url is None else (f"--golden-gateway={url}", "--golden-fleet-trusted")
    started = time.monotonic()
    subprocess.run([*_GATE, *fleet], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - started


@contextmanager
def start_cluster(folder: Path, workers: int) -> Iterator[str]:
    """Start a scheduler and workers of one thread each; gives the URL for a gate."""
    folder.mkdir()
    file = folder / "scheduler.json"
    processes = [start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))]
    try:
        while not file.exists() or not file.read_text().endswith("}"):
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        options = (address, "--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
        processes += [start("dask_worker", *options) for _ in range(workers)]
        wait_for_workers(address, workers)
        yield address.replace("tcp://", "dask://")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, env={**os.environ}, **quiet)


def wait_for_workers(address: str, count: int) -> None:
    from distributed import Client

    with Client(address) as client:
        client.wait_for_workers(count, timeout=60)


if __name__ == "__main__":
    main()
