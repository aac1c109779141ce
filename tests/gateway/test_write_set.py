"""What a run wrote, and the fingerprint of what it must not touch."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.gateway.model import (
    AgentRole,
    Ending,
    OutputFinding,
    Permissions,
    PipelineOutcome,
    Problem,
    WriteSet,
)
from pytest_golden.gateway.write_set import CACHE_FOLDERS, WrittenFiles, find_differences, take_fingerprint
from tests.gateway.conftest import VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pytest_golden.gateway.service import ExecutionGateway
    from tests.gateway.conftest import MakeProject, RunInView

    Run = Callable[..., PipelineOutcome]


in_both_views = pytest.mark.parametrize("view", VIEWS)


@pytest.fixture
def project(project_dir: Path) -> None:
    """Fill the project: a file, a folder with files, links to both, and an executable."""
    (project_dir / "orders.csv").write_text("1\n")
    (project_dir / "runs" / "deep").mkdir(parents=True)
    (project_dir / "runs" / "a.csv").write_text("a\n")
    (project_dir / "runs" / "deep" / "b.csv").write_text("b\n")
    (project_dir / "other").mkdir()
    (project_dir / "other" / "a.csv").write_text("other\n")
    (project_dir / "latest").symlink_to("runs")
    (project_dir / "link.csv").symlink_to("orders.csv")
    (project_dir / "tool").write_text("#!/bin/sh\n")
    (project_dir / "tool").chmod(0o755)


def lists(write_set: WriteSet) -> tuple[list[str], list[str], list[str]]:
    assert list(write_set.files) == sorted({*write_set.created, *write_set.changed})
    assert WriteSet.from_dict(write_set.to_dict()) == write_set
    return list(write_set.created), list(write_set.changed), list(write_set.removed)


@in_both_views
@pytest.mark.parametrize(
    ("script", "created", "changed", "removed"),
    [
        pytest.param("true", [], [], [], id="nothing"),
        pytest.param("cat orders.csv runs/a.csv latest/a.csv", [], [], [], id="only read"),
        pytest.param("echo x > new; mkdir -p d/e; echo y > d/e/f", ["d/e/f", "new"], [], [], id="created"),
        pytest.param("mkdir -p d/e", [], [], [], id="empty folders are not content"),
        pytest.param("echo 2 >> orders.csv", [], ["orders.csv"], [], id="changed"),
        pytest.param("echo 1 > orders.csv; touch tool", [], [], [], id="equal bytes"),
        pytest.param("rm orders.csv; echo 1 > orders.csv", [], [], [], id="removed and made with equal bytes"),
        pytest.param("echo x > new; rm new; mkdir d; touch d/x; rm -r d", [], [], [], id="made and removed"),
        pytest.param("rm orders.csv", [], [], ["orders.csv"], id="removed"),
        pytest.param("rm -r runs", [], [], ["runs/a.csv", "runs/deep/b.csv"], id="folder removed"),
        pytest.param("chmod 600 orders.csv; chmod 600 tool; chmod 755 tool", [], ["orders.csv"], [], id="mode"),
        pytest.param("chmod 700 runs", [], [], [], id="mode of a folder"),
        pytest.param("mv orders.csv sales.csv", ["sales.csv"], [], ["orders.csv"], id="renamed"),
        pytest.param("mv runs/a.csv orders.csv", [], ["orders.csv"], ["runs/a.csv"], id="renamed over another"),
        pytest.param(
            "mv runs jobs",
            ["jobs/a.csv", "jobs/deep/b.csv"],
            [],
            ["runs/a.csv", "runs/deep/b.csv"],
            id="folder renamed",
        ),
        pytest.param("ln -s orders.csv new", ["new"], [], [], id="link made"),
        pytest.param("ln -sfn other latest", [], ["latest"], [], id="link to a folder retargeted"),
        pytest.param("ln -sf tool link.csv", [], ["link.csv"], [], id="link to a file retargeted"),
        pytest.param("rm latest", [], [], ["latest"], id="link removed"),
        pytest.param("echo 2 > link.csv", [], ["orders.csv"], [], id="written through a link"),
        pytest.param("echo 2 > latest/a.csv", [], ["runs/a.csv"], [], id="written through a link to a folder"),
        pytest.param("rm orders.csv; ln -s tool orders.csv", [], ["orders.csv"], [], id="file becomes a link"),
        pytest.param("rm link.csv; echo 1 > link.csv", [], ["link.csv"], [], id="link becomes a file"),
        pytest.param(
            "rm orders.csv; mkdir orders.csv; echo x > orders.csv/x",
            ["orders.csv/x"],
            [],
            ["orders.csv"],
            id="file becomes a folder",
        ),
        pytest.param(
            "rm -r runs; echo x > runs", ["runs"], [], ["runs/a.csv", "runs/deep/b.csv"], id="folder becomes a file"
        ),
        pytest.param(
            "rm -r runs; ln -s other runs", ["runs"], [], ["runs/a.csv", "runs/deep/b.csv"], id="folder becomes a link"
        ),
        pytest.param(
            "rm latest; mkdir latest; cp runs/a.csv latest",
            ["latest/a.csv"],
            [],
            ["latest"],
            id="link to a folder becomes a folder with the same file",
        ),
        pytest.param(
            "rm -r runs; mkdir runs; echo n > runs/n", ["runs/n"], [], ["runs/a.csv", "runs/deep/b.csv"], id="opaque"
        ),
        pytest.param(
            "rm -r runs; mkdir -p runs/deep; echo b > runs/deep/b.csv; echo c > runs/deep/c",
            ["runs/deep/c"],
            [],
            ["runs/a.csv"],
            id="opaque with an old file made again",
        ),
        pytest.param(
            "rm -r runs; mkdir runs; rm -r other; mkdir other; mv other runs/x",
            [],
            [],
            ["other/a.csv", "runs/a.csv", "runs/deep/b.csv"],
            id="opaque and empty",
        ),
        pytest.param("rm orders.csv; mkfifo orders.csv; mkfifo new", [], [], ["orders.csv"], id="pipes"),
        pytest.param(
            "echo x > new; chmod 000 new; mkdir d; echo y > d/y; chmod 000 d; chmod 000 orders.csv",
            ["d/y", "new"],
            ["orders.csv"],
            [],
            id="modes that nobody may read",
        ),
        pytest.param("mkdir -p runs/__pycache__ .golden; touch runs/__pycache__/x .golden/x", [], [], [], id="caches"),
        pytest.param(
            "mkdir -p clone/.git env/bin; touch clone/.git/HEAD clone/a env/pyvenv.cfg env/bin/python",
            ["clone/a"],
            [],
            [],
            id="a clone and an environment made by the pipeline",
        ),
        pytest.param("touch 'a b' 'é' ./-n", ["-n", "a b", "é"], [], [], id="names"),
    ],
)
@pytest.mark.usefixtures("project")
def test_write_set_is_exactly_what_was_written(
    view: str, script: str, created: list[str], changed: list[str], removed: list[str], run_in_view: RunInView
) -> None:
    done = run_in_view(view, f"set -e\n{script}\n")
    assert done.executed.exit.exit_code == 0, done.stderr
    assert lists(done.write_set) == (created, changed, removed)


@in_both_views
@pytest.mark.usefixtures("project")
def test_content_and_kind_of_what_was_written_are_told(view: str, run_in_view: RunInView) -> None:
    script = "printf new > new; ln -s orders.csv s; chmod 700 orders.csv; printf more >> tool"
    files = run_in_view(view, script).write_set.files
    assert {path: (file.kind, file.size_bytes, file.sha256) for path, file in files.items()} == {
        "new": ("file", 3, sha256(b"new").hexdigest()),
        "s": ("symlink", 10, sha256(b"orders.csv").hexdigest()),
        "orders.csv": ("mode", 2, sha256(b"1\n").hexdigest()),
        "tool": ("file", 14, sha256(b"#!/bin/sh\nmore").hexdigest()),
    }


@in_both_views
@pytest.mark.usefixtures("project")
def test_names_that_are_not_text_are_told(view: str, run_in_view: RunInView) -> None:
    done = run_in_view(view, "import os\nopen(b'\\xff', 'w').close()\n")
    assert [os.fsencode(path) for path in done.write_set.created] == [b"\xff"]


@in_both_views
@pytest.mark.usefixtures("project")
def test_original_is_untouched_whatever_is_done(view: str, run_in_view: RunInView, project_dir: Path) -> None:
    script = "chmod -R 000 runs; rm -rf tool orders.csv latest; echo 'rm -rf /' > pipeline.sh; mv other another"
    done = run_in_view(view, script)
    assert sorted(path.name for path in project_dir.iterdir()) == [
        "latest", "link.csv", "orders.csv", "other", "pipeline.sh", "runs", "tool",
    ]  # fmt: skip
    assert (project_dir / "pipeline.sh").read_text() == script
    assert (project_dir / "runs" / "a.csv").read_text() == "a\n"
    assert "pipeline.sh" in done.write_set.changed


def differences(folder: Path, change: Callable[[], object]) -> list[str]:
    before = take_fingerprint(str(folder))
    change()
    return list(find_differences(before, take_fingerprint(str(folder))))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.csv").write_text("1\n")
    (folder / "b.csv").write_text("2\n")
    (folder / "link").symlink_to("b.csv")
    return folder


def test_untouched_folder_has_no_differences(folder: Path) -> None:
    assert differences(folder, lambda: None) == []


def test_reading_is_no_difference(folder: Path) -> None:
    assert differences(folder, (folder / "b.csv").read_text) == []


def test_equal_bytes_with_the_old_times_are_a_difference(folder: Path) -> None:
    file = folder / "b.csv"
    found = file.stat()

    def forge() -> None:
        file.write_text("2\n")
        os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))

    assert differences(folder, forge) == ["b.csv"]


def test_new_gone_changed_and_retargeted_are_differences(folder: Path) -> None:
    def change() -> None:
        (folder / "new").touch()
        (folder / "sub" / "a.csv").unlink()
        (folder / "b.csv").chmod(0o600)
        (folder / "link").unlink()
        (folder / "link").symlink_to("sub")

    assert differences(folder, change) == ["b.csv", "link", "new", "sub/a.csv"]


def test_mode_of_a_folder_is_looked_at(folder: Path) -> None:
    assert differences(folder, lambda: (folder / "sub").chmod(0o700)) == ["sub"]


@pytest.mark.parametrize("name", sorted(CACHE_FOLDERS))
def test_caches_do_not_count(folder: Path, name: str) -> None:
    def change() -> None:
        (folder / "sub" / name).mkdir()
        (folder / "sub" / name / "x").touch()

    assert differences(folder, change) == []


def test_git_and_virtual_environments_are_withheld(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / "sub" / "env" / "bin").mkdir(parents=True)
    (folder / "sub" / "env" / "pyvenv.cfg").touch()
    found = take_fingerprint(str(folder))
    assert sorted(found.withheld) == [".git", "sub/env"]
    assert not any(path.startswith((".git", "sub/env/")) for path in found.marks)


def test_git_file_of_a_worktree_is_withheld(folder: Path) -> None:
    (folder / ".git").write_text("gitdir: /elsewhere\n")
    assert take_fingerprint(str(folder)).withheld == (".git",)


def test_project_that_is_itself_an_environment_is_looked_at(folder: Path) -> None:
    (folder / "pyvenv.cfg").touch()
    assert "b.csv" in take_fingerprint(str(folder)).marks


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").touch()
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "loop").symlink_to(".")
    assert not any(path.startswith(("out/", "loop/")) for path in take_fingerprint(str(folder)).marks)


def test_names_that_are_not_text_are_looked_at(folder: Path) -> None:
    def change() -> None:
        (folder / os.fsdecode(b"\xff\xfe")).touch()

    assert differences(folder, change) == [os.fsdecode(b"\xff\xfe")]


def test_folder_that_went_away_is_a_difference(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    assert differences(folder, folder.rmdir) == ["(unreadable)"]


@pytest.fixture
def run_examined(open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject) -> Run:
    """Run a script and have what it wrote examined by a callable."""

    def run(
        script: str,
        examine: Callable[[PipelineOutcome, WrittenFiles], Iterable[OutputFinding]],
        /,
        *,
        view: str = "auto",
        **keys: object,
    ) -> PipelineOutcome:
        return open_gateway(view=view).run_pipeline(
            make_project(script, **keys), role=AgentRole.REGRESSION_GUARD, permissions=Permissions(), examine=examine
        )

    return run


@in_both_views
def test_everything_written_is_found_also_with_equal_bytes(
    view: str, run_in_view: RunInView, project_dir: Path
) -> None:
    for name in ("same", "untouched", "gone", "replaced"):
        (project_dir / name).write_text("equal\n")
    (project_dir / "deep").mkdir()
    script = """
        echo equal > same; cat untouched > /dev/null; rm gone; echo equal > other; mv other replaced
        mkdir new; echo x > new/file; echo y > deep/file; ln -s /etc/passwd link; mkfifo pipe; echo z > away; rm away
    """
    prepared = run_in_view(view, script).prepared
    root, paths = prepared.view.find_written()
    assert paths == ("deep/file", "link", "new/file", "pipe", "replaced", "same")
    assert (root / "same").read_text() == "equal\n"


@in_both_views
def test_stand_in_counts_as_written_only_when_the_pipeline_wrote_it(
    view: str, run_in_view: RunInView, project_dir: Path
) -> None:
    for name in ("read", "written"):
        (project_dir / name).write_text("old\n")
    run = run_in_view(view, "cat read; echo new > written", stand_ins={"read": b"new\n", "written": b"new\n"})
    assert run.stdout == "new\n"
    assert run.prepared.view.find_written()[1] == ("written",)


def test_names_of_every_kind_are_found_and_located(run_in_view: RunInView) -> None:
    script = """
        import os
        for name in (b"two\\nlines", b"b\\xffd", b"back\\\\slash", b"\\xf0\\x9f\\x8d\\x8a"):
            open(name, "wb").write(name)
    """
    written = WrittenFiles(*run_in_view("copy", script).prepared.view.find_written(), str)
    assert len(written.paths) == 4
    for path in written.paths:
        assert written.locate(path).read_bytes() == os.fsencode(path)


def test_closed_output_is_opened_up_to_be_read_and_only_what_was_written_is_located(
    run_in_view: RunInView, project_dir: Path
) -> None:
    (project_dir / "old").write_text("old")
    script = "echo x > closed; chmod 0 closed; mkdir shut; echo y > shut/in; chmod 0 shut"
    written = WrittenFiles(*run_in_view("copy", script).prepared.view.find_written(), str)
    assert written.paths == ("closed", "shut/in")
    assert stat.S_IMODE(written.locate("closed").stat().st_mode) in {0, 0o400}
    assert written.locate("closed").read_text() == "x\n"
    assert written.locate("shut/in").read_text() == "y\n"
    written.locate("closed").unlink()
    for path in ("old", "closed", "never", "../workspace", ""):
        with pytest.raises(FileNotFoundError):
            written.locate(path)


def test_examination_comes_after_the_after_commands_while_the_view_stands(run_examined: Run) -> None:
    seen: list[str] = []

    def examine(outcome: PipelineOutcome, written: WrittenFiles) -> list[OutputFinding]:
        assert outcome.write_set.created == ("made", "tidied")
        seen.extend(written.locate(path).read_text() for path in written.paths)
        return [OutputFinding("output_differs", "made differs", "made")]

    outcome = run_examined("echo 1 > made", examine, after=["sh -c 'echo 2 > tidied'"])
    assert seen == ["1\n", "2\n"]
    assert outcome.output_findings == (OutputFinding("output_differs", "made differs", "made"),)
    assert outcome.to_dict()["output_findings"] == [
        {"kind": "output_differs", "message": "made differs", "path": "made"}
    ]


def test_what_an_examination_gives_is_redacted_with_the_projects_own_secrets(run_examined: Run) -> None:
    def examine(_: PipelineOutcome, written: WrittenFiles) -> list[OutputFinding]:
        assert written.redact("the opensesame123 door") == "the [REDACTED] door"
        (path,) = written.paths
        return [OutputFinding("output_differs", f"{path} holds opensesame123", path), OutputFinding("x", "y")]

    outcome = run_examined('echo 1 > "$API_TOKEN.txt"', examine, set_env={"API_TOKEN": "opensesame123"})
    assert [(one.message, one.path) for one in outcome.output_findings] == [
        ("[REDACTED].txt holds [REDACTED]", "[REDACTED].txt"),
        ("y", None),
    ]


@pytest.mark.parametrize(
    ("error", "told"),
    [(GoldenError("the disk is full"), "the disk is full"), (ValueError("opensesame123"), "ValueError('[REDACTED]')")],
)
def test_failed_examination_is_the_harness_s_and_leaves_the_facts(
    run_examined: Run, error: Exception, told: str
) -> None:
    def examine(_: PipelineOutcome, __: WrittenFiles) -> list[OutputFinding]:
        raise error

    outcome = run_examined("echo done", examine, set_env={"API_TOKEN": "opensesame123"})
    assert outcome.problem is Problem.HARNESS
    assert outcome.message == f"its outputs could not be examined: {told}"
    assert (outcome.ending, outcome.exit_code, outcome.stdout) == (Ending.EXITED, 0, "done\n")


def test_interrupt_during_an_examination_ends_the_run_as_interrupted(run_examined: Run) -> None:
    def examine(_: PipelineOutcome, __: WrittenFiles) -> list[OutputFinding]:
        raise KeyboardInterrupt

    outcome = run_examined("true", examine)
    assert (outcome.ending, outcome.message) == (Ending.INTERRUPTED, "interrupted while its outputs were examined")


def test_what_never_started_is_not_examined(run_examined: Run) -> None:
    def examine(_: PipelineOutcome, __: WrittenFiles) -> list[OutputFinding]:
        raise AssertionError

    outcome = run_examined("true", examine, command=["no-such-program-anywhere"])
    assert outcome.ending is Ending.NOT_STARTED
    assert outcome.problem is Problem.COMMAND_NOT_FOUND


def test_what_is_unwatched_may_change_and_the_rest_of_the_project_may_not(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, project_dir: Path
) -> None:
    baselines = project_dir / "golden_baselines"

    def examine(_: PipelineOutcome, __: WrittenFiles) -> tuple[()]:
        return ()

    gateway = open_gateway(unwatched=[baselines, project_dir / "shard.db"])
    project = make_project("true")
    gateway.freeze([project])

    def run() -> PipelineOutcome:
        return gateway.run_pipeline(
            project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions(), examine=examine
        )

    assert run().problem is None
    baselines.mkdir()
    (baselines / "sales").mkdir()
    (project_dir / "shard.db").touch()
    assert run().problem is None
    (project_dir / "shard.db-other").touch()
    assert run().changed_underneath == ("shard.db-other",)
