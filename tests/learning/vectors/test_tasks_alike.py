"""Tasks that mean the same are found by an embedder that can tell them apart, and by no other."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pytest_golden.learning.agent_hints import find_hints
from pytest_golden.learning.agent_memory import AgentMemory
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.outcome_logger import OutcomeTrajectoryLogger
from pytest_golden.learning.vectors.tasks_alike import NEAR_TASKS, SAME_TASKS
from tests.learning.vectors.embedders import Hanging, Told, embed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LEARNED, ASKED = "Clean the clients list", "Tidy up our customers"
_GROUPS = ({"clients", "customers"}, {"clean", "tidy"}, {"report", "overview"})


def understand(texts: Sequence[str]) -> Any:
    """Return a direction of its own for each pair that means the same, for each other task, and for each group of words."""
    known = {task: number for number, pair in enumerate(SAME_TASKS) for task in pair}
    known |= {
        task: number + len(SAME_TASKS) for number, task in enumerate(task for pair in NEAR_TASKS for task in pair)
    }
    rows = np.zeros((len(texts), len(SAME_TASKS) + 2 * len(NEAR_TASKS) + len(_GROUPS)))
    for row, text in zip(rows, texts, strict=True):
        if text in known:
            row[known[text]] = 1
        for number, group in enumerate(_GROUPS):
            row[number - len(_GROUPS)] = sum(word in group for word in text.lower().split())
    return rows


def learn(path: Path) -> None:
    with AgentMemory("fixer", path) as memory, memory.task(LEARNED) as task:
        task.attempt("bash", {"command": "pytest t.py"}, error="E   KeyError: 'customer_id'")
        task.attempt("edit", {"file_path": "t.py", "old_string": "a['x']", "new_string": "a['y']"})
        task.attempt("bash", {"command": "pytest t.py"}, "1 passed")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    learn(tmp_path / "golden.db")
    return tmp_path / "golden.db"


def test_a_task_in_other_words_finds_the_lesson_and_the_plan(path: Path) -> None:
    with MemoryStore.open(path) as by_words:
        assert find_hints(by_words, task=ASKED) == ()
    with MemoryStore.open(path, embedder=Told(understand)) as memories:
        hints = find_hints(memories, task=ASKED)
        assert {(hint.kind, hint.why) for hint in hints} == {
            ("lesson", "learned in a task that means the same"),
            ("plan", "a task like this"),
        }
        assert all(0.3 < hint.score <= 0.8 for hint in hints)
        assert find_hints(memories, task="Print the overview") == ()
        assert find_hints(memories, task="something else entirely") == ()


def test_an_agent_asks_with_the_embedder_of_its_memories(path: Path) -> None:
    with (
        MemoryStore.open(path, embedder=Told(understand)) as memories,
        AgentMemory("other", memories) as agent,
        agent.task(ASKED) as task,
    ):
        assert {hint.kind for hint in task.hints} == {"lesson", "plan"}


def test_the_likeness_of_a_lesson_is_less_where_less_is_the_same(path: Path) -> None:
    with MemoryStore.open(path, embedder=Told(understand)) as memories:
        same = memories.find_tasks_alike(ASKED)
        partly = memories.find_tasks_alike("Tidy up our customers overview")
    assert same.keys() == partly.keys()
    assert len(same) == 2
    assert all(0.5 <= partly[key] < same[key] for key in same)


def test_a_hidden_lesson_is_not_found_by_its_task(tmp_path: Path) -> None:
    path = tmp_path / "golden.db"
    with AgentMemory("fixer", path, lessons_wait=True) as memory, memory.task(LEARNED) as task:
        task.attempt("bash", {"command": "pytest t.py"}, error="E   KeyError: 'customer_id'")
        task.attempt("edit", {"file_path": "t.py", "old_string": "a['x']", "new_string": "a['y']"})
        task.attempt("bash", {"command": "pytest t.py"}, "1 passed")
    with MemoryStore.open(path, embedder=Told(understand)) as memories:
        assert [hint.kind for hint in find_hints(memories, task=ASKED)] == ["plan"]


def test_a_model_that_cannot_tell_tasks_apart_is_asked_once_and_not_used(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    same_for_all = Told(lambda texts: np.ones((len(texts), 3)))
    with MemoryStore.open(path, embedder=same_for_all) as memories, caplog.at_level(logging.WARNING):
        assert memories.find_tasks_alike(ASKED) == {}
        assert memories.find_tasks_alike(LEARNED) == {}
        (hint, _) = find_hints(memories, task=LEARNED)
        assert hint.why == "learned in a task like this"
    assert len(same_for_all.asked) == 1
    assert [record.message for record in caplog.records] == [
        "the embedding model does not tell tasks that mean the same from others about the same thing; "
        "tasks are found by words alone"
    ]


def test_a_model_that_fails_leaves_the_words(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(texts: Sequence[str]) -> Any:
        raise OSError("no model today")

    with MemoryStore.open(path, embedder=Told(fail)) as memories, caplog.at_level(logging.WARNING):
        assert find_hints(memories, task=LEARNED)[0].why == "learned in a task like this"
    assert "tasks are found by words alone: the embedder told failed (OSError: no model today)" in caplog.text


def test_a_model_that_hangs_leaves_the_words(path: Path) -> None:
    hanging = Hanging()
    try:
        with MemoryStore.open(path, embedder=hanging, embedder_seconds=0.05) as memories:
            assert find_hints(memories, task=LEARNED)[0].why == "learned in a task like this"
            assert find_hints(memories, task=LEARNED)[0].why == "learned in a task like this"
    finally:
        hanging.released.set()
    assert hanging.calls == 1


def test_no_model_is_asked_without_a_task(path: Path) -> None:
    told = Told(embed)
    with MemoryStore.open(path, embedder=told) as memories:
        assert find_hints(memories, error="E   KeyError: 'customer_id'")[0].kind == "lesson"
        assert memories.find_tasks_alike("  ") == {}
    assert told.asked == []


def test_an_empty_store_knows_no_task(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path / "golden.db", embedder=Told(understand)) as memories:
        assert memories.find_tasks_alike(ASKED) == {}


async def test_a_plan_of_which_the_outcome_is_gone_is_not_compared(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path / "golden.db", embedder=Told(understand)) as memories:
        async with OutcomeTrajectoryLogger(memories) as logger:
            outcome = await logger.log_outcome(LEARNED, {}, True, ["read", "write"], "etl")
        assert memories.find_tasks_alike(ASKED) != {}
        memories.delete(("outcomes", "etl"), outcome.outcome_id)
        assert memories.find_tasks_alike(ASKED) == {}


def test_the_environment_names_the_embedder(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GOLDEN_EMBEDDING_MODEL", "model2vec:nowhere")
    with AgentMemory("fixer", path) as memory, memory.task(LEARNED) as task:
        assert task.hints[0].why == "learned in a task like this"
    assert "memories are found by words alone: model2vec:nowhere: there is no such folder" in caplog.text
