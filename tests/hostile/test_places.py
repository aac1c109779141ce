"""Places that are not what they should be: full disks, projects around everything, odd machines."""

from __future__ import annotations

import subprocess
import venv
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway.model import Ending, Problem
from pytest_golden.manifest.model import GoldenProjectConfig
from tests.gateway.conftest import run_guarded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_golden.gateway.service import ExecutionGateway
    from tests.gateway.conftest import MakeProject, RunElsewhere

Run = Any
in_both_views = pytest.mark.parametrize("view", ["auto", "copy"])

RUN = """
with ExecutionGateway(workspace, view=os.environ["VIEW"]) as gateway:
    place = gateway.describe().reasons[-1]
    outcome = guarded(gateway, GoldenProjectConfig("a", "project/pipeline.sh"))
    facts = show(outcome)
assert os.listdir(os.environ["TMPDIR"]) == [], os.listdir(os.environ["TMPDIR"])
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> tuple[str, ...]:
    """A machine whose only place for scratch holds 4 MiB."""
    (tmp_path / "small").mkdir()
    (tmp_path / "nothing").mkdir()
    machine = ["--dev-bind", "/", "/", "--size", str(4 << 20), "--tmpfs", str(tmp_path / "small")]
    for place in ("/var/tmp", "/dev/shm", str(tmp_path / "home")):
        machine += ["--ro-bind", str(tmp_path / "nothing"), place]
    return tuple(machine)


@in_both_views
@pytest.mark.parametrize("script", ["head -c 16777216 /dev/zero > big", "head -c 16777216 /dev/zero"])
def test_pipeline_that_fills_the_disk_fails_and_nothing_else_does(
    view: str,
    script: str,
    small_disk: tuple[str, ...],
    run_elsewhere: RunElsewhere,
    make_project: MakeProject,
    tmp_path: Path,
) -> None:
    make_project(script)
    facts = run_elsewhere(small_disk, RUN, environment={"VIEW": view, "TMPDIR": str(tmp_path / "small")})
    if facts["problem"] is None:
        assert facts["ending"] == "exited"
        assert facts["exit_code"] != 0
    else:
        assert facts["problem"] == "scratch_full"
        assert "TMPDIR" in facts["message"]


def test_project_larger_than_the_disk_for_its_copy_is_said(
    small_disk: tuple[str, ...],
    run_elsewhere: RunElsewhere,
    make_project: MakeProject,
    project_dir: Path,
    tmp_path: Path,
) -> None:
    (project_dir / "big").write_bytes(b"x" * (8 << 20))
    make_project("true")
    facts = run_elsewhere(small_disk, RUN, environment={"VIEW": "copy", "TMPDIR": str(tmp_path / "small")})
    assert (facts["ending"], facts["problem"]) == ("not_started", "scratch_full")
    assert "set TMPDIR to a larger disk" in facts["message"]


@in_both_views
def test_project_around_everything_is_run_like_any_other(
    view: str, open_gateway: Callable[..., ExecutionGateway], workspace: Path
) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", workspace, *identity, *words], check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "the first commit")
    venv.create(workspace / ".venv", with_pip=False)
    (workspace / ".golden").mkdir()
    (workspace / ".golden" / "golden.db").write_text("ours")
    (workspace / "pipeline.sh").write_text(
        ".venv/bin/python -c 'print(1)'; git -c safe.directory='*' log --format=%s; ls -A .golden; echo x > out\n"
        "echo broken > .golden/golden.db; rm -rf .git .venv"
    )
    project = GoldenProjectConfig("all", "pipeline.sh", project_dir=".")
    outcome = run_guarded(open_gateway(view=view), project)
    assert (outcome.problem, outcome.changed_underneath) == (None, ())
    if outcome.sealed:
        assert outcome.stdout == "1\nthe first commit\n"
    assert outcome.write_set.created == ("out",)
    assert outcome.write_set.changed == ()
    assert (workspace / ".golden" / "golden.db").read_text() == "ours"
    assert (workspace / ".git" / "HEAD").exists()
    assert (workspace / ".venv" / "bin" / "python").exists()


@in_both_views
def test_project_in_home_itself_is_run(view: str, open_gateway: Callable[..., ExecutionGateway], home: Path) -> None:
    (home / "pipeline.sh").write_text("echo x > ~/out; cat pipeline.sh")
    outcome = run_guarded(open_gateway(view=view), GoldenProjectConfig("home", str(home / "pipeline.sh")))
    assert (outcome.exit_code, outcome.problem) == (0, None)
    assert not (home / "out").exists()


@in_both_views
def test_folders_with_spaces_and_letters_of_any_kind_are_run(
    view: str, open_gateway: Callable[..., ExecutionGateway], workspace: Path
) -> None:
    folder = workspace / "Größe, 'täglich' $HOME\n2"
    folder.mkdir()
    (folder / "a b.sh").write_text("pwd; echo x > 'out put'")
    outcome = run_guarded(open_gateway(view=view), GoldenProjectConfig("odd", str(folder / "a b.sh")))
    assert (outcome.exit_code, outcome.problem) == (0, None)
    assert outcome.write_set.created == ("out put",)


@in_both_views
def test_loops_of_symlinks_in_a_project_are_left_as_they_are(view: str, run: Run, project_dir: Path) -> None:
    (project_dir / "loop").symlink_to("loop")
    (project_dir / "up").symlink_to("..")
    (project_dir / "one").symlink_to("two")
    (project_dir / "two").symlink_to("one")
    outcome = run("ls; echo x > out", view=view)
    assert (outcome.exit_code, outcome.problem, outcome.write_set.created) == (0, None, ("out",))


def test_missing_program_inside_is_the_pipelines_failure(run: Run) -> None:
    outcome = run("no-such-program-anywhere")
    assert (outcome.ending, outcome.exit_code, outcome.problem) == (Ending.EXITED, 127, None)


@in_both_views
def test_program_that_the_seal_hides_is_said(
    view: str, open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, tmp_path: Path
) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho tool\n")
    tool.chmod(0o755)
    outcome = run_guarded(open_gateway(view=view), make_project("true", command=[str(tool)]))
    if outcome.sealed:
        assert (outcome.ending, outcome.problem) == (Ending.NOT_STARTED, Problem.COMMAND_NOT_FOUND)
        assert f"not found inside the view: {tool} is on this machine, but a pipeline sees a private" in outcome.message
        assert f"`venv:` or `mounts: [{{path: {tmp_path}, mode: read}}]`" in outcome.message
        missed = run_guarded(open_gateway(view=view), make_project(f"cat {tmp_path}/tool"))
        assert [warning for warning in missed.warnings if f"{tool} is on this machine" in warning]
    mounted = make_project("true", command=[str(tool)], mounts=[{"path": str(tool)}])
    assert run_guarded(open_gateway(view=view), mounted).stdout == "tool\n"
