"""What a project gets before it is started: view, private folders, mounts and environment."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.preparation import (
    FIXED,
    build_environment,
    build_path_variable,
    find_missing,
    passed_variables,
)
from pytest_golden.gateway.resolution import ProjectUnusableError, ResolvedProject
from pytest_golden.manifest.model import GoldenProjectConfig
from tests.gateway.conftest import VIEWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.gateway.conftest import RunElsewhere, RunInView


in_every_view = pytest.mark.parametrize("view", VIEWS)
in_both_sealed_views = pytest.mark.parametrize("view", ["overlay", "copy"])


@in_both_sealed_views
@pytest.mark.parametrize("name", ["lake", "lake/part.csv"])
def test_mounts_are_read_or_copied_or_really_written(
    view: str, name: str, run_in_view: RunInView, workspace: Path
) -> None:
    (workspace / "lake").mkdir()
    (workspace / "lake" / "part.csv").write_text("old\n")
    script = f"echo new > {workspace}/lake/part.csv; cat {workspace}/lake/part.csv"

    def run(mode: str) -> tuple[str, str]:
        done = run_in_view(view, script, mounts=[{"path": name, "mode": mode}])
        return done.stdout, (workspace / "lake" / "part.csv").read_text()

    assert run("read") == ("old\n", "old\n")
    assert run("copy") == ("new\n", "old\n")
    assert run("write") == ("new\n", "new\n")


def test_mount_below_home_is_seen_at_its_place(run_in_view: RunInView, home: Path) -> None:
    (home / "data").mkdir()
    (home / "data" / "x").write_text("here")
    assert run_in_view("overlay", "cat ~/data/x; ls -A ~", mounts=[{"path": "~/data"}]).stdout == "heredata\n"


@in_every_view
def test_passed_files_are_in_home_and_read_only(view: str, run_in_view: RunInView, home: Path, workspace: Path) -> None:
    (home / ".dbt").mkdir()
    (home / ".dbt" / "profiles.yml").write_text("profile\n")
    (workspace / "token").write_text("token\n")
    script = """
        cat ~/.dbt/profiles.yml ~/token
        python3 -c 'import os; print([os.access(os.path.expanduser(p), os.W_OK) for p in ("~/token",)])'
    """
    done = run_in_view(view, script, pass_files=["~/.dbt/profiles.yml", "token"])
    assert done.stdout.startswith("profile\ntoken\n")
    if view != "unsealed" or os.getuid() != 0:
        assert done.stdout.endswith("[False]\n")
    assert (home / ".dbt" / "profiles.yml").read_text() == "profile\n"


@in_every_view
def test_passed_file_is_where_its_declared_path_says_whatever_links_lead_there(
    view: str, run_in_view: RunInView, home: Path
) -> None:
    (home / "dotfiles" / "dbt").mkdir(parents=True)
    (home / "dotfiles" / "dbt" / "profiles.yml").write_text("profile\n")
    (home / ".dbt").symlink_to("dotfiles/dbt")
    assert run_in_view(view, "cat ~/.dbt/profiles.yml", pass_files=["~/.dbt/profiles.yml"]).stdout == "profile\n"


@in_every_view
def test_pipeline_may_write_through_its_whole_home(view: str, run_in_view: RunInView) -> None:
    assert (
        run_in_view(view, "mkdir -p ~/.cache/tool && echo x > ~/.cache/tool/y && cat ~/.cache/tool/y").stdout == "x\n"
    )


def test_without_a_seal_what_needs_one_is_refused(run_in_view: RunInView, workspace: Path) -> None:
    (workspace / "lake").mkdir()
    with pytest.raises(ProjectUnusableError, match="`network: false` cannot be kept") as caught:
        run_in_view("unsealed", "true", network=False)
    assert caught.value.problem is Problem.NETWORK_UNAVAILABLE
    with pytest.raises(ProjectUnusableError, match="needs a seal") as caught:
        run_in_view("unsealed", "true", mounts=[{"path": "lake", "mode": "copy"}])
    assert caught.value.problem is Problem.SANDBOX_UNAVAILABLE


@in_both_sealed_views
def test_git_and_environments_in_the_project_can_be_read_and_never_written(
    view: str, run_in_view: RunInView, project_dir: Path
) -> None:
    (project_dir / ".git").mkdir()
    (project_dir / ".git" / "HEAD").write_text("ref\n")
    venv.create(project_dir / ".venv", with_pip=False)
    script = """
        cat .git/HEAD; .venv/bin/python -c 'import sys; print(sys.prefix)'
        echo x > .git/HEAD; rm -rf .git; touch .venv/x
    """
    done = run_in_view(view, script)
    assert done.stdout == f"ref\n{project_dir}/.venv\n"
    assert done.stderr.count("Read-only file system") >= 2
    assert (project_dir / ".git" / "HEAD").read_text() == "ref\n"
    assert done.write_set.to_dict()["files"] == {}


@in_every_view
def test_our_own_folder_is_hidden(view: str, run_in_view: RunInView, project_dir: Path, workspace: Path) -> None:
    for folder in (project_dir, workspace):
        (folder / ".golden").mkdir()
        (folder / ".golden" / "golden.db").touch()
    script = f"ls -A .golden {'' if view == 'unsealed' else f'{workspace}/.golden'}; mkdir -p .golden; touch .golden/x"
    done = run_in_view(view, script)
    assert "golden.db" not in done.stdout
    assert done.write_set.to_dict()["files"] == {}
    assert [path.name for path in (project_dir / ".golden").iterdir()] == ["golden.db"]


@in_both_sealed_views
def test_worktree_knows_its_history(view: str, run_in_view: RunInView, workspace: Path, project_dir: Path) -> None:
    def git(folder: Path, *words: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)

    repository = workspace / "repository"
    repository.mkdir()
    git(repository, "init")
    git(repository, "commit", "--allow-empty", "-m", "the first commit")
    project_dir.rmdir()
    git(repository, "worktree", "add", str(project_dir))
    done = run_in_view(view, "git -c safe.directory='*' log --format=%s; git -c safe.directory='*' status --short")
    assert done.stdout == "the first commit\n?? pipeline.sh\n", done.stderr


@in_both_sealed_views
def test_environment_below_home_works(view: str, run_in_view: RunInView, home: Path) -> None:
    venv.create(home / ".venvs" / "own", with_pip=False)
    place = home / ".venvs" / "own"
    done = run_in_view(
        view, "python -c 'import sys, os; print(sys.prefix, os.environ[\"VIRTUAL_ENV\"])'", venv=str(place)
    )
    assert done.stdout == f"{place} {place}\n", done.stderr


def test_editable_install_of_an_environment_below_home_can_be_imported(run_in_view: RunInView, home: Path) -> None:
    venv.create(home / "env", with_pip=False)
    (home / "library").mkdir()
    (home / "library" / "own_tool.py").write_text("print('imported')\n")
    (packages,) = (home / "env").glob("lib/python*/site-packages")
    (packages / "own_tool.pth").write_text(f"{home}/library\n")
    assert run_in_view("overlay", "python -c 'import own_tool'", venv=str(home / "env")).stdout == "imported\n"


def test_mount_inside_the_project_can_be_read_and_is_not_written(
    run_elsewhere: RunElsewhere, project_dir: Path
) -> None:
    (project_dir / "lake").mkdir()
    (project_dir / "pipeline.sh").write_text("cat lake/data; touch lake/new; touch beside")
    machine = ("--dev-bind", "/", "/", "--tmpfs", str(project_dir / "lake"))
    facts = run_elsewhere(
        machine,
        """
        (workspace / "project/lake/data").write_text("mounted\\n")
        with ExecutionGateway(workspace) as gateway:
            outcome = guarded(gateway, GoldenProjectConfig("a", "project/pipeline.sh"))
            show(outcome, gateway)
        """,
    )
    assert facts["abilities"]["view"] == "overlay"
    assert facts["stdout"] == "mounted\n"
    assert "Read-only file system" in facts["stderr"]
    assert facts["write_set"]["created"] == ["beside"]
    assert facts["problem"] is None


def test_declared_mount_inside_the_project_is_mounted_as_declared(
    run_elsewhere: RunElsewhere, project_dir: Path
) -> None:
    (project_dir / "lake").mkdir()
    (project_dir / "pipeline.sh").write_text("echo more >> lake/data; cat lake/data")
    machine = ("--dev-bind", "/", "/", "--tmpfs", str(project_dir / "lake"))
    facts = run_elsewhere(
        machine,
        """
        (workspace / "project/lake/data").write_text("mounted\\n")
        with ExecutionGateway(workspace) as gateway:
            mounts = [Mount("project/lake", "write")]
            show(guarded(gateway, GoldenProjectConfig("a", "project/pipeline.sh", mounts=mounts)), gateway)
        assert (workspace / "project/lake/data").read_text() == "mounted\\nmore\\n"
        """,
    )
    assert (facts["stdout"], facts["problem"]) == ("mounted\nmore\n", None)


@pytest.mark.parametrize("odd_home", ["/", "gone"])
def test_home_that_cannot_be_masked_is_replaced_by_a_private_one(
    odd_home: str, run_elsewhere: RunElsewhere, project_dir: Path, tmp_path: Path
) -> None:
    (project_dir / "pipeline.sh").write_text("touch ~/mine && ls -A ~ && echo $HOME")
    facts = run_elsewhere(
        ("--dev-bind", "/", "/"),
        """
        with ExecutionGateway(workspace) as gateway:
            show(guarded(gateway, GoldenProjectConfig("a", "project/pipeline.sh")), gateway)
        """,
        environment={"HOME": str(tmp_path / odd_home)},
    )
    listed, inside = facts["stdout"].split()
    assert listed == "mine"
    assert inside not in {"/", str(tmp_path / odd_home)}
    assert not Path(inside).exists()


def project(venv: Path | None = None, **keys: Any) -> ResolvedProject:
    python = sys.executable if venv is None else str(venv / "bin" / "python")
    return ResolvedProject(
        GoldenProjectConfig("a", "a.sh", **keys), Path("/p/a.sh"), Path("/p"), venv, python, sys.executable, (), ()
    )


def build(resolved: ResolvedProject, environ: Mapping[str, str], **runner: str) -> dict[str, str]:
    return build_environment(
        resolved, environ=environ, home="/home/me", temporary="/tmp", steps_file="/tmp/steps", runner=runner
    )


def test_environment_is_built_from_nothing() -> None:
    built = build(project(), {"PATH": "/usr/bin", "PYTHONPATH": "/x", "SECRET": "x", "LANG": "de_DE"})
    assert set(built) - {"VIRTUAL_ENV"} == {"PATH", "HOME", "TMPDIR", "GOLDEN_STEPS", *FIXED}
    assert built["HOME"] == "/home/me"
    assert {name: built[name] for name in FIXED} == FIXED
    assert FIXED["TZ"] == "UTC"


def test_only_declared_variables_pass_and_set_ones_win() -> None:
    resolved = project(pass_env=["ONE", "GONE", "TWO"], set_env={"TWO": "set", "TZ": "Asia/Tokyo"})
    built = build(resolved, {"ONE": "1", "TWO": "2", "THREE": "3"}, COLUMNS="200", TWO="runner")
    assert (built["ONE"], built["TWO"], built["TZ"], built["COLUMNS"]) == ("1", "set", "Asia/Tokyo", "200")
    assert "GONE" not in built
    assert "THREE" not in built
    assert passed_variables(resolved, {"ONE": "1", "X": "2"}) == {"ONE": "1"}


def test_path_begins_with_the_projects_environment_then_the_gates() -> None:
    environ = {"PATH": os.pathsep.join(["/usr/bin", ".", "", "relative/bin", "/usr/bin", "/bin"])}
    own = build_path_variable(project(Path("/venvs/dbt")), environ).split(os.pathsep)
    assert own == ["/venvs/dbt/bin", str(Path(sys.executable).parent), "/usr/bin", "/bin"]
    assert build_path_variable(project(), {}).split(os.pathsep)[0] == str(Path(sys.executable).parent)


def test_virtual_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build(project(Path("/venvs/dbt")), {})["VIRTUAL_ENV"] == "/venvs/dbt"
    monkeypatch.setattr(sys, "prefix", "/venvs/gate")
    assert build(project(), {})["VIRTUAL_ENV"] == "/venvs/gate"
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert "VIRTUAL_ENV" not in build(project(), {})


def test_missing_programs_and_modules_are_named() -> None:
    resolved = project(skip_if_missing=["sh", "json", "xml.dom", "no_such_module", "no-such-program"])
    assert find_missing(resolved, os.defpath) == ("no_such_module", "no-such-program")


def test_modules_are_looked_for_in_the_projects_own_environment(tmp_path: Path) -> None:
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "pyvenv.cfg").write_text(f"home = {Path(os.path.realpath(sys.executable)).parent}\n")
    (tmp_path / "env" / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    resolved = project(tmp_path / "env", skip_if_missing=["json", "pytest_golden"])
    assert find_missing(resolved, os.defpath) == ("pytest_golden",)


@pytest.mark.parametrize("name", ["__main__", "a b", "..x", "x..y"])
def test_odd_names_are_missing_and_no_crash(name: str) -> None:
    try:
        resolved = project(skip_if_missing=[name])
    except ValueError:
        return
    assert set(find_missing(resolved, os.defpath)) <= {name}
