from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.redaction.rule import MARK
from tests.repository import git

if TYPE_CHECKING:
    from pathlib import Path

    from tests.session.recorded import Recorded
    from tests.session.workspace import Workspace


TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


def commit(folder: Path, message: str = "a change") -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def statuses(workspace: Workspace, *arguments: str) -> dict[str, str]:
    """Run a gate that must end with 0, and give each project's status in its report."""
    assert workspace.run("--golden-json=../report.json", *arguments).ret == 0
    told = json.loads((workspace.path.parent / "report.json").read_text())
    assert all(
        [reason["kind"] for reason in one["reasons"]] == ["unchanged"]
        for one in told["results"]
        if one["status"] == "SKIPPED"
    )
    return {one["name"]: one["status"] for one in told["results"]}


def ran(workspace: Workspace, *arguments: str) -> list[str]:
    return [name for name, status in statuses(workspace, *arguments).items() if status == "PASSED"]


PROJECTS: list[dict[str, Any]] = [
    {"name": "one", "depends_on": ["lib/**/*.sql"]},
    {"name": "two"},
    {"name": "three", "needs": ["two"]},
]


@pytest.fixture
def passed(workspace: Workspace) -> Workspace:
    """Three projects that passed at the commit that `main` is."""
    workspace.declare(*PROJECTS)
    (workspace.path / "lib").mkdir()
    (workspace.path / "lib" / "a.sql").write_text("select 1\n")
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    assert workspace.run().ret == 0
    return workspace


def test_unchanged_projects_are_left_out_counted_and_shown(passed: Workspace, recorded: Recorded) -> None:
    result = passed.run("--golden-changed=main")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "golden: 3 of 3 projects left out: unchanged since main (*)",
            "SKIPPED one * unchanged since main",
            "left out, unchanged since main: one, two, three",
            "golden: PASSED (partial: 3 unchanged)",
        ]
    )
    assert set(recorded.results().values()) == {"SKIPPED"}
    # It was left out, so it is still its last pass that counts.
    assert ran(passed, "--golden-changed=main", "--golden-require") == []


def test_edits_new_files_and_depended_on_files_bring_projects_back(passed: Workspace) -> None:
    (passed.path / "lib" / "sub").mkdir()
    (passed.path / "lib" / "sub" / "b.sql").write_text("select 2\n")
    (passed.path / "lib" / "readme.md").write_text("no input of anyone\n")
    assert ran(passed, "--golden-changed=main") == ["one"]
    (passed.path / "two" / "new.csv").write_text("1\n")
    result = passed.run("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines(
        [
            "  one runs: lib/sub/b.sql changed",
            "  two runs: two/new.csv changed",
            "  three runs: it needs two, which runs",
        ]
    )


def test_what_a_project_that_runs_needs_runs_too(passed: Workspace) -> None:
    (passed.path / "three" / "run.sh").write_text("echo other > out.txt\n")
    assert ran(passed, "--golden-changed=main") == ["two", "three"]


def test_committed_changes_count_from_the_merge_base(passed: Workspace) -> None:
    git(passed.path, "checkout", "-q", "-b", "work")
    (passed.path / "one" / "run.sh").write_text("echo other > out.txt\n")
    commit(passed.path)
    git(passed.path, "checkout", "-q", "main")
    (passed.path / "two" / "run.sh").write_text("echo theirs > out.txt\n")
    commit(passed.path, "the others' change")
    git(passed.path, "checkout", "-q", "work")
    assert ran(passed, "--golden-changed=main") == ["one"]
    # Since then it passed, but it is still changed since the ref.
    assert ran(passed, "--golden-changed=main") == ["one"]
    assert ran(passed, "--golden-changed=HEAD") == []


def test_manifest_entry_counts_by_what_it_means(passed: Workspace) -> None:
    one, two, three = PROJECTS
    passed.declare({**one, "title": "The first", "description": "for people"}, two, three)
    assert ran(passed, "--golden-changed=main") == []
    passed.declare({**one, "timeout": 30}, two, three, {"name": "four"})
    assert ran(passed, "--golden-changed=main") == ["one", "four"]


def test_changed_baseline_brings_its_project_back(passed: Workspace) -> None:
    folder = passed.path / "golden_baselines" / "two"
    folder.mkdir(parents=True)
    (folder / "out.txt").write_text("passed\n")
    assert ran(passed, "--golden-changed=main") == ["two", "three"]


def test_project_that_failed_last_runs(passed: Workspace) -> None:
    # What makes it fail is in no input of it: that it failed is all there is to tell.
    (passed.path / ".git" / "info" / "exclude").write_text("broken\n")
    (passed.path / "one" / "run.sh").write_text("[ ! -e ../broken ]\n")
    commit(passed.path)
    assert passed.run().ret == 0
    broken = passed.path / "broken"
    broken.touch()
    assert passed.run("-k", "one").ret == 1
    broken.unlink()
    assert ran(passed, "--golden-changed=main") == ["one"]
    assert ran(passed, "--golden-changed=main") == []


def test_project_that_passed_on_something_else_runs(passed: Workspace) -> None:
    (passed.path / "one" / "run.sh").write_text("echo edited > out.txt\n")
    assert passed.run("-k", "one").ret == 0
    git(passed.path, "checkout", "-q", "--", "one")
    assert ran(passed, "--golden-changed=main") == ["one"]


def test_ignored_data_is_a_doubt_and_caches_are_none(passed: Workspace) -> None:
    (passed.path / ".gitignore").write_text("*.bin\n__pycache__/\nvenv/\n")
    for folder in ("one/__pycache__", "venv"):
        (passed.path / folder).mkdir()
    (passed.path / "one" / "__pycache__" / "x.pyc").write_text("")
    (passed.path / "venv" / "pyvenv.cfg").write_text("version = 3.12.0\n")
    assert ran(passed, "--golden-changed=main") == []
    (passed.path / "one" / "data.bin").write_text("nobody sees this change")
    result = passed.run("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines(["  one runs: git ignores one/data.bin, so nobody knows whether it changed"])


@pytest.mark.parametrize("is_ignored", [True, False])
def test_virtual_environment_whose_versions_nobody_knows_is_a_doubt(passed: Workspace, is_ignored: bool) -> None:
    (passed.path / ".gitignore").write_text("venv/\n" if is_ignored else "")
    (passed.path / "one" / "venv").mkdir()
    (passed.path / "one" / "venv" / "pyvenv.cfg").write_text("version = 3.12.0\n")
    result = passed.run("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines(["  one runs: nobody knows the versions in one/venv/, which no venv: names"])


def test_ignored_data_that_anybody_may_read_is_a_doubt_once_it_changed(passed: Workspace) -> None:
    (passed.path / ".gitignore").write_text("data/\nout/\n")
    commit(passed.path)
    data = passed.path / "data" / "days.csv"
    data.parent.mkdir()
    data.write_text("monday\n")
    assert passed.run("--golden-json=out/last.json").ret == 0
    assert ran(passed, "--golden-changed=main") == []
    data.write_text("sunday\n")
    result = passed.run("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines(
        ["  two runs: git ignores data/days.csv, which is newer than its last pass, and it has no depends_on"]
    )
    assert "one" not in ran(passed, "--golden-changed=main")


def test_ignored_file_that_is_gone_brings_back_who_may_have_read_it(passed: Workspace) -> None:
    (passed.path / ".gitignore").write_text("*.csv\n*.log\n")
    commit(passed.path)
    for name in ("days.csv", "noise.log", "one/own.csv"):
        (passed.path / name).write_text("1\n")
    assert passed.run().ret == 0
    (passed.path / "noise.log").unlink()
    assert ran(passed, "--golden-changed=main") == ["one"]  # What git ignores in its own folder is a doubt anyway.
    (passed.path / "one" / "own.csv").unlink()
    result = passed.run("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines(["  one runs: one/own.csv, which git ignored, is gone since it passed"])
    assert ran(passed, "--golden-changed=main") == []
    (passed.path / "days.csv").unlink()
    result = passed.run("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines(
        ["  two runs: days.csv, which git ignored, is gone since it passed, and it has no depends_on"]
    )
    result.stdout.no_fnmatch_line("  one runs: *")
    assert ran(passed, "--golden-changed=main") == []


@pytest.mark.parametrize(
    ("noted", "why", "who"),
    [
        (None, "which files git ignored when it passed is not recorded", ["one", "two", "three"]),
        ("many", "git ignored too many files when it passed to note them all*", ["two", "three"]),
    ],
)
def test_pass_of_which_it_is_not_noted_what_git_ignored_is_run_again(
    passed: Workspace, noted: str | None, why: str, who: list[str]
) -> None:
    with closing(sqlite3.connect(passed.path / ".golden" / "golden.db")) as store, store:
        store.execute("INSERT INTO documents (digest, body) VALUES ('many', ?)", ['{"names": [], "is_all": false}'])
        store.execute("UPDATE gate_runs SET facts = json_set(facts, '$.ignored_digest', ?)", [noted])
    result = passed.run("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines([f"*{why}"])
    assert [name for name in ("one", "two", "three") if f"::{name} PASSED " in result.stdout.str()] == who
    assert ran(passed, "--golden-changed=main") == []


def test_links_that_lead_out_and_unwatched_files_are_doubts(passed: Workspace) -> None:
    (passed.path / "one" / "out.sql").symlink_to("../lib/a.sql")
    (passed.path / "two" / "in.sh").symlink_to("run.sh")
    commit(passed.path)
    git(passed.path, "update-index", "--assume-unchanged", "three/run.sh")
    assert passed.run().ret == 0
    result = passed.run("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines(
        ["  one runs: one/out.sql is a symlink that leads out of one", "  three runs: git does not watch three/run.sh"]
    )


def test_symlink_that_leads_elsewhere_now_is_a_change(workspace: Workspace) -> None:
    for version in ("v1", "v2"):
        workspace.write_pipeline(version, f"echo {version}")
    (workspace.path / "now").symlink_to("v1")
    workspace.declare({"name": "one", "path": "now/run.sh", "depends_on": ["lib/**"]})
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    assert workspace.run().ret == 0
    assert ran(workspace, "--golden-changed=main") == []
    (workspace.path / "now").unlink()
    (workspace.path / "now").symlink_to("v2")
    assert ran(workspace, "--golden-changed=main") == ["one"]


def test_ignored_log_of_its_own_is_a_doubt_once_it_changed(passed: Workspace) -> None:
    (passed.path / ".gitignore").write_text("*.log\n")
    (passed.path / "one" / "access.log").write_text("a\n")
    assert passed.run().ret == 0
    assert ran(passed, "--golden-changed=main") == []
    (passed.path / "one" / "access.log").write_text("b\n")
    assert ran(passed, "--golden-changed=main") == ["one"]


def test_ignored_files_of_another_machine_tell_nothing(passed: Workspace) -> None:
    (passed.path / ".gitignore").write_text("data/\n")
    (passed.path / "data").mkdir()
    (passed.path / "data" / "days.csv").write_text("monday\n")
    assert passed.run().ret == 0
    assert ran(passed, "--golden-changed=main") == []
    with closing(sqlite3.connect(passed.path / ".golden" / "golden.db")) as store, store:
        store.execute("UPDATE gate_runs SET host = 'another'")
    result = passed.run("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines(
        ["  two runs: git ignores data/days.csv, and it last passed elsewhere, and it has no depends_on"]
    )


def test_edit_that_git_is_configured_not_to_see_is_seen(passed: Workspace) -> None:
    watcher = passed.path.parent / "watcher"
    watcher.write_text("#!/bin/sh\nprintf 'nothing\\0'\n")
    watcher.chmod(0o755)
    git(passed.path, "config", "core.fsmonitor", str(watcher))
    git(passed.path, "update-index", "--fsmonitor")
    git(passed.path, "status")
    (passed.path / "one" / "run.sh").write_text("echo other > out.txt\n")
    assert ran(passed, "--golden-changed=main") == ["one"]


def test_submodules_are_a_doubt(passed: Workspace, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "x").write_text("x")
    commit(other)
    git(passed.path, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "one/sub")
    commit(passed.path)
    assert passed.run().ret == 0
    passed.run("--golden-changed=main", "-v").stdout.fnmatch_lines(["  one runs: one/sub is a submodule"])


def test_inputs_outside_git_and_given_values_are_doubts(passed: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = passed.path.parent / "outside.txt"
    outside.write_text("x")
    monkeypatch.setenv("SALES_DAY", "monday")
    passed.declare(
        {"name": "mounted", "mounts": [{"path": str(outside)}]},
        {"name": "given", "pass_env": ["SALES_DAY", "NOT_SET_ANYWHERE"]},
        {"name": "named", "args": ["--config=../shared/c.yaml"]},
    )
    (passed.path / "shared").mkdir()
    (passed.path / "shared" / "c.yaml").write_text("a: 1\n")
    commit(passed.path)
    assert passed.run().ret == 0
    result = passed.run("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines(
        [
            "golden: 1 of 3 projects left out*",
            "  mounted runs: *outside.txt is outside git, so nobody knows whether it changed",
            "  given runs: it is given SALES_DAY, and no value of that is kept to compare",
        ]
    )
    (passed.path / "shared" / "c.yaml").write_text("a: 2\n")
    passed.run("--golden-changed=main", "-v").stdout.fnmatch_lines(["  named runs: shared/c.yaml changed"])


def test_unknown_ref_runs_nothing_and_says_what_to_fetch(passed: Workspace) -> None:
    result = passed.run("--golden-changed=origin/nowhere")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["*--golden-changed origin/nowhere: there is no such commit here*git fetch origin nowhere*"]
    )
    assert passed.run("--golden-changed=--help").ret == 4


def test_outside_git_or_without_a_store_all_run(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    assert workspace.run().ret == 0
    result = workspace.run("--golden-changed=main")
    result.stdout.fnmatch_lines(["golden: no project is left out as unchanged since main: *is in no git repository"])
    assert result.ret == 0
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    assert ran(workspace, "--golden-changed=main", "--golden-store=none") == ["one"]


def test_shared_file_that_nobody_claims_brings_back_who_does_not_say_what_it_reads(workspace: Workspace) -> None:
    shared = workspace.path / "tools" / "lib.sh"
    shared.parent.mkdir()
    shared.write_text("true\n")
    workspace.declare(
        {"name": "silent", "script": ". ../tools/lib.sh"},
        {"name": "said", "depends_on": ["said/**"]},
        {"name": "other"},
    )
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    assert workspace.run().ret == 0
    (workspace.path / "README.md").write_text("for people\n")
    (workspace.path / "other" / "data.txt").write_text("of another\n")
    assert ran(workspace, "--golden-changed=main") == ["other"]
    shared.write_text("exit 3\n")
    result = workspace.run("--golden-changed=main", "-v")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["  silent runs: tools/lib.sh changed, and it has no depends_on", "*::silent FAILED*", "*::said SKIPPED*"]
    )
    # It passed before a commit that is the ref's now.
    shared.write_text("true # again\n")
    assert workspace.run().ret == 0
    shared.write_text("exit 4\n")
    commit(workspace.path)
    assert workspace.run("--golden-changed=HEAD").ret == 1


def test_configuration_above_counts_whatever_is_declared(passed: Workspace) -> None:
    (passed.path / "pyproject.toml").write_text("")
    assert ran(passed, "--golden-changed=main") == ["one", "two", "three"]


def test_folder_that_a_set_variable_names_counts(workspace: Workspace) -> None:
    (workspace.path / "src").mkdir()
    (workspace.path / "src" / "shared.py").write_text("")
    workspace.declare({"name": "one", "set_env": {"PYTHONPATH": "lib:../src"}, "depends_on": ["one/**"]})
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    assert workspace.run().ret == 0
    assert ran(workspace, "--golden-changed=main") == []
    (workspace.path / "src" / "shared.py").write_text("raise SystemExit(1)\n")
    assert ran(workspace, "--golden-changed=main") == ["one"]


def test_reports_and_by_products_that_lie_about_bring_nobody_back(passed: Workspace) -> None:
    names = ("--golden-json=old.json", "--golden-junit=old.xml", "--golden-html=old.html", "--junitxml=tests.xml")
    assert passed.run(*names).ret == 0
    (passed.path / "coverage.log").write_text("x")
    for _ in range(2):
        assert passed.run("--golden-store=kept.db").ret == 0
    assert ran(passed, "--golden-changed=main", "--golden-store=kept.db") == []
    for file in passed.path.glob("kept.db*"):
        file.unlink()
    assert ran(passed, "--golden-changed=main") == []
    (passed.path / "settings.json").write_text("{}")
    assert ran(passed, "--golden-changed=main") == ["two", "three"]


def test_conftest_that_changed_since_it_passed_brings_back_also_from_a_later_commit(passed: Workspace) -> None:
    (passed.path / "conftest.py").write_text("def pytest_golden_judge(project, outcome):\n    return ()\n")
    commit(passed.path)
    assert ran(passed, "--golden-changed=HEAD") == ["one", "two", "three"]
    assert ran(passed, "--golden-changed=HEAD") == []


def test_module_that_a_conftest_imports_brings_all_back(workspace: Workspace) -> None:
    workspace.declare({"name": "one", "depends_on": ["one/**"]})
    (workspace.path / ".gitignore").write_text("version_of_ours.py\n")
    for name in ("limits", "version"):
        (workspace.path / f"{name}_of_ours.py").write_text("MOST = 1\n")
    (workspace.path / "conftest.py").write_text("import limits_of_ours, version_of_ours\n")
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    assert workspace.run_apart().ret == 0
    workspace.run_apart("--golden-changed=main").stdout.fnmatch_lines(["SKIPPED one*"])
    (workspace.path / "version_of_ours.py").write_text("MOST = 2\n")
    result = workspace.run_apart("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines(["*git ignores *version_of_ours.py, which is newer*", "*::one PASSED*"])
    (workspace.path / "limits_of_ours.py").write_text("MOST = 2\n")
    result = workspace.run_apart("--golden-changed=main")
    result.stdout.fnmatch_lines(["*limits_of_ours.py changed, which may judge every project", "PASSED  one*"])


def test_conftest_that_may_judge_brings_all_back(passed: Workspace) -> None:
    (passed.path / "conftest.py").write_text("def pytest_golden_judge(project, outcome):\n    return ()\n")
    assert ran(passed, "--golden-changed=main") == ["one", "two", "three"]


def test_moved_workspace_or_unreadable_base_manifest_brings_all_back(passed: Workspace) -> None:
    (passed.path / "golden_projects.yaml").write_text("{")
    commit(passed.path, "a mistake")
    passed.declare(*PROJECTS)
    result = passed.run("--golden-changed=main")
    result.stdout.fnmatch_lines(["*the manifest at main cannot be read"])


def test_workers_of_xdist_leave_the_same_out(passed: Workspace) -> None:
    pytest.importorskip("xdist")
    (passed.path / "one" / "run.sh").write_text("echo other > out.txt\n")
    assert statuses(passed, "--golden-changed=main", "-n2") == {"one": "PASSED", "two": "SKIPPED", "three": "SKIPPED"}


def test_unchanged_since_the_base_is_no_sunk_floor_and_since_later_is(passed: Workspace) -> None:
    git(passed.path, "checkout", "-q", "-b", "work")
    (passed.path / "notes.txt").write_text("no input\n")
    commit(passed.path)
    assert passed.run("--golden-base=main", "--golden-changed=main").ret == 0
    result = passed.run("--golden-base=main", "--golden-changed=HEAD")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["one: was not run: unchanged since HEAD"])


def test_collecting_asks_neither_git_nor_the_store(passed: Workspace) -> None:
    assert passed.run("--golden-changed=nowhere", "--collect-only").ret == 0


def test_header_names_what_broke_when_these_files_changed_before(passed: Workspace) -> None:
    script = passed.path / "one" / "run.sh"
    good = script.read_text()
    script.write_text("echo the column is gone >&2; exit 3\n")
    commit(passed.path, "drop the column")
    assert passed.run().ret == 1
    script.write_text(good + "# again\n")
    commit(passed.path, "bring it back")
    assert passed.run().ret == 0
    script.write_text(good + "# once more\n")
    result = passed.run("--golden-changed=main")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["golden: broke before, when files that changed now were changed:", "  *one*"])
    passed.run("--golden-changed=main", "--golden-learning=off").stdout.no_fnmatch_line("*broke before*")


@pytest.mark.skipif(os.name == "nt", reason="runs a shell")
def test_many_unchanged_projects_are_summed_up_in_the_table(workspace: Workspace) -> None:
    path = workspace.write_pipeline("all", "true")
    workspace.declare(*({"name": f"p{number}", "path": path} for number in range(41)))
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    assert workspace.run().ret == 0
    result = workspace.run("--golden-changed=main")
    assert sum(line.startswith("SKIPPED p") for line in result.outlines) == 41
    result.stdout.fnmatch_lines(["golden: PASSED (partial: 41 unchanged)"])


READING = "cat ../shared/data.csv > out.txt"
READER = {"name": "reader", "script": READING, "depends_on": ["reader/**"]}


@pytest.fixture
def read(workspace: Workspace) -> Workspace:
    """Projects that say nothing of the shared file that one of them reads, and passed where what they read is recorded."""
    workspace.declare(READER, {"name": "other", "depends_on": ["other/**"]})
    (workspace.path / "shared").mkdir()
    (workspace.path / ".gitignore").write_text("*.bin\n")
    for name in ("data.csv", "else.csv"):
        (workspace.path / "shared" / name).write_text("1\n")
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    return workspace


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which files are opened")
@pytest.mark.parametrize("is_distributed", [False, True])
def test_project_runs_again_when_a_file_that_it_read_changed(read: Workspace, is_distributed: bool) -> None:
    workers = ("-p", "xdist", "-n", "1") if is_distributed else ()
    assert read.run("--golden-reads", *workers).ret == 0
    (read.path / "shared" / "else.csv").write_text("2\n")
    assert ran(read, "--golden-changed=main", "--golden-reads") == []
    (read.path / "shared" / "data.csv").write_text("2\n")
    # Whoever does not want it has it as it was.
    assert ran(read, "--golden-changed=main") == []
    result = read.run("--golden-changed=main", "--golden-reads", "-v")
    result.stdout.fnmatch_lines(["  reader runs: it reads shared/data.csv, which changed"])
    assert result.ret == 0
    commit(read.path)
    assert ran(read, "--golden-changed=HEAD", "--golden-reads") == []
    (read.path / "shared" / "data.csv").unlink()
    result = read.run("--golden-changed=HEAD", "--golden-reads", "-v")
    result.stdout.fnmatch_lines(["  reader runs: it reads shared/data.csv, which changed", "*::reader FAILED*"])


def test_project_runs_where_it_is_not_recorded_what_it_read(read: Workspace) -> None:
    assert read.run().ret == 0
    assert ran(read, "--golden-changed=main") == []
    result = read.run("--golden-changed=main", "--golden-reads")
    result.stdout.fnmatch_lines(
        ["golden: no project is left out *: which files it reads is not recorded", "golden: PASSED: 2 passed"]
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which files are opened")
def test_ignored_file_that_it_read_counts_when_it_is_newer_or_gone(read: Workspace) -> None:
    (read.path / "shared" / "cache.bin").write_text("1\n")
    (read.path / "reader" / "run.sh").write_text("cat ../shared/cache.bin ../shared/data.csv > out.txt\n")
    commit(read.path)
    assert read.run("--golden-reads").ret == 0
    assert ran(read, "--golden-changed=main", "--golden-reads") == []
    (read.path / "shared" / "cache.bin").write_text("1\n")
    result = read.run("--golden-changed=main", "--golden-reads", "-v")
    result.stdout.fnmatch_lines(["  reader runs: it reads shared/cache.bin, which git ignores, and which is newer *"])
    (read.path / "shared" / "cache.bin").unlink()
    result = read.run("--golden-changed=main", "--golden-reads", "-v")
    result.stdout.fnmatch_lines(["  reader runs: it reads shared/cache.bin, which is gone"])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which files are opened")
@pytest.mark.parametrize(
    ("ending", "why"),
    [
        ("submodule", "it reads parts/data.csv, which is in a submodule"),
        ("unwatched", "it reads shared/data.csv, which git does not watch"),
        ("hidden", f"it reads shared/{MARK}.csv, whose name is hidden"),
    ],
)
def test_file_that_it_read_and_of_which_nobody_knows_is_a_doubt(
    read: Workspace, tmp_path: Path, ending: str, why: str
) -> None:
    if ending == "submodule":
        other = tmp_path / "other"
        other.mkdir()
        git(other, "init", "-q")
        (other / "data.csv").write_text("1\n")
        commit(other)
        git(read.path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "parts")
        (read.path / "reader" / "run.sh").write_text("cat ../parts/data.csv > out.txt\n")
    elif ending == "unwatched":
        git(read.path, "update-index", "--assume-unchanged", "shared/data.csv")
    else:
        (read.path / "shared" / f"{TOKEN}.csv").write_text("1\n")
        (read.path / "reader" / "run.sh").write_text("cat ../shared/ghp_*.csv > out.txt\n")
    git(read.path, "add", "-A")
    git(read.path, "commit", "-q", "--allow-empty", "-m", ending)
    assert read.run("--golden-reads").ret == 0
    assert ran(read, "--golden-changed=HEAD") == []
    result = read.run("--golden-changed=HEAD", "--golden-reads", "-v")
    result.stdout.fnmatch_lines([f"  reader runs: {why}".replace("[", "[[]")])
    result.stdout.no_fnmatch_line("  other runs: *")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which files are opened")
def test_what_a_failed_attempt_and_commands_before_and_after_read_counts_too(
    workspace: Workspace, tmp_path: Path
) -> None:
    turns = tmp_path / "turns"
    turns.mkdir()
    again = (
        f"test -e {turns}/once || {{ touch {turns}/once; cat ../shared/first.csv; exit 3; }}; cat ../shared/second.csv"
    )
    retried = {"retries": 1, "mounts": [{"path": str(turns), "mode": "write"}], "depends_on": ["retried/**"]}
    around = {"before": ["cat ../shared/before.csv"], "after": ["cat ../shared/after.csv"], "depends_on": ["around/**"]}
    workspace.declare({"name": "retried", "script": again, **retried}, {"name": "around", **around})
    names = ("first", "second", "before", "after", "none")
    (workspace.path / "shared").mkdir()
    for name in names:
        (workspace.path / "shared" / f"{name}.csv").write_text("1\n")
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    assert workspace.run("--golden-reads").ret == 0
    with closing(sqlite3.connect(workspace.path / ".golden" / "golden.db")) as store:
        bodies = store.execute("SELECT json_extract(body, '$.metadata.reads') FROM trajectories ORDER BY project")
        told = [json.loads(body) for (body,) in bodies]
    assert told == [["shared/after.csv", "shared/before.csv"], ["shared/first.csv", "shared/second.csv"]]
