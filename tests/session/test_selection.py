from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.repository import git
from tests.session.test_changed import commit, ran
from tests.session.workspace import FAILS

if TYPE_CHECKING:
    from tests.session.recorded import Recorded
    from tests.session.workspace import Workspace

PLAN = {"schema_version": 1, "shards": 2, "projects": {name: {"shard": 1 + (name != "c")} for name in "abc"}}


def declare(workspace: Workspace, *names: str) -> None:
    workspace.declare(*({"name": name} for name in names))


def run(workspace: Workspace, shard: str, *arguments: str) -> list[str]:
    """Return what ran of a shard that must end with 0."""
    report = workspace.path.parent / "report.json"
    result = workspace.run(f"--golden-shard={shard}", f"--golden-json={report}", *arguments)
    assert result.ret == 0, result.stdout.str()
    told = json.loads(report.read_text())
    assert told["gate"]["shard"] == shard
    names = [one["name"] for one in told["results"]]
    assert sorted([*names, *told["gate"]["deselected"]]) == sorted(
        one["name"] for one in json.loads((workspace.path / "golden_projects.yaml").read_text())["golden_projects"]
    )
    return names


def test_shards_run_everything_once_by_number(workspace: Workspace) -> None:
    declare(workspace, "a", "b", "c", "d", "e")
    assert [run(workspace, f"{index}/2") for index in (1, 2)] == [["a", "c", "e"], ["b", "d"]]
    result = workspace.run("--golden-shard=2/2")
    result.stdout.fnmatch_lines(
        [
            "golden: shard 2/2, 2 of 5 projects, distributed by number: there is no shard plan",
            "*5 items / 3 deselected / 2 selected",
            "golden: PASSED (partial: 3 in other shards): 2 passed",
        ]
    )


def test_a_plan_beside_the_manifest_parts_them(workspace: Workspace) -> None:
    declare(workspace, "a", "b", "c", "new")
    (workspace.path / "golden_shards.json").write_text(json.dumps(PLAN))
    assert [run(workspace, f"{index}/2") for index in (1, 2)] == [["c", "new"], ["a", "b"]]
    workspace.run("--golden-shard=1/2").stdout.fnmatch_lines(
        ["golden: shard 1/2, 2 of 4 projects, about 2.0s of 4.0s by golden_shards.json"]
    )
    (workspace.path / "golden_shards.json").rename(workspace.path / "other.json")
    assert run(workspace, "1/2", "--golden-shard-plan=other.json") == ["c", "new"]


def test_a_plan_without_a_shard_parts_nothing(workspace: Workspace) -> None:
    declare(workspace, "a", "b")
    workspace.run("--golden-shard-plan=nowhere.json").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--golden-shard=3/2"], "*--golden-shard: '3/2' is not a shard: give I/N, such as 2/4, with I from 1 to N*"),
        (
            ["--golden-shard=1/3"],
            "*golden_shards.json is a plan for 2 shards, but --golden-shard is 1/3: use I/2, or make a new plan*",
        ),
        (
            ["--golden-shard=1/2", "--golden-shard-plan=nowhere.json"],
            "*plan of shards *nowhere.json: No such file or directory*",
        ),
    ],
)
def test_a_shard_that_cannot_be_is_refused_before_anything_runs(
    workspace: Workspace, options: list[str], told: str
) -> None:
    declare(workspace, "a", "b")
    (workspace.path / "golden_shards.json").write_text(json.dumps(PLAN))
    result = workspace.run(*options)
    assert result.ret == 4
    result.stderr.fnmatch_lines([told])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_an_empty_shard_passes_and_tells_the_store(workspace: Workspace, recorded: Recorded) -> None:
    declare(workspace, "a", "b")
    assert run(workspace, "3/3") == []
    told = recorded.facts()["facts"]
    assert (told["shard"], told["deselected"], recorded.results()) == ("3/3", ["a", "b"], {})


def test_a_shard_of_which_a_word_selects_nothing_passes_only_when_another_shard_has_it(workspace: Workspace) -> None:
    declare(workspace, "a", "b")
    assert run(workspace, "1/2", "-k", "b") == []
    assert workspace.run("--golden-shard=1/2", "-k", "nothing").ret == 5


@pytest.mark.xdist
def test_workers_run_the_same_shard(workspace: Workspace) -> None:
    declare(workspace, "a", "b", "c", "d")
    assert run(workspace, "1/2", "-n2") == ["a", "c"]
    assert run(workspace, "5/5", "-n1") == []
    assert workspace.run("--golden-shard=1/2", "-n1", "-k", "nothing").ret == 5


def test_a_shard_that_fails_fails(workspace: Workspace) -> None:
    workspace.declare({"name": "a"}, {"name": "b", "script": FAILS})
    assert workspace.run("--golden-shard=1/2").ret == 0
    assert workspace.run("--golden-shard=2/2").ret == 1


def test_what_another_shard_runs_is_no_hole_in_the_floor(workspace: Workspace) -> None:
    declare(workspace, "first", "second", "third")
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    assert run(workspace, "1/2", "--golden-base=main") == ["first", "third"]
    result = workspace.run("--golden-shard=1/2", "--golden-base=main", "-k", "first")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["third: *deselected*"])
    result.stdout.no_fnmatch_line("second: *")


def test_a_plan_is_nobodys_input(workspace: Workspace) -> None:
    declare(workspace, "a", "b", "c")
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    assert workspace.run().ret == 0
    (workspace.path / "golden_shards.json").write_text(json.dumps(PLAN))
    assert ran(workspace, "--golden-shard=2/2", "--golden-changed=main") == []
    (workspace.path / "golden_shards.json").rename(workspace.path / "input.json")
    assert ran(workspace, "--golden-shard=2/2", "--golden-changed=main") == ["b"]
