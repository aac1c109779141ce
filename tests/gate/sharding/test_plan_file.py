from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.gate.sharding import Shard, ShardPlan, read_plan, write_plan

if TYPE_CHECKING:
    from pathlib import Path


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
    assert str(told.value) == f"{path} is no plan of shards: write one anew with `golden shards plan --shards N`."


def test_a_plan_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"plan\.json: No such file or directory; write one"):
        read_plan(tmp_path / "plan.json")
    with pytest.raises(SettingsError, match="Is a directory; write one"):
        read_plan(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "2", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b", "1/1001", "1/99999999999", "\u0661/2"]
)
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"--golden-shard: .* is no shard: give I/N, such as 2/4"):
        Shard.parse(text, "--golden-shard")


def test_a_shard_is_read_and_shown() -> None:
    assert Shard.parse(" 2/4 ", "here") == Shard(2, 4)
    assert str(Shard(2, 4)) == "2/4"
