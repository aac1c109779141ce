from __future__ import annotations

import json
import os
import sqlite3
import statistics
import sys
from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.history.past_store import read_medians
from pytest_golden.history.unchanged import Question, select_changed
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.redaction.redactor import redact
from pytest_golden.redaction.rule import MARK
from pytest_golden.storage.store import Store
from tests.repository import git
from tests.requirement import require

if TYPE_CHECKING:
    from pathlib import Path

    from tests.session.recorded import Recorded
    from tests.session.workspace import Workspace


TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


def commit(folder: Path, message: str = "a change") -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def begin(workspace: Workspace) -> None:
    """Make a repository whose branch `main` is what is there."""
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)


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


def why(workspace: Workspace, ref: str = "main", *, reads: bool = False, narrows: bool = False) -> dict[str, str]:
    """Say why each project would run in a gate with `--golden-changed`, which would leave out all others."""
    path = workspace.path / "golden_projects.yaml"
    database = workspace.path / ".golden" / "golden.db"
    own = tuple(database.with_name(f"{database.name}{ending}") for ending in ("", "-wal", "-shm"))
    question = Question(
        ref, load_manifest(path), redact, own, (workspace.path / "conftest.py",), reads=reads, narrows=narrows
    )
    with Store.open(database) as store:
        return dict(select_changed(question, store).why)


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
    begin(workspace)
    assert workspace.run().ret == 0
    return workspace


def test_unchanged_projects_are_left_out_counted_and_shown(passed: Workspace, recorded: Recorded) -> None:
    result = passed.run("--golden-changed=main", "--golden-require")
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
    # They were left out, so it is still their last pass that counts.
    assert why(passed) == {}
    (passed.path / "lib" / "sub").mkdir()
    (passed.path / "lib" / "sub" / "b.sql").write_text("select 2\n")
    (passed.path / "two" / "new.csv").write_text("1\n")
    result = passed.run("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines(
        [
            "  one runs: lib/sub/b.sql changed",
            "  two runs: two/new.csv changed",
            "  three runs: it needs two, which runs",
        ]
    )


def test_what_a_change_may_reach_runs_with_those_that_need_it_and_that_it_needs(passed: Workspace) -> None:
    folder = passed.path
    (folder / "lib" / "readme.md").write_text("no input of anyone\n")
    assert why(passed) == {}
    (folder / "three" / "run.sh").write_text("echo other > out.txt\n")
    assert why(passed) == {"two": "three, which runs, needs it", "three": "three/run.sh changed"}
    git(folder, "checkout", "-q", "--", "three")
    baseline = folder / "golden_baselines" / "two" / "out.txt"
    baseline.parent.mkdir(parents=True)
    baseline.write_text("passed\n")
    assert list(why(passed)) == ["two", "three"]
    baseline.unlink()
    one, two, three = PROJECTS
    passed.declare({**one, "title": "The first", "description": "for people"}, two, three)
    assert why(passed) == {}
    passed.declare({**one, "timeout": 30}, two, three, {"name": "four"})
    assert why(passed) == {
        "one": "its entry in the manifest changed: timeout",
        "four": "it is new in the manifest",
    }
    (folder / "four" / "run.sh").unlink()
    passed.declare(*PROJECTS)
    # What configures pytest above a project counts whatever is declared.
    (folder / "pyproject.toml").write_text("")
    assert why(passed) == dict.fromkeys(("one", "two", "three"), "pyproject.toml changed")
    (folder / "pyproject.toml").unlink()
    # Git is configured to be told of no edit.
    watcher = folder.parent / "watcher"
    watcher.write_text("#!/bin/sh\nprintf 'nothing\\0'\n")
    watcher.chmod(0o755)
    git(folder, "config", "core.fsmonitor", str(watcher))
    git(folder, "update-index", "--fsmonitor")
    git(folder, "status")
    (folder / "one" / "run.sh").write_text("echo other > out.txt\n")
    assert why(passed) == {"one": "one/run.sh changed"}


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
    assert why(passed) == {"one": "one/run.sh changed"}
    assert why(passed, "HEAD") == {}


def test_project_that_failed_last_or_passed_on_something_else_runs(passed: Workspace) -> None:
    # What makes it fail is in no input of it: that it failed is all there is to tell.
    (passed.path / ".git" / "info" / "exclude").write_text("broken\n")
    (passed.path / "one" / "run.sh").write_text("[ ! -e ../broken ]\n")
    commit(passed.path)
    (passed.path / "broken").touch()
    assert passed.run("-k", "one").ret == 1
    (passed.path / "broken").unlink()
    assert why(passed) == {"one": "its last run was FAILED"}
    (passed.path / "one" / "run.sh").write_text("echo edited > out.txt\n")
    assert passed.run("-k", "one").ret == 0
    git(passed.path, "checkout", "-q", "--", "one")
    assert why(passed) == {"one": "one/run.sh changed since it passed"}


def test_what_nobody_knows_of_in_its_own_folder_is_a_doubt(passed: Workspace, tmp_path: Path) -> None:
    folder = passed.path
    (folder / ".gitignore").write_text("*.bin\n__pycache__/\nvenv/\n")
    for name in ("one/__pycache__/x.pyc", "venv/pyvenv.cfg"):
        (folder / name).parent.mkdir()
        (folder / name).write_text("version = 3.12.0\n")
    assert why(passed) == {}
    data = folder / "one" / "data.bin"
    data.write_text("nobody sees this change")
    assert why(passed) == {"one": "git ignores one/data.bin, which is newer than its last pass"}
    data.unlink()
    (folder / "one" / "venv").mkdir()
    (folder / "one" / "venv" / "pyvenv.cfg").write_text("version = 3.12.0\n")
    unknown = {"one": "the versions in one/venv/ are not known, because no venv: names it"}
    assert why(passed) == unknown
    (folder / ".gitignore").write_text("__pycache__/\n")
    assert why(passed) == unknown
    (folder / "one" / "venv" / "pyvenv.cfg").unlink()
    (folder / "one" / "out.sql").symlink_to("../lib/a.sql")
    (folder / "two" / "in.sh").symlink_to("run.sh")
    commit(folder)
    git(folder, "update-index", "--assume-unchanged", "three/run.sh")
    assert why(passed, "HEAD") == {
        "one": "one/out.sql is a symlink that leads out of one",
        "two": "two/in.sh changed since it passed",
        "three": "git does not watch three/run.sh",
    }
    (folder / "one" / "out.sql").unlink()
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    commit(other)
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "one/sub")
    commit(folder)
    assert why(passed, "HEAD")["one"] == "one/sub is a submodule"


def test_ignored_files_count_when_they_changed_or_are_gone_since_the_last_pass(passed: Workspace) -> None:
    folder = passed.path
    (folder / ".gitignore").write_text("data/\nout/\n*.csv\n*.log\n")
    (folder / "data").mkdir()
    for name in ("data/days.txt", "days.csv", "noise.log", "one/own.csv", "one/access.log"):
        (folder / name).write_text("1\n")
    commit(folder)
    assert passed.run("--golden-json=out/last.json").ret == 0
    assert why(passed) == {}
    (folder / "noise.log").unlink()
    (folder / "one" / "own.csv").unlink()
    gone = {"one": "one/own.csv, which git ignored, is gone since it passed"}
    assert why(passed) == gone
    (folder / "one" / "access.log").write_text("2\n")
    assert list(why(passed)) == ["one"]
    assert why(passed) != gone
    (folder / "days.csv").unlink()
    told = "days.csv, which git ignored, is gone since it passed, and it has no depends_on"
    assert (why(passed)["two"], why(passed)["three"]) == (told, told)
    (folder / "data" / "days.txt").write_text("2\n")
    told = "git ignores data/days.txt, which is newer than its last pass, and it has no depends_on"
    assert (why(passed)["two"], why(passed)["three"]) == (told, told)
    with closing(sqlite3.connect(folder / ".golden" / "golden.db")) as store, store:
        store.execute("UPDATE gate_runs SET host = 'another'")
    assert why(passed)["two"] == "git ignores data/days.txt, and it last passed elsewhere, and it has no depends_on"
    (folder / "one" / "own.csv").write_text("1\n")
    assert why(passed)["one"] == "git ignores one/own.csv, so it may have changed"
    # Once they have passed with what is there now, nothing is left of it.
    assert ran(passed, "--golden-changed=main") == ["one", "two", "three"]
    assert why(passed) == {}
    # What a link leads to may change without it.
    (folder / "one" / "own.csv").unlink()
    (folder / "one" / "own.csv").symlink_to("/etc/hostname")
    assert ran(passed) == ["one", "two", "three"]
    assert why(passed) == {"one": "git ignores one/own.csv, a symlink, so its target may have changed"}


def test_data_that_git_ignores_is_the_same_if_it_is_older_than_the_last_pass(workspace: Workspace) -> None:
    workspace.declare({"name": "shop", "depends_on": ["shop/**", "raw/*.csv"]})
    (workspace.path / ".gitignore").write_text("*.csv\nshop/built/\n.golden/\n")
    for name in ("raw/a.csv", "raw/b.csv", "shop/built/old/a.bin", "shop/c.csv"):
        (workspace.path / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace.path / name).write_text("1\n")
    begin(workspace)
    assert why(workspace) == {"shop": "git ignores shop/built/, so it may have changed"}
    assert workspace.run().ret == 0
    assert why(workspace) == {}
    for name in ("raw/b.csv", "shop/built/old/a.bin", "shop/c.csv"):
        stamp = (workspace.path / name).stat().st_mtime
        (workspace.path / name).write_text("2\n")
        # Its own time can be set back.
        os.utime(workspace.path / name, (stamp, stamp))
        assert why(workspace) == {"shop": f"git ignores {name}, which is newer than its last pass"}
        assert workspace.run().ret == 0
        assert why(workspace) == {}
    (workspace.path / "raw" / "a.csv").unlink()
    assert why(workspace) == {"shop": "git ignores raw, which is newer than its last pass"}


def test_ignored_symlink_on_the_way_to_a_project_is_a_doubt(workspace: Workspace) -> None:
    for version in ("v1", "v2"):
        workspace.write_pipeline(version, f"echo {version}")
    (workspace.path / "now").symlink_to("v1")
    (workspace.path / ".gitignore").write_text("now\n.golden/\n")
    workspace.declare({"name": "linked", "path": "now/run.sh", "depends_on": ["lib/**"]})
    begin(workspace)
    assert workspace.run().ret == 0
    assert why(workspace) == {"linked": "git ignores now, so it may have changed"}


def test_pass_of_which_it_is_not_noted_what_git_ignored_is_run_again(passed: Workspace) -> None:
    def note(digest: str | None) -> None:
        with closing(sqlite3.connect(passed.path / ".golden" / "golden.db")) as store, store:
            store.execute("UPDATE gate_runs SET facts = json_set(facts, '$.ignored_digest', ?)", [digest])

    with closing(sqlite3.connect(passed.path / ".golden" / "golden.db")) as store, store:
        store.execute("INSERT INTO documents (digest, body) VALUES ('many', ?)", ['{"names": [], "is_all": false}'])
    note("many")
    told = "git ignored too many files to record at its last pass, and it has no depends_on"
    assert why(passed) == {"two": told, "three": told}
    note(None)
    told = "which files git ignored when it passed is not recorded"
    assert why(passed) == dict.fromkeys(("one", "two", "three"), told)
    assert ran(passed, "--golden-changed=main") == ["one", "two", "three"]
    assert why(passed) == {}


def test_places_outside_its_folder_count_that_a_project_names_and_that_it_may_read(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workspace.path
    outside = folder.parent / "outside.txt"
    monkeypatch.setenv("SALES_DAY", "monday")
    outside.write_text("x")
    for version in ("v1", "v2"):
        workspace.write_pipeline(version, f"echo {version}")
    for name in ("tools", "src", "shared"):
        (folder / name).mkdir()
    shared = folder / "tools" / "lib.sh"
    for file in (shared, folder / "src" / "shared.py", folder / "shared" / "c.yaml"):
        file.write_text("")
    (folder / "now").symlink_to("v1")
    workspace.declare(
        {"name": "silent", "script": ". ../tools/lib.sh"},
        {"name": "other"},
        {"name": "said", "depends_on": ["said/**"]},
        {"name": "linked", "path": "now/run.sh", "depends_on": ["lib/**"]},
        {"name": "imports", "set_env": {"PYTHONPATH": "lib:../src"}, "depends_on": ["imports/**"]},
        {"name": "mounted", "mounts": [{"path": str(outside)}], "depends_on": ["mounted/**"]},
        {"name": "given", "pass_env": ["SALES_DAY", "NOT_SET_ANYWHERE"], "depends_on": ["given/**"]},
        {"name": "named", "args": ["--config=../shared/c.yaml"], "depends_on": ["named/**"]},
    )
    begin(workspace)
    assert workspace.run("-v").ret == 0
    doubts = {
        "mounted": f"{outside} is outside git, so it may have changed",
        "given": "it gets the variable SALES_DAY, whose value is not stored",
    }
    assert why(workspace) == doubts
    (folder / "README.md").write_text("for people\n")
    (folder / "other" / "data.txt").write_text("of another\n")
    assert why(workspace) == {"other": "other/data.txt changed", **doubts}
    (folder / "other" / "data.txt").unlink()
    shared.write_text("true # again\n")
    told = "tools/lib.sh changed, and it has no depends_on"
    assert why(workspace) == {"silent": told, "other": told, **doubts}
    # It passed before a commit that is the ref's now.
    assert workspace.run("-k", "silent or other").ret == 0
    shared.write_text("exit 4\n")
    commit(folder)
    told = "tools/lib.sh changed since it passed, and it has no depends_on"
    assert why(workspace, "HEAD") == {"silent": told, "other": told, **doubts}
    (folder / "src" / "shared.py").write_text("raise SystemExit(1)\n")
    (folder / "shared" / "c.yaml").write_text("a: 2\n")
    (folder / "now").unlink()
    (folder / "now").symlink_to("v2")
    named = {"linked": "now changed", "imports": "src/shared.py changed", **doubts, "named": "shared/c.yaml changed"}
    assert {name: told for name, told in why(workspace, "HEAD").items() if name not in {"silent", "other"}} == named


def test_reports_and_by_products_that_lie_about_bring_nobody_back(passed: Workspace) -> None:
    names = ("--golden-json=old.json", "--golden-junit=old.xml", "--golden-html=old.html", "--junitxml=tests.xml")
    assert passed.run(*names, "--golden-store=kept.db").ret == 0
    (passed.path / "coverage.log").write_text("x")
    assert ran(passed, "--golden-changed=main", "--golden-store=kept.db") == []
    for file in passed.path.glob("kept.db*"):
        file.unlink()
    assert why(passed) == {}
    (passed.path / "settings.json").write_text("{}")
    assert list(why(passed)) == ["two", "three"]


def test_conftest_that_may_judge_brings_all_back(passed: Workspace) -> None:
    (passed.path / "conftest.py").write_text("def pytest_golden_judge(project, outcome):\n    return ()\n")
    commit(passed.path)
    judges = "conftest.py changed, which may judge every project"
    assert why(passed, "HEAD~1") == dict.fromkeys(("one", "two", "three"), judges)
    # It changed since they passed, whatever the ref.
    assert ran(passed, "--golden-changed=HEAD") == ["one", "two", "three"]
    assert why(passed, "HEAD") == {}


def test_module_that_a_conftest_imports_brings_all_back(workspace: Workspace) -> None:
    workspace.declare({"name": "one", "depends_on": ["one/**"]})
    (workspace.path / ".gitignore").write_text("version_of_ours.py\n")
    for name in ("limits", "version"):
        (workspace.path / f"{name}_of_ours.py").write_text("MOST = 1\n")
    (workspace.path / "conftest.py").write_text("import limits_of_ours, version_of_ours\n")
    begin(workspace)
    assert workspace.run().ret == 0
    workspace.run("--golden-changed=main").stdout.fnmatch_lines(["SKIPPED one*"])
    (workspace.path / "version_of_ours.py").write_text("MOST = 2\n")
    result = workspace.run("--golden-changed=main", "-v")
    result.stdout.fnmatch_lines(["*git ignores *version_of_ours.py, which is newer*", "*::one PASSED*"])
    (workspace.path / "limits_of_ours.py").write_text("MOST = 2\n")
    result = workspace.run("--golden-changed=main")
    result.stdout.fnmatch_lines(["*limits_of_ours.py changed, which may judge every project", "PASSED  one*"])


def test_where_nothing_can_be_compared_all_run_and_a_ref_that_is_not_there_is_refused(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    result = workspace.run("--golden-changed=main")
    result.stdout.fnmatch_lines(["golden: no project is left out as unchanged since main: *is not in a git repository"])
    assert result.ret == 0
    begin(workspace)
    assert ran(workspace, "--golden-changed=main", "--golden-store=none") == ["one"]
    result = workspace.run("--golden-changed=origin/nowhere")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["*--golden-changed origin/nowhere: there is no such commit here*git fetch origin nowhere*"]
    )
    assert workspace.run("--golden-changed=--help").ret == 4
    # Collecting asks neither git nor the store.
    assert workspace.run("--golden-changed=nowhere", "--collect-only").ret == 0
    (workspace.path / "golden_projects.yaml").write_text("{")
    commit(workspace.path, "a mistake")
    workspace.declare({"name": "one"})
    assert why(workspace) == {"one": "the manifest at main cannot be read"}


def test_workers_of_xdist_leave_the_same_out(passed: Workspace) -> None:
    pytest.importorskip("xdist")
    (passed.path / "one" / "run.sh").write_text("echo other > out.txt\n")
    assert statuses(passed, "--golden-changed=main", "-n1") == {"one": "PASSED", "two": "SKIPPED", "three": "SKIPPED"}


def test_unchanged_since_the_base_is_no_sunk_floor_and_since_later_is(passed: Workspace) -> None:
    git(passed.path, "checkout", "-q", "-b", "work")
    (passed.path / "notes.txt").write_text("no input\n")
    commit(passed.path)
    assert passed.run("--golden-base=main", "--golden-changed=main").ret == 0
    result = passed.run("--golden-base=main", "--golden-changed=HEAD")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["one: was not run: unchanged since HEAD"])


def test_header_names_what_broke_when_these_files_changed_before(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    script = workspace.path / "one" / "run.sh"
    begin(workspace)
    assert workspace.run().ret == 0
    script.write_text("echo the column is gone >&2; exit 3\n")
    commit(workspace.path, "drop the column")
    assert workspace.run().ret == 1
    script.write_text("true # again\n")
    commit(workspace.path, "bring it back")
    assert workspace.run().ret == 0
    script.write_text("true # once more\n")
    result = workspace.run("--golden-changed=main")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["golden: earlier changes of the same files broke:", "  *one*"])
    workspace.run("--golden-changed=main", "--golden-learning=off").stdout.no_fnmatch_line("*broke before*")


def declare_readers(workspace: Workspace, **read: str) -> None:
    """Declare projects that say nothing of the files outside their folders that they read."""
    readers = [
        {"name": name, "script": f"cat {files} > out.txt", "depends_on": [f"{name}/**"]} for name, files in read.items()
    ]
    workspace.declare(*readers, {"name": "other", "depends_on": ["other/**"]})
    (workspace.path / "shared").mkdir()
    (workspace.path / ".gitignore").write_text("*.bin\n")
    for name in ("data.csv", "else.csv", "cache.bin", "unwatched.csv"):
        (workspace.path / "shared" / name).write_text("1\n")
    begin(workspace)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports which files are opened")
def test_project_runs_again_when_a_file_that_it_read_on_a_worker_changed(workspace: Workspace) -> None:
    declare_readers(workspace, reader="../shared/data.csv")
    data = workspace.path / "shared" / "data.csv"
    assert workspace.run("--golden-reads", "-p", "xdist", "-n", "1").ret == 0
    (workspace.path / "shared" / "else.csv").write_text("2\n")
    assert why(workspace, reads=True) == {}
    data.write_text("2\n")
    # Whoever does not want it has it as it was.
    assert why(workspace) == {}
    result = workspace.run("--golden-changed=main", "--golden-reads", "-v")
    result.stdout.fnmatch_lines(["  reader runs: it reads shared/data.csv, which changed", "*::reader PASSED*"])
    assert result.ret == 0
    commit(workspace.path)
    assert why(workspace, "HEAD", reads=True) == {}
    data.unlink()
    assert why(workspace, "HEAD", reads=True) == {"reader": "it reads shared/data.csv, which changed"}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports which files are opened")
def test_file_that_it_read_and_of_which_nobody_knows_is_a_doubt(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    git(tmp_path / "other", "init", "-q")
    (tmp_path / "other" / "data.csv").write_text("1\n")
    commit(tmp_path / "other")
    declare_readers(
        workspace,
        cached="../shared/cache.bin ../shared/data.csv",
        foreign="../parts/data.csv",
        unwatched="../shared/unwatched.csv",
        hidden="../shared/ghp_*.csv",
    )
    folder = workspace.path
    add = ("submodule", "--quiet", "add", str(tmp_path / "other"), "parts")
    git(folder, "-c", "protocol.file.allow=always", *add)
    git(folder, "update-index", "--assume-unchanged", "shared/unwatched.csv")
    (folder / "shared" / f"{TOKEN}.csv").write_text("1\n")
    commit(folder)
    assert workspace.run().ret == 0
    assert why(workspace, "HEAD") == {}
    names = ("cached", "foreign", "unwatched", "hidden", "other")
    unknown = dict.fromkeys(names, "which files it reads is not recorded")
    assert why(workspace, "HEAD", reads=True) == unknown
    assert workspace.run("--golden-reads").ret == 0
    assert why(workspace, "HEAD") == {}
    doubts = {
        "foreign": "it reads parts/data.csv, which is in a submodule",
        "unwatched": "it reads shared/unwatched.csv, which git does not watch",
        "hidden": f"it reads shared/{MARK}.csv, whose name is hidden",
    }
    assert why(workspace, "HEAD", reads=True) == doubts
    cache = folder / "shared" / "cache.bin"
    cache.write_text("1\n")
    told = why(workspace, "HEAD", reads=True)["cached"]
    assert told.startswith("it reads shared/cache.bin, which git ignores, and which is newer ")
    cache.unlink()
    gone = {"cached": "it reads shared/cache.bin, which is gone"}
    assert why(workspace, "HEAD", reads=True) == {**gone, **doubts}
    result = workspace.run("--golden-changed=HEAD", "--golden-reads", "-v")
    assert [line for line in result.outlines if " runs: " in line] == [
        f"  {name} runs: {reason}" for name, reason in {**gone, **doubts}.items()
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports which files are opened")
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
    begin(workspace)
    assert workspace.run("--golden-reads").ret == 0
    with closing(sqlite3.connect(workspace.path / ".golden" / "golden.db")) as store:
        bodies = store.execute("SELECT json_extract(body, '$.metadata.reads') FROM trajectories ORDER BY project")
        told = [json.loads(body) for (body,) in bodies]
    assert told == [["shared/after.csv", "shared/before.csv"], ["shared/first.csv", "shared/second.csv"]]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports which files are opened")
def test_project_of_the_whole_repository_runs_only_for_what_it_reads(workspace: Workspace) -> None:
    files = {
        "run.sh": "cat sql/*.sql > out.txt\n",
        "sql/a.sql": "1\n",
        "lib/unused.py": "",
        "tests/test_a.py": "",
        "README.md": "",
    }
    for path, text in files.items():
        (workspace.path / path).parent.mkdir(exist_ok=True)
        (workspace.path / path).write_text(text)
    workspace.declare({"name": "all", "path": "run.sh"})
    (workspace.path / ".gitignore").write_text(".golden/\n")
    begin(workspace)
    assert workspace.run("--golden-reads", "--golden-sandbox=overlay").ret == 0
    assert why(workspace, "HEAD", reads=True) == {}
    for path in ("README.md", "lib/unused.py", "tests/test_a.py", "tests/test_b.py"):
        (workspace.path / path).write_text("# edited\n")
    assert why(workspace, "HEAD", reads=True) == {}
    assert why(workspace, "HEAD") != {}
    (workspace.path / "sql" / "b.sql").write_text("2\n")
    assert why(workspace, "HEAD", reads=True) == {"all": "sql/b.sql changed"}
    (workspace.path / "sql" / "b.sql").unlink()
    (workspace.path / "sql" / "a.sql").write_text("2\n")
    assert why(workspace, "HEAD", reads=True) == {"all": "sql/a.sql changed"}


def test_what_git_ignores_is_no_doubt_where_the_project_does_not_see_it(workspace: Workspace) -> None:
    workspace.declare(
        {"name": "seeing", "depends_on": ["seeing/**"]},
        {"name": "tracked", "view": "tracked", "depends_on": ["tracked/data/*.csv"]},
    )
    (workspace.path / ".gitignore").write_text("*.db\n*.csv\n*.log\n.golden/\n")
    begin(workspace)
    assert workspace.run().ret == 0
    assert why(workspace) == {}
    for name in ("seeing", "tracked"):
        (workspace.path / name / "left.db").write_text("yesterday's\n")
        (workspace.path / name / "old.log").write_text("yesterday's\n")
    assert why(workspace) == {"seeing": "git ignores seeing/left.db, which is newer than its last pass"}
    assert workspace.run().ret == 0
    (workspace.path / "tracked" / "left.db").unlink()
    assert "tracked" not in why(workspace)
    # What `depends_on` names is shown.
    (workspace.path / "tracked" / "data").mkdir()
    (workspace.path / "tracked" / "data" / "a.csv").write_text("1\n")
    assert why(workspace)["tracked"] == "git ignores tracked/data/a.csv, which is newer than its last pass"


SHOP = {
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop\nseed-paths: [seeds]\nmodel-paths: [models]\n",
    "profiles.yml": "shop:\n  target: gate\n  outputs:\n    gate: {type: duckdb, path: shop.duckdb}\n",
    "seeds/orders.csv": "id,amount\n1,10\n2,20\n",
    "models/clean.sql": "select id, amount from {{ ref('orders') }}\n",
    "models/total.sql": "select sum(amount) as total from {{ ref('clean') }}\n",
    "models/other.sql": "select count(*) as n from {{ ref('orders') }}\n",
    "models/schema.yml": "models:\n  - name: other\n",
}


@pytest.mark.dbt
class TestDbt:
    @pytest.fixture
    def shop(self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
        """A dbt project whose models were accepted, and passed, at the commit that `main` is."""
        for module in ("dbt", "duckdb"):
            require(find_spec(module), module)
        monkeypatch.delenv("CI", raising=False)
        for path, content in SHOP.items():
            file = workspace.path / "shop" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        workspace.declare(
            {"name": "shop", "path": "shop/dbt_project.yml", "depends_on": ["shop/**"], "outputs": [{"dbt": "*"}]}
        )
        begin(workspace)
        assert workspace.run_apart("--golden-update", "--golden-no-calibrate").ret == 0
        commit(workspace.path, "baselines")
        assert workspace.run_apart("--golden-reads").ret == 0
        return workspace

    def test_only_what_comes_after_a_changed_model_is_run_and_judged(self, shop: Workspace, recorded: Recorded) -> None:
        model = shop.path / "shop" / "models" / "clean.sql"
        model.write_text("-- the same\n" + model.read_text())
        result = shop.run_apart("--golden-changed=main", "--golden-reads", "--golden-json=../report.json")
        assert result.ret == 0
        result.stdout.fnmatch_lines(
            [
                "*shop: only the part that depends on models/clean.sql has to run",
                "PASSED * only a part was run, without dbt/other.parquet; *",
                "golden: PASSED (partial: 1 run in part): 1 passed",
            ]
        )
        (told,) = json.loads((shop.path.parent / "report.json").read_text())["results"]
        assert (told["narrowed_to"], told["left_out"]) == (["models/clean.sql"], ["dbt/other.parquet"])
        assert {step["content"] for step in told["steps"]} == {
            "seed.shop.orders",
            "model.shop.clean",
            "model.shop.total",
        }
        # What it read is not all that the project reads, and how long it took is not how long the project takes.
        assert told["trajectory"]["metadata"]["reads_inside"] is None
        assert [past.is_narrowed for past in recorded.past("shop")] == [True, False, False]
        with Store.open(recorded.path) as store, store.read() as connection:
            assert read_medians(connection, ["shop"]) == {
                "shop": statistics.median(past.execution_time_seconds for past in recorded.past("shop")[1:])
            }
        assert why(shop, narrows=True) == {"shop": "only the part that depends on models/clean.sql has to run"}
        # It passed with this edit, so only the next one has to be looked at; main still has neither.
        commit(shop.path)
        assert why(shop, "HEAD", narrows=True) == {}
        model.write_text("select id, amount + 1 as amount from {{ ref('orders') }}\n")
        result = shop.run_apart("--golden-changed=main", "-n2")
        assert result.ret == 1
        result.stdout.fnmatch_lines(["FAILED: dbt/clean.parquet differs *", "also: dbt/total.parquet differs *"])
        result.stdout.no_fnmatch_line("*other*")
        # What is accepted anew is compared in the part, and nothing of the rest.
        assert shop.run_apart("--golden-update", "--golden-no-calibrate").ret == 0
        assert why(shop, narrows=True) == {
            "shop": "only the part that depends on dbt/clean.parquet, dbt/total.parquet, models/clean.sql has to run"
        }
        commit(shop.path, "accepted")
        assert why(shop, "HEAD", narrows=True) == {}
        result = shop.run_apart("--golden-changed=main~2")
        assert result.ret == 0
        result.stdout.fnmatch_lines(["PASSED * only a part was run, without dbt/other.parquet; *"])
        other = shop.path / "golden_baselines" / "shop" / "dbt" / "other.parquet"
        other.write_bytes((other.parent / "clean.parquet").read_bytes())
        result = shop.run_apart("--golden-changed=main~2")
        assert result.ret == 1
        result.stdout.fnmatch_lines(["FAILED: dbt/other.parquet differs *"])
        # After a failure all of it runs.
        assert why(shop, "HEAD", narrows=True) == {"shop": "its last run was FAILED"}

    def test_whatever_may_reach_more_runs_all_of_it(self, shop: Workspace) -> None:
        folder = shop.path / "shop"
        for path in ("models/schema.yml", "dbt_project.yml", "models/notes.txt"):
            (folder / "models" / "other.sql").write_text("-- changed\n" + SHOP["models/other.sql"])
            (folder / path).write_text(SHOP.get(path, "") + "\n")
            assert why(shop, narrows=True) == {"shop": f"shop/{path} changed"}
            git(shop.path, "checkout", "-q", ".")
            git(shop.path, "clean", "-fdq")
        (folder / "models" / "other.sql").unlink()
        assert why(shop, narrows=True) == {"shop": "shop/models/other.sql changed"}
        # A model that a change switches off is missing, and not left out.
        (folder / "models" / "other.sql").write_text("{{ config(enabled=false) }} select 1")
        result = shop.run_apart("--golden-changed=main")
        assert result.ret == 1
        result.stdout.fnmatch_lines(["FAILED: dbt/other.parquet has a baseline, and this run did not write it"])

    def test_a_part_that_was_run_since_a_later_commit_is_a_hole_in_the_floor(self, shop: Workspace) -> None:
        model = shop.path / "shop" / "models" / "other.sql"
        model.write_text("-- changed\n" + model.read_text())
        assert shop.run_apart("--golden-changed=main", "--golden-base=main").ret == 0
        git(shop.path, "checkout", "-q", "-b", "work")
        commit(shop.path)
        model.write_text("-- again\n" + model.read_text())
        result = shop.run_apart("--golden-changed=HEAD", "--golden-base=main")
        assert result.ret == 1
        result.stdout.fnmatch_lines(["shop: was not run: only the part that depends on its changed files ran"])
        # What is accepted is never a part.
        result = shop.run_apart("--golden-changed=HEAD", "--golden-update")
        assert result.ret == 0
        result.stdout.no_fnmatch_line("*only the part that depends on*")
