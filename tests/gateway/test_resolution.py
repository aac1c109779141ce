"""Declared paths, and files that stand in for those of a project."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway.model import AgentRole, Ending, Permissions, Problem
from pytest_golden.gateway.resolution import NO_STAND_INS, ProjectUnusableError, resolve_project, write_stand_ins
from pytest_golden.gateway.view import write_kept
from pytest_golden.gateway.write_set import take_fingerprint
from pytest_golden.manifest.model import GoldenProjectConfig
from tests.gateway.conftest import NOT_ROOT, VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.gateway.resolution import ResolvedProject
    from pytest_golden.gateway.service import ExecutionGateway
    from tests.gateway.conftest import MakeProject, RunElsewhere, RunInView


@pytest.fixture(autouse=True)
def pipeline(project_dir: Path) -> Path:
    (project_dir / "a.sh").touch()
    return project_dir / "a.sh"


def resolve(workspace: Path, path: str = "project/a.sh", **keys: Any) -> ResolvedProject:
    return resolve_project(GoldenProjectConfig("a", path, **keys), workspace)


def refuse(workspace: Path, path: str = "project/a.sh", **keys: Any) -> ProjectUnusableError:
    with pytest.raises(ProjectUnusableError) as caught:
        resolve(workspace, path, **keys)
    return caught.value


def test_folder_of_the_file_is_the_project(workspace: Path, project_dir: Path) -> None:
    found = resolve(workspace)
    assert (found.file, found.project_dir) == (project_dir / "a.sh", project_dir)
    assert (found.venv, found.python, found.mounts, found.pass_files) == (None, sys.executable, (), ())


def test_folder_as_path_is_the_project_itself(workspace: Path, project_dir: Path) -> None:
    assert resolve(workspace, "project").project_dir == project_dir
    assert resolve(workspace, ".").project_dir == workspace


def test_absolute_paths_and_home_are_understood(workspace: Path, pipeline: Path, home: Path) -> None:
    (home / "b.sh").touch()
    assert resolve(workspace, str(pipeline)).file == pipeline
    assert resolve(workspace, "~/b.sh").file == home / "b.sh"


def test_links_in_folders_are_followed_and_the_files_own_name_is_kept(workspace: Path, project_dir: Path) -> None:
    (workspace / "link").symlink_to("project")
    (project_dir / "b.sh").symlink_to("a.sh")
    assert resolve(workspace, "link/b.sh").file == project_dir / "b.sh"
    assert resolve(workspace, "link").project_dir == project_dir
    assert resolve(workspace, project_dir="link/../project/.").project_dir == project_dir


def test_mounts_and_passed_files_are_resolved(workspace: Path, home: Path) -> None:
    (workspace / "lake").mkdir()
    (home / "token").touch()
    found = resolve(workspace, mounts=[{"path": "lake", "mode": "write"}], pass_files=["~/token"])
    assert [(mount.path, mount.mode) for mount in found.mounts] == [(workspace / "lake", "write")]
    assert found.pass_files == (home / "token",)


@pytest.mark.parametrize(
    ("keys", "problem", "says"),
    [
        ({"path": "project/gone.sh"}, Problem.PATH_NOT_FOUND, "path project/gone.sh does not exist"),
        ({"path": "gone/a.sh"}, Problem.PATH_NOT_FOUND, "path gone/a.sh does not exist"),
        ({"path": "project/a.sh/b"}, Problem.PATH_NOT_FOUND, "does not exist"),
        ({"project_dir": "gone"}, Problem.PATH_NOT_FOUND, "project_dir gone does not exist"),
        ({"project_dir": "project/a.sh"}, Problem.PATH_NOT_FOUND, "is not a folder"),
        ({"project_dir": "/"}, Problem.PATH_NOT_ALLOWED, "is the whole file system"),
        ({"path": "/etc/passwd", "project_dir": "project"}, Problem.PATH_NOT_ALLOWED, "lies outside project_dir"),
        ({"path": "project/../../a.sh", "project_dir": "project"}, Problem.PATH_NOT_FOUND, "does not exist"),
        ({"venv": ".venv"}, Problem.PATH_NOT_FOUND, "venv .venv does not exist"),
        ({"venv": "project"}, Problem.PATH_NOT_FOUND, "contains no Python"),
        ({"venv": "docker://python:3.12"}, Problem.PATH_NOT_FOUND, "images of containers are not supported yet"),
        ({"mounts": [{"path": "/gone"}]}, Problem.PATH_NOT_FOUND, "mounts /gone does not exist"),
        ({"pass_files": ["~/gone"]}, Problem.PATH_NOT_FOUND, "pass_files ~/gone does not exist"),
        ({"path": "x" * 300}, Problem.PATH_NOT_FOUND, "cannot be resolved"),
    ],
)
def test_unusable_path_is_one_sentence_that_names_key_and_place(
    workspace: Path, keys: dict[str, Any], problem: Problem, says: str
) -> None:
    error = refuse(workspace, **keys)
    assert error.problem is problem
    assert says in str(error)
    assert "\n" not in str(error)


def test_loop_of_symlinks_is_said(workspace: Path) -> None:
    (workspace / "one").symlink_to("two")
    (workspace / "two").symlink_to("one")
    for path in ("one", "one/a.sh"):
        error = refuse(workspace, path)
        assert (error.problem, "loop of symlinks" in str(error)) == (Problem.PATH_NOT_FOUND, True)


def test_path_with_a_null_byte_is_no_path(workspace: Path) -> None:
    config = GoldenProjectConfig("a", "project/a.sh")
    object.__setattr__(config, "path", "a\0b")
    with pytest.raises(ProjectUnusableError, match="is not a usable path"):
        resolve_project(config, workspace)


def test_environment_has_its_python_in_its_folder_of_programs(workspace: Path) -> None:
    python = workspace / "own" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert resolve(workspace, venv="own").python == str(python)


@pytest.mark.parametrize("closed", ["project/a.sh", "project", "."])
def test_path_that_may_not_be_read_is_permission_denied(
    workspace: Path, closed: str, run_elsewhere: RunElsewhere
) -> None:
    Path(workspace / closed).chmod(0)
    try:
        facts = run_elsewhere(
            NOT_ROOT,
            """
            with ExecutionGateway(workspace) as gateway:
                show(guarded(gateway, GoldenProjectConfig("a", "project/a.sh")))
            """,
        )
    finally:
        Path(workspace / closed).chmod(0o700)
    assert (facts["ending"], facts["problem"]) == ("not_started", "permission_denied")
    assert str(workspace) in facts["message"]


in_every_view = pytest.mark.parametrize("view", VIEWS)


@pytest.fixture(autouse=True)
def files(project_dir: Path) -> None:
    (project_dir / "sql" / "deep").mkdir(parents=True)
    for name in ("sql/deep/query.sql", "sql/other.sql", "config"):
        (project_dir / name).write_text("original\n")


@in_every_view
def test_pipeline_sees_stand_ins_among_its_own_files(view: str, run_in_view: RunInView, project_dir: Path) -> None:
    before = take_fingerprint(str(project_dir / "sql"))
    stand_ins = {"sql/deep/query.sql": b"candidate\n", "config": b"\xff"}
    done = run_in_view(view, "cat sql/deep/query.sql sql/other.sql; wc -c < config; ls sql", stand_ins=stand_ins)
    assert done.stdout.split() == ["candidate", "original", "1", "deep", "other.sql"]
    assert take_fingerprint(str(project_dir / "sql")) == before


@in_every_view
def test_stand_ins_are_no_part_of_what_was_written(view: str, run_in_view: RunInView, tmp_path: Path) -> None:
    run = run_in_view(view, "echo new > sql/made", stand_ins={"sql/deep/query.sql": b"candidate\n", "config": b""})
    assert run.write_set.to_dict() | {"files": None} == {
        "created": ["sql/made"],
        "changed": [],
        "removed": [],
        "files": None,
    }
    (tmp_path / "kept").mkdir()
    write_kept(run.prepared.view, tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept").rglob("*")] == ["sql", "made"]


@in_every_view
def test_changes_of_a_stand_in_are_compared_with_what_was_put_there(
    view: str, run_in_view: RunInView, project_dir: Path
) -> None:
    names = [f"file{number}" for number in range(5)]
    for name in names:
        (project_dir / name).write_text("original")
    script = """
        printf candidate > file0; rm file1; printf original > file2; chmod 700 file3; rm file4; printf candidate > file4
        rm -r sql/deep
    """
    stand_ins = {**dict.fromkeys(names, b"candidate"), "sql/deep/query.sql": b"candidate"}
    written = run_in_view(view, script, stand_ins=stand_ins).write_set
    assert written.created == ()
    assert written.changed == ("file2", "file3")
    assert [written.files[name].kind for name in written.changed] == ["file", "mode"]
    assert written.removed == ("file1", "sql/deep/query.sql")


@in_every_view
def test_modes_of_files_and_folders_are_those_of_the_original(
    view: str, run_in_view: RunInView, project_dir: Path
) -> None:
    (project_dir / "sql" / "deep" / "query.sql").chmod(0o440)
    (project_dir / "sql" / "deep").chmod(0o750)
    (project_dir / "sql").chmod(0o550)
    shown = "stat -c %a sql sql/deep sql/deep/query.sql; cat sql/deep/query.sql"
    try:
        done = run_in_view(view, shown, stand_ins={"sql/deep/query.sql": b"candidate"})
    finally:
        (project_dir / "sql").chmod(0o755)
    assert done.stdout.split() == ["550", "750", "440", "candidate"]


@in_every_view
def test_step_readers_find_stand_ins(view: str, run_in_view: RunInView) -> None:
    run = run_in_view(view, "rm sql/other.sql", stand_ins={"config": b"one", "sql/other.sql": b"two"})
    found = run.prepared.view.find_file("config")
    assert found is not None
    assert found.read_bytes() == b"one"
    assert run.prepared.view.find_file("sql/other.sql") is None


@pytest.mark.parametrize("name", ["missing", "sql", "link", "out/x", "../workspace"])
def test_only_a_regular_file_of_the_project_has_stand_ins(name: str, project_dir: Path, tmp_path: Path) -> None:
    (project_dir / "link").symlink_to("config")
    (project_dir / "out").symlink_to("sql")
    (project_dir / "sql" / "x").write_text("x")
    with pytest.raises(ProjectUnusableError, match="not a regular file of") as caught:
        write_stand_ins({name: b""}, project_dir, tmp_path / "stand-ins")
    assert caught.value.problem is Problem.PATH_NOT_FOUND


def test_nothing_is_made_where_nothing_stands_in(project_dir: Path, tmp_path: Path) -> None:
    assert write_stand_ins({}, project_dir, tmp_path / "stand-ins") is NO_STAND_INS
    assert not (tmp_path / "stand-ins").exists()


@pytest.mark.parametrize("view", ["auto", "copy"])
def test_gateway_runs_one_project_with_and_without_stand_ins(
    view: str, open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, project_dir: Path
) -> None:
    gateway, project = open_gateway(view=view), make_project("cat config; echo x >> config")
    before = (project_dir / "config").stat()
    printed = []
    for stand_ins in ({"config": b"first\n"}, None, {"config": b"second\n"}):
        outcome = gateway.run_pipeline(
            project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions(), stand_ins=stand_ins
        )
        assert (outcome.problem, outcome.write_set.changed) == (None, ("config",))
        printed.append(outcome.stdout)
    assert printed == ["first\n", "original\n", "second\n"]
    after = (project_dir / "config").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


def test_stand_in_for_nothing_is_an_outcome(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    outcome = open_gateway().run_pipeline(
        make_project("true"), role=AgentRole.REGRESSION_GUARD, permissions=Permissions(), stand_ins={"no": b""}
    )
    assert (outcome.ending, outcome.problem) == (Ending.NOT_STARTED, Problem.PATH_NOT_FOUND)
    assert "it cannot be replaced" in outcome.message


def test_environment_of_conda_needs_no_python_and_is_named_as_one(
    workspace: Path, make_project: MakeProject, open_gateway: Callable[..., ExecutionGateway]
) -> None:
    (workspace / "envs" / "r" / "conda-meta").mkdir(parents=True)
    program = workspace / "envs" / "r" / "bin" / "Rscript"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho from conda\n")
    program.chmod(0o755)
    assert resolve(workspace, venv="envs/r").python == sys.executable
    project = make_project('Rscript; echo "$CONDA_PREFIX, $VIRTUAL_ENV."', venv="envs/r")
    outcome = open_gateway().run_pipeline(project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions())
    assert outcome.stdout == f"from conda\n{workspace / 'envs' / 'r'}, .\n"
