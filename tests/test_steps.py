from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.steps import step
from pytest_golden.trajectory.readers.golden_steps import read_golden_steps

if TYPE_CHECKING:
    from collections.abc import Iterator


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class HostileError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("GOLDEN_STEPS", str(tmp_path / "steps.jsonl"))
    return tmp_path / "steps.jsonl"  # type: ignore[return-value]


def test_nothing_happens_without_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOLDEN_STEPS", raising=False)
    monkeypatch.chdir(tmp_path)
    with step("load", rows=1) as running:
        running.note(rows=2)
    assert list(tmp_path.iterdir()) == []


def test_a_step_is_one_line_written_at_once(path: Path) -> None:
    step("load", rows=5, type="tool_call", duration_ms=3, id="mine")
    (line,) = path.read_text().splitlines()
    assert json.loads(line) == {
        "name": "load",
        "rows": 5,
        "type": "tool_call",
        "duration_ms": 3,
        "id": "mine",
        "timestamp": json.loads(line)["timestamp"],
    }
    (read,) = read_golden_steps(path).steps
    assert (read.content, read.type, read.metadata) == ("load", "tool_call", {"rows": 5})
    assert read.timestamp is not None


def test_a_block_adds_duration_error_and_children(path: Path) -> None:
    with step("outer") as outer:
        step("inner")
        with pytest.raises(KeyError), step("failing"):
            raise KeyError("x")
        outer.note(rows=7)
    step("after")
    steps = {read.content: read for read in read_golden_steps(path).steps}
    assert list(steps) == ["outer", "inner", "failing", "after"]
    assert steps["outer"].duration_ms is not None
    assert steps["outer"].metadata == {"rows": 7}
    assert steps["inner"].parent_step_id == steps["failing"].parent_step_id == outer.id
    assert (steps["failing"].importance, steps["failing"].metadata) == ("critical", {"error": "KeyError: 'x'"})
    assert steps["after"].parent_step_id is None


def test_values_of_any_kind_cost_no_other_field(path: Path) -> None:
    ring: list[Any] = []
    ring.append(ring)
    step("odd", ring=ring, keys={(1,): 2}, hostile=Hostile(), huge=10**5000, nan=float("nan"), path=Path("p"), rows=1)
    step(5)  # type: ignore[arg-type]
    step("numbered", id=5)
    with pytest.raises(HostileError), step("hostile error"):
        raise HostileError
    reading = read_golden_steps(path)
    assert reading.lost_count == 0
    odd, five, numbered, failing = reading.steps
    assert odd.metadata["rows"] == 1
    assert odd.metadata["ring"] == "[[...]]"
    assert odd.metadata["keys"] == "{(1,): 2}"
    assert "cannot be shown" in odd.metadata["hostile"]
    assert odd.metadata["nan"] == "NaN"
    assert (five.content, numbered.id, failing.metadata["error"]) == ("5", "5", "HostileError")


def test_large_fields_are_cut_and_counted(path: Path) -> None:
    step("x" * (3 * 1024 * 1024), rows=["y" * (2 * 1024 * 1024)], note="é" * 1024 * 1024)
    (read,) = read_golden_steps(path).steps
    assert len(read.content) == len(read.metadata["rows"]) == 1024 * 1024
    assert len(read.metadata["note"].encode()) == 1024 * 1024
    assert read.metadata["truncated_bytes"] >= 3 * 1024 * 1024


@pytest.mark.parametrize("place", ["absent/steps.jsonl", ".", "\0"])
def test_a_file_that_cannot_be_written_never_breaks_the_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr("os.environ", {"GOLDEN_STEPS": f"{tmp_path}/{place}"})
    with step("load"):
        step("inner")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_never_breaks_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLDEN_STEPS", "/dev/full")
    step("load")


def _write_many(number: int) -> None:
    for count in range(200):
        step(f"{number}", count=count, pad="x" * (count * 50))


def test_threads_and_processes_write_whole_lines(path: Path) -> None:
    threads = [threading.Thread(target=_write_many, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_write_many, range(4, 8)))
    reading = read_golden_steps(path)
    assert (len(reading.steps), reading.lost_count) == (1600, 0)


def test_importing_it_brings_in_no_dependency() -> None:
    code = "import sys, pytest_golden.steps; print([m for m in ('pytest', 'pydantic', 'yaml', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
