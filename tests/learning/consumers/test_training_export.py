from __future__ import annotations

import asyncio
import json
import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import ExtractedPlan, ProductionOutcome
from pytest_golden.learning.outcome_logger import OutcomeTrajectoryLogger
from pytest_golden.learning.training import export_training_examples

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.storage.store import Store


@pytest.fixture
def outcomes(store: Store) -> list[ProductionOutcome]:
    async def log() -> list[ProductionOutcome]:
        async with OutcomeTrajectoryLogger(store) as logger:
            return [
                await logger.log_outcome(f"Bestände {number}", number, True, ["a", "b"], f"agent {number % 2}")
                for number in range(120)
            ]

    return asyncio.run(log())


def test_examples_are_written_one_a_line(store: Store, outcomes: list[ProductionOutcome], tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_text("of yesterday")
    assert export_training_examples(MemoryStore(store), path) == 120
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert {line["outcome"]["outcome_id"] for line in lines} == {outcome.outcome_id for outcome in outcomes}
    for line in lines:
        outcome, plan = ProductionOutcome.from_dict(line["outcome"]), ExtractedPlan.from_dict(line["plan"])
        assert line["training_id"] == f"training_{plan.plan_id}"
        assert plan.outcome_id == outcome.outcome_id
        assert outcome in outcomes
    assert path.read_bytes().isascii()
    assert list(tmp_path.glob(".training-*")) == []


def test_examples_of_one_agent_are_written_alone(
    store: Store, outcomes: list[ProductionOutcome], tmp_path: Path
) -> None:
    path = tmp_path / "examples.jsonl"
    assert export_training_examples(store, path, agent="agent 1") == 60
    assert {json.loads(line)["outcome"]["agent_name"] for line in path.read_text().splitlines()} == {"agent 1"}
    assert export_training_examples(store, str(path), agent="agent") == 0
    assert path.read_bytes() == b""
    with pytest.raises(ValueError, match="agent"):
        export_training_examples(store, path, agent="")


def test_only_the_newest_version_is_written(store: Store, tmp_path: Path) -> None:
    memories = MemoryStore(store)
    for number in range(3):
        memories.save_memory(("training", "etl"), "training_1", {"number": number})
    memories.save_memory(("trainings", "etl"), "other", {"number": 9})
    assert export_training_examples(store, tmp_path / "examples.jsonl") == 1
    assert json.loads((tmp_path / "examples.jsonl").read_text()) == {"number": 2}


def test_a_file_that_cannot_be_written_is_one_sentence(store: Store, tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "folder.jsonl", tmp_path):
        with pytest.raises(GoldenError, match=r"cannot be written .* name a file in a folder"):
            export_training_examples(store, path)
    assert list(tmp_path.glob(".training-*")) == []


def test_memory_stays_flat(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path / "golden.db") as memories:
        for start in range(0, 600, 100):
            memories.save_memories(
                {"namespace": ("training", "etl"), "key": f"{number}", "value": {"text": "x" * 100_000}}
                for number in range(start, start + 100)
            )
        tracemalloc.start()
        assert export_training_examples(memories, tmp_path / "examples.jsonl") == 600
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 30_000_000


def test_link_is_followed_and_the_store_is_never_replaced(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path / "golden.db") as memories:
        memories.save_memory(("training", "etl"), "training_1", {"number": 1})
        link, target = tmp_path / "link.jsonl", tmp_path / "target.jsonl"
        link.symlink_to(target)
        assert export_training_examples(memories, link) == 1
        assert link.is_symlink()
        assert target.read_text() == '{"number": 1}\n'
        with pytest.raises(GoldenError, match="is the store itself; name another file"):
            export_training_examples(memories, tmp_path / "golden.db")
        assert memories.list_keys(("training", "etl")) == ("training_1",)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes that have a name")
def test_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with MemoryStore.open(tmp_path / "golden.db") as memories, ThreadPoolExecutor() as threads:
        memories.save_memory(("training", "etl"), "training_1", {"number": 1})
        read = threads.submit(pipe.read_text)
        assert export_training_examples(memories, pipe) == 1
        assert read.result(30) == '{"number": 1}\n'
        assert pipe.is_fifo()
