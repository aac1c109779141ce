from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.cli.main import main
from tests.repository import git

if TYPE_CHECKING:
    from pathlib import Path

    from tests.session.recorded import Recorded
    from tests.session.workspace import Workspace

WRITES = "mkdir -p out; printf 'id,amount\\n1,{}\\n' > out/report.txt"
OUTPUTS = [{"path": "out/*.txt"}]


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what would refuse to accept outputs: these tests run in CI too."""
    for name in ("CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


def declare(workspace: Workspace, amount: int = 10, **keys: Any) -> None:
    workspace.declare({"name": "sales", "script": WRITES.format(amount), "outputs": OUTPUTS, **keys})


def baseline(workspace: Workspace) -> Path:
    return workspace.path / "golden_baselines/sales/out/report.txt"


def test_baseline_goes_from_missing_over_accepted_to_differing(workspace: Workspace, recorded: Recorded) -> None:
    declare(workspace)
    missing = workspace.run()
    assert missing.ret == pytest.ExitCode.TESTS_FAILED
    missing.stdout.fnmatch_lines(
        ["FAILED: out/report.txt has no baseline: look at it, then accept it with `golden accept sales`"]
    )
    accepting = workspace.run("-k", "sales", "--golden-update")
    assert accepting.ret == pytest.ExitCode.OK
    accepting.stdout.fnmatch_lines(
        [
            "golden: --golden-update accepts the current outputs as baselines",
            "*= accepted as baselines =*",
            "sales: 1 new",
            "  new        out/report.txt (15B)",
        ]
    )
    assert baseline(workspace).read_text() == "id,amount\n1,10\n"
    assert workspace.run().ret == pytest.ExitCode.OK
    declare(workspace, 20)
    differing = workspace.run("--golden-json=report.json", "--golden-junit=junit.xml")
    assert differing.ret == pytest.ExitCode.TESTS_FAILED
    text = differing.stdout.str()
    (reason,) = json.loads((workspace.path / "report.json").read_text())["results"][0]["reasons"]
    headline, *difference = reason["message"].splitlines()
    assert (reason["kind"], reason["path"]) == ("output_differs", "out/report.txt")
    assert f"FAILED: {headline}\n" in text
    assert any("1,20" in line for line in difference)
    assert all(f"  {line}\n" in text for line in difference)
    assert difference[-1] in (workspace.path / "junit.xml").read_text()
    assert [result.status for result in recorded.past("sales")] == ["FAILED", "PASSED", "PASSED", "FAILED"]


def test_account_shows_what_changed_and_what_was_removed(workspace: Workspace) -> None:
    declare(workspace)
    workspace.run("--golden-update")
    (baseline(workspace).parent / "old.txt").write_text("x")
    declare(workspace, 20)
    result = workspace.run("--golden-update", "--golden-json=report.json")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "sales: 1 changed, 1 removed",
            "  removed    out/old.txt (it was not written any more)",
            "  changed    out/report.txt",
            "*1,20*",
        ]
    )
    accepted = json.loads((workspace.path / "report.json").read_text())["results"][0]["accepted"]
    assert [(one["path"], one["change"]) for one in accepted] == [
        ("out/old.txt", "removed"),
        ("out/report.txt", "changed"),
    ]
    again = workspace.run("--golden-update")
    again.stdout.fnmatch_lines(["sales: 1 unchanged"])


def test_accepted_baseline_that_git_ignores_is_told_with_the_line_that_does_it(workspace: Workspace) -> None:
    git(workspace.path, "init", "-q")
    (workspace.path / ".gitignore").write_text("out/\n")
    declare(workspace)
    accepting = workspace.run("--golden-update")
    assert accepting.ret == pytest.ExitCode.OK
    accepting.stdout.fnmatch_lines(
        [
            "sales: 1 new",
            "WARNING: golden_baselines/sales/out/report.txt is ignored by .gitignore:1 (`out/`): add `!golden_baselines/*",
        ]
    )
    (workspace.path / ".gitignore").write_text("out/\n!golden_baselines/**\n")
    workspace.run("--golden-update").stdout.no_fnmatch_line("WARNING*")


def test_only_selected_projects_that_ran_as_expected_are_accepted_in_the_order_of_their_needs(
    workspace: Workspace,
) -> None:
    workspace.declare(
        {"name": "first", "script": WRITES.format(1), "outputs": OUTPUTS},
        {"name": "broken", "script": f"{WRITES.format(1)}; exit 1", "outputs": OUTPUTS},
        {"name": "after", "script": WRITES.format(1), "outputs": OUTPUTS, "needs": ["first"]},
        {"name": "blocked", "script": WRITES.format(1), "outputs": OUTPUTS, "needs": ["broken"]},
        {"name": "other", "script": WRITES.format(1), "outputs": OUTPUTS},
    )
    result = workspace.run("-k", "not other", "--golden-update")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*= accepted as baselines =*", "first: 1 new", "after: 1 new"])
    folder = workspace.path / "golden_baselines"
    assert sorted(entry.name for entry in folder.iterdir()) == ["after", "first"]
    nothing = workspace.run("-k", "broken", "--golden-update")
    nothing.stdout.fnmatch_lines(["*= accepted as baselines =*", "nothing: no project ran as expected"])


def test_baselines_inside_a_project_are_accepted_and_are_no_change_of_it(workspace: Workspace) -> None:
    projects: list[dict[str, Any]] = [
        {"name": name, "script": WRITES.format(1), "project_dir": ".", "outputs": OUTPUTS}
        for name in ("one", "two", "three")
    ]
    workspace.declare(*projects)
    assert workspace.run("--golden-update").ret == pytest.ExitCode.OK
    assert workspace.run().ret == pytest.ExitCode.OK


def test_command_names_a_manifest_of_another_place(workspace: Workspace) -> None:
    workspace.declare(
        {"name": "sales", "script": WRITES.format(1), "outputs": OUTPUTS},
        file="deep/g{0}.yaml",
        workspace_root="..",
    )
    result = workspace.run("--golden-manifest=deep/g{0}.yaml")
    assert "`golden accept sales --manifest 'deep/g{0}.yaml'`" in result.stdout.str()


@pytest.mark.parametrize("folder", ["sub", "my o'data", ".."])
def test_printed_command_accepts_this_project_alone_in_the_folder_where_it_is_printed(
    workspace: Workspace, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    # A level deeper: pytest reads each test*/conftest.py of the folder it starts in, here those of other tests.
    repository = workspace.path / "repository"
    for name in ("sub", "my o'data"):
        (repository / name).mkdir(parents=True)
    names = ("a", "sales", "sales_eu")
    place = "repository/my o'data/g.yaml"
    workspace.declare(
        *({"name": name, "script": WRITES.format(1), "outputs": OUTPUTS} for name in names),
        file=place,
        workspace_root="..",
    )
    for name in names:
        (workspace.path / name).rename(repository / name)
    monkeypatch.chdir(repository / folder)
    result = workspace.run(f"--golden-manifest={workspace.path / place}")
    commands = [
        line.split("`")[1] for line in result.stdout.lines if line.startswith("FAILED: ") and "accept it" in line
    ]
    program, *words = shlex.split(commands[0])
    assert (program, len(commands)) == ("golden", 3)
    assert main([*words, "--as-person", "--reason", "its first outputs"]) == 0
    baselines = repository / "my o'data/golden_baselines"
    assert sorted(entry.name for entry in baselines.iterdir()) == ["ACCEPTED.md", "a"]


def test_nothing_is_accepted_of_a_project_of_which_an_output_is_missing(workspace: Workspace) -> None:
    declare(workspace, outputs=[*OUTPUTS, {"path": "out/other.csv"}, {"path": "out/third.csv"}])
    result = workspace.run("--golden-update")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*= accepted as baselines =*",
            "sales: nothing is accepted, because this run did not write out/other.csv (and 1 more)",
        ]
    )
    assert [place for place in workspace.path.glob("golden_baselines/**") if place.is_file()] == []


def test_allowed_secret_is_told_and_journalled_with_its_reason(workspace: Workspace, recorded: Recorded) -> None:
    script = "mkdir -p out; echo db_password=hunter2hunter2 > out/report.txt"
    workspace.declare({"name": "sales", "script": script, "outputs": OUTPUTS})
    refused = workspace.run("--golden-update")
    refused.stdout.fnmatch_lines(["*redaction finds a secret in line 1 (the value of db_password);*"])
    allowed = [{"path": "out/*.txt", "allow_secret": "made-up test data"}]
    workspace.declare({"name": "sales", "script": script, "outputs": allowed})
    accepting = workspace.run("--golden-update", "--golden-json=report.json")
    assert accepting.ret == pytest.ExitCode.OK
    told = "redaction finds a secret in line 1 (the value of db_password), allowed: made-up test data"
    accepting.stdout.fnmatch_lines(["  new        out/report.txt (27B)", f"    {told}"])
    (accepted,) = json.loads((workspace.path / "report.json").read_text())["results"][0]["accepted"]
    assert accepted == {"path": "out/report.txt", "change": "new", "message": "27B", "allowed": told}
    assert recorded.accepted("sales") == [accepted]


def test_difference_is_annotated_for_github(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(workspace)
    workspace.run("--golden-update")
    declare(workspace, 20)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = workspace.run()
    line, of_run = [line for line in result.stdout.lines if line.startswith("::error")]
    assert "FAILED: 1 failed" in of_run
    assert "out/report.txt" in line
    assert "%0A  " in line
    assert "1,20" in line


def test_account_of_many_outputs_is_bounded_unless_all_is_wanted(workspace: Workspace) -> None:
    script = "i=0; while [ $i -lt 60 ]; do echo {} > $i.txt; i=$((i+1)); done"
    workspace.declare({"name": "many", "script": script.format(1), "outputs": [{"path": "*.txt"}]})
    first = workspace.run("--golden-update")
    first.stdout.fnmatch_lines(["many: 60 new", "  and 10 more: -v names them"])
    workspace.declare({"name": "many", "script": script.format(2), "outputs": [{"path": "*.txt"}]})
    brief = workspace.run("--golden-update").stdout.str()
    workspace.declare({"name": "many", "script": script.format(3), "outputs": [{"path": "*.txt"}]})
    full = workspace.run("--golden-update", "-v").stdout.str()
    assert brief.count("differs from its baseline") == 10
    assert full.count("differs from its baseline") == 60
    assert "more: -v names them" not in full


@pytest.mark.xdist
def test_outputs_are_accepted_and_compared_by_workers(workspace: Workspace) -> None:
    names = [f"p{number}" for number in range(4)]
    workspace.declare(
        *({"name": name, "script": WRITES.format(1), "outputs": OUTPUTS, "independent": name != "p0"} for name in names)
    )
    accepting = workspace.run("-n2", "--golden-update")
    assert accepting.ret == pytest.ExitCode.OK
    accepting.stdout.fnmatch_lines([f"{name}: 1 new" for name in names])
    assert workspace.run("-n1").ret == pytest.ExitCode.OK
    folder = workspace.path / "golden_baselines"
    assert sorted(entry.name for entry in folder.iterdir()) == names


def test_accepted_baselines_are_no_change_since_the_pass_that_accepted_them(workspace: Workspace) -> None:
    declare(workspace)
    git(workspace.path, "init", "-q", "-b", "main")
    (workspace.path / ".gitignore").write_text(".golden\n")
    git(workspace.path, "add", "-A")
    git(workspace.path, "commit", "-q", "-m", "it works")
    assert workspace.run("--golden-update").ret == pytest.ExitCode.OK
    script = workspace.path / "sales/run.sh"
    script.write_text(script.read_text().replace("10", "20"))
    failing = workspace.run()
    failing.stdout.fnmatch_lines(
        ["last passed * UTC*", "since then: no commit, but files changed", "files: sales/run.sh"]
    )
    failing.stdout.no_fnmatch_line("*files*golden_baselines*")


@pytest.mark.parametrize(("option", "is_tried"), [((), True), (("--golden-no-calibrate",), False)])
def test_first_baselines_are_tried_by_a_second_run_at_another_time(
    workspace: Workspace, option: tuple[str, ...], *, is_tried: bool
) -> None:
    script = "mkdir out; date +%s%N > out/a.txt; echo 1 > out/b.txt; [ $PYTHONHASHSEED = 0 ] || echo 2 > out/c.txt"
    workspace.declare({"name": "sales", "script": script, "outputs": OUTPUTS})
    accepting = workspace.run("--golden-update", *option)
    assert accepting.ret == pytest.ExitCode.OK
    told = "another hash seed and one thread, wrote something else: out/a.txt, out/c.txt; `golden calibrate sales`"
    assert (told in accepting.stdout.str()) is is_tried
    assert not (baseline(workspace).parent / "c.txt").exists()
    # Only first baselines are tried.
    assert "a second run" not in workspace.run("--golden-update").stdout.str()


def test_second_run_that_fails_is_a_warning(workspace: Workspace) -> None:
    script = "mkdir out; echo 1 > out/b.txt; [ $PYTHONHASHSEED = 0 ]"
    workspace.declare({"name": "sales", "script": script, "outputs": OUTPUTS})
    accepting = workspace.run("--golden-update")
    assert accepting.ret == pytest.ExitCode.OK
    assert "did not end as expected: its baselines may not hold tomorrow" in accepting.stdout.str()


def test_what_is_printed_is_judged_by_rules_over_the_whole_of_it(workspace: Workspace) -> None:
    noise = "python3 -c \"print('x' * 3000000)\""
    script = f"echo 3 rows loaded; {noise}; echo failed tasks: 2; {noise}; echo oops >&2"
    rules = {"stdout": {"contains": ["rows loaded", "all done"], "not_contains": ["failed tasks"]}}
    workspace.declare(
        {"name": "luigi", "script": script, **rules, "stderr": {"not_contains": ["oops"]}},
        {"name": "good", "script": script, "stdout": {"contains": ["rows loaded", "failed tasks"]}},
        {"name": "ends_badly", "script": f"{script}; exit 3", **rules},
    )
    result = workspace.run()
    told = result.stdout.str()
    assert "stdout breaks rules: `all done` is not in it; `failed tasks` is in it, and must not be" in told
    assert "stderr breaks a rule: `oops` is in it, and must not be" in told
    assert "PASSED  good" in told
    assert told.count("breaks rules") == told.count("breaks rules: `all done`")
    assert "exit code 3, expected 0" in told


def test_nothing_is_accepted_of_a_run_that_breaks_a_rule(workspace: Workspace) -> None:
    declare(workspace, stdout={"contains": ["done"]})
    result = workspace.run("--golden-update")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert not baseline(workspace).exists()
    declare(workspace, outputs=[{"path": "out/*.txt", "contains": ["20"]}])
    result = workspace.run("--golden-update")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert not baseline(workspace).exists()
    declare(workspace, outputs=[{"path": "out/*.txt", "contains": ["10"]}])
    assert workspace.run("--golden-update").ret == pytest.ExitCode.OK
    assert baseline(workspace).exists()
