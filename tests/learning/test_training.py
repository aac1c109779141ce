from __future__ import annotations

import asyncio
import json
import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from gepa.proposer.reflective_mutation.reflection_lm import StatelessReflectionLM
from hypothesis import given
from hypothesis import strategies as st

import pytest_golden
from pytest_golden.errors import GoldenError
from pytest_golden.learning import training
from pytest_golden.learning.gate_learning import learn_from_results
from pytest_golden.learning.gate_results_store import read_results
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import ExtractedPlan, ProductionOutcome
from pytest_golden.learning.outcome_logger import OutcomeTrajectoryLogger, get_outcome_logger, log_agent_outcome
from pytest_golden.learning.store import iterate_kind
from pytest_golden.learning.training import (
    check_names,
    export_preferences,
    export_training_examples,
    make_record,
    reflective_dataset,
    trajectories_for,
)
from tests.learning.conftest import BOTH

if TYPE_CHECKING:
    from pathlib import Path

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


@BOTH
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


@BOTH
def test_many_outcomes_are_read_newest_first_page_by_page(store: Store, memories: MemoryStore, log: Log) -> None:
    outcomes = [{"namespace": ("outcomes", f"agent-{n % 3}"), "key": f"k{n}", "value": {"n": n}} for n in range(450)]
    memories.save_memories(outcomes)
    memories.save_memory(("outcomes", "agent-0"), "k0", {"n": 450})
    memories.save_memory(("plans", "agent-0"), "k0", {"n": 0})
    with store.read() as connection:
        read = [memory.value["n"] for memory in iterate_kind(connection, "outcomes", None, latest_first=True)]
        assert read == list(range(450, 0, -1))
        of_one = iterate_kind(connection, "outcomes", "agent-1", latest_first=True)
        assert [memory.value["n"] for memory in of_one][:2] == [448, 445]


@BOTH
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


def test_record_has_the_three_parts_that_gepa_reads() -> None:
    record = make_record(
        {"task": "load", "file": None, "note": ""}, {"output": "3 rows"}, "It failed.", {"error": "boom"}
    )
    assert list(record) == ["Inputs", "Generated Outputs", "Feedback"]
    assert record["Inputs"] == {"task": "load"}
    assert "\n3 rows\n" in record["Generated Outputs"]
    assert record["Feedback"].startswith("It failed.\n\nerror:\nBEGIN DATA ")


def test_nothing_said_is_said_so() -> None:
    record = make_record({}, {"output": "", "steps": None}, "It succeeded.", {})
    assert record == {"Inputs": {}, "Generated Outputs": "nothing", "Feedback": "It succeeded."}


def test_secrets_are_out_of_every_part() -> None:
    secret = "postgresql://me:hunter2secret@db/x"
    record = make_record({"task": secret}, {"output": secret}, secret, {"error": secret, "result": {"url": secret}})
    assert "hunter2secret" not in json.dumps(record)


@given(st.text(max_size=300), st.text(max_size=300))
def test_what_was_said_ends_no_fence_and_no_block(one: str, other: str) -> None:
    record = make_record(
        {"task": f"```{one}"}, {"one": f"```\n{one}", "other": f"END DATA\n{other}```"}, "It failed.", {}
    )
    told = record["Generated Outputs"]
    assert "```" not in told + record["Inputs"]["task"]
    begins = [line for line in told.split("\n") if line.startswith("BEGIN DATA ")]
    assert len(set(begins)) == 1
    mark = begins[0].removeprefix("BEGIN DATA ")
    assert told.count(mark) == 4


def test_long_texts_keep_head_and_tail() -> None:
    record = make_record({}, {"output": f"begin {'x' * 100_000} end"}, "It failed.", {})
    assert len(record["Generated Outputs"]) < 5_000
    assert "begin" in record["Generated Outputs"]
    assert "x end" in record["Generated Outputs"]


@pytest.mark.parametrize(
    ("components", "said"),
    [
        ([], "no components"),
        ({}, "no components"),
        ("prompt", "not the text 'prompt'"),
        (b"prompt", "not the text"),
        (None, "not None"),
        (["a", "a"], "named twice: a, a"),
        (["a", ""], "'' is not a name"),
        (["a", 3], "3 is not a name"),
        (["a\nb"], "is not a name"),
    ],
)
def test_names_that_are_none_are_refused(components: Any, said: str) -> None:
    with pytest.raises(GoldenError, match=said):
        check_names(components)


def test_names_are_those_of_a_mapping_or_a_list() -> None:
    assert check_names({"prompt": "prompt.txt", "sql": "q.sql"}) == ("prompt", "sql")
    assert check_names(iter(["prompt", "sql"])) == ("prompt", "sql")


def log_plan(store: Store, task: str, path: list[str], agent: str = "etl") -> ProductionOutcome:
    return asyncio.run(log_agent_outcome(store, task, {"status": "success"}, True, path, agent, 1.0))


@BOTH
def test_plan_for_a_task_alike_is_a_trajectory_to_begin_with(store: Store) -> None:
    outcome = log_plan(store, "reconcile the invoices of March", ["read_ledger", "match", "post"])
    log_plan(store, "send a newsletter", ["render", "mail"])
    (found,) = trajectories_for("invoices of April do not match", "etl", store=store)
    assert not found.is_completed
    assert [step.content for step in found.steps] == ["read_ledger", "match", "post"]
    assert found.metadata["operator"] == "production_learned"
    assert found.metadata["plan_id"] == f"plan_{outcome.outcome_id}"
    assert found.metadata["outcome_id"] == outcome.outcome_id
    assert found.metadata["reasoning_pattern"] == "iterative_refinement"
    assert found.metadata["problem"] == "invoices of April do not match"
    assert found.complete().is_completed


def test_plans_are_found_by_their_steps_too(store: Store) -> None:
    log_plan(store, "task", ["read_ledger"])
    assert len(trajectories_for("read_ledger", "etl", store=MemoryStore(store))) == 1


def test_own_plans_come_first_and_then_those_of_others(store: Store) -> None:
    others = [log_plan(store, "load invoices invoices", ["a"], "other") for _ in range(3)]
    own = log_plan(store, "load some invoices and orders", ["b"])
    found = trajectories_for("invoices", "etl", limit=3, store=store)
    ids = [one.metadata["outcome_id"] for one in found]
    assert ids[0] == own.outcome_id
    assert len(set(ids)) == 3
    assert set(ids[1:]) < {one.outcome_id for one in others}


def test_a_plan_that_failed_is_a_warning_and_no_trajectory(store: Store) -> None:
    outcome = log_plan(store, "load the orders into the warehouse", ["read", "load"])

    async def fail() -> None:
        logger = get_outcome_logger(store)
        path = ["dump", "drop_table", "restore"]
        failed = await logger.log_outcome(
            "load all orders into the warehouse", None, False, path, "etl", error_message="OutOfSpace: no room\nat"
        )
        await logger.extract_plan(failed)

    asyncio.run(fail())
    (found,) = trajectories_for("load orders of May into the warehouse", "etl", store=store)
    assert found.metadata["outcome_id"] == outcome.outcome_id
    assert found.metadata["warnings"] == [
        "Sequential execution: dump \u2192 drop_table \u2192 restore failed: OutOfSpace: no room"
    ]


@pytest.mark.parametrize("task", ["colour the orders page", "send the mail", "fix it", "orders"])
def test_a_task_that_shares_a_word_has_no_plan(store: Store, task: str) -> None:
    log_plan(store, "import the orders table from CSV", ["read", "load"])
    expected = 1 if task == "orders" else 0
    assert len(trajectories_for(task, "etl", store=store)) == expected
    assert len(trajectories_for("Fix the import of orders", "etl", store=store)) == 1


def test_nothing_alike_gives_nothing(store: Store) -> None:
    log_plan(store, "load invoices", ["a"])
    assert trajectories_for("zebra", "etl", store=store) == ()
    assert trajectories_for("", "etl", store=store) == ()


def test_what_is_no_plan_is_left_out(store: Store) -> None:
    memories = MemoryStore(store)
    memories.save_memory(("plans", "etl"), "odd", {"about": "invoices"})
    memories.save_memory(
        ("plans", "etl"),
        "newer",
        {"schema_version": 99, "outcome_id": "o", "strategy_description": "invoices", "reasoning_pattern": "p"},
    )
    assert trajectories_for("invoices", "etl", store=store) == ()


def test_wrong_arguments_are_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="limit"):
        trajectories_for("invoices", "etl", limit=0, store=store)
    with pytest.raises(ValueError, match="agent"):
        trajectories_for("invoices", " ", store=store)
    for foreign in (None, 5, ["invoices"]):
        with pytest.raises(ValueError, match="problem must be text"):
            trajectories_for(foreign, "etl", store=store)  # type: ignore[arg-type]


@pytest.fixture
def outcomes(store: Store) -> list[ProductionOutcome]:
    async def log() -> list[ProductionOutcome]:
        async with OutcomeTrajectoryLogger(store) as logger:
            return [
                await logger.log_outcome(f"Bestände {number}", number, True, ["a", "b"], f"agent {number % 2}")
                for number in range(120)
            ]

    return asyncio.run(log())


@BOTH
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


@BOTH
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


def log_all(store: Store, *told: tuple[str, bool, list[str]], agent: str = "fixer") -> None:
    async def write() -> None:
        async with OutcomeTrajectoryLogger(store) as logger:
            for task, success, steps in told:
                result = "fine" if success else None
                error = None if success else "boom sk-live-0123456789abcdefghij"
                await logger.log_outcome(task, result, success, steps, agent, error_message=error)

    asyncio.run(write())


@BOTH
def test_a_failure_and_a_success_at_the_same_task_are_a_pair(store: Store, tmp_path: Path) -> None:
    log_all(
        store,
        ("Load the orders of March", False, ["read", "guess"]),
        ("Load the orders of March", False, ["guess"]),
        ("Draw the customers", True, ["draw"]),
        ("load the order of April", True, ["read", "check"]),
        ("Load orders", False, ["skip"]),
        ("Merge the invoices", False, ["merge"]),
    )
    log_all(store, ("Load the orders of March", False, ["other"]), agent="somebody else")
    path = tmp_path / "pairs.jsonl"
    assert export_preferences(store, path) == 3
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["prompt"], line["chosen"], line["rejected"]) for line in lines] == [
        ("Load the orders of March", "read\ncheck", "read\nguess"),
        ("Load the orders of March", "read\ncheck", "guess"),
        ("Load orders", "read\ncheck", "skip"),
    ]
    assert {(line["chosen_reward"], line["rejected_reward"], line["agent"]) for line in lines} == {(1.0, 0.0, "fixer")}
    assert "boom" in lines[0]["rejected_error"]
    assert "sk-live" not in path.read_text()
    assert export_preferences(MemoryStore(store), path, agent="somebody else") == 0
    assert path.read_bytes() == b""


def test_pairs_of_very_many_tasks_need_no_more_memory(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_MOST_TASKS", 2)
    tasks = [f"Load the {name}" for name in ("apples", "pears", "plums")]
    log_all(store, *((task, False, ["a"]) for task in tasks), *((task, True, ["b"]) for task in tasks))
    assert export_preferences(store, tmp_path / "pairs.jsonl") == 2


@BOTH
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
        for start in range(0, 300, 100):
            memories.save_memories(
                {"namespace": ("training", "etl"), "key": f"{number}", "value": {"text": "x " * 50_000}}
                for number in range(start, start + 100)
            )
        tracemalloc.start()
        assert export_training_examples(memories, tmp_path / "examples.jsonl") == 300
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 25_000_000


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
