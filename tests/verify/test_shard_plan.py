from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.errors import SettingsError
from pytest_golden.gate.store import record_event
from pytest_golden.history.run_environment import MANIFEST_DIGEST, SHARD
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.store import Store
from pytest_golden.verify.merging_store import read_last_gate
from pytest_golden.verify.shard_plan import (
    GateUnion,
    Shard,
    ShardPlan,
    complete_plan,
    form_groups,
    read_plan,
    total_seconds,
    unite,
    write_plan,
)
from tests.gate.gate_events import begin, end, judge

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PASSED, FAILED = ResultStatus.PASSED, ResultStatus.FAILED


def declare(*names: str, **needs: list[str]) -> list[GoldenProjectConfig]:
    return [GoldenProjectConfig(name, f"{name}.sh", needs=tuple(needs.get(name, ()))) for name in names]


def plan(seconds: Mapping[str, float], count: int, **needs: list[str]) -> ShardPlan:
    return complete_plan(declare(*seconds, **needs), ShardPlan(count, seconds=dict(seconds)))


@pytest.mark.parametrize("count", [2, 4, 8, 10, 20])
def test_a_hundred_projects_are_parted_evenly(count: int) -> None:
    for seed in range(10):
        random = Random(seed)
        seconds = {f"p{number}": random.lognormvariate(1, 1) for number in range(100)}
        ideal = max(sum(seconds.values()) / count, *seconds.values())
        assert max(total_seconds(plan(seconds, count))) <= 1.15 * ideal


def test_what_needs_each_other_stays_together() -> None:
    groups = form_groups(declare("a", "b", "c", "d", "e", "f", c=["a"], d=["b"], f=["d", "c"]))
    assert groups == [("a", "b", "c", "d", "f"), ("e",)]
    parted = plan({"a": 1, "b": 9, "c": 1, "d": 1}, 2, c=["a"], d=["c"]).shards
    assert parted == {"a": 2, "b": 1, "c": 2, "d": 2}


def test_unknown_durations_are_taken_to_be_the_median_and_without_any_it_goes_by_number() -> None:
    known = ShardPlan(2, seconds={"a": 10.0, "b": 2.0, "c": 1.0})
    completed = complete_plan(declare("a", "b", "c", "d"), known)
    assert completed.shards == {"a": 1, "b": 2, "c": 2, "d": 2}
    assert total_seconds(completed) == (10.0, 5.0)
    assert complete_plan(declare("a", "b", "c", "d", "e"), ShardPlan(2)).shards == {
        "a": 1,
        "b": 2,
        "c": 1,
        "d": 2,
        "e": 1,
    }


def test_a_plan_is_kept_and_what_is_new_comes_into_the_shortest_shard() -> None:
    old = ShardPlan(3, {"a": 1, "b": 2, "c": 2, "gone": 3}, {"a": 5.0, "b": 1.0, "c": 1.0, "gone": 50.0})
    completed = complete_plan(declare("new", "a", "b", "c", "late", late=["c"]), old)
    assert completed.shards == {"new": 3, "a": 1, "b": 2, "c": 2, "late": 2}
    assert "gone" not in completed.seconds


def test_projects_that_have_come_to_need_each_other_go_where_the_first_is() -> None:
    old = ShardPlan(2, {"a": 1, "b": 2}, {"a": 1.0, "b": 1.0})
    assert complete_plan(declare("a", "b", b=["a"]), old).shards == {"a": 1, "b": 1}


@given(
    st.dictionaries(st.text("abcdefgh", min_size=1, max_size=3), st.floats(0, 1e6), max_size=12),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_every_project_is_in_one_shard_whatever_the_order_of_reading(
    seconds: dict[str, float], count: int, random: Random
) -> None:
    parted = plan(seconds, count)
    assert list(parted.shards) == list(seconds)
    assert set(parted.shards.values()) <= set(range(1, count + 1))
    shuffled = list(seconds.items())
    random.shuffle(shuffled)
    assert complete_plan(declare(*seconds), ShardPlan(count, seconds=dict(shuffled))) == parted
    assert complete_plan(declare(*seconds), parted) == parted


@pytest.mark.parametrize("plan", [ShardPlan(3, {"a": 1, "b c": 3}, {"b c": 1.25}), ShardPlan(1)])
def test_a_plan_is_written_and_read_again(tmp_path: Path, plan: ShardPlan) -> None:
    (tmp_path / "plan.json").write_text(write_plan(plan))
    assert read_plan(tmp_path / "plan.json") == plan


def test_each_project_of_a_plan_has_a_line_of_its_own() -> None:
    assert write_plan(ShardPlan(2, {"a": 1, "b": 2}, {"a": 0.12345})).splitlines()[4:6] == [
        '    "a": {"shard": 1, "seconds": 0.123},',
        '    "b": {"shard": 2, "seconds": null}',
    ]


def change(**keys: Any) -> str:
    return json.dumps({"schema_version": 1, "shards": 2, "projects": {}, **keys})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "[" * 100_000,
        "\0",
        change(schema_version=2),
        change(shards=0),
        change(shards=True),
        change(shards="2"),
        change(shards=1001),
        change(projects=[]),
        change(projects={"a": 1}),
        change(projects={"a": {"shard": 3}}),
        change(projects={"a": {"shard": 1.0}}),
        change(projects={"a": {"shard": 1, "seconds": -1}}),
        change(projects={"a": {"shard": 1, "seconds": "1"}}),
        change(projects={"a": {"shard": 1, "seconds": float("nan")}}),
        change(projects={"a": {"shard": 1, "seconds": float("inf")}}),
    ],
)
def test_what_is_no_plan_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(SettingsError) as told:
        read_plan(path)
    assert str(told.value) == f"{path} is not a plan of shards: write a new one with `golden shards plan --shards N`."


def test_a_plan_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"plan\.json: No such file or directory; write one"):
        read_plan(tmp_path / "plan.json")
    with pytest.raises(SettingsError, match="Is a directory; write one"):
        read_plan(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "2", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b", "1/1001", "1/99999999999", "\u0661/2"]
)
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"--golden-shard: .* is not a shard: give I/N, such as 2/4"):
        Shard.parse(text, "--golden-shard")


def test_a_shard_is_read_and_shown() -> None:
    assert Shard.parse(" 2/4 ", "here") == Shard(2, 4)
    assert str(Shard(2, 4)) == "2/4"


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
