from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_golden.history.changes import (
    PastPass,
    Present,
    compare_declarations,
    describe_parting,
    find_changes,
)
from pytest_golden.history.checkout import Checkout, read_checkout
from pytest_golden.history.inputs import RunInputs
from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig, Mount
from pytest_golden.redaction.redactor import redact
from pytest_golden.trajectory.model import Trajectory
from tests.history.past_results import NOON, results_of
from tests.repository import git

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = {"holds": True, "folder": "etl/", "is_all": True}
BEFORE = GoldenProjectConfig("a", "a.py", timeout=600, set_env={"TZ": "UTC", "OLD": "1", "API_TOKEN": "a1b2c3d4e5f6"})


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

    broken = find_changes(replace(past, first_failure=Checkout(commits[1], "main", False, {})), present)
    assert (broken.checkout.subjects, broken.checkout.files) == (("commit 1",), ("1.py",))
    assert broken.later_commit_count == 2
    assert broken.to_dict()["later_commit_count"] == 2

    for commit in (None, commits[0], commits[3], "f" * 40):
        whole = find_changes(replace(past, first_failure=Checkout(commit, "main", False, {})), present)
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


def run_of(*steps: Any) -> Trajectory:
    trajectory = Trajectory.new()
    for step in steps:
        content, metadata = step if isinstance(step, tuple) else (step, {})
        trajectory = trajectory.add_step("action", content, metadata=metadata)
    return trajectory


def test_run_that_took_the_same_steps_did_not_part() -> None:
    assert describe_parting(run_of("a"), run_of("a")) is None
    assert describe_parting(run_of("a").complete(), run_of("a").complete("failure")) is None


def test_run_that_ended_or_went_on_is_told() -> None:
    assert describe_parting(run_of("a", "b"), run_of("a")) == "step 2: the good run went on with 'b', this one ended"
    assert describe_parting(run_of("a"), run_of("a", "b")) == "step 2: the good run ended, this one went on with 'b'"


def test_step_that_went_otherwise_is_told() -> None:
    good, present = run_of("a", ("load", {"rows": 100})), run_of("a", ("load", {"rows": 90}))
    assert describe_parting(good, present) == "step 2, 'load': rows 100 -> 90"
    assert describe_parting(run_of("a", "b"), run_of("a", "x")) == "step 2, 'b': content 'b' -> 'x'"


def test_order_of_steps_that_run_side_by_side_is_no_difference() -> None:
    good = run_of("a", "b", "c", "d")
    assert describe_parting(good, run_of("c", "a", "d", "b")) is None
    assert describe_parting(good, run_of("b", ("a", {"error": "boom"}), "c", "d")) == ("step 1, 'a': it failed")
    assert describe_parting(good, run_of("b", "a", "x", "c", "d")) == (
        "step 5: the good run ended, this one went on with 'x'"
    )


def test_order_counts_where_steps_have_no_names_of_their_own() -> None:
    assert describe_parting(run_of("a", "b", "a"), run_of("b", "a", "a")) == "step 1, 'a': content 'a' -> 'b'"
    assert describe_parting(run_of({"x": 1}, "b"), run_of("b", {"x": 1})) == (
        """step 1, {"x": 1}: content {"x": 1} -> 'b'"""
    )


def test_note_of_the_harness_is_no_step() -> None:
    note = Trajectory.new().add_step("observation", "boom", metadata={"error": "boom"})
    assert describe_parting(Trajectory.new(), note) is None
    assert describe_parting(run_of("a"), note) == "step 1: the good run went on with 'a', this one ended"
    assert describe_parting(note, run_of("a")) == "step 1: the good run ended, this one went on with 'a'"
    own = Trajectory.new().add_step("observation", "boom", metadata={"error": "another"})
    assert describe_parting(Trajectory.new(), own) == "step 1: the good run ended, this one went on with 'boom'"


def test_step_that_failed_is_told_without_its_error() -> None:
    good = run_of(("load", {"rows": 3}))
    told = "step 1, 'load': it failed, rows 3 -> 2"
    assert describe_parting(good, run_of(("load", {"rows": 2, "error": "boom"}))) == told
    many = {"error": "boom", "rows": 1, "a": 1, "b": 1, "c": 1}
    told = "step 1, 'load': it failed, rows 3 -> 1, a (not reported) -> 1 and 2 more"
    assert describe_parting(good, run_of(("load", many))) == told
    fixed = "step 1, 'load': error 'boom' -> (not reported)"
    assert describe_parting(run_of(("load", {"error": "boom"})), run_of("load")) == fixed


def test_what_one_of_the_two_did_not_report_is_told() -> None:
    good, present = run_of(("load", {"rows": 3})), run_of(("load", {"kept": 2}))
    told = "step 1, 'load': rows 3 -> (not reported), kept (not reported) -> 2"
    assert describe_parting(good, present) == told
    reported = run_of(("load", {"text": "none"}))
    assert describe_parting(run_of("load"), reported) == "step 1, 'load': text (not reported) -> 'none'"
    assert describe_parting(reported, run_of("load")) == "step 1, 'load': text 'none' -> (not reported)"


def test_same_declaration_has_no_changes() -> None:
    assert compare_declarations(BEFORE.to_dict(), BEFORE.to_dict()) == ()
    assert compare_declarations({}, BEFORE.to_dict()) == ()


def test_keys_that_changed_are_told_with_short_values() -> None:
    now = replace(
        BEFORE,
        timeout=60,
        args=("--select", "all"),
        network=False,
        mounts=(Mount("/data"),),
        memory_limit=2048,
        expected_outcome="specific_error:" + "x" * 100,
        title="For people",
        description="alike",
    )
    assert compare_declarations(BEFORE.to_dict(), now.to_dict()) == (
        f"expected_outcome success -> specific_error:{'x' * 42}...",
        'args none -> ["--select", "all"]',
        "timeout 10m -> 60s",
        "memory_limit none -> 2KiB",
        "network true -> false",
        'mounts none -> [{"path": "/data", "mode": "read"}]',
    )


def test_outputs_are_told_one_by_one() -> None:
    before = replace(
        BEFORE, outputs=(DeclaredOutput("a.csv"), DeclaredOutput("b.csv"), DeclaredOutput("b.csv", "exists"))
    )
    now = replace(
        BEFORE,
        outputs=(
            DeclaredOutput("a.csv", key=("id",), unordered=True, relative_tolerance=1e-6),
            DeclaredOutput("b.csv"),
            DeclaredOutput("c.csv"),
        ),
        max_slowdown=2.0,
    )
    assert compare_declarations(before.to_dict(), now.to_dict()) == (
        "outputs.a.csv.unordered false -> true",
        "outputs.a.csv.relative_tolerance 0 -> 1e-06",
        'outputs.a.csv.key none -> ["id"]',
        "outputs.c.csv added",
        "outputs.b.csv (2) removed",
        "max_slowdown none -> 2",
    )
    assert compare_declarations(before.to_dict(), before.to_dict()) == ()


def test_variables_are_told_one_by_one_and_secrets_never() -> None:
    now = replace(
        BEFORE, set_env={"TZ": "CET", "API_TOKEN": "f6e5d4c3b2a1", "NEW": "x", "DB_PASSWORD": "hunter2hunter2"}
    )
    lines = compare_declarations(BEFORE.to_dict(), now.to_dict())
    assert lines[:2] == ("set_env.TZ UTC -> CET", "set_env.NEW added: x")
    assert lines[-1] == "set_env.OLD removed"
    assert "hunter2" not in str(lines)
    assert "f6e5d4c3b2a1" not in str(lines)
    assert compare_declarations(redact(BEFORE.to_dict()), now.to_dict()) == lines
