"""What a step costs, each way of keeping it beside its floor: a list append, a line of JSON with its write, a loop.

Costs are processor time, the system's included, since a step waits for nothing. Memory is the high-water mark of a process
of its own that streams a million steps to a file and asks for some of them.

Run: python benchmarks/trajectory.py [STEPS]
"""

from __future__ import annotations

import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.trajectory.jsonlines import iter_steps
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.query import parse_query
from pytest_golden.trajectory.recorder import TrajectoryRecorder

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS, BATCH, AGAIN = 15, 10_000, 200
MILLION = 1_000_000
QUERY = 'content~"step 99999" or metadata.row=500000'


def cpu_seconds(action: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    started = time.process_time_ns()
    action()
    return (time.process_time_ns() - started) / 1e9


def measure(name: str, promised_us: float, count: int, floor: Callable[[], object], ours: Callable[[], object]) -> None:
    """Print the median cost of one of `count` things, and that of its floor, measured in turns."""
    pairs = []
    for _ in range(ROUNDS):
        gc.collect()
        pairs.append((cpu_seconds(floor), cpu_seconds(ours)))
    bare, cost = (statistics.median(pair[side] for pair in pairs) / count * 1e6 for side in (0, 1))
    least = min(pair[1] for pair in pairs) / count * 1e6
    ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
    kept = "kept" if cost <= promised_us else "MISSED"
    print(
        f"{name}: {cost:.2f} us (least {least:.2f}), floor {bare:.2f} us, {ratio:.1f} times it; "
        f"promised {promised_us:g} us: {kept}"
    )


def again(action: Callable[[], object]) -> Callable[[], None]:
    """Return what does something so often that its time can be told."""

    def act() -> None:
        for _ in range(AGAIN):
            action()

    return act


def append_dicts() -> None:
    kept: list[dict[str, object]] = []
    for number in range(BATCH):
        kept += ({"type": "action", "content": "load the orders", "metadata": {"row": number}, "at": time.time()},)


def record(path: Path | None = None) -> None:
    recorder = TrajectoryRecorder(path)
    for number in range(BATCH):
        recorder.step("action", "load the orders", metadata={"row": number})


def write_lines(path: Path) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in range(BATCH):
        step = {
            "record": "step",
            "id": f"step_{number:026}",
            "type": "action",
            "content": "load the orders",
            "timestamp": time.time(),
            "duration_ms": None,
            "metadata": {"row": number},
            "context": None,
            "importance": "medium",
            "parent_step_id": None,
        }
        os.write(handle, f"{json.dumps(step)}\n".encode())
    os.close(handle)


def grow(count: int = BATCH) -> Trajectory:
    trajectory = Trajectory.new()
    for number in range(count):
        trajectory = trajectory.add_step("action", "load the orders", metadata={"row": number})
    return trajectory


def stream_and_ask(path: Path, count: int) -> None:
    """Run in a process of its own: write, ask, and print what it took."""
    before = _peak_mib()
    recorder = TrajectoryRecorder(path)

    def write() -> None:
        for number in range(count):
            recorder.step("action", f"step {number}", metadata={"row": number})
        recorder.complete()

    written = cpu_seconds(write)
    after_writing = _peak_mib()
    asked = parse_query(QUERY)
    found: list[str] = []
    read = cpu_seconds(lambda: found.extend(step.id for step in asked.select(iter_steps(path))))
    told = {"start": before, "written": after_writing, "asked": _peak_mib(), "found": len(found)}
    print(json.dumps({**told, "write_us": written / count * 1e6, "read_us": read / count * 1e6}))


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_memory(folder: Path, count: int) -> None:
    command = [sys.executable, __file__, "--stream", str(folder / "million.jsonl"), str(count)]
    told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    size = (folder / "million.jsonl").stat().st_size / 1024**2
    kept = "kept" if told["asked"] < 100 else "MISSED"
    print(
        f"{count:,} steps streamed and asked for: at most {told['asked']:.0f} MiB (after the imports "
        f"{told['start']:.0f}, after writing {told['written']:.0f}), file {size:.0f} MiB, write {told['write_us']:.1f} us "
        f"and read {told['read_us']:.1f} us a step, {told['found']} found; promised less than 100 MiB: {kept}"
    )


def main() -> None:
    if sys.argv[1:2] == ["--stream"]:
        stream_and_ask(Path(sys.argv[2]), int(sys.argv[3]))
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else MILLION
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        measure("recorder, in memory", 5, BATCH, append_dicts, record)
        measure(
            "recorder, to a file", 15, BATCH, lambda: write_lines(folder / "raw"), lambda: record(folder / "ours.jsonl")
        )
        measure("add_step, 10,000 of them", 10, BATCH, append_dicts, grow)
        short, long = cpu_seconds(lambda: grow(BATCH // 10)), cpu_seconds(grow)
        print(f"add_step is linear: ten times as many take {long / short:.1f} times as long, 10,000 {long:.3f} s")
        hundred, ten = grow(100), grow(10)
        ranks = [step.importance.rank for step in hundred.steps]
        plain = ten.to_dict()
        measure(
            "filter of 100 steps",
            100,
            AGAIN,
            again(lambda: [rank for rank in ranks if rank >= 2]),
            again(lambda: hundred.filter("high")),
        )
        measure(
            "to_dict and JSON of 10 steps",
            200,
            AGAIN,
            again(lambda: json.dumps(plain)),
            again(lambda: json.dumps(ten.to_dict())),
        )
        measure_memory(folder, count)


if __name__ == "__main__":
    main()
