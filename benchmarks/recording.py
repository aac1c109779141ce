"""What remembering costs a gate: each result's record, the begin and end of a run, learning, and the start of a session.

Everything is measured in a new store and in one that earlier runs have filled, at 100 and at 3,000 projects. A record is
timed by itself, with one fdatasync of the same disk in turns, and inside real sessions. With `--whole` sessions are timed
from outside too, with and without a store, in turns; what one project costs there is the start.

Run: python benchmarks/recording.py [--earlier-runs N] [--whole] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from filled_store import fill_store
from overhead import gate_command, time_command
from side_by_side import seconds

from pytest_golden.clock import new_id, utc_now
from pytest_golden.gate.events import ResultJudged, RunBegun, RunEnded, Spool
from pytest_golden.gate.run_record import RunRecord
from pytest_golden.gateway.model import WriteSet
from pytest_golden.history.past_store import list_results
from pytest_golden.history.trends import WINDOW
from pytest_golden.learning.gate_learning import learn_from_results
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.storage.columns import to_ms
from pytest_golden.trajectory.model import Trajectory

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZES = (100, 3_000)
OUTPUT = ("loaded 1,000 orders of the day from the landing folder\n" * 20)[:1024]
SURROUNDINGS = {"python": "3.11.2", "distributions": {f"package-{number}": "1.0" for number in range(150)}}
#: A conftest that times what a session spends for its store, and in every other project one fdatasync in its place.
CLOCK = """
import json, os, sys, time
import pytest

times = {}


def timed(owner, name):
    inner = getattr(owner, name)

    def call(*args):
        started = time.perf_counter()
        try:
            return inner(*args)
        finally:
            times.setdefault(name, []).append(time.perf_counter() - started)

    setattr(owner, name, call)


def flush_in_turns(recorder, plain, file):
    keep, taken = recorder.keep, times.setdefault("fdatasync", [])

    def call(result):
        if len(times.get("keep", ())) <= len(taken):
            return keep(result)
        file.write(b"-" * 4096)
        file.flush()
        started = time.perf_counter()
        os.fdatasync(file.fileno())
        taken.append(time.perf_counter() - started)
        return plain(result)

    recorder.keep = call


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    manager = config.pluginmanager
    recorder = manager.get_plugin("golden_recorder")
    plain = recorder.keep
    timed(recorder, "keep")
    flush_in_turns(recorder, plain, open(config.rootpath / "flushed", "wb"))
    for name in ("begin", "_learn"):
        timed(manager.get_plugin("golden_recording"), name)
    timed(sys.modules["pytest_golden.gate.run_record"].RunRecord, "end")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    config.rootpath.joinpath("times.json").write_text(json.dumps(times))
"""


def make_result(name: str) -> GoldenProjectResult:
    """Make a result of three steps and a page of output."""
    trajectory = Trajectory.new(started_at=utc_now())
    for step in ("extract", "transform", "load"):
        trajectory = trajectory.add_step("action", f"{step} orders", timestamp=utc_now(), metadata={"rows": 1000})
    plain = trajectory.complete("success", completed_at=utc_now()).to_dict()
    steps = plain.pop("steps")
    return GoldenProjectResult(
        name,
        f"{name}/run.sh",
        ResultStatus.PASSED,
        exit_code=0,
        output_summary=OUTPUT,
        execution_time_seconds=0.5,
        steps_total=len(steps),
        steps=tuple(steps),
        trajectory=plain,
        command=("sh", f"{name}/run.sh"),
        write_set=WriteSet(created=("out/orders.csv",)),
        log_path=f".golden/logs/{name}.log",
    )


def begin(count: int) -> RunBegun:
    """Make the beginning of a run of `p0`, `p1` and so on."""
    return RunBegun(
        run_id=new_id("entry"),
        moment=to_ms(utc_now()),
        workspace_root="/work",
        manifest="golden_projects.yaml",
        command_line=("pytest", "--golden"),
        checkout={"commit": "c" * 40, "branch": "main", "dirty": False, "dirty_files": {}},
        surroundings=SURROUNDINGS,
        host="here",
        pid=os.getpid(),
        expectations={f"p{number}": new_id("expectation") for number in range(count)},
        facts={"mode": "improvement"},
    )


def judge(begun: RunBegun, name: str) -> ResultJudged:
    """Make the result of a project of the run."""
    project = GoldenProjectConfig(name, f"{name}/run.sh", command=("true",))
    return ResultJudged(
        run_id=begun.run_id,
        entry_id=new_id("entry"),
        signal_id=new_id("signal"),
        moment=to_ms(utc_now()),
        expectation_id=begun.expectations[name],
        fails=False,
        declaration=redact(project.to_dict()),
        result=make_result(name),
    )


def end(begun: RunBegun) -> RunEnded:
    """Make the end of the run."""
    return RunEnded(
        begun.run_id, to_ms(utc_now()), "success", "all passed", {"final_status": "passed"}, {"deselected": []}
    )


def measure_record(store: Path, count: int) -> None:
    """Record a whole run by itself and print what its parts took."""
    record = RunRecord(store, Spool(store.parent / "spool"), is_own_store=True, clock=utc_now, say=print, warn=sys.exit)
    begun = begin(count)
    events = [judge(begun, name) for name in begun.expectations]
    began = seconds(lambda: record.begin(begun))
    flushed, recorded = [], []
    with (store.parent / "flushed").open("wb") as file:
        for event in events:
            file.write(b"-" * 4096)
            file.flush()
            flushed.append(seconds(lambda: os.fdatasync(file.fileno())))
            recorded.append(seconds(lambda event=event: record.record(event)))  # type: ignore[misc]
    ended = seconds(lambda: record.end(end(begun)))
    own = [one - flush for one, flush in zip(recorded, flushed, strict=True)]
    print(
        f"  {count:5,} projects: {show(recorded)} a record, of which {show(flushed)} are one fdatasync, "
        f"{show(own)} are ours; begin {began * 1000:.0f} ms, end {ended * 1000:.0f} ms"
    )
    measure_reading(record, list(begun.expectations))
    record.close()


def measure_reading(record: RunRecord, names: Sequence[str]) -> None:
    """Print what is done once results are there: each row's streak, and learning."""
    store = record.store
    assert store is not None

    def look_up(name: str) -> None:
        with store.read() as connection:
            list_results(connection, name, WINDOW)

    streaks = [seconds(lambda name=name: look_up(name)) for name in names]  # type: ignore[misc]
    report = learn_from_results(store, budget_seconds=60)
    print(
        f"        {show(streaks)} a streak; learned from {report.learned:,} results in {report.seconds:.2f} s, "
        f"{report.seconds / max(report.learned, 1) * 1000:.2f} ms each"
    )


def measure_inside(root: Path, count: int) -> None:
    """Run a real session and print what it spent for its store."""
    command = gate_command(root, count, "copy")
    (root / "conftest.py").write_text(CLOCK)
    # The folder may lie below somebody else's rootdir.
    (root / "pytest.ini").write_text("[pytest]\n")
    time_command(command, root)
    times: dict[str, list[float]] = json.loads((root / "times.json").read_text())
    print(
        f"  {count:5,} projects in a session: {show(times['keep'])} a result, where one fdatasync is "
        f"{show(times['fdatasync'])}; begin {times['begin'][0] * 1000:.0f} ms, "
        f"end {times['end'][0] * 1000:.0f} ms, learning {times['_learn'][0]:.2f} s"
    )


def measure_whole(root: Path, count: int, rounds: int) -> None:
    """Time sessions with a store and without one in turns, and print the difference that each project makes."""
    command = gate_command(root, count, "copy")
    alone = [*command, "golden_projects.yaml::p0"]
    starts, wholes = [], []
    for _ in range(rounds):
        starts.append(time_command(alone, root) - time_command([*alone, "--golden-store=none"], root))
        wholes.append(time_command(command, root) - time_command([*command, "--golden-store=none"], root))
    start, whole = statistics.median(starts), statistics.median(wholes)
    print(
        f"  {count:5,} projects from outside: {(whole - start) / (count - 1) * 1000:.2f} ms a project, learning "
        f"included; start {start * 1000:.0f} ms"
    )


def show(times: Sequence[float]) -> str:
    """Return median and mean in milliseconds."""
    return f"{statistics.median(times) * 1000:.2f} ms (mean {statistics.fmean(times) * 1000:.2f})"


def copy_store(filled: Path | None, folder: Path) -> Path:
    """Put a copy of the filled store, if there is one, where a session in the folder looks for its store."""
    store = folder / ".golden" / "golden.db"
    store.parent.mkdir(parents=True)
    if filled is not None:
        shutil.copyfile(filled, store)
    return store


def measure_all(filled: Path | None, options: argparse.Namespace) -> None:
    """Measure everything in copies of one store."""
    for count in SIZES:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            measure_record(copy_store(filled, Path(folder).absolute()), count)
    for count in SIZES:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            copy_store(filled, Path(folder).absolute())
            measure_inside(Path(folder).absolute(), count)
    for count in SIZES if options.whole else ():
        with tempfile.TemporaryDirectory(dir=".") as folder:
            copy_store(filled, Path(folder).absolute())
            # A short session is over before a busy machine has evened out.
            measure_whole(Path(folder).absolute(), count, options.rounds * (1 if count == max(SIZES) else 5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--earlier-runs", type=int, default=10_000, help="how many runs fill the store beforehand")
    parser.add_argument("--whole", action="store_true", help="also time whole sessions with and without a store")
    parser.add_argument("--rounds", type=int, default=3, help="of whole sessions")
    options = parser.parse_args()
    print("a new store")
    measure_all(None, options)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        filled = Path(folder, "filled.db")
        took = seconds(lambda: fill_store(filled, options.earlier_runs, max(SIZES)))
        print(f"a store with {options.earlier_runs:,} earlier runs ({filled.stat().st_size >> 20} MiB, {took:.0f} s)")
        measure_all(filled, options)


if __name__ == "__main__":
    main()
