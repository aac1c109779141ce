"""A store with a row of every kind whose counts are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from pytest_golden.storage.schema import entries, expectations, memories, signals
from pytest_golden.storage.search import index_memory

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store

ENTRY: dict[str, Any] = {
    "id": "entry_1",
    "agent_id": "golden",
    "intent": "check",
    "actions": [],
    "immediate_result": "unknown",
    "assessment": "open",
    "created_at": 1,
    "updated_at": 1,
}


def fill(store: Store) -> None:
    """Put in an entry with an expectation of each kind, and a signal of each kind."""
    entry = {
        **ENTRY,
        "assessment": "failure",
        "open_count": 1,
        "met_count": 1,
        "unmet_count": 1,
        "expired_count": 1,
        "critical_lost_count": 1,
        "positive_count": 1,
        "negative_count": 1,
        "correction_count": 1,
    }
    expectation = {"entry_id": "entry_1", "description": "x", "polarity": "positive", "created_at": 1}
    signal = {"entry_id": "entry_1", "source": "golden", "summary": "x", "routed_by": "entry", "created_at": 1}
    memory = {"namespace": "a/", "key": "b", "version": 1, "is_newest": True, "value": {}, "tags": [], "words": "load"}
    with store.write() as connection:
        connection.execute(insert(entries), entry)
        connection.execute(
            insert(expectations),
            [
                {**expectation, "id": status, "status": status, "critical": status == "unmet"}
                for status in ("open", "met", "unmet", "expired")
            ],
        )
        connection.execute(
            insert(signals),
            [
                {**signal, "id": f"{kind}{is_late}", "signal_type": kind, "is_late": is_late}
                for kind in ("positive", "negative", "correction", "neutral")
                for is_late in (False, True)
            ],
        )
        connection.execute(insert(memories), {**memory, "created_at": 1, "updated_at": 1})
        index_memory(connection, 1, "load")
