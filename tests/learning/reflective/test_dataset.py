from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from gepa.proposer.reflective_mutation.reflection_lm import StatelessReflectionLM

import pytest_golden
from pytest_golden.errors import GoldenError
from pytest_golden.learning.gate_learning import learn_from_results
from pytest_golden.learning.gate_results_store import read_results
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.store import list_latest_outcomes
from pytest_golden.learning.training import reflective_dataset

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store
    from tests.learning.conftest import GateHistory, MakeOutcome


@pytest.fixture
def memories(store: Store) -> MemoryStore:
    return MemoryStore(store)


class Log:
    """Saves outcomes as the logger does, one after another."""

    def __init__(self, memories: MemoryStore, make_outcome: MakeOutcome) -> None:
        self._memories, self._make = memories, make_outcome

    def failure(self, error: str | None, agent: str = "etl", **fields: Any) -> None:
        self._save(agent, success=False, error_message=error, **fields)

    def success(self, task: str, agent: str = "etl", **fields: Any) -> None:
        self._save(agent, success=True, task_description=task, **fields)

    def _save(self, agent: str, **fields: Any) -> None:
        outcome = self._make(agent_name=agent, **fields)
        self._memories.save_memory(("outcomes", agent), outcome.outcome_id, outcome.to_dict())


@pytest.fixture
def log(memories: MemoryStore, make_outcome: MakeOutcome) -> Log:
    return Log(memories, make_outcome)


def feedback(dataset: dict[str, list[dict[str, Any]]], name: str = "prompt") -> list[str]:
    """Return for each record the first line of its error, or its whole feedback where it has none."""
    told = []
    for record in dataset[name]:
        lines = record["Feedback"].splitlines()
        told.append(lines[lines.index("error:") + 2] if "error:" in lines else record["Feedback"])
    return told


def test_dataset_is_a_public_name() -> None:
    assert pytest_golden.reflective_dataset is reflective_dataset


def test_failures_come_first_and_each_kind_before_any_is_repeated(memories: MemoryStore, log: Log) -> None:
    log.success("load the orders")
    log.failure("KeyError: 'a'")
    log.failure("timed out after 30s")
    log.failure("timed out after 31s")
    log.success("load the customers")
    log.success("load the customers")
    repeated = ["timed out after 31s", "KeyError: 'a'", "timed out after 30s"]
    succeeded = ["It succeeded: keep what makes it succeed."] * 3
    assert feedback(reflective_dataset(memories, ["prompt"])) == [*repeated, *succeeded]
    assert feedback(reflective_dataset(memories, ["prompt"], limit=2)) == repeated[:2]
    whole = reflective_dataset(memories, ["prompt"])["prompt"]
    tasks = [record["Inputs"]["task"] for record in whole[3:]]
    assert tasks == ["load the customers", "load the orders", "load the customers"]


def test_each_component_gets_records_under_its_name_and_file(memories: MemoryStore, log: Log) -> None:
    log.failure("boom", result={"rows": 3}, execution_path=["extract", "load"])
    dataset = reflective_dataset(memories, {"prompt": "prompts/load.txt", "sql": "query.sql"})
    assert list(dataset) == ["prompt", "sql"]
    [record] = dataset["sql"]
    assert record["Inputs"] == {
        "component": "sql",
        "file": "query.sql",
        "task": "load the orders",
        "agent": "etl",
    }
    assert "extract → load" in record["Generated Outputs"]
    assert '{"rows": 3}' in record["Generated Outputs"]
    assert record["Feedback"].startswith("It failed.")
    assert json.loads(json.dumps(dataset)) == dataset


def test_outcomes_are_those_of_an_agent_or_a_project(memories: MemoryStore, log: Log) -> None:
    log.failure("one", agent="etl", context={"project": "sales"})
    log.failure("two", agent="mailer")
    log.failure("three", agent="etl-2", context={"project": "stock"})
    assert feedback(reflective_dataset(memories, ["prompt"])) == ["three", "two", "one"]
    assert feedback(reflective_dataset(memories, ["prompt"], agent="etl")) == ["one"]
    assert feedback(reflective_dataset(memories, ["prompt"], project="stock")) == ["three"]
    with pytest.raises(
        GoldenError, match=r"no outcome of the golden project 'sales' and the agent 'mailer' was recorded"
    ):
        reflective_dataset(memories, ["prompt"], project="sales", agent="mailer")


def test_lesson_about_the_error_is_in_the_feedback(memories: MemoryStore, log: Log) -> None:
    lesson = SkillMemory(
        lesson="Read ids as text so that leading zeros stay",
        what_failed="reading them as numbers",
        what_worked="dtype=str",
        evidence={"error": "KeyError: '0042'"},
    )
    assert Lessons(memories).add(lesson, "etl").kept
    log.failure("KeyError: '0017'")
    [record] = reflective_dataset(memories, ["prompt"])["prompt"]
    assert "Read ids as text so that leading zeros stay What worked: dtype=str" in record["Feedback"]
    with memories.store.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM lesson_recalls").scalar() == 0


def test_results_of_the_gate_bring_their_output_and_what_ended_the_failure(store: Store, history: GateHistory) -> None:
    told: Any = {"result": {"output_summary": "reading orders.csv", "error_message": "exit code 1: KeyError: 'id'"}}
    failing = history.run("a" * 40)
    history.result(failing, "sales", "FAILED", message="exit code 1: KeyError: 'id'", **told)
    history.result(history.run("b" * 40), "sales")
    learn_from_results(store, budget_seconds=60)
    failed, passed = reflective_dataset(store, ["sql"], project="sales")["sql"]
    assert failed["Inputs"]["golden project"] == "sales"
    assert "reading orders.csv" in failed["Generated Outputs"]
    assert "KeyError: 'id'" in failed["Feedback"]
    assert "last fixed by bbbbbbb" in failed["Feedback"]
    assert passed["Feedback"] == "It succeeded: keep what makes it succeed."


def test_reflection_of_gepa_takes_the_dataset_as_it_is(memories: MemoryStore, log: Log) -> None:
    log.failure("ValueError: the prompt has no date")
    prompts: list[str] = []

    def model(prompt: object) -> str:
        prompts.append(str(prompt))
        return "```\nGive the date first.\n```"

    dataset = reflective_dataset(memories, ["prompt"])
    proposal, _ = StatelessReflectionLM(model).reflect({"prompt": "Load it."}, dataset, ["prompt"])
    assert proposal.new_texts == {"prompt": "Give the date first."}
    assert "ValueError: the prompt has no date" in prompts[0]


def test_secrets_of_old_rows_stay_out(memories: MemoryStore, log: Log) -> None:
    log.failure("cannot open postgresql://me:hunter2secret@db/x")
    assert "hunter2secret" not in json.dumps(reflective_dataset(memories, ["prompt"]))


def test_values_that_are_no_outcomes_are_passed_over(memories: MemoryStore, log: Log) -> None:
    memories.save_memory(("outcomes", "etl"), "stray", {"text": "hello"})
    with pytest.raises(
        GoldenError, match=r"no outcome was recorded, so that prompt, sql would have no records: run the gate"
    ):
        reflective_dataset(memories, ["prompt", "sql"])
    log.failure(None)
    assert feedback(reflective_dataset(memories, ["prompt"])) == ["It failed."]


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, None])
def test_limit_below_one_is_refused(limit: Any, memories: MemoryStore) -> None:
    with pytest.raises(ValueError, match="limit must be a whole number, 1 or more"):
        reflective_dataset(memories, ["prompt"], limit=limit)


def test_names_are_checked_before_the_store_is_read(memories: MemoryStore) -> None:
    memories.store.close()
    with pytest.raises(GoldenError, match="no components"):
        reflective_dataset(memories, [])


def test_many_outcomes_are_read_newest_first_page_by_page(store: Store, memories: MemoryStore, log: Log) -> None:
    outcomes = [{"namespace": ("outcomes", f"agent-{n % 3}"), "key": f"k{n}", "value": {"n": n}} for n in range(450)]
    memories.save_memories(outcomes)
    memories.save_memory(("outcomes", "agent-0"), "k0", {"n": 450})
    memories.save_memory(("plans", "agent-0"), "k0", {"n": 0})
    with store.read() as connection:
        read = [memory.value["n"] for memory in list_latest_outcomes(connection)]
        assert read == list(range(450, 0, -1))
        assert [memory.value["n"] for memory in list_latest_outcomes(connection, "agent-1")][:2] == [448, 445]


def test_result_that_cannot_be_read_is_left_out(store: Store, history: GateHistory) -> None:
    run = history.run()
    good, foreign, broken = (history.result(run) for _ in range(3))
    with store.write() as connection:
        damage = {foreign: "[1]", broken: "{" if connection.dialect.name == "sqlite" else "null"}
        for entry, text in damage.items():
            connection.exec_driver_sql(f"UPDATE gate_results SET result = '{text}' WHERE entry_id = '{entry}'")
    with store.read() as connection:
        assert list(read_results(connection, [good, foreign, broken, "entry_NONE"])) == [good]
        assert read_results(connection, []) == {}
