"""The workflow of shards: its plan, two of its jobs by the composite action, and the job that joins them, step by step."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.docs.documents import REPOSITORY
from tests.github.expressions import fill
from tests.github.runner import Run, Runner
from tests.github.test_action import git, make_floor

if TYPE_CHECKING:
    from pathlib import Path

WORKFLOW = REPOSITORY / ".github" / "workflows" / "golden-shards.yml"


class Workflow:
    """The workflow's jobs, each in a clone of its own."""

    def __init__(self, place: Path, programs: Path) -> None:
        self._place = place
        self._programs = programs
        told = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
        self._jobs = told["jobs"]
        # PyYAML reads the key `on` as true.
        inputs = {name: one["default"] for name, one in told[True]["workflow_call"]["inputs"].items()}
        self._contexts: dict[str, Any] = {
            "inputs": {**inputs, "shards": 2, "sandbox": "auto"},
            "github": {"repository": "me/shop", "run_id": 1},
        }

    def clone(self, name: str) -> Runner:
        clone = self._place / name / "clone"
        git(self._place, "clone", "-q", (self._place / "origin").as_uri(), str(clone))
        runner = Runner(self._place / name / "runner", clone, "http://127.0.0.1:9", self._programs)
        runner.write_command("sysctl", "echo 0")
        return runner

    def run_step(self, runner: Runner, job: str, name: str, **contexts: Any) -> Run:
        step = self._find(job, name)
        run = Run()
        here = {**self._contexts, "runner": {"temp": str(runner.temporary)}, "steps": run.steps, **contexts}
        run.code = runner.run_step(step, here, run)
        return run

    def run_shard(self, runner: Runner, index: int) -> Run:
        contexts = {
            **self._contexts,
            "runner": {"temp": str(runner.temporary)},
            "matrix": {"shard": index},
            "steps": {},
        }
        given = {
            name: fill(str(told), contexts) for name, told in self._find("shard", "Run this shard")["with"].items()
        }
        given = {name.replace("-", "_"): told for name, told in given.items()}
        return runner.run({"event": {}}, **given)

    def _find(self, job: str, name: str) -> dict[str, Any]:
        return next(dict(step) for step in self._jobs[job]["steps"] if step.get("name") == name)


@pytest.fixture
def workflow(tmp_path: Path, warm_starts: Path) -> Workflow:
    folder = make_floor(tmp_path / "origin")
    (folder / ".gitignore").write_text(".golden/\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "What git leaves out")
    return Workflow(tmp_path, warm_starts)


def test_shards_run_everything_once_and_are_joined(workflow: Workflow) -> None:
    planner = workflow.clone("plan")
    planned = workflow.run_step(planner, "plan", "Plan the shards")
    assert (planned.code, planned.steps["plan"]["outputs"]) == (0, {"shards": "[1,2]"}), planned.log
    joiner = workflow.clone("merge")
    for index in json.loads(planned.steps["plan"]["outputs"]["shards"]):
        runner = workflow.clone(f"shard-{index}")
        shutil.copytree(planner.temporary / "golden-plan", runner.temporary / "golden-plan")
        ran = workflow.run_shard(runner, index)
        assert ran.code == 0, ran.log
        assert f"golden: shard {index}/2, 1 of 2 projects" in ran.log
        store = joiner.temporary / "golden-stores" / f"golden-shard-store-{index}" / "golden.db"
        store.parent.mkdir(parents=True)
        shutil.copyfile(runner.workspace / ".golden" / "golden.db", store)
        joined = workflow.run_step(joiner, "merge", "Join the shards")
        assert joined.code == (1 if index == 1 else 0), joined.log
    assert "2 declared projects: PASSED: 2 passed" in joined.log
    assert (joiner.workspace / ".golden" / "golden.db").is_file()


@pytest.mark.parametrize(("result", "code"), [("success", 0), ("failure", 1), ("cancelled", 1), ("skipped", 1)])
def test_the_verdict_is_that_of_all_shards(workflow: Workflow, result: str, code: int) -> None:
    told = workflow.run_step(workflow.clone("merge"), "merge", "Tell the verdict", needs={"shard": {"result": result}})
    assert told.code == code
