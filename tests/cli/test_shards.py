from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_golden.regression.model import ResultStatus
from tests.verify.test_shard_plan import gate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

PASSED = ResultStatus.PASSED


@pytest.fixture
def declared(folder: Path) -> Path:
    """A manifest of three projects, of which one needs another."""
    projects = [{"path": "a.sh"}, {"path": "b.sh"}, {"path": "c.sh", "needs": ["a"]}]
    (folder / "golden_projects.yaml").write_text(json.dumps({"version": 1, "golden_projects": projects}))
    for name in "abc":
        (folder / f"{name}.sh").write_text("true\n")
    return folder


def test_a_plan_is_written_beside_the_manifest_and_told(golden: Golden, declared: Path) -> None:
    gate(declared / "store.db", {"a": PASSED, "b": PASSED, "c": PASSED})
    told = golden("shards", "plan", "--shards", "2", "--store", "store.db")
    assert told.code == 0
    assert told.out.splitlines() == [
        f"3 projects in 2 shards, written to {declared / 'golden_shards.json'}",
        "  1/2      2 projects  about 3.0s",
        "  2/2      1 project   about 1.5s",
    ]
    written = json.loads((declared / "golden_shards.json").read_text())
    assert written == {
        "schema_version": 1,
        "shards": 2,
        "projects": {
            "a": {"shard": 1, "seconds": 1.5},
            "b": {"shard": 2, "seconds": 1.5},
            "c": {"shard": 1, "seconds": 1.5},
        },
    }


def test_without_a_store_it_is_planned_by_number(golden: Golden, declared: Path) -> None:
    told = golden("shards", "plan", "--shards", "2", "--output", "plan.json", "--json")
    assert told.json == {
        "file": "plan.json",
        "shards": [
            {"shard": "1/2", "projects": ["a", "c"], "seconds": 2.0},
            {"shard": "2/2", "projects": ["b"], "seconds": 1.0},
        ],
        "projects": 3,
        "without_duration": 3,
    }
    shown = golden("shards", "plan", "--shards", "1")
    assert shown.out.splitlines()[1:] == [
        "  1/1      3 projects",
        "none of them has a recorded duration",
    ]


def test_projects_that_never_passed_are_counted(golden: Golden, declared: Path) -> None:
    gate(declared / "store.db", {"a": PASSED, "b": ResultStatus.FAILED})
    told = golden("shards", "plan", "--shards", "3", "--store", "store.db")
    assert told.out.splitlines()[-2:] == [
        "  3/3      0 projects  about 0.0s",
        "2 of them have no recorded pass, and count as the median of the others",
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--shards", "0"], "--shards 0 cannot be used; give a number from 1 to 1000"),
        (["--shards", "many"], "--shards many cannot be used"),
        (["--shards", "99999999999999"], "--shards 99999999999999 cannot be used"),
        (["--shards", "2", "--store", "nowhere.db"], "nothing is recorded yet in"),
        (["--shards", "2", "--manifest", "nowhere.yaml"], "nowhere.yaml"),
        (["--shards", "2", "--output", "."], "--output .: the report cannot be written"),
        ([], "--shards"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(golden: Golden, declared: Path, words: list[str], told: str) -> None:
    ran = golden("shards", "plan", *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (declared / "golden_shards.json").exists()


def test_a_merge_tells_whether_the_shards_are_a_whole_gate(golden: Golden, folder: Path) -> None:
    gate(folder / "1.db", {"a": PASSED}, ("b",), shard="1/2")
    gate(folder / "2.db", {"b": PASSED}, ("a",), shard="2/2")
    told = golden("merge", "1.db", "--store", "all.db")
    assert told.code == 1
    assert told.out.splitlines()[-2:] == [
        "2 declared projects: ERROR (partial: 1 not run): 1 passed, the gate is not whole",
        "  1 of 2 projects have no result: b (no store of shard 2/2 is here)",
    ]
    for _ in range(2):
        told = golden("merge", "2.db", "1.db", "--store", "all.db")
        assert (told.code, told.out.splitlines()[-1]) == (0, "2 declared projects: PASSED: 2 passed")
    told = golden("merge", "1.db", "--store", "all.db", "--json")
    assert (told.code, told.json["gate"]["missing"], told.json["runs"]) == (1, ["b"], 0)
