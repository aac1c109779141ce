from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.gate.event_recording import record_event
from pytest_golden.gate.merging_store import read_last_gate
from pytest_golden.gate.sharding import GateUnion, unite
from pytest_golden.history.changes import MANIFEST_DIGEST, SHARD
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.store import Store
from tests.gate.gate_events import begin, end, judge

if TYPE_CHECKING:
    from pathlib import Path

PASSED, FAILED = ResultStatus.PASSED, ResultStatus.FAILED


def gate(
    path: Path, results: dict[str, ResultStatus], deselected: tuple[str, ...] = (), *, minute: int = 0, **more: Any
) -> Path:
    """Record a gate run in a store; of an expected project that has None the gate did not get to the result."""
    facts = {SHARD: more.pop("shard", None), MANIFEST_DIGEST: more.pop("digest", None)}
    expected = more.pop("expected", ())
    begun = begin(*results, *expected, minute=minute, facts=facts, **more)
    events: list[Any] = [begun, *(judge(begun, project, status) for project, status in results.items())]
    if not expected:
        events.append(end(begun, facts={"deselected": list(deselected)}))
    with Store.open(path) as store:
        for event in events:
            with store.write() as connection:
                record_event(connection, event)
    return path


def join(*paths: Path) -> GateUnion | None:
    gates = []
    for path in paths:
        with Store.open(path) as store, store.read() as connection:
            gates.append(read_last_gate(connection, path.name))
    return unite([one for one in gates if one is not None])


def test_shards_that_ran_everything_are_a_whole_gate(tmp_path: Path) -> None:
    one = gate(tmp_path / "1.db", {"a": PASSED}, ("b", "c"), shard="1/2")
    two = gate(tmp_path / "2.db", {"b": PASSED, "c": FAILED}, ("a",), shard="2/2")
    union = join(one, two, one)
    assert union is not None
    assert union.is_whole
    assert union.verdict.sentence == "FAILED: 2 passed, 1 failed"
    assert union.to_dict() == {
        "verdict": union.verdict.to_dict(),
        "is_whole": True,
        "declared": 3,
        "statuses": {"FAILED": 1, "PASSED": 2},
        "missing": [],
        "problems": [],
    }


def test_a_missing_shard_is_named_with_its_projects(tmp_path: Path) -> None:
    one = gate(tmp_path / "1.db", {"a": PASSED}, ("b", "c"), shard="1/3")
    three = gate(tmp_path / "3.db", {}, ("a", "b", "c"), shard="3/3")
    union = join(one, three)
    assert union is not None
    assert union.missing == ("b", "c")
    assert union.problems == ("2 of 3 projects have no result: b, c (no store of shard 2/3 is here)",)
    assert union.verdict.sentence == "ERROR (partial: 2 not run): 1 passed, the gate is not whole"


def test_a_gate_that_was_cut_off_is_not_whole(tmp_path: Path) -> None:
    union = join(gate(tmp_path / "1.db", {"a": PASSED}, expected=("b",)))
    assert union is not None
    assert union.problems == ("1 of 2 projects have no result: b",)
    assert union.verdict.sentence == "INTERRUPTED (partial: 1 not run): 1 passed, the gate is not whole"


def test_gates_of_different_manifests_or_commits_are_not_one(tmp_path: Path) -> None:
    one = gate(tmp_path / "1.db", {"a": PASSED}, ("b",), shard="1/2", digest="1" * 64)
    two = gate(tmp_path / "2.db", {"b": PASSED}, ("a",), shard="2/2", digest="2" * 64)
    union = join(one, two)
    assert union is not None
    assert union.problems == (
        "these gates are of different manifests, and so not one gate: 1.db of 111111111111, 2.db of 222222222222",
    )
    checkout = {"commit": "d" * 40, "branch": "main", "dirty": False, "dirty_files": {}}
    three = gate(tmp_path / "3.db", {"b": PASSED}, ("a",), shard="2/2", digest="1" * 64, checkout=checkout)
    union = join(one, three)
    assert union is not None
    assert union.problems == (
        "these gates are of different commits, and so not one gate: 1.db of cccccccccccc, 3.db of dddddddddddd",
    )


def test_only_the_last_gate_of_a_store_counts(tmp_path: Path) -> None:
    store = gate(tmp_path / "1.db", {"a": PASSED, "b": PASSED})
    gate(store, {"a": PASSED}, ("b",), minute=5, shard="1/2")
    union = join(store)
    assert union is not None
    assert union.missing == ("b",)


def test_stores_without_a_gate_are_no_union(tmp_path: Path) -> None:
    Store.open(tmp_path / "1.db").close()
    assert join(tmp_path / "1.db") is None
