from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.resolution import ProjectUnusableError, resolve_project
from pytest_golden.manifest.model import GoldenProjectConfig
from tests.gateway.conftest import NOT_ROOT

if TYPE_CHECKING:
    from pytest_golden.gateway.resolution import ResolvedProject
    from tests.gateway.conftest import RunElsewhere


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
        ({"venv": "project"}, Problem.PATH_NOT_FOUND, "holds no Python"),
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
    with pytest.raises(ProjectUnusableError, match="is no usable path"):
        resolve_project(config, workspace)


def test_environment_has_its_python_where_its_system_puts_it(workspace: Path) -> None:
    for name, program in (("unix", "bin/python"), ("windows", "Scripts/python.exe")):
        (workspace / name / program).parent.mkdir(parents=True)
        (workspace / name / program).touch()
        assert resolve(workspace, venv=name).python == str(workspace / name / program)


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
