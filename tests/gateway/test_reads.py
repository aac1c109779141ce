from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.reads import ReadRecorder
from tests.gateway.conftest import run_guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_golden.gateway.service import ExecutionGateway
    from tests.gateway.conftest import MakeProject

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports which files are opened")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for folder in (".git", "shared/sub", "own", ".golden", "node_modules/x", "env/bin", "lib/__pycache__"):
        (root / folder).mkdir(parents=True)
    for file in (
        *(".git/index", "shared/data.csv", "shared/sub/more.csv", "own/a.py", ".golden/x", "node_modules/x/y"),
        *("env/pyvenv.cfg", "env/bin/x", "lib/mod.py", "lib/__pycache__/mod.cpython-311.pyc", "top.txt"),
    ):
        (root / file).write_text("1\n")
    return root


@pytest.fixture
def recorder(checkout: Path) -> Iterator[ReadRecorder]:
    # Wherever in the checkout the workspace is, all of it is watched.
    recorder = ReadRecorder(checkout / "own")
    yield recorder
    recorder.close()


def test_what_any_program_opens_is_told_but_for_caches_environments_and_its_own_folder(
    recorder: ReadRecorder, checkout: Path
) -> None:
    recorder.begin()
    files = [str(path) for path in checkout.rglob("*") if path.is_file()]
    subprocess.run(["cat", *files], check=True, stdout=subprocess.DEVNULL)
    told = ("env/pyvenv.cfg", "lib/mod.py", "shared/data.csv", "shared/sub/more.csv", "top.txt")
    assert recorder.end(checkout / "own") == told
    recorder.begin()
    (checkout / "shared" / "data.csv").stat()
    assert recorder.end(checkout / "own") == ()
    assert recorder.take_warnings() == ()


def test_compiled_module_stands_for_its_source_and_a_run_only_has_its_own_reads(
    recorder: ReadRecorder, checkout: Path
) -> None:
    recorder.begin()
    (checkout / "top.txt").read_text()
    recorder.begin()
    (checkout / "lib" / "__pycache__" / "mod.cpython-311.pyc").read_text()
    assert recorder.end(checkout / "own") == ("lib/mod.py",)


def test_lost_events_too_many_reads_and_names_that_are_no_text_are_unknown(checkout: Path) -> None:
    few = ReadRecorder(checkout, most_reads=1)
    few.begin()
    for name in ("data.csv", "sub/more.csv"):
        (checkout / "shared" / name).read_text()
    assert few.end(checkout / "own") is None
    odd = Path(os.fsdecode(os.fsencode(checkout / "shared") + b"/\xff"))
    few.begin()
    odd.write_text("1\n")
    assert few.end(checkout / "own") is None
    few.begin()
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    # Two in turn, since the kernel folds one event that is repeated.
    for _ in range(most // 2 + 1):
        for name in ("data.csv", "sub/more.csv"):
            os.close(os.open(checkout / "shared" / name, os.O_RDONLY))
    assert few.end(checkout / "own") is None
    few.begin()
    (checkout / "top.txt").read_text()
    assert few.end(checkout / "own") == ("top.txt",)
    few.close()


def test_folder_that_came_meanwhile_is_unknown_once_and_then_watched(recorder: ReadRecorder, checkout: Path) -> None:
    recorder.begin()
    (checkout / "new").mkdir()
    assert recorder.end(checkout / "own") is None
    (checkout / "newer").mkdir()
    recorder.begin()
    (checkout / "newer" / "x").write_text("1\n")
    assert recorder.end(checkout / "own") == ("newer/x",)
    (checkout / "last").mkdir()
    recorder.begin()
    (checkout / "last" / "x").write_text("1\n")
    assert recorder.end(checkout / "own") == ("last/x",)


def test_too_many_folders_and_another_system_are_said_once(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ReadRecorder(checkout, most_folders=2)
    for told in ((f"reads are not recorded: {checkout} has more than 2 folders",), ()):
        small.begin()
        assert small.end(checkout / "own") is None
        assert small.take_warnings() == told
    monkeypatch.setattr(sys, "platform", "darwin")
    other = ReadRecorder(checkout)
    other.begin()
    assert other.end(checkout / "own") is None
    assert other.take_warnings() == ("reads are not recorded: only Linux reports which files are opened",)


@pytest.mark.parametrize("view", ["overlay", "copy"])
def test_pipeline_in_its_seal_is_seen_and_its_trajectory_tells_without_secrets(
    view: str,
    open_gateway: Callable[..., ExecutionGateway],
    make_project: MakeProject,
    workspace: Path,
    sealing: None,
) -> None:
    (workspace / "shared").mkdir()
    for name in ("data.csv", "other.csv", "hunter2hunter2.csv"):
        (workspace / "shared" / name).write_text("1\n")
    project = make_project("cat ../shared/data.csv ../shared/hunter2*", set_env={"API_PASSWORD": "hunter2hunter2"})
    with_reads = open_gateway(view=view, reads=ReadRecorder(workspace))
    outcome = run_guarded(with_reads, project)
    assert outcome.trajectory is not None
    assert list(outcome.trajectory.metadata["reads"]) == ["shared/data.csv", "shared/[REDACTED].csv"]
    without = run_guarded(open_gateway(view=view), project).trajectory
    assert without is not None
    assert "reads" not in without.metadata


@pytest.mark.parametrize(
    ("view", "inside"), [("overlay", ["project/pipeline.sh", "project/sub/seen.csv"]), ("copy", None)]
)
def test_reads_in_a_view_of_what_git_tracks_are_those_of_the_checkout(
    view: str,
    inside: list[str] | None,
    open_gateway: Callable[..., ExecutionGateway],
    make_project: MakeProject,
    workspace: Path,
    project_dir: Path,
    sealing: None,
) -> None:
    (project_dir / "sub").mkdir()
    (workspace / "shared").mkdir()
    for place in (
        project_dir / "sub" / "seen.csv",
        project_dir / "sub" / "unseen.csv",
        workspace / "shared" / "data.csv",
    ):
        place.write_text("1\n")
    project = make_project("cat sub/seen.csv ../shared/data.csv; echo 2 > made.csv; cat made.csv", view="tracked")
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    subprocess.run(["git", "add", "project"], cwd=workspace, check=True)
    trajectory = run_guarded(open_gateway(view=view, reads=ReadRecorder(workspace)), project).trajectory
    assert trajectory is not None
    assert list(trajectory.metadata["reads"]) == ["shared/data.csv"]
    found = trajectory.metadata["reads_inside"]
    assert (None if found is None else list(found)) == inside


def test_what_is_not_recorded_is_a_warning_of_the_first_run(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, workspace: Path
) -> None:
    gateway = open_gateway(reads=ReadRecorder(workspace, most_folders=1))
    project = make_project("true")
    first, second = run_guarded(gateway, project), run_guarded(gateway, project)
    assert [one.partition(":")[0] for one in first.warnings if "reads" in one] == ["reads are not recorded"]
    assert not [one for one in second.warnings if "reads" in one]
    assert second.trajectory is not None
    assert second.trajectory.metadata["reads"] is None
