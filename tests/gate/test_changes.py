from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_golden.history.changes import FirstFailure, PastPass, Present, find_changes
from pytest_golden.history.checkout import Checkout, read_checkout
from pytest_golden.history.inputs import RunInputs
from pytest_golden.manifest.model import GoldenProjectConfig
from tests.gate.past_results import NOON, results_of
from tests.gate.test_base_manifest import git

if TYPE_CHECKING:
    from pathlib import Path


INPUTS = {"holds": True, "folder": "etl/", "is_all": True}


def test_everything_that_changed_since_the_last_pass_is_found(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "etl").mkdir()
    (tmp_path / "etl" / "a.py").write_text("1")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    then = read_checkout(tmp_path)
    past = PastPass(
        results_of("P", commit=then.commit)[0],
        then.dirty_files,
        declaration=GoldenProjectConfig("a", "etl/a.py", venv="v").to_dict(),
        surroundings={"python": "3.11.2", "venvs": {"v": {"distributions": {"pandas": "2.2.3"}}}},
        inputs=RunInputs({**INPUTS, "files": {"etl/in.csv": [5, "w1"], "etl/a.py": [1, "w1"], "etl/out": [1, "w1"]}}),
    )
    (tmp_path / "etl" / "a.py").write_text("2")
    present = Present(
        tmp_path,
        read_checkout(tmp_path),
        GoldenProjectConfig("a", "etl/a.py", venv="v", timeout=60).to_dict(),
        {"python": "3.11.2", "venvs": {"v": {"distributions": {"pandas": "2.3.0"}}}},
        within=tmp_path / "etl",
        inputs=RunInputs(
            {**INPUTS, "files": {"etl/in.csv": [6, "w2"], "etl/a.py": [2, "w2"], "etl/out": [2, "w2"]}}, ("out",)
        ),
    )
    changed = find_changes(past, present, "step 3")
    assert (changed.passed_at, changed.run_id, changed.commit) == (NOON, "run_0", then.commit)
    assert changed.checkout.files == ("etl/a.py",)
    assert changed.declaration == ("timeout 10m -> 60s",)
    assert changed.surroundings == ("pandas 2.2.3 -> 2.3.0 (in v)",)
    assert changed.inputs == ("etl/in.csv changed (5B -> 6B)",)
    assert changed.is_input_known
    plain = changed.to_dict()
    assert plain["inputs"] == ["etl/in.csv changed (5B -> 6B)"]
    assert json.loads(json.dumps(plain)) == plain
    assert plain["passed_at"] == "2026-11-20T12:00:00.000000Z"
    assert plain["checkout"]["files"] == ["etl/a.py"]
    assert plain["parted"] == "step 3"


def test_failure_that_is_not_the_first_is_compared_up_to_that_alone(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    commits = []
    for number in range(4):
        (tmp_path / f"{number}.py").write_text("1")
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-q", "-m", f"commit {number}")
        commits.append(read_checkout(tmp_path).commit)
    past = PastPass(results_of("P", commit=commits[0])[0], {}, {}, {})
    present = Present(tmp_path, read_checkout(tmp_path), {}, {})

    broken = find_changes(replace(past, first_failure=FirstFailure(commits[1], "main", False, {})), present)
    assert (broken.checkout.subjects, broken.checkout.files) == (("commit 1",), ("1.py",))
    assert broken.later_commit_count == 2
    assert broken.to_dict()["later_commit_count"] == 2

    for commit in (None, commits[0], commits[3], "f" * 40):
        whole = find_changes(replace(past, first_failure=FirstFailure(commit, "main", False, {})), present)
        assert (whole.checkout.commit_count, whole.later_commit_count) == (3, None)


def test_outside_git_the_projects_files_are_told_as_inputs(tmp_path: Path) -> None:
    past = PastPass(
        results_of("P", commit=None)[0], None, {}, {}, inputs=RunInputs({**INPUTS, "files": {"a": [1, "w1"]}})
    )
    present = Present(tmp_path, Checkout(), {}, {}, inputs=RunInputs({**INPUTS, "files": {"a": [2, "w2"]}}))
    changed = find_changes(past, present)
    assert changed.inputs == ("a changed (1B -> 2B)",)
    assert changed.checkout.note == "no checkout here, so the project's files are told as inputs"
    unknown = find_changes(replace(past, inputs=RunInputs()), present)
    assert unknown.checkout.note == "no checkout here, so what changed in the files is not known"
