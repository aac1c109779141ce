"""The tasks that agents have begun by `start_task` and not finished, each known to its own agent alone."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pytest_golden.clock import new_id
from pytest_golden.errors import GoldenError
from pytest_golden.learning.agent_memory import AgentMemory, AgentTask

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_golden.learning.memory_store import MemoryStore

_MOST_OPEN = 200


class AgentTasks:
    """At most 200 open tasks; a further one ends the oldest, of which nothing is kept. Threads may share it."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._open: dict[str, tuple[str, AgentMemory, AgentTask]] = {}

    def start(
        self,
        memories: MemoryStore,
        agent: str,
        root: Path,
        description: str,
        files: Iterable[str],
        tools: Iterable[str],
    ) -> tuple[str, AgentTask]:
        """Begin a task in the folder `root`; return its id and the task.

        Raises:
            ValueError: the description is blank.
        """
        memory = AgentMemory(agent, memories, root=root, lessons_wait=True)
        task_id, task = new_id("task"), memory.task(description, files=files, tools=tools)
        with self._turn:
            self._open[task_id] = agent, memory, task
            dropped = [self._open.pop(next(iter(self._open))) for _ in range(len(self._open) - _MOST_OPEN)]
        for _, old, _ in dropped:
            old.close()
        return task_id, task

    def find(self, agent: str, task_id: str) -> AgentTask:
        """Return an open task.

        Raises:
            GoldenError: the agent has no such task.
        """
        with self._turn:
            owner, _, task = self._open.get(task_id, (None, None, None))
        if task is None or owner != agent:
            raise GoldenError(f"there is no open task {task_id!r:.100} of yours: `start_task` returns the id of one")
        return task

    def finish(self, agent: str, task_id: str, *, success: bool, note: str) -> bool:
        """End a task, and tell whether what it teaches is kept. Raise as `find` does."""
        task = self.find(agent, task_id)
        with self._turn:
            _, memory, _ = self._open.pop(task_id)
        task.done(success, note)
        is_kept = task.wait()
        memory.close()
        return is_kept

    def close(self) -> None:
        """End all tasks; nothing of them is kept."""
        with self._turn:
            left, self._open = self._open, {}
        for _, memory, _ in left.values():
            memory.close()
