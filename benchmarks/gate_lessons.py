"""What learning costs at the end of a gate: nothing new, and a hundred projects that were fixed together.

A store is filled by the gate's own recording, in a repository with real commits; learning alone is measured.

    python benchmarks/gate_lessons.py [PROJECTS]
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from pytest_golden.clock import new_id
from pytest_golden.gate.events import ResultJudged, RunBegun
from pytest_golden.gate.known import find_known_lessons, foresee
from pytest_golden.gate.store import record_event
from pytest_golden.gate.teaching import GateLearner, find_budget
from pytest_golden.history.checkout import read_checkout
from pytest_golden.history.run_environment import describe_surroundings
from pytest_golden.regression.model import GoldenProjectResult, Reason, ResultStatus
from pytest_golden.storage.store import Store

ROUNDS = 20


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=b", "-c", "user.email=b@example.invalid", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def run_gate(store: Store, folder: Path, names: list[str], status: ResultStatus, moment: int) -> list[ResultJudged]:
    begun = RunBegun(
        run_id=new_id("entry"),
        moment=moment,
        workspace_root=str(folder),
        manifest="golden_projects.yaml",
        command_line=("pytest", "--golden"),
        checkout=read_checkout(folder).to_dict(),
        surroundings=describe_surroundings([], folder),
        host="here",
        pid=1,
        expectations={name: new_id("expectation") for name in names},
        facts={"learning": "on"},
    )
    told = [judge(begun, name, status, number) for number, name in enumerate(names)]
    with store.write() as connection:
        record_event(connection, begun)
        for result in told:
            record_event(connection, result)
    return told


def judge(begun: RunBegun, name: str, status: ResultStatus, number: int) -> ResultJudged:
    message = f"exit code 1, expected 0: {name}: no such column: 'amount'"
    result = GoldenProjectResult(name, f"{name}/load.py", status, exit_code=0, execution_time_seconds=1.0)
    if status is not ResultStatus.PASSED:
        result = replace(result, exit_code=1, reasons=(Reason("exit_code", message),), error_message=message)
    return ResultJudged(
        run_id=begun.run_id,
        entry_id=new_id("entry"),
        signal_id=new_id("signal"),
        moment=begun.moment + number,
        expectation_id=begun.expectations[name],
        fails=status is not ResultStatus.PASSED,
        declaration={"name": name, "path": f"{name}/load.py"},
        result=result,
    )


def commit(folder: Path, names: list[str], subject: str) -> None:
    for name in names:
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "load.py").write_text(subject)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", subject)


def learn(store: Store, folder: Path, budget_seconds: float = 2.0) -> tuple[float, str]:
    started = time.perf_counter()
    done = GateLearner(store, folder, folder / "golden_projects.yaml").learn(budget_seconds)
    took = time.perf_counter() - started
    return took, f"{done.results.learned} results, {len(done.verdicts)} lessons, {done.breaks} breaks, {done.left} left"


def main(count: int) -> None:
    names = [f"project_{number}" for number in range(count)]
    with TemporaryDirectory(prefix="golden-lessons-") as place:
        folder = Path(place, "work")
        folder.mkdir()
        git(folder, "init", "-q")
        moment = int(time.time() * 1000)
        with Store.open(Path(place, "golden.db")) as store:
            for number, (subject, status) in enumerate(
                (
                    ("it works", ResultStatus.PASSED),
                    ("prices now", ResultStatus.FAILED),
                    ("total again", ResultStatus.PASSED),
                )
            ):
                commit(folder, names, subject)
                told = run_gate(store, folder, names, status, moment + number * 60_000)
                # As long as projects of a second each would take.
                budget = find_budget(count)
                took, what = learn(store, folder, budget)
                print(f"{count} projects, {status}: {took * 1000:7.0f} ms of {budget * 1000:.0f}  ({what})")
                while " 0 left" not in what:
                    took, what = learn(store, folder)
                    print(f"  the next session: {took * 1000:7.0f} ms  ({what})")
            took = median(learn(store, folder)[0] for _ in range(ROUNDS))
            print(f"nothing new:              {took * 1000:7.1f} ms")
            commit(folder, names, "other prices")
            told = run_gate(store, folder, names[:ROUNDS], ResultStatus.FAILED, moment + 240_000)
            times = []
            for one in told:
                started = time.perf_counter()
                find_known_lessons(store, one.result, one.entry_id, keeps=True)
                times.append(time.perf_counter() - started)
            print(f"recall at a failure:      {median(times) * 1000:7.1f} ms")
            took, what = learn(store, folder)
            print(f"learning from {len(told)} failures: {took * 1000:5.0f} ms  ({what})")
            (folder / names[0] / "load.py").write_text("an edit")
            started = time.perf_counter()
            foreseen = foresee(store, folder, "HEAD")
            print(
                f"recall before the fact:   {(time.perf_counter() - started) * 1000:7.1f} ms  ({len(foreseen.projects)} project)"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
