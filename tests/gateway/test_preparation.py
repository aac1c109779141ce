"""What a project declares beside its pipeline, tried from the inside: mounts, passed files, what is withheld."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.resolution import ProjectUnusableError
from tests.gateway.conftest import VIEWS

if TYPE_CHECKING:
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
