from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import ProductionOutcome
from pytest_golden.learning.outcome_logger import OutcomeTrajectoryLogger, agent_run, current_run
from pytest_golden.storage.store import Store
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def memories(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path / "golden.db") as opened:
        yield opened


@pytest.fixture
def logger(memories: MemoryStore) -> OutcomeTrajectoryLogger:
    return OutcomeTrajectoryLogger(memories)


def only_outcome(memories: MemoryStore, agent: str = "etl") -> ProductionOutcome:
    (key,) = memories.list_keys(("outcomes", agent))
    found = memories.get(("outcomes", agent), key)
    assert found is not None
    return ProductionOutcome.from_dict(found.value)


def test_block_is_logged_when_it_ends(memories: MemoryStore, logger: OutcomeTrajectoryLogger) -> None:
    with agent_run(logger, task="load", agent_name="etl") as run:
        run.step("extract")
        run.step("load")
        run.result = {"rows": 3}
        run.context["day"] = 1
        before = run.outcome
    outcome = only_outcome(memories)
    assert before is None
    assert outcome == run.outcome
    assert (outcome.success, outcome.execution_path, outcome.result) == (True, ("extract", "load"), {"rows": 3})
    assert outcome.context == {"day": 1}
    assert outcome.execution_time is not None
    assert 0 <= outcome.execution_time < 60
    asyncio.run(logger.aclose())
    assert logger.get_statistics()["training_examples_stored"] == 1


def test_exception_is_a_failure_and_goes_on(memories: MemoryStore, logger: OutcomeTrajectoryLogger) -> None:
    def work() -> None:
        with agent_run(logger, task="load", agent_name="etl") as run:
            run.step("extract")
            raise KeyError("amount")

    with pytest.raises(KeyError):
        work()
    outcome = only_outcome(memories)
    assert (outcome.success, outcome.error_message) == (False, "KeyError: 'amount'")
    assert outcome.execution_path == ("extract",)


@pytest.mark.parametrize(("code", "success"), [(0, True), (None, True), (2, False)])
def test_leaving_the_program_succeeds_by_its_code(
    memories: MemoryStore, logger: OutcomeTrajectoryLogger, code: int | None, success: bool
) -> None:
    with pytest.raises(SystemExit), agent_run(logger, task="load", agent_name="etl"):
        raise SystemExit(code)
    assert only_outcome(memories).success is success


async def test_asynchronous_block_is_logged_when_it_ends(
    memories: MemoryStore, logger: OutcomeTrajectoryLogger
) -> None:
    async with agent_run(logger, task="load", agent_name="etl") as run:
        run.step("extract")
    assert only_outcome(memories) == run.outcome
    with pytest.raises(RuntimeError, match="no"):
        async with agent_run(logger, task="load", agent_name="other"):
            raise RuntimeError("no")
    assert only_outcome(memories, "other").error_message == "RuntimeError: no"


async def test_cancelled_run_is_logged_as_a_failure(memories: MemoryStore, logger: OutcomeTrajectoryLogger) -> None:
    async def work() -> None:
        async with agent_run(logger, task="load", agent_name="etl"):
            await asyncio.sleep(600)

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await logger.aclose()
    assert only_outcome(memories).error_message == "CancelledError"


async def test_plain_block_in_an_event_loop_does_not_hold_it(tmp_path: Path) -> None:
    Store.open(tmp_path / "busy.db").close()
    with (
        closing(sqlite3.connect(tmp_path / "busy.db", isolation_level=None)) as other,
        Store.open(tmp_path / "busy.db", busy_seconds=PATIENCE_SECONDS) as store,
    ):
        other.execute("BEGIN IMMEDIATE")
        logger = OutcomeTrajectoryLogger(store)
        with agent_run(logger, task="load", agent_name="etl"):
            pass
        other.execute("ROLLBACK")
        await logger.aclose()
    assert logger.get_statistics()["outcomes_logged"] == 1


def test_decorated_function_is_logged_at_each_call(memories: MemoryStore, logger: OutcomeTrajectoryLogger) -> None:
    @agent_run(logger, task="load", agent_name="etl")
    def load(rows: int) -> int:
        """Load."""
        run = current_run()
        assert run is not None
        run.step(f"extract {rows}")
        return rows

    assert (load.__name__, load.__doc__) == ("load", "Load.")
    assert [load(1), load(2)] == [1, 2]
    outcomes = [memories.get(("outcomes", "etl"), key) for key in memories.list_keys(("outcomes", "etl"))]
    assert sorted((one.value["result"], *one.value["execution_path"]) for one in outcomes if one is not None) == [
        (1, "extract 1"),
        (2, "extract 2"),
    ]
    assert current_run() is None


async def test_decorated_coroutines_have_each_a_run_of_their_own(
    memories: MemoryStore, logger: OutcomeTrajectoryLogger
) -> None:
    @agent_run(logger, task="load", agent_name="etl")
    async def load(name: str) -> None:
        run = current_run()
        assert run is not None
        run.step(name)
        await asyncio.sleep(0)
        assert current_run() is run
        run.result = name
        if name == "b":
            raise ValueError(name)

    given = await asyncio.gather(*(load(name) for name in "abc"), return_exceptions=True)
    assert [type(one) for one in given] == [type(None), ValueError, type(None)]
    found = [memories.get(("outcomes", "etl"), key) for key in memories.list_keys(("outcomes", "etl"))]
    told = sorted(
        (one.value["execution_path"][0], one.value["result"], one.value["success"]) for one in found if one is not None
    )
    assert told == [("a", "a", True), ("b", "b", False), ("c", "c", True)]


def test_generators_are_refused(logger: OutcomeTrajectoryLogger) -> None:
    def generate() -> Iterator[int]:
        yield 1

    async def generate_slowly() -> Any:
        yield 1

    for work in (generate, generate_slowly):
        with pytest.raises(TypeError, match="with-block"):
            agent_run(logger, task="load", agent_name="etl")(work)


def test_wrong_names_are_refused_at_once(logger: OutcomeTrajectoryLogger) -> None:
    with pytest.raises(ValueError, match="agent_name"):
        agent_run(logger, task="load", agent_name=" ")
    with pytest.raises(ValueError, match="task"):
        agent_run(logger, task=None, agent_name="etl")  # type: ignore[arg-type]


def test_closed_logger_is_refused_before_the_work(logger: OutcomeTrajectoryLogger) -> None:
    asyncio.run(logger.aclose())
    with pytest.raises(GoldenError, match="closed"), agent_run(logger, task="load", agent_name="etl"):
        raise AssertionError("the work has begun")


async def test_what_hinders_the_logging_costs_a_warning(
    logger: OutcomeTrajectoryLogger, caplog: pytest.LogCaptureFixture
) -> None:
    async with agent_run(logger, task="load", agent_name="etl") as run:
        await logger.aclose()
    assert run.outcome is None
    assert "cannot be logged: this logger is closed" in caplog.text


def test_steps_and_results_of_any_kind_are_taken(memories: MemoryStore, logger: OutcomeTrajectoryLogger) -> None:
    with agent_run(logger, task="load", agent_name="etl") as run:
        run.step(3)  # type: ignore[arg-type]
        run.result = object
        run.context = {"rows": {1, 2}}
    outcome = only_outcome(memories)
    assert outcome.execution_path == ("3",)
    assert outcome.result == "<class 'object'>"


def test_a_run_ends_well_in_another_context(memories: MemoryStore, logger: OutcomeTrajectoryLogger) -> None:
    run = agent_run(logger, task="load", agent_name="etl")
    copy_context().run(run.__enter__)
    run.__exit__(None, None, None)
    assert only_outcome(memories).success


def test_run_that_goes_on_is_not_begun_again(memories: MemoryStore, logger: OutcomeTrajectoryLogger) -> None:
    run = agent_run(logger, task="load", agent_name="etl")
    with run:
        run.step("extract")
        with pytest.raises(GoldenError, match="has not ended; call agent_run once for each"), run:
            pass
    assert only_outcome(memories).execution_path == ("extract",)
    with run:
        run.step("again")
    assert len(memories.list_keys(("outcomes", "etl"))) == 2


async def test_a_run_may_say_that_it_failed(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path / "golden.db") as memories:
        async with OutcomeTrajectoryLogger(memories) as logger:
            run = agent_run(logger, task="load", agent_name="etl")
            async with run:
                run.success = False
            assert run.outcome is not None
            assert (run.outcome.success, run.outcome.error_message) == (False, None)
            async with run:
                run.step("again")
            assert run.outcome.success
