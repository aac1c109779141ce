"""What the number of steps costs: writing a trajectory, reading it back, and the page that draws it as a waterfall."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from bare_site import app as bare_app
from recording import begin, judge, make_result
from side_by_side import seconds
from web_pages import ask

from pytest_golden.gate.store import record_event
from pytest_golden.storage.store import Store
from pytest_golden.trajectory.jsonlines import iter_steps
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.recorder import TrajectoryRecorder
from pytest_golden.web.access import PublicPlace
from pytest_golden.web.app import make_app
from pytest_golden.web.services import ServeOptions, Services
from scale.model import Floor, Point, Study, make_point, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_MOST_ROUNDS_STEPS = 10_000


class StepFiles:
    """Files of steps, of ours and of bare lines."""

    def __init__(self, folder: Path) -> None:
        self._ours, self._raw = folder / "ours.jsonl", folder / "raw.jsonl"

    def measure(self, size: int) -> Mapping[str, Point]:
        """Write and read so many steps."""
        rounds = 5 if size <= _MOST_ROUNDS_STEPS else 2
        return {
            "write": measure(size, rounds, lambda: self._write_bare(size), lambda: self._write(size)),
            "read": measure(size, rounds, self._read_bare, self._read),
        }

    def _write(self, size: int) -> None:
        self._ours.unlink(missing_ok=True)
        recorder = TrajectoryRecorder(self._ours)
        for number in range(size):
            recorder.step("action", f"step {number}", metadata={"row": number})
        recorder.complete()

    def _write_bare(self, size: int) -> None:
        step = {"record": "step", "type": "action", "duration_ms": None, "context": None, "importance": "medium"}
        with self._raw.open("wb", buffering=0) as file:
            for number in range(size):
                line = {**step, "id": f"step_{number:026}", "content": f"step {number}", "metadata": {"row": number}}
                file.write(f"{json.dumps(line)}\n".encode())

    def _read(self) -> None:
        for _ in iter_steps(self._ours):
            pass

    def _read_bare(self) -> None:
        with self._ours.open(encoding="utf-8") as file:
            for line in file:
                json.loads(line)


@contextmanager
def _in_files(folder: Path) -> Iterator[Callable[[int], Mapping[str, Point]]]:
    yield StepFiles(folder).measure


@contextmanager
def _on_page(folder: Path) -> Iterator[Callable[[int], Mapping[str, Point]]]:
    manifest = folder / "golden_projects.yaml"
    manifest.write_text("version: 1\ngolden_projects:\n  - {name: p0, path: run.sh}\n")
    with Store.open(folder / "golden.db") as store:
        app = make_app(ServeOptions(manifest, PublicPlace.parse(None, "127.0.0.1")), Services.on(store, manifest))

        def measure_size(size: int) -> Mapping[str, Point]:
            trajectory = Trajectory.new()
            for number in range(size):
                trajectory = trajectory.add_step("action", f"step {number}", duration_ms=1.0, metadata={"row": number})
            plain = trajectory.complete("success").to_dict()
            steps = tuple(plain.pop("steps"))
            begun = begin(1)
            result = replace(make_result("p0"), steps_total=size, steps=steps, trajectory=plain)
            judged = replace(judge(begun, "p0"), result=result)
            with store.write() as connection:
                record_event(connection, begun)
                record_event(connection, judged)
            pairs = [_ask_both(app, f"/results/{judged.entry_id}") for _ in range(6)]
            return {"waterfall page": make_point(size, pairs[1:])}

        yield measure_size


def _ask_both(app: object, address: str) -> tuple[float, float]:
    def ours() -> None:
        answer = asyncio.run(ask(app, address))  # type: ignore[arg-type]
        if answer.status != 200:
            sys.exit(f"{address} answers {answer.status}")

    return seconds(lambda: asyncio.run(ask(bare_app, "/"))), seconds(ours)


def list_studies() -> list[Study]:
    """Return the studies of this module."""
    return [
        Study(
            "steps in a file",
            "steps",
            (10, 100, 1_000, 10_000, 100_000, 1_000_000),
            {"write": Floor("the same lines by json.dumps and write", 1), "read": Floor("json.loads of each line", 1)},
            _in_files,
        ),
        Study(
            "steps on a page",
            "steps",
            (10, 100, 1_000, 10_000, 100_000),
            {"waterfall page": Floor("a bare Starlette page", 0)},
            _on_page,
        ),
    ]
