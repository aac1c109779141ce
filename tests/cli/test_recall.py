from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.learning.agent_memory import AgentMemory
from pytest_golden.learning.gate_learning import learn_from_results
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.storage.store import Store
from tests.learning.conftest import GateHistory
from tests.repository import git

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden, GoldenProcess

BOOM = "exit code 1, expected 0: no such column: 'amount'"


@pytest.fixture
def recorded(folder: Path) -> Path:
    """A store where the gate keeps it, with a failure, its fix, and a memory of somebody else."""
    (folder / "golden_projects.yaml").write_text("version: 1\n")
    with Store.open(folder / ".golden" / "golden.db") as store:
        history = GateHistory(store)
        history.result(history.run("a" * 40), "sales", "FAILED", message=BOOM)
        history.result(history.run("b" * 40), "sales")
        history.result(history.run("b" * 40), "stock", "FAILED", message="exit code 1, expected 0: disk on fire")
        learn_from_results(store)
        lesson = {"lesson": "the column amount\x1b[31m was renamed " + "x" * 300}
        MemoryStore(store).save_memory(("lessons", "etl"), "l1", lesson)
        assert store.path is not None
        return store.path


def test_known_failure_is_told_in_one_sentence(golden_process: GoldenProcess, recorded: Path) -> None:
    ran = golden_process("recall", BOOM)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "seen before once in sales, last on 2026-03-01 at aaaaaaa; last fixed by bbbbbbb"
    assert lines[1] == "  no such column: 'amount'"
    assert "  lessons/etl  l1" in lines
    assert "\x1b" not in ran.out
    assert max(len(line) for line in lines) < 220


@pytest.fixture
def failing(folder: Path) -> str:
    """A repository with a program, and the failure of one of its tests."""
    git(folder, "init", "-q", "-b", "main")
    for name in "abcdef":
        (folder / f"{name}.py").write_text(f"def load_{name}(path):\n    return {name}\n")
    (folder / "orders.py").write_text("def round_price(price):\n    return price\n\ndef parse_price(text): pass\n")
    (folder / "test_orders.py").write_text("from orders import round_price, parse_price\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return "test_orders.py:3: assert round_price(parse_price(text)) == price"


def test_the_file_at_fault_is_named_before_anything_is_recorded(golden: Golden, folder: Path, failing: str) -> None:
    ran = golden("recall", failing)
    assert ran.code == 0
    assert ran.out.splitlines()[:3] == [
        "look at orders.py",
        "  its words are the closest to the failure's",
        "  1 of 1 changes of test_orders.py changed it too",
    ]
    told = golden("recall", failing, "--json").json
    assert (told["suspects"][0]["path"], told["suspects"][0]["why"][2]) == ("orders.py", "the test imports it")
    assert (told["recalled"], told["seen"], told["memories"]) == ([], [], [])


def test_where_nothing_is_at_fault_a_missing_store_is_said(golden: Golden, folder: Path, failing: str) -> None:
    assert golden("recall", "what is this?").code == 2
    assert golden("recall", failing, "--store", "none.db").code == 2
    assert golden("recall", failing, "--project", "sales").code == 2


def test_lessons_come_before_files_at_fault(golden: Golden, recorded: Path, failing: str) -> None:
    ran = golden("recall", f"{BOOM}\n{failing}")
    assert ran.out.index("seen before") < ran.out.index("look at orders.py")
    assert golden("recall", "on fire", "--json").json["suspects"] == []


def test_words_are_enough(golden: Golden, recorded: Path) -> None:
    ran = golden("recall", "on", "fire")
    assert ran.out.startswith("reads alike: seen before once in stock")


def test_json_holds_the_same(golden: Golden, recorded: Path) -> None:
    told = golden("recall", "no such column: 'price'", "--json").json
    assert told["text"] == "no such column: 'price'"
    assert [(one["why"], one["project"], one["count"]) for one in told["seen"]] == [("signature", "sales", 1)]
    assert told["seen"][0]["last_fixed"]["commit"] == "b" * 40
    assert told["memories"] == []
    told = golden("recall", "no such column: 'amount'", "--json").json
    assert [hit["memory"]["key"] for hit in told["memories"]] == ["l1"]
    assert (told["recall_id"], told["recalled"]) == (None, [])


def test_secret_that_was_typed_is_not_told_again(golden: Golden, recorded: Path) -> None:
    told = golden("recall", "login refused with password=Tr0ub4dorX", "--json")
    assert "Tr0ub4dorX" not in told.out
    assert told.json["text"].startswith("login refused with password=")


def test_store_that_somebody_writes_to_tells_what_is_known(golden: Golden, recorded: Path) -> None:
    with Store.open(recorded) as store:
        lesson = Lessons(store).add(SkillMemory(lesson="Map the new name.", evidence={"error": BOOM}), "etl").skill
        with store.write():
            told = golden("recall", BOOM, "--json").json
    assert [one["lesson"]["id"] for one in told["recalled"]] == [lesson.id]
    assert told["recall_id"] is None


def test_lesson_that_only_has_the_words_is_told_by_what_it_says(golden: Golden, recorded: Path) -> None:
    with Store.open(recorded) as store:
        Lessons(store).add(SkillMemory(lesson="Flamingo: map the new name.", why="The walrus says so."), "etl")
    assert "\n    Flamingo: map the new name.\n" in golden("recall", "flamingo", "walrus").out


def test_passes_are_told_as_memories(golden: Golden, recorded: Path) -> None:
    assert "2026-" in golden("recall", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb").out
    assert "Run golden project sales: success" in golden("recall", "sales", "--project", "sales").out


def test_what_is_told_can_be_narrowed(golden: Golden, recorded: Path) -> None:
    assert "nothing is known about this" in golden("recall", BOOM, "--project", "stock").out
    assert golden("recall", "column fire", "--limit", "1", "--json").json["seen"][1:] == []


def test_nothing_known_is_no_error(golden: Golden, recorded: Path) -> None:
    ran = golden("recall", "zebra")
    assert (ran.code, ran.out) == (0, "nothing is known about this\n")
    assert golden("recall", "zebra", "--json").json == {
        "text": "zebra",
        "recall_id": None,
        "recalled": [],
        "seen": [],
        "memories": [],
        "suspects": [],
    }


def test_lessons_come_first(golden: Golden, recorded: Path) -> None:
    with Store.open(recorded) as store:
        skill = SkillMemory(
            lesson="The producer renamed the column; map the old name to the new one.",
            why="Its contract allows that.",
            evidence={"error": BOOM, "project": "sales"},
        )
        assert Lessons(store).add(skill, "etl").kept
    lines = golden("recall", "no such column: 'price'").out.splitlines()
    assert lines[:3] == [
        "lesson: The producer renamed the column; map the old name to the new one.",
        "  Its contract allows that.",
        f"  {skill.id}",
    ]
    assert lines[3].startswith("seen before once in sales")
    told = golden("recall", "no such column: 'price'", "--project", "sales", "--json").json
    assert told["recall_id"] == told["recalled"][0]["recall_id"] != ""
    assert (told["recalled"][0]["why"], told["recalled"][0]["score"]) == ("signature", 1.0)
    with Store.open(recorded) as store:
        settled = Lessons(store).settle(told["recall_id"], passed=True)
    assert settled is not None
    assert settled.success_count == 1
    typed = golden("recall", "producer", "renamed", "contract").out
    assert typed.startswith("reads alike: lesson: The producer renamed")


def test_store_can_be_named(golden: Golden, recorded: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    Store.open(other).close()
    assert golden("recall", BOOM, "--store", str(other)).out == "nothing is known about this\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((" ",), "TEXT is blank"),
        (("x", "--limit", "0"), "--limit 0 cannot be used"),
        (("x", "--limit", "many"), "--limit many cannot be used"),
        ((), "TEXT"),
        (("x", "--project", "sale"), "no golden project called 'sale' has a run in"),
        (("x", "--project", "sale"), "did you mean 'sales'?"),
        (("x", "--project", "zebra"), "`golden history` lists all"),
    ],
)
def test_bad_input_is_one_sentence(golden: Golden, recorded: Path, words: tuple[str, ...], told: str) -> None:
    ran = golden("recall", *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_without_a_store_it_says_what_to_do(golden: Golden, folder: Path) -> None:
    ran = golden("recall", "x", "--json")
    assert ran.code == 2
    assert "pytest --golden" in ran.json["error"]
    assert not (folder / ".golden").exists()


def test_task_is_answered_with_hints(golden: Golden, recorded: Path) -> None:
    with AgentMemory("fixer", recorded) as memory, memory.task("Fix the orders import") as task:
        task.attempt("bash", {"command": "pytest"}, error="KeyError: 'a'")
        task.attempt("edit", {"path": "src/a.py", "content": "b = 1"}, "ok")
        task.attempt("bash", {"command": "pytest"}, "1 passed")
    ran = golden("recall", "--task", "the import of orders")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "lesson: When `bash` fails with KeyError, look at `a.py`: an edit there fixed it"
    assert "  +b = 1" in lines
    assert "plan: This worked: `bash`, then `edit`, then `bash`" in lines
    told = golden("recall", "--task", "the import of orders", "--limit", "1", "--json").json
    assert [(hint["kind"], hint["why"]) for hint in told["hints"]] == [("lesson", "learned in a task like this")]
    assert golden("recall", "--task", "newsletter").out == "nothing is known about such a task\n"


def test_several_questions_are_answered_together(golden: Golden, recorded: Path) -> None:
    both = golden("recall", "a text", "--task", "newsletter")
    assert (both.code, both.err) == (0, "")
    assert both.out.splitlines() == ["nothing is known about this", "nothing is known about such a task"]
    told = golden("recall", "a text", "--task", "newsletter", "--json").json
    assert (told["text"], told["recalled"], told["task"], told["hints"]) == ("a text", [], "newsletter", [])
    # What cannot be answered is not a half answer.
    ran = golden("recall", "a text", "--diff", "main")
    assert (ran.code, ran.out) == (2, "")
    assert "--diff main: " in ran.err


@pytest.mark.parametrize(
    ("words", "told"),
    [([], "TEXT is blank"), ([" "], "TEXT is blank"), (["text", "--task", " "], "--task is blank")],
)
def test_a_blank_question_is_refused(golden: Golden, recorded: Path, words: list[str], told: str) -> None:
    ran = golden("recall", *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_a_session_is_learned_from_and_its_lesson_waits(golden: Golden, folder: Path) -> None:
    call = {"command": "pytest"}
    edit = {"file_path": "a.py", "old_string": "x", "new_string": "y"}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Fix the orders import"}]
    for number, (tool, given, said) in enumerate(
        [("Bash", call, "E   KeyError: 'a'"), ("Edit", edit, "ok"), ("Bash", call, "1 passed")]
    ):
        function = {"name": tool, "arguments": json.dumps(given)}
        messages += [
            {"role": "assistant", "tool_calls": [{"id": f"c{number}", "function": function}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": said},
        ]
    (folder / "session.json").write_text(json.dumps(messages))
    store = ("--store", "agents.db")
    Store.open(folder / "agents.db").close()
    ran = golden("learn", "--from", "session.json", "--agent", "fixer", *store)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "1 task with 3 calls: 1 new lesson to be approved, see `golden lessons list`\n"
    again = golden("learn", "--from", "session.json", "--json", *store)
    assert again.json["tasks"] == 1
    hints = golden("recall", "--task", "the import of orders", "--json", *store).json["hints"]
    # Nothing of a lesson is shown before a person has approved it.
    assert {hint["kind"] for hint in hints} == {"plan"}
    with Store.open(folder / "agents.db") as opened:
        (lesson, *_) = Lessons(opened).list_lessons("fixer")
    assert (lesson.approved, lesson.proposed_by, lesson.kind) == (False, "fixer", "edit_fix")
    assert golden("lessons", "approve", lesson.id, "--by", "ann", "--as-person", *store).code == 0
    hints = golden("recall", "--task", "the import of orders", "--json", *store).json["hints"]
    assert (hints[0]["kind"], hints[0]["evidence"]["by"]) == ("lesson", "fixer")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--from", "nothing.json"], "nothing.json cannot be read"),
        (["--from", "golden_projects.yaml"], "holds no calls of tools"),
        (["--agent", "x"], "--agent is the agent of a session"),
    ],
)
def test_a_session_that_is_none_is_bad_input(golden: Golden, recorded: Path, words: list[str], told: str) -> None:
    ran = golden("learn", *words)
    assert ran.code == 2
    assert told in ran.err


def test_what_an_agent_did_while_the_store_was_locked_is_learned(golden: Golden, recorded: Path) -> None:
    with (
        Store.open(recorded, busy_seconds=0.1) as store,
        closing(sqlite3.connect(recorded, isolation_level=None)) as other,
        AgentMemory("fixer", store) as memory,
    ):
        other.execute("BEGIN IMMEDIATE")
        with memory.task("Fix the orders import") as task:
            task.attempt("load", {"table": "a"}, error="ValueError: no table a")
            task.attempt("load", {"table": "b"}, "ok")
        memory.close()
        other.execute("ROLLBACK")
    assert golden("recall", "--task", "the import of orders").out == "nothing is known about such a task\n"
    assert golden("learn").code == 0
    assert "set `table` to 'b'" in golden("recall", "--task", "the import of orders").out


def test_a_session_that_cannot_be_kept_is_told_in_one_line(golden_process: GoldenProcess, folder: Path) -> None:
    call = {"id": "c", "function": {"name": "b", "arguments": "{}"}}
    messages = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "ok"}]
    (folder / "session.json").write_text(json.dumps(messages))
    Store.open(folder / "agents.db").close()
    with closing(sqlite3.connect(folder / "agents.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ran = golden_process("learn", "--from", "session.json", "--store", "agents.db")
    assert (ran.code, ran.out) == (2, "")
    assert "task 1 of 1 was not kept, since" in ran.err
    assert len([line for line in ran.err.splitlines() if line.strip()]) == 1
