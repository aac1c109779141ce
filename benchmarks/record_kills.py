"""kill -9 of a gate, again and again, while it records: how often every result whose line was printed is in the store.

Three series: pytest alone, the controller of two xdist workers, and one of the workers, whose gate must go on by itself.

Run: python benchmarks/record_kills.py [COUNT] [SEED]
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil
from sqlalchemy import func, select

from pytest_golden.storage.schema import gate_results, gate_runs
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECTS = [f"p{number:02d}" for number in range(30)]
# Plug-ins of others would take most of the time.
OTHERS = ("cacheprovider", "randomly", "hypothesispytest", "anyio")
PYTEST = [sys.executable, "-m", "pytest", "--golden", *(word for name in OTHERS for word in ("-p", f"no:{name}"))]
RESULT_LINE = re.compile(r"(?:PASSED|FAILED|ERROR|SKIPPED) +(p\d\d)\b.*\n")
LONGEST_DELAY = 0.05


class Series(NamedTuple):
    """Gates of one form, and which process of one is killed; `goes_on` when the gate must end well all the same."""

    name: str
    options: tuple[str, ...]
    find_victim: Callable[[subprocess.Popen[str], Path], int]
    goes_on: bool = False


class Aftermath(NamedTuple):
    """What was found after one kill. `problems` is empty when all is as promised."""

    printed: int
    recorded: int
    problems: tuple[str, ...]


def make_workspace(root: Path) -> None:
    for name in PROJECTS:
        (root / name).mkdir()
        (root / name / "run.sh").write_text("sleep 0.01; echo done > out.txt\n")
    # The folder may lie below somebody else's rootdir.
    (root / "pytest.ini").write_text("[pytest]\n")
    projects = [{"name": name, "path": f"{name}/run.sh"} for name in PROJECTS]
    (root / "golden_projects.yaml").write_text(json.dumps({"version": 1, "golden_projects": projects}))


def run_and_kill(root: Path, series: Series, chance: random.Random) -> set[str]:
    """Kill a gate some moments after a random number of its lines, and give the projects whose lines were printed."""
    wanted, delay = chance.randint(0, len(PROJECTS)), chance.uniform(0, LONGEST_DELAY)
    gate = subprocess.Popen(
        [*PYTEST, *series.options], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert gate.stdout is not None
    printed: set[str] = set()
    said: deque[str] = deque(maxlen=30)
    if not wanted:
        # Somewhere between the start and the first result.
        delay = chance.uniform(0, 2.0)
    while len(printed) < wanted:
        line = gate.stdout.readline()
        if not line:
            told = f"a gate ended after {len(printed)} results, before it was killed"
            raise RuntimeError(f"{series.name}: {told}:\n{''.join(said)}")
        said.append(line)
        printed.update(RESULT_LINE.findall(line))
    time.sleep(delay)
    victim = series.find_victim(gate, root)
    if victim:
        os.kill(victim, signal.SIGKILL)
    for line in gate.stdout:
        printed.update(RESULT_LINE.findall(line))
    gate.wait()
    return printed


def find_worker(_: subprocess.Popen[str], root: Path) -> int:
    """Return the id of one of the workers in a workspace, 0 when there is none at this moment."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            line = " ".join(process.cmdline())
            # How execnet starts an interpreter, which has changed.
            if ("execnet" in line or "stdin.readline()" in line) and process.cwd() == str(root.resolve()):
                return process.pid
    return 0


def list_runs(root: Path) -> dict[str, bool]:
    """Return the recorded runs, oldest first, and whether each has an end."""
    path = root / ".golden" / "golden.db"
    if not path.exists():
        return {}
    with Store.open(path) as store, store.read() as connection:
        rows = connection.execute(select(gate_runs.c.entry_id, gate_runs.c.finished_at).order_by(gate_runs.c.number))
        return {row.entry_id: row.finished_at is not None for row in rows}


def count_results(root: Path, run_id: str) -> dict[str, int]:
    """Return how many results each project has in a run."""
    with Store.open(root / ".golden" / "golden.db") as store, store.read() as connection:
        counted = select(gate_results.c.project, func.count().label("number")).where(gate_results.c.run_id == run_id)
        return {row.project: row.number for row in connection.execute(counted.group_by(gate_results.c.project))}


def kill_once(root: Path, series: Series, chance: random.Random) -> Aftermath:
    """Kill one gate, start another one, and look whether the promises hold."""
    before = list_runs(root)
    printed = run_and_kill(root, series, chance)
    new = [(run, has_ended) for run, has_ended in list_runs(root).items() if run not in before]
    run_id, has_ended = new[-1] if new else ("", False)
    results = count_results(root, run_id)
    problems = [f"{name} was printed and is not in the store" for name in sorted(printed - results.keys())]
    problems += [f"{name} is there {number} times" for name, number in results.items() if number != 1]
    if series.goes_on and not (has_ended and len(printed) == len(PROJECTS)):
        problems.append(f"the gate did not go on: {len(printed)} lines were printed")
    said = run_next(root)
    note = f"was cut off after {len(results)} of {len(PROJECTS)} projects"
    if (note in said) != (bool(new) and not has_ended):
        problems.append(f"expected of the next gate {'nothing' if has_ended else note!r}:\n{said}")
    if not all(list_runs(root).values()):
        problems.append("a run without an end is left")
    checked = subprocess.run(
        [sys.executable, "-m", "pytest_golden", "store", "check"], cwd=root, capture_output=True, text=True, check=False
    )
    if checked.returncode:
        problems.append(checked.stdout + checked.stderr)
    return Aftermath(len(printed), len(results), tuple(problems))


def run_next(root: Path) -> str:
    done = subprocess.run([*PYTEST, "-k", PROJECTS[0]], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def run_series(series: Series, count: int, chance: random.Random) -> bool:
    """Kill `count` gates of a series, print what was found, and tell whether all was well."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        root = Path(name)
        make_workspace(root)
        found = [kill_once(root, series, chance) for _ in range(count)]
    for problem in (problem for one in found for problem in one.problems):
        print(f"{series.name}: {problem}")
    clean = sum(not one.problems for one in found)
    printed, recorded = sum(one.printed for one in found), sum(one.recorded for one in found)
    print(
        f"{series.name}: {clean} of {count} kills lost nothing ({printed} lines printed, {recorded} results recorded)"
    )
    return clean == count


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)
    every_series = (
        Series("pytest alone", (), lambda gate, _: gate.pid),
        Series("controller of -n 2", ("-n", "2"), lambda gate, _: gate.pid),
        Series("worker of -n 2", ("-n", "2"), find_worker, goes_on=True),
    )
    outcomes = [run_series(series, count, chance) for series in every_series]
    if not all(outcomes):
        sys.exit(1)


if __name__ == "__main__":
    main()
