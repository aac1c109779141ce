from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.learning import MemoryStore, learn_from_results
from pytest_golden.storage.store import Store
from tests.learning.conftest import GateHistory

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
        lesson = {"lesson": "the column\x1b[31m was renamed " + "x" * 300}
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


def test_words_are_enough(golden: Golden, recorded: Path) -> None:
    ran = golden("recall", "on", "fire")
    assert ran.out.startswith("reads alike: seen before once in stock")


def test_json_holds_the_same(golden: Golden, recorded: Path) -> None:
    told = golden("recall", "no such column: 'price'", "--json").json
    assert told["text"] == "no such column: 'price'"
    assert [(one["why"], one["project"], one["count"]) for one in told["seen"]] == [("signature", "sales", 1)]
    assert told["seen"][0]["last_fixed"]["commit"] == "b" * 40
    assert [hit["memory"]["key"] for hit in told["memories"]] == ["l1"]


def test_passes_are_told_as_memories(golden: Golden, recorded: Path) -> None:
    assert "2026-" in golden("recall", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb").out
    assert "Run golden project sales: success" in golden("recall", "sales", "--project", "sales").out


def test_what_is_told_can_be_narrowed(golden: Golden, recorded: Path) -> None:
    assert "nothing is known of this" in golden("recall", BOOM, "--project", "stock").out
    assert golden("recall", "column fire", "--limit", "1", "--json").json["seen"][1:] == []


def test_nothing_known_is_no_error(golden: Golden, recorded: Path) -> None:
    ran = golden("recall", "zebra")
    assert (ran.code, ran.out) == (0, "nothing is known of this\n")
    assert golden("recall", "zebra", "--json").json == {"text": "zebra", "seen": [], "memories": []}


def test_store_can_be_named(golden: Golden, recorded: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    Store.open(other).close()
    assert golden("recall", BOOM, "--store", str(other)).out == "nothing is known of this\n"


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
