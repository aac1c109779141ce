"""What the number of golden projects costs: collecting them, running trivial ones, recording their results."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from collection import collect, write_manifest
from recording import begin, end, judge
from side_by_side import seconds

from pytest_golden.clock import utc_now
from pytest_golden.gate.events import Spool
from pytest_golden.gate.run_record import RunRecord
from scale.model import Floor, Point, Study, make_point, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
_MANY = 1_000


@contextmanager
def _collecting(folder: Path) -> Iterator[Callable[[int], Mapping[str, Point]]]:
    (folder / "pytest.ini").write_text("[pytest]\n")

    def measure_size(size: int) -> Mapping[str, Point]:
        write_manifest(folder, size)
        (folder / "test_bare.py").write_text("".join(f"def test_{number}(): pass\n" for number in range(size)))
        bare = partial(collect, [*_PYTEST, "--collect-only", "test_bare.py"], folder)
        ours = partial(collect, [*_PYTEST, "--collect-only", "--golden", "golden_projects.yaml"], folder)
        return {"collect": measure(size, 3 if size > _MANY else 5, bare, ours)}

    yield measure_size


@contextmanager
def _running(folder: Path) -> Iterator[Callable[[int], Mapping[str, Point]]]:
    (folder / "pytest.ini").write_text("[pytest]\n")

    def measure_size(size: int) -> Mapping[str, Point]:
        write_manifest(folder, size)
        scripts = [folder / f"p{number}" / "run.sh" for number in range(size)]
        for script in scripts:
            script.parent.mkdir(exist_ok=True)
            script.write_text("true\n")

        def bare() -> None:
            for script in scripts:
                subprocess.run(["sh", str(script)], cwd=script.parent, capture_output=True, check=True)

        def ours() -> None:
            subprocess.run([*_PYTEST, "--golden"], cwd=folder, stdout=subprocess.DEVNULL, check=True)

        return {"gate": measure(size, 1 if size >= _MANY else 3, bare, ours)}

    yield measure_size


@contextmanager
def _recording(folder: Path) -> Iterator[Callable[[int], Mapping[str, Point]]]:
    def measure_size(size: int) -> Mapping[str, Point]:
        record = RunRecord(
            folder / "golden.db", Spool(folder / "spool"), is_own_store=True, clock=utc_now, say=print, warn=sys.exit
        )
        begun = begin(size)
        whole = seconds(lambda: record.begin(begun))
        flushed = 0.0
        with (folder / "flushed").open("wb") as file:
            for event in [judge(begun, name) for name in begun.expectations]:
                file.write(b"-" * 4096)
                file.flush()
                flushed += seconds(lambda: os.fdatasync(file.fileno()))
                whole += seconds(lambda event=event: record.record(event))  # type: ignore[misc]
        whole += seconds(lambda: record.end(end(begun)))
        record.close()
        return {"record": make_point(size, [(flushed, whole)])}

    yield measure_size


def list_studies() -> list[Study]:
    """Return the studies of this module."""
    return [
        Study(
            "projects, collected",
            "projects",
            (10, 100, 1_000, 3_000, 10_000),
            {"collect": Floor("bare pytest collecting as many empty tests")},
            _collecting,
        ),
        Study(
            "projects, run",
            "projects",
            (10, 30, 100, 300, 1_000, 3_000, 10_000),
            {"gate": Floor("a plain subprocess for each, without view, seal or record", 1)},
            _running,
        ),
        Study(
            "projects, recorded",
            "projects",
            (10, 100, 1_000, 3_000, 10_000),
            {"record": Floor("a bare fdatasync for each", 1)},
            _recording,
        ),
    ]
