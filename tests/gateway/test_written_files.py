from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.gateway.model import AgentRole, Ending, OutputFinding, Permissions, PipelineOutcome, Problem
from pytest_golden.gateway.write_set import WrittenFiles
from tests.gateway.conftest import VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pytest_golden.gateway.service import ExecutionGateway
    from tests.gateway.conftest import MakeProject, RunInView

    Run = Callable[..., PipelineOutcome]


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


@pytest.mark.parametrize("view", VIEWS)
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


@pytest.mark.parametrize("view", VIEWS)
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
