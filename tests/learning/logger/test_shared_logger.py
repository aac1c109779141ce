from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.outcome_logger import get_outcome_logger, log_agent_outcome

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.storage.store import Store


def test_each_store_has_one_logger(store: Store) -> None:
    memories = MemoryStore(store)
    assert get_outcome_logger(memories) is get_outcome_logger(memories)
    assert get_outcome_logger(store) is get_outcome_logger(store)
    assert get_outcome_logger(memories) is not get_outcome_logger(MemoryStore(store))
    assert get_outcome_logger(None) is get_outcome_logger(None)


async def test_after_a_closed_logger_there_is_a_new_one(store: Store) -> None:
    first = get_outcome_logger(store)
    await first.aclose()
    assert get_outcome_logger(store) is not first
    assert not get_outcome_logger(store).is_closed


def test_a_forgotten_store_is_let_go(tmp_path: Path) -> None:
    memories = MemoryStore.open(tmp_path / "golden.db")
    get_outcome_logger(memories)
    memories.close()
    gone = weakref.ref(memories)
    del memories
    gc.collect()
    assert gone() is None


def test_everything_is_kept_when_the_call_returns(store: Store) -> None:
    outcome = asyncio.run(
        log_agent_outcome(store, "load", {"rows": 3}, True, ["extract"], "etl", 0.5, context={"day": 1})
    )
    memories = MemoryStore(store)
    found = memories.get(("outcomes", "etl"), outcome.outcome_id)
    assert found is not None
    assert found.value == outcome.to_dict()
    assert memories.get(("training", "etl"), f"training_plan_{outcome.outcome_id}") is not None
    failed = asyncio.run(log_agent_outcome(store, "load", None, False, [], "etl", error_message="no"))
    assert failed.error_message == "no"
    assert list(get_outcome_logger(store).get_statistics().values()) == [2, 1, 1, 0, 0, 0]


def test_without_a_store_the_outcome_is_given_back() -> None:
    assert asyncio.run(log_agent_outcome(None, "load", 3, True, [], "etl")).result == 3
    with pytest.raises(ValueError, match="agent_name"):
        asyncio.run(log_agent_outcome(None, "load", 3, True, [], ""))
