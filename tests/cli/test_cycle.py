from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.cycle.cycle_runner import CycleRunner
from pytest_golden.cycle.model import CycleConfig
from pytest_golden.journal.service import Journal
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.repository import MANIFEST, Repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

pytestmark = pytest.mark.usefixtures("temporary_folder", "warm_gates")

KEYS = [
    *("cycle_id", "final_status", "verdict", "branch", "commit", "regressions_detected", "improvements_approved"),
    *("improvements_rejected", "steps", "regression_check", "weakened_floor"),
]


@pytest.fixture
def repository(folder: Path) -> Repository:
    """A checkout whose golden project passes as long as lib.sh says so."""
    made = Repository(folder)
    made.write(**{MANIFEST.replace(".", "__"): "golden_projects:\n  - {name: works, path: run.sh}\n"})
    made.write(run__sh=". ./lib.sh\n", lib__sh="exit 0\n")
    made.commit("base")
    return made


def test_an_approved_improvement_is_verified_kept_on_its_branch_and_merged_nowhere(
    repository: Repository, golden: Golden, monkeypatch: pytest.MonkeyPatch, temporary_folder: Path
) -> None:
    base = repository.git("rev-parse", "HEAD")
    repository.write(lib__sh="exit 1 # an edit that is not committed\n")
    monkeypatch.setenv("MY_TOKEN", "correct-horse-battery")
    improve = 'echo "# $GOLDEN_CYCLE_TASK in round $GOLDEN_CYCLE_ROUND" >> lib.sh; echo "$MY_TOKEN"'
    review = 'grep -q "for speed in round 1" "$GOLDEN_CYCLE_DIFF" && grep -q "$GOLDEN_CYCLE_ID" "$GOLDEN_CYCLE_STATE"; touch junk'
    ran = golden(
        "cycle", "--improve", improve, "--review", review, "--task", "for speed", "--max-improvements", "1", "--json"
    )
    assert ran.code == 0, ran.err
    told = ran.json
    assert list(told) == KEYS
    assert (told["final_status"], told["verdict"], told["weakened_floor"]) == ("SUCCESS", "verified", [])
    assert [one["status"] for one in told["regression_check"]["results"]] == ["PASSED"]
    assert told["branch"].startswith("golden/cycle-")
    assert repository.git("rev-parse", told["branch"]) == told["commit"]
    assert repository.git("diff", "--name-only", base, told["commit"]) == "lib.sh"
    assert repository.git("rev-parse", "main") == base
    assert repository.worktrees() == [str(repository.folder)]
    assert not list(temporary_folder.iterdir())
    assert "edits that are not committed" in ran.err
    assert "improve | " in ran.err
    assert "correct-horse" not in ran.err
    assert "correct-horse" not in "".join(
        file.read_text() for file in (repository.folder / ".golden" / "cycles").iterdir()
    )
    with Journal.open(repository.folder / ".golden" / "golden.db") as journal:
        (entry,) = journal.review_journal("success", "cycle", agent_id="golden")
    assert entry.intent == "for speed"


def test_a_floor_that_is_weakened_to_hide_a_break_is_flagged_and_the_bases_floor_still_judges(
    repository: Repository, golden: Golden
) -> None:
    improve = "echo 'exit 3' > lib.sh; sed -i 's/path: run.sh/path: run.sh, expected_outcome: exit_code:3/' golden_projects.yaml"
    ran = golden(
        "cycle", "--improve", improve, "--review", "true", "--max-improvements", "1", "--store", "none", "--json"
    )
    assert ran.code == 1
    assert (ran.json["verdict"], ran.json["regressions_detected"]) == ("flagged", 1)
    assert {one["kind"] for one in ran.json["weakened_floor"]} == {"manifest", "expectation"}


def test_the_branch_of_a_cycle_waits_for_a_person_until_it_is_merged(repository: Repository, golden: Golden) -> None:
    cycle = ("cycle", "--review", "true", "--max-improvements", "1", "--json")
    verdicts: dict[str, str] = {}
    for improve in ("echo '# faster' >> lib.sh", "echo 'exit 0' > run.sh"):
        ran = golden(*cycle, "--improve", improve, "--task", "for speed")
        verdicts[ran.json["verdict"]] = ran.json["branch"]
    waiting = {item["who"]: item for item in golden("inbox", "--json").json["items"]}
    assert [(item["title"], item["detail"], item["action"]) for _, item in sorted(waiting.items())] == [
        ("for speed", verdicts["flagged"], f"git diff HEAD...{verdicts['flagged']}"),
        ("for speed", verdicts["verified"], f"git merge {verdicts['verified']}"),
    ]
    assert sorted(waiting) == ["flagged", "verified"]
    repository.git("merge", "-q", verdicts["verified"])
    repository.git("branch", "-q", "-D", verdicts["flagged"])
    assert golden("inbox").out == "nothing waits for you\n"


def test_an_edit_of_a_projects_own_file_is_flagged_although_all_pass(repository: Repository, golden: Golden) -> None:
    improve = "echo 'exit 0' > run.sh; echo nonsense: [ > golden_projects.yaml"
    ran = golden("cycle", "--improve", improve, "--review", "true", "--max-improvements", "1", "--store", "none")
    assert ran.code == 1
    assert "PARTIAL (the floor is weakened), verdict flagged" in ran.out
    assert "works: its own file run.sh was edited" in ran.out
    assert "PASSED works" in ran.out


def test_rejected_by_exit_code_one_and_an_error_by_any_other_also_when_it_was_killed_at_its_end(
    repository: Repository, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    improve = ("cycle", "--improve", "echo '#' >> lib.sh", "--max-improvements", "1", "--json")
    with monkeypatch.context() as patch:
        patch.setattr("pytest_golden.cycle.cycle_record.CycleRecord.end", interrupt)
        killed = golden(*improve, "--review", "exit 1")
    assert killed.code == 3
    rejected = golden("cycle", "--resume", "--json")
    assert (rejected.code, rejected.json["verdict"]) == (1, "rejected")
    assert rejected.json["final_status"] == "PARTIAL (all improvements rejected)"
    assert rejected.json["regression_check"]["passed_count"] == 1
    assert rejected.json["branch"] == killed.json["branch"]
    assert rejected.json["commit"] == killed.json["commit"] == repository.git("rev-parse", rejected.json["branch"])
    assert len(rejected.json["steps"]) == 10
    unclear = golden(*improve, "--review", "exit 2", "--store", "none")
    assert (unclear.code, unclear.json["final_status"]) == (3, "FAILURE")
    steps = {one["step"]: one for one in unclear.json["steps"]}
    assert "neither approves (0) nor rejects (1)" in steps["review"]["reason"]


def test_nothing_changed_is_no_proposal_and_leaves_no_branch(repository: Repository, golden: Golden) -> None:
    ran = golden("cycle", "--improve", "true", "--review", "exit 9", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["verdict"], ran.json["branch"], ran.json["commit"]) == ("none", None, None)
    steps = {one["step"]: one for one in ran.json["steps"]}
    assert steps["regression_checks"] == {
        "step": "regression_checks",
        "status": "skipped",
        "reason": "No improvement to verify",
    }
    assert repository.git("branch", "--list", "golden/*") == ""


def test_an_improvement_that_fails_is_a_failure_and_what_it_left_is_kept(
    repository: Repository, golden: Golden
) -> None:
    improve = f"echo half > half.txt; touch {repository.folder}/stray; exit 5"
    ran = golden("cycle", "--improve", improve, "--review", "true", "--json")
    assert (ran.code, ran.json["final_status"]) == (3, "FAILURE")
    assert "WARNING: the checkout itself changed while improve ran: stray" in ran.err
    assert repository.git("show", f"{ran.json['branch']}:half.txt") == "half"
    assert f"; what it left is on the branch {ran.json['branch']}" in ran.err
    nothing = golden("cycle", "--improve", "no-such-agent", "--review", "true", "--json")
    assert (nothing.code, nothing.json["branch"]) == (3, None)
    assert "; it left nothing" in nothing.err


def test_a_repository_within_a_proposal_is_said_and_what_git_does_not_take_stays(
    repository: Repository, golden: Golden, temporary_folder: Path
) -> None:
    words = ("--review", "true", "--max-improvements", "1", "--store", "none", "--json")
    commit = "git -C in -c user.name=a -c user.email=a@b commit -q --allow-empty -m theirs"
    named = golden("cycle", "--improve", f"git init -q in; {commit}", *words)
    assert named.code == 0, named.err
    assert "WARNING: in is a repository of its own" in named.err
    ran = golden("cycle", "--improve", "echo '#' >> lib.sh; git init -q in; touch in/work", *words)
    assert (ran.code, ran.json["final_status"]) == (3, "FAILURE")
    assert repository.git("show", f"{ran.json['branch']}:lib.sh").endswith("#")
    (left,) = temporary_folder.glob("golden-cycle-*/*/in/work")
    assert f"{left.parent.parent} is not removed" in ran.err


def test_an_ended_cycle_keeps_its_work_and_nothing_of_a_review_that_was_cut_off_and_can_be_resumed(
    repository: Repository, golden: Golden, tmp_path: Path
) -> None:
    mark = tmp_path / "improving"
    end = "kill -{} $(cut -d ' ' -f 4 /proc/$PPID/stat); sleep 600"
    improve = f"echo '#' >> lib.sh; if [ ! -e {mark} ]; then touch {mark}; {end.format('TERM')}; fi"
    review = "touch junk; git add junk; git -c user.name=a -c user.email=a@b commit -qm sneaked; " + end.format("INT")
    none = ("--store", "none", "--json")
    ended = golden("cycle", "--improve", improve, "--review", review, "--max-improvements", "1", *none)
    assert ended.code == 3
    branch = ended.json["branch"]
    assert repository.git("show", f"{branch}:lib.sh").endswith("#")
    assert repository.worktrees() == [str(repository.folder)]
    cut_off = golden("cycle", "--resume", ended.json["cycle_id"], *none)
    assert (cut_off.code, cut_off.json["branch"]) == (3, branch)
    assert repository.git("diff", "--name-only", "main", branch) == "lib.sh"
    ran = golden("cycle", "--resume", "--review", "[ ! -e junk ]", *none)
    assert (ran.code, ran.json["verdict"]) == (0, "verified"), ran.err


@pytest.mark.parametrize("damage", ['rm -rf "$PWD"', 'rm -rf "$(git rev-parse --git-common-dir)/worktrees"'])
def test_a_command_that_removes_the_worktree_is_a_failure(repository: Repository, golden: Golden, damage: str) -> None:
    ran = golden("cycle", "--improve", f"echo '#' >> lib.sh; {damage}", "--review", "true", "--json")
    assert (ran.code, ran.json["final_status"]) == (3, "FAILURE")
    assert "the command removed" in ran.err
    assert repository.worktrees() == [str(repository.folder)]


def test_a_command_that_writes_into_the_checkout_itself_is_told_of(repository: Repository, golden: Golden) -> None:
    hook = "git config core.hooksPath /tmp; echo true > $(git rev-parse --git-common-dir)/hooks/post-commit"
    ran = golden("cycle", "--improve", f"touch {repository.folder}/stray; {hook}", "--review", "true")
    assert ran.code == 0
    told = "the checkout itself changed while improve ran: .git/config, .git/hooks/post-commit, stray"
    assert f"WARNING: {told}" in ran.err


def test_without_golden_projects_the_requirement_calls_nothing(folder: Path, golden: Golden) -> None:
    repository = Repository(folder)
    repository.commit("empty")
    words = (
        "cycle",
        "--improve",
        "touch called; echo 1 > new",
        "--review",
        "true",
        "--max-improvements",
        "1",
        "--json",
    )
    required = golden(*words, "--require-golden-projects")
    assert (required.code, required.json["final_status"]) == (3, "FAILURE")
    assert {one["status"] for one in required.json["steps"]} == {"skipped"}
    ran = golden(*words)
    assert (ran.code, ran.json["final_status"], ran.json["verdict"]) == (0, "SUCCESS", "none")
    assert "WARNING: No golden projects configured" in ran.err


def test_bad_input_is_one_sentence_and_exit_code_two(repository: Repository, golden: Golden) -> None:
    both = ("--improve", "true", "--review", "true")
    for words, told in (
        ((), "needs both --improve CMD and --review CMD"),
        (("--improve", "true"), "needs both"),
        (("--improve", " ", "--review", "true"), "--improve is empty"),
        ((*both, "--max-improvements", "-1"), "max_improvements must be"),
        ((*both, "--max-hours", "nan"), "max_runtime_hours must be"),
        ((*both, "--store", MANIFEST), "is not a golden store"),
        ((*both, "--store", "bogus://x"), "no store can be there"),
        (("--resume",), "no cycle in"),
        (("--resume", "cycle_1"), "is not a cycle's id"),
    ):
        ran = golden("cycle", *words)
        assert (ran.code, ran.out) == (2, "")
        assert told in ran.err
        assert ran.err.count("\n") == 1
    repository.write(**{MANIFEST.replace(".", "__"): "golden_projects: 3\n"})
    repository.commit("a manifest that cannot be used")
    assert golden("cycle", *both).code == 2


def test_a_cycle_of_callables_is_not_resumed_by_commands(repository: Repository, golden: Golden) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    config = CycleConfig(repository.folder, max_improvements=1)
    CycleRunner(config, steps={"user_execution": interrupt}, store="none").run()
    ran = golden("cycle", "--resume")
    assert ran.code == 2
    assert "resume it with `CycleRunner.resume`" in ran.err


def test_outside_git_it_says_so(folder: Path, golden: Golden) -> None:
    ran = golden("cycle", "--improve", "true", "--review", "true")
    assert ran.code == 2
    assert "is not in a git repository" in ran.err


def test_a_killed_cycle_is_resumed_with_the_step_that_was_running_and_its_worktree_stays_until_then(
    repository: Repository, golden: Golden, tmp_path: Path
) -> None:
    mark = tmp_path / "reviewing"
    review = f"if [ ! -e {mark} ]; then touch {mark}; sleep 600; fi"
    words = ["cycle", "--improve", "echo '#' >> lib.sh; echo improved", "--review", review, "--max-improvements", "1"]
    with subprocess.Popen(
        [sys.executable, "-m", "pytest_golden", *words, "--store", "none"],
        cwd=repository.folder,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_until(mark.exists)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_SECONDS)
    (left,) = repository.worktrees()[1:]
    cycle_id = left.rpartition("/")[2]
    nothing = ("cycle", "--improve", "true", "--review", "true", "--store", "none")
    assert f"golden cycle --resume {cycle_id}" in golden(*nothing).err
    assert repository.worktrees()[1:] == [left]
    ran = golden("cycle", "--resume", cycle_id, "--store", "none", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["verdict"], ran.json["improvements_approved"]) == ("verified", 1)
    assert "improve | improved" not in ran.err
    assert [one["step"] for one in ran.json["steps"]].count("improvement") == 1
    assert repository.worktrees() == [str(repository.folder)]
    assert golden("cycle", "--resume", cycle_id).code == 2
    repository.git("worktree", "add", "-q", left, ran.json["branch"])
    assert f"the worktree of {cycle_id}, which was left, is removed" in golden(*nothing).err
    assert repository.worktrees() == [str(repository.folder)]


def test_commands_with_secrets_are_not_kept_and_must_be_given_again(repository: Repository, golden: Golden) -> None:
    secret = "ghp_" + "a1B2" * 9
    words = (
        "--improve",
        f"echo {secret} >/dev/null; kill -INT $(cut -d ' ' -f 4 /proc/$PPID/stat); sleep 600",
        "--review",
        "true",
    )
    first = golden("cycle", *words)
    assert first.code == 3
    state = next((repository.folder / ".golden" / "cycles").glob("*.json"))
    assert f"resume it with `golden cycle --resume {state.stem}`" in " ".join(first.out.split())
    assert secret not in state.read_text()
    again = golden("cycle", "--resume")
    assert again.code == 2
    assert "give --improve and --review again" in again.err
    assert golden("cycle", "--resume", "--improve", "true", "--review", "true").code == 0


@pytest.mark.parametrize(
    "disguise",
    [
        "git replace $(git rev-parse HEAD:golden_projects.yaml) $(sed 's/path: run.sh/&, expected_outcome: exit_code:3/' "
        "golden_projects.yaml | git hash-object -w --stdin); "
        "echo 'import os; os._exit(0)' > pytest.py",
        "git config filter.x.smudge 'sed s/3/0/'; git config filter.x.clean cat; "
        'echo "lib.sh filter=x" > "$(git rev-parse --git-common-dir)/info/attributes"; '
        "mkdir x.egg-info; echo 'Name: x' > x.egg-info/PKG-INFO; echo 'import os; os._exit(0)' > evil.py; "
        "printf '[pytest11]\\nx = evil\\n' > x.egg-info/entry_points.txt",
    ],
    ids=["a replaced manifest and a pytest of its own", "a filter and a plugin of its own"],
)
def test_a_break_is_seen_whatever_hides_it_from_git_or_from_the_gate(
    repository: Repository, golden: Golden, disguise: str
) -> None:
    improve = ("--improve", f"echo 'exit 3' > lib.sh; {disguise}")
    ran = golden("cycle", *improve, "--review", "true", "--max-improvements", "1", "--store", "none", "--json")
    assert (ran.code, ran.json["verdict"]) == (1, "flagged"), ran.err


def test_a_rejected_improvement_that_lowers_the_floor_spoils_the_approved_one_before_it(
    repository: Repository, golden: Golden
) -> None:
    improve = 'echo "#" >> lib.sh; [ $GOLDEN_CYCLE_ROUND = 1 ] || echo "retired: []" >> golden_projects.yaml'
    review = "[ $GOLDEN_CYCLE_ROUND = 1 ]"
    ran = golden(
        "cycle", "--improve", improve, "--review", review, "--max-improvements", "2", "--store", "none", "--json"
    )
    assert (ran.code, ran.json["verdict"]) == (1, "flagged")
    assert (ran.json["improvements_approved"], ran.json["improvements_rejected"]) == (1, 1)
    assert "the branch also holds" in ran.err


def test_a_proposal_that_breaks_a_project_is_flagged_also_when_it_comes_back_upon_something_else(
    repository: Repository, golden: Golden
) -> None:
    improve = "[ $GOLDEN_CYCLE_ROUND = 2 ] && echo 'exit 0 # 2' > lib.sh || echo 'exit 3' > lib.sh"
    ran = golden("cycle", "--improve", improve, "--review", "true", "--max-improvements", "3", "--store", "none")
    assert ran.code == 1
    assert "PARTIAL (1 golden project(s) failed), verdict flagged" in ran.out
    (state,) = (repository.folder / ".golden" / "cycles").glob("*.json")
    assert json.loads(state.read_text())["cycle"]["state"]["improvements_approved"] == 3
    assert "FAILED works: exit code 3" in ran.out
    assert "nothing was merged" in ran.out
    assert repository.git("branch", "--list", "golden/*")


def test_what_is_not_committed_yet_is_no_floor_and_said(folder: Path, golden: Golden) -> None:
    repository = Repository(folder)
    commands = ("cycle", "--improve", "true", "--review", "true")
    unborn = golden(*commands)
    assert (unborn.code, "nothing is committed" in unborn.err) == (2, True)
    repository.commit("empty")
    repository.declare("works")
    undeclared = golden(*commands)
    assert (undeclared.code, "golden_projects.yaml is not committed" in undeclared.err) == (2, True)


def test_recorded_cycles_are_listed_and_shown(repository: Repository, golden: Golden) -> None:
    assert golden("cycle", "list").code == 2
    one = ("cycle", "--max-improvements", "1", "--task")
    golden(*one, "Say what it does", "--improve", "echo '# adds' >> lib.sh", "--review", "echo fine by me", "--json")
    bad = golden(*one, "Break it", "--improve", "echo 'exit 3' > lib.sh", "--review", "echo risky; true", "--json").json
    newest, first = golden("cycle", "list", "--json").json["cycles"]
    assert (newest["task"], newest["verdict"], newest["branch_state"]) == ("Break it", "flagged", "open")
    assert (first["task"], first["verdict"], first["branch_state"]) == ("Say what it does", "verified", "open")
    shown = golden("cycle", "show").out
    for told in (
        "Break it\n",
        "unmet: works passes: works: FAILED: exit code 3, expected 0",
        "review done",
        "approved: risky",
        "lib.sh | 2 +-",
        f"git diff HEAD...{bad['branch']}",
    ):
        assert told in shown
    assert "git merge" not in shown
    whole = golden("cycle", "show", first["cycle_id"], "--json").json
    seconds = {step["step"]: step["seconds"] for step in whole["steps"]}
    assert 0 < seconds["regression_checks"] < 600
    assert (whole["why"], whole["projects"]) == (first["why"], ["works passes: met"])
    assert f"git merge {first['branch']}" in golden("cycle", "show", first["entry_id"]).out
    repository.git("merge", "-q", "--no-edit", first["branch"])
    repository.git("branch", "-q", "-D", bad["branch"])
    assert [one["branch_state"] for one in golden("cycle", "list", "--json").json["cycles"]] == ["gone", "merged"]
    assert f"its branch {bad['branch']} is not here" in golden("cycle", "show").out
    unknown = golden("cycle", "show", "cycle_x")
    assert (unknown.code, "no cycle 'cycle_x' among the newest 500" in unknown.err) == (2, True)
    assert "write: golden cycle show ID" in golden("cycle", "list", "x").err


def test_a_command_is_told_a_verdict_and_changes_none(repository: Repository, golden: Golden, tmp_path: Path) -> None:
    told, words = tmp_path / "told.json", tmp_path / "words"
    hook = f'cp "$GOLDEN_CYCLE_STATE" {told}; echo "$GOLDEN_CYCLE_VERDICT $GOLDEN_CYCLE_BRANCH" "$(pwd)" > {words}'
    one = (
        "cycle",
        "--max-improvements",
        "1",
        "--review",
        "true",
        "--json",
        "--on-verified",
        hook,
        "--on-flagged",
        "exit 7",
    )
    good = golden(*one, "--improve", "echo '#' >> lib.sh")
    assert json.loads(told.read_text()) == good.json
    assert words.read_text().split() == [
        "verified",
        good.json["branch"],
        repository.git("rev-parse", "--show-toplevel"),
    ]
    told.unlink()
    bad = golden(*one, "--improve", "echo 'exit 3' > lib.sh")
    assert (bad.code, bad.json["verdict"], told.exists()) == (1, "flagged", False)
    assert "WARNING: the command of --on-flagged ended with exit code 7" in bad.err
    empty = golden("cycle", "--improve", "true", "--review", "true", "--on-verified", " ")
    assert (empty.code, "--on-verified is empty" in empty.err) == (2, True)


def test_a_recorded_cycle_of_odd_content_is_shown_and_gives_git_no_options(
    repository: Repository, golden: Golden, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    repository.git("branch", "golden/cycle-1")
    note = {"branch": "golden/cycle-1", "verdict": "odd", "base": f"--output={told}", "steps": [3, {"seconds": "x"}]}
    entry = golden("journal", "log-intent", "mend", "--type", "cycle", "--session", "cycle_1").out.strip()
    golden("journal", "log-outcome", entry, "partial", "--actions", json.dumps([note]))
    assert "odd" in golden("cycle", "list").out
    shown = golden("cycle", "show")
    assert (shown.code, "its branch golden/cycle-1" in shown.out) == (0, True)
    assert not list(tmp_path.glob("told*"))


def test_how_the_floor_stood_before_is_told_to_the_commands_and_condemns_nobody(
    repository: Repository, golden: Golden, tmp_path: Path
) -> None:
    entries = "golden_projects:\n  - {name: works, path: run.sh}\n  - {name: red, path: red.sh}\n"
    repository.write(**{MANIFEST.replace(".", "__"): entries}, red__sh="exit 4\n")
    repository.commit("one is red")
    told = tmp_path / "told.json"
    improve = f"cp $GOLDEN_CYCLE_STATE {told}; echo '#' >> lib.sh"
    one = ("cycle", "--improve", improve, "--review", "true", "--max-improvements", "1", "--store", "none", "--json")
    ran = golden(*one)
    assert (ran.code, ran.json["verdict"], ran.json["regressions_detected"]) == (0, "none", 0)
    reasons = {step["step"]: step["reason"] for step in ran.json["steps"]}
    assert reasons["project_selection"] == "2 golden projects: works, red"
    assert reasons["user_execution"] == "1 of 2 golden projects passed on the base"
    assert reasons["observation"] == "red before the work: red: exit code 4, expected 0"
    assert json.loads(told.read_text())["before"] == [
        {"name": "works", "status": "PASSED", "message": None},
        {"name": "red", "status": "FAILED", "message": "exit code 4, expected 0"},
    ]
    assert "red failed on the base too, for the same reason" in ran.err


def test_a_floor_that_cannot_be_looked_at_before_stops_nothing(repository: Repository, golden: Golden) -> None:
    entries = "setup: [sh, -c, 'exit 3']\ngolden_projects:\n  - {name: works, path: run.sh}\n"
    repository.write(**{MANIFEST.replace(".", "__"): entries})
    repository.commit("a setup that fails")
    ran = golden("cycle", "--improve", "echo '#' >> lib.sh", "--review", "true", "--store", "none", "--json")
    reasons = {step["step"]: step["reason"] for step in ran.json["steps"]}
    assert (reasons["user_execution"], reasons["observation"]) == ("not known", "nothing is known")
    assert "WARNING: the results on the base are not known: " in ran.err


def test_recorded_results_of_the_base_are_not_made_again(repository: Repository, golden: Golden) -> None:
    subprocess.run([sys.executable, "-m", "pytest", "--golden"], cwd=repository.folder, check=True)
    one = ("cycle", "--improve", "echo '#' >> lib.sh", "--review", "true", "--max-improvements", "1", "--json")
    ran = golden(*one)
    assert ran.json["verdict"] == "verified"
    assert "1 of 1 golden project passed on the base" in ran.err
    begun = [line for line in ran.err.splitlines() if line.startswith(("gate | ", "golden: improvement"))]
    assert begun[0].startswith("golden: improvement")


def test_what_the_commands_cost_is_added_up_and_survives_a_kill(
    repository: Repository, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    improve = "echo '#' >> lib.sh; echo '$0.25' >> $GOLDEN_CYCLE_COST; echo 1 >> $GOLDEN_CYCLE_COST"
    one = ("cycle", "--improve", improve, "--max-improvements", "1", "--json")
    with monkeypatch.context() as patch:
        patch.setattr("pytest_golden.cycle.cycle_record.CycleRecord.end", interrupt)
        assert golden(*one, "--review", "echo 0.5 > $GOLDEN_CYCLE_COST").json["cost_usd"] == 1.75
    ran = golden("cycle", "--resume", "--json")
    assert (ran.code, ran.json["cost_usd"]) == (0, 1.75)
    assert golden("cycle", "show", "--json").json["cost_usd"] == 1.75
    assert "cost $1.75" in golden("cycle", "show").out
    odd = golden(*one, "--review", "echo nan > $GOLDEN_CYCLE_COST; exit 7")
    assert "WARNING: review wrote 'nan' into GOLDEN_CYCLE_COST" in odd.err
    assert odd.json["cost_usd"] == 1.25


def test_a_merge_on_github_is_expected_and_a_revert_is_a_signal(repository: Repository, golden: Golden) -> None:
    repository.git("remote", "add", "origin", "git@github.com:octo/shop.git")
    ran = golden(
        "cycle", "--improve", "echo '#' >> lib.sh", "--review", "true", "--max-improvements", "1", "--json"
    ).json
    one = golden("cycle", "show", "--json").json
    assert (one["merge"], one["ended_at"] is not None) == ("open", True)
    (waits,) = golden("journal", "open", "--json").json["expectations"]
    assert waits["match_hint"] == {"event": "pull_request", "branch": ran["branch"]}
    run = golden("journal", "show", one["run_id"], "--json").json
    assert run["intent_type"] == "regression_check"
    repository.git("merge", "-q", "--no-ff", "--no-edit", ran["branch"])
    assert golden("journal", "heartbeat").code == 0
    assert golden("cycle", "show", "--json").json["merge"] == "met"
    repository.git("branch", "-q", "-D", ran["branch"])
    assert golden("cycle", "show", "--json").json["branch_state"] == "merged"
    repository.git("revert", "--no-edit", "-m", "1", "HEAD")
    for _ in range(2):
        assert golden("journal", "heartbeat").code == 0
    reverted = golden("cycle", "show", "--json").json
    assert reverted["reverted_by"].startswith(repository.git("rev-parse", "HEAD")[:12])
    assert "lib.sh" in reverted["changes"]
    assert "reverted by" in golden("cycle", "list").out
    entry = golden("journal", "show", one["entry_id"], "--json").json
    assert [signal["summary"].partition(" ")[0] for signal in entry["signals"]].count("reverted") == 1
    assert entry["assessment"] == "failure"
