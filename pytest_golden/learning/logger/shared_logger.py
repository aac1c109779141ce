"""One logger for each store, for agents that hand nothing from call to call."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from pytest_golden.learning.logger.outcome_logger import OutcomeTrajectoryLogger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.learning.memory_store import MemoryStore
    from pytest_golden.learning.model import ProductionOutcome
    from pytest_golden.storage.store import Store

_NAME = "_shared_outcome_logger"
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    # Held while the process forks: a fork in which it was held would wait for ever.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class _NoStore:
    """Stands for no store at all."""


_NO_STORE = _NoStore()


def get_outcome_logger(store: MemoryStore | Store | None) -> OutcomeTrajectoryLogger:
    """Give the logger that all callers with this store share; a new one when it was closed. None keeps nothing."""
    # It is kept on the store: a table of both would hold them as long as the process lives.
    place = vars(_NO_STORE if store is None else store)
    with _lock:
        logger: OutcomeTrajectoryLogger | None = place.get(_NAME)
        if logger is None or logger.is_closed:
            logger = place[_NAME] = OutcomeTrajectoryLogger(store)
        return logger


async def log_agent_outcome(  # noqa: PLR0917 - `log_outcome` and the store
    store: MemoryStore | Store | None,
    task: str,
    result: Any,
    success: bool,
    execution_path: Iterable[str],
    agent_name: str,
    execution_time: float | None = None,
    *,
    error_message: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> ProductionOutcome:
    """Keep what an agent did, its plan and its training example; all of it is on the disk when this returns.

    It is `log_outcome` of the logger that callers with this store share. Nothing has to be closed.
    """
    logger = get_outcome_logger(store)
    outcome = await logger.log_outcome(
        task,
        result,
        success,
        execution_path,
        agent_name,
        execution_time,
        error_message=error_message,
        context=context,
    )
    await logger.flush()
    return outcome
