"""What logging agents' outcomes costs, each beside its floor.

Many at once beside one transaction of bare SQLAlchemy Core with the same rows; the plan by rules; and a memory with its
words in the index beside the bare insert of both.

Run: python benchmarks/learning_logger.py [ROUNDS]
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from side_by_side import in_turns, percentile, seconds
from sqlalchemy import insert
from store_writes import INDEX_MEMORY, open_bare

from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.outcome_logger import OutcomeTrajectoryLogger
from pytest_golden.learning.outcomes import Report, extract_plan_by_rules, make_outcome
from pytest_golden.storage.schema import memories

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine

    from pytest_golden.learning.model import ProductionOutcome

AT_ONCE = 100
PATH = ("extract", "validate", "transform", "load")
INSERT = insert(memories).returning(memories.c.number)


def report(number: int) -> Report:
    result = {"status": "success", "rows": number, "written": ["orders.parquet", "rejected.parquet"]}
    task = f"load the orders of day {number}"
    return Report(task, result, True, PATH, f"agent {number % 5}", 1.5, None, {"day": number, "source": "shop"})


def write_bare(engine: Engine, outcomes: list[ProductionOutcome]) -> None:
    """Insert outcomes and their words in one transaction, without any look at what is in them."""
    with engine.begin() as connection:
        for outcome in outcomes:
            row = {
                "namespace": "outcomes/bench/",
                "key": outcome.outcome_id,
                "version": 1,
                "is_newest": True,
                "value": outcome.to_dict(),
                "tags": ["production", "outcome", "success"],
                "words": outcome.task_description,
                "created_at": 1,
                "updated_at": 1,
            }
            number = connection.execute(INSERT, row).scalar_one()
            connection.exec_driver_sql(INDEX_MEMORY, (number, row["namespace"], row["words"]))


def make_many() -> list[ProductionOutcome]:
    return [make_outcome(report(number)) for number in range(AT_ONCE)]


def measure_many(memory_store: MemoryStore, engine: Engine, rounds: int) -> None:
    logger = OutcomeTrajectoryLogger(memory_store)
    ours: list[float] = []
    floors: list[float] = []
    ratios: list[float] = []

    async def log_many() -> None:
        reports = [report(number) for number in range(AT_ONCE)]
        started = time.perf_counter()
        await asyncio.gather(
            *(
                logger.log_outcome(
                    one.task,
                    one.result,
                    one.success,
                    one.execution_path,
                    one.agent_name,
                    one.execution_time,
                    context=one.context,
                )
                for one in reports
            )
        )
        ours.append(time.perf_counter() - started)
        # Plans and examples of one round are not part of the next one.
        await logger.flush()

    async def take_turns() -> None:
        for _ in range(rounds):
            outcomes = make_many()
            floors.append(seconds(lambda outcomes=outcomes: write_bare(engine, outcomes)))  # type: ignore[misc]
            await log_many()
            ratios.append(ours[-1] / floors[-1])
        await logger.aclose()

    asyncio.run(take_turns())
    told = f"{AT_ONCE} concurrent log_outcome, all durable (SQLite, FULL): {statistics.median(ours) * 1000:.1f} ms"
    print(f"{told} (p95 {percentile(ours, 95) * 1000:.1f}, promised 100)")
    floor = statistics.median(floors) * 1000
    print(f"  one bare transaction of the same rows: {floor:.1f} ms; ours/floor {statistics.median(ratios):.2f}")
    print(f"  kept: {logger.get_statistics()}")


def measure_rules() -> None:
    outcome = make_outcome(report(1))

    def extract_many() -> None:
        for _ in range(100):
            extract_plan_by_rules(outcome)

    each = statistics.median(seconds(extract_many) for _ in range(50)) / 100
    print(f"a plan by rules: {each * 1000:.4f} ms (promised 0.1)")


def measure_indexing(memory_store: MemoryStore, engine: Engine, rounds: int) -> None:
    outcomes = [make_outcome(report(number)) for number in range(2 * rounds)]
    ours: list[float] = []

    def save(timed: Callable[[], object]) -> Callable[[], None]:
        return lambda: ours.append(seconds(timed))

    def save_one() -> None:
        outcome = outcomes.pop()
        memory_store.save_memory(("outcomes", "bench"), outcome.outcome_id, outcome.to_dict(), tags=("production",))

    floor, median, ratio = in_turns(lambda: write_bare(engine, [outcomes.pop()]), save(save_one), rounds)
    told = f"a memory with its words: p95 {percentile(ours, 95) * 1000:.2f} ms (promised 5), median {median * 1000:.2f}"
    print(f"{told}; bare {floor * 1000:.2f}; ours/floor {ratio:.2f}")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory(dir=".") as folder, MemoryStore.open(Path(folder, "store.db")) as memory_store:
        engine = open_bare(Path(folder, "bare.db"))
        measure_many(memory_store, engine, rounds)
        measure_rules()
        measure_indexing(memory_store, engine, rounds * 10)
        engine.dispose()


if __name__ == "__main__":
    main()
