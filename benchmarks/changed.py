"""What it costs to find out which of many projects are unchanged, and how long they usually take.

python benchmarks/changed.py [PROJECTS]
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pytest_golden.clock import new_id
from pytest_golden.gate.events import ResultJudged, RunBegun
from pytest_golden.gate.store import record_event
from pytest_golden.history.checkout import read_checkout
from pytest_golden.history.past_store import ENVIRONMENT, read_trends
from pytest_golden.history.run_environment import describe_run_environment, describe_surroundings
from pytest_golden.history.unchanged import Question, select_changed
from pytest_golden.manifest.reader import parse_manifest
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from pytest_golden.manifest.model import Manifest

RUNS = 5


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=b", "-c", "user.email=b@example.invalid", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def make(folder: Path, count: int) -> Manifest:
    for number in range(count):
        (folder / f"p{number}").mkdir()
        (folder / f"p{number}" / "etl.py").write_text(f"print({number})\n")
    entries = [
        f'{{name: p{number}, path: p{number}/etl.py, max_slowdown: 2, depends_on: ["lib/**"]}}'
        for number in range(count)
    ]
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitignore").write_text(".golden/\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "all")
    return parse_manifest(f"golden_projects: [{', '.join(entries)}]", "golden_projects.yaml", folder)


def record(store: Store, folder: Path, manifest: Manifest) -> None:
    checkout = read_checkout(folder)
    names = [project.name for project in manifest.projects]
    begun = RunBegun(
        run_id=new_id("entry"),
        moment=0,
        workspace_root=str(folder),
        manifest="golden_projects.yaml",
        command_line=(),
        checkout=checkout.to_dict(),
        surroundings=describe_surroundings(manifest.projects, folder),
        host="here",
        pid=1,
        expectations={name: new_id("expectation") for name in names},
        facts={ENVIRONMENT: describe_run_environment(manifest.projects, folder, None)},
    )
    with store.write() as connection:
        record_event(connection, begun)
        for project in manifest.projects:
            result = GoldenProjectResult(project.name, project.path, ResultStatus.PASSED, execution_time_seconds=1.0)
            judged = ResultJudged(
                run_id=begun.run_id,
                entry_id=new_id("entry"),
                signal_id=new_id("signal"),
                moment=1,
                expectation_id=begun.expectations[project.name],
                fails=False,
                declaration=project.to_dict(),
                result=replace(result),
            )
            record_event(connection, judged)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with TemporaryDirectory() as place:
        folder = Path(place).resolve()
        manifest = make(folder, count)
        with Store.open(folder / ".golden" / "golden.db") as store:
            for _ in range(RUNS):
                record(store, folder, manifest)
            (folder / "p0" / "etl.py").write_text("print()\n")
            began = time.perf_counter()
            selection = select_changed(Question("main", manifest, dict), store)
            took = time.perf_counter() - began
            print(f"{len(selection.left_out)} of {count} left out in {took * 1000:.0f} ms")
            facts = describe_run_environment(manifest.projects, folder, None)
            for asked in (1, count):
                names = (project.name for project in manifest.projects[:asked])
                began = time.perf_counter()
                with store.read() as connection:
                    trends = read_trends(connection, dict.fromkeys(names), facts)
                print(f"medians of {len(trends)} projects in {(time.perf_counter() - began) * 1000:.1f} ms")


if __name__ == "__main__":
    main()
