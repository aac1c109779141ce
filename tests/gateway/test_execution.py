"""Commands in their order, and what is kept of what they print."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.gateway.execution import (
    LOG_SHARE_BYTES,
    KeptOutput,
    _find_problem,
    decode,
    execute,
    keep_output,
    last_lines,
    read_present_step,
    write_log,
)
from pytest_golden.gateway.model import Ending, Problem
from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.redaction.redactor import Redactor
from tests.gateway.conftest import VIEWS

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.gateway.process import Supervisor
    from tests.gateway.conftest import RunInView


in_every_view = pytest.mark.parametrize("view", VIEWS)


@in_every_view
def test_before_and_after_see_the_same_view(view: str, run_in_view: RunInView, project_dir: Path) -> None:
    done = run_in_view(
        view,
        "cat seed; echo 2 >> seed",
        before=["sh -c 'echo 1 > seed'"],
        after=["sh -c 'cp seed checked'", ["cp", "{path}", "the pipeline"]],
    )
    assert (done.executed.exit.exit_code, done.executed.problem, done.stdout) == (0, None, "1\n")
    assert done.write_set.created == ("checked", "seed", "the pipeline")
    assert [path.name for path in project_dir.iterdir()] == ["pipeline.sh"]


@in_every_view
def test_failing_before_keeps_the_pipeline_from_running(view: str, run_in_view: RunInView) -> None:
    done = run_in_view(view, "touch ran", before=["true", "sh -c 'echo no seed here >&2; exit 3'", "touch third"])
    assert done.executed.problem is Problem.BEFORE_FAILED
    assert done.executed.message == (
        "`before:` command `sh -c 'echo no seed here >&2; exit 3'` failed (exit code 3):\nno seed here"
    )
    assert done.write_set.created == ()


@in_every_view
def test_failing_after_does_not_hide_the_pipelines_own_end(view: str, run_in_view: RunInView) -> None:
    done = run_in_view(view, "echo fine; exit 4", after=["sh -c 'echo bad; exit 1'", "touch second"])
    assert (done.executed.exit.exit_code, done.stdout) == (4, "fine\n")
    assert done.executed.problem is Problem.AFTER_FAILED
    assert done.executed.message == "`after:` command `sh -c 'echo bad; exit 1'` failed (exit code 1):\nbad"
    assert done.write_set.created == ()


def test_before_that_takes_too_long_is_said(run_in_view: RunInView) -> None:
    done = run_in_view("unsealed", "true", before=["sleep 300"], timeout=0.2)
    assert done.executed.message == "`before:` command `sleep 300` failed (timeout)"
    assert done.executed.exit.ending is Ending.TIMEOUT


def test_after_is_left_out_when_the_pipeline_was_stopped(run_in_view: RunInView) -> None:
    done = run_in_view("unsealed", "sleep 300", after=["touch after"], timeout=0.2)
    assert (done.executed.exit.ending, done.executed.problem) == (Ending.TIMEOUT, None)
    assert done.write_set.created == ()


def test_after_can_be_left_out(run_in_view: RunInView, supervisor: Supervisor) -> None:
    done = run_in_view("unsealed", "true", after=["touch after"])
    assert list(done.write_set.created) == ["after"]
    again = execute(done.prepared, ("sh", "-c", "rm after"), supervisor, after=False)
    assert (again.exit.exit_code, list(done.write_set.created)) == (0, [])


@in_every_view
@pytest.mark.parametrize(
    ("argv", "problem", "says"),
    [
        (("/no/such/tool",), Problem.COMMAND_NOT_FOUND, "`/no/such/tool` was not found inside the view"),
        (("./plain",), Problem.PERMISSION_DENIED, "`./plain` may not be executed: permission denied"),
        (("./broken",), Problem.COMMAND_NOT_FOUND, "`./broken` was not found inside the view"),
    ],
)
def test_what_cannot_be_started_is_told_in_one_sentence(
    view: str,
    argv: tuple[str, ...],
    problem: Problem,
    says: str,
    run_in_view: RunInView,
    project_dir: Path,
    supervisor: Supervisor,
) -> None:
    (project_dir / "plain").write_text("#!/bin/sh\n")
    (project_dir / "broken").write_text("#!/no/such/interpreter\n")
    (project_dir / "broken").chmod(0o755)
    done = execute(run_in_view(view, "true").prepared, argv, supervisor)
    assert (done.exit.ending, done.problem) == (Ending.NOT_STARTED, problem)
    assert says in done.message


def test_program_of_another_kind_of_machine_is_told_in_one_sentence(
    run_in_view: RunInView, project_dir: Path, supervisor: Supervisor
) -> None:
    (project_dir / "binary").write_bytes(b"\x7fELF nonsense")
    (project_dir / "binary").chmod(0o755)
    done = execute(run_in_view("unsealed", "true").prepared, ("./binary",), supervisor)
    assert (done.exit.ending, done.problem) == (Ending.NOT_STARTED, Problem.HARNESS)
    assert "`./binary` could not be started" in done.message


def test_sandbox_that_breaks_down_is_told_apart_from_the_pipeline(
    run_in_view: RunInView, workspace: Path, supervisor: Supervisor
) -> None:
    (workspace / "lake").mkdir()
    done = run_in_view("overlay", "true", mounts=[{"path": "lake"}])
    (workspace / "lake").rmdir()
    broken = execute(done.prepared, ("true",), supervisor)
    assert (broken.exit.ending, broken.problem) == (Ending.NOT_STARTED, Problem.SANDBOX_UNAVAILABLE)
    assert "the sandbox could not be set up" in broken.message
    assert "lake" in broken.message


@pytest.mark.parametrize(("number", "problem"), [(errno.ENOSPC, Problem.SCRATCH_FULL), (errno.E2BIG, Problem.HARNESS)])
def test_errors_of_the_system_are_told_apart(number: int, problem: Problem) -> None:
    assert _find_problem(number, os.strerror(number)) is problem


@in_every_view
def test_missing_program_in_before_is_explained(view: str, run_in_view: RunInView) -> None:
    done = run_in_view(view, "true", before=[["nonexistent-program"]])
    assert done.executed.problem is Problem.BEFORE_FAILED
    assert "`nonexistent-program` was not found inside the view" in done.executed.message


SHARE = 32 << 10


def test_colours_of_the_lines_that_are_kept_are_kept_beside_them(tmp_path: Path) -> None:
    line = "\x1b[31mlost\x1b[0m 3 rows"
    filler = "x" * 79 + "\n"
    (tmp_path / "out").write_text(f"{line}\n" + filler * 2000 + "\x1b[32mlast\x1b[0m\n")
    kept = keep_output(tmp_path / "out", SHARE, strip_escapes)
    assert kept.left_out_bytes
    assert dict(kept.coloured_lines) == {"lost 3 rows": line, "last": "\x1b[32mlast\x1b[0m"}


def test_short_output_is_kept_whole(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"one\ntwo\n")
    kept = keep_output(tmp_path / "out", SHARE, str)
    assert (kept.text(), kept.left_out_bytes, kept.total_bytes) == ("one\ntwo\n", 0, 8)


def test_missing_output_is_empty(tmp_path: Path) -> None:
    assert keep_output(tmp_path / "out", SHARE, str) == KeptOutput("", "", 0, 0)


def test_long_output_keeps_whole_lines_of_head_and_tail(tmp_path: Path) -> None:
    lines = [f"line {number:07}\n" for number in range(20_000)]
    (tmp_path / "out").write_text("".join(lines))
    kept = keep_output(tmp_path / "out", SHARE, str)
    assert kept.total_bytes == 260_000
    assert kept.left_out_bytes == 260_000 - 2 * SHARE
    assert kept.head.startswith(lines[0])
    assert kept.head.endswith("\n")
    assert kept.tail.startswith("line ")
    assert kept.tail.endswith(lines[-1])
    assert f"\n[... {kept.left_out_bytes:,} bytes left out ...]\n" in kept.text()


@pytest.mark.parametrize("position", [-9, -8, -5, -1, 0, 1])
@pytest.mark.parametrize("filler", ["x", "ab\n", "é"])
def test_secret_across_a_cut_is_never_shown_in_part(tmp_path: Path, position: int, filler: str) -> None:
    secret = "Zq7Rk2Wv9"
    redact = Redactor(literals=(secret,)).text
    before = (filler * SHARE).encode()[: SHARE + position]
    tail = (filler * SHARE).encode()[-(SHARE + position) :]
    (tmp_path / "out").write_bytes(before + secret.encode() + b"y" * 3 * SHARE + secret.encode() + tail)
    text = keep_output(tmp_path / "out", SHARE, redact).text()
    assert not any(secret[start : start + 4] in text for start in range(len(secret) - 3))


def test_output_without_lines_is_cut_too(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"x" * 10 * SHARE)
    kept = keep_output(tmp_path / "out", SHARE, str)
    assert 0 < len(kept.head) <= SHARE
    assert 0 < len(kept.tail) <= SHARE


@given(st.binary(max_size=300))
def test_any_bytes_become_text_that_can_be_written(raw: bytes) -> None:
    decode(raw).encode()


def test_bytes_that_are_not_text_are_shown_escaped() -> None:
    assert decode(b"caf\xe9 \x00\x1b[31m \xc3\xa9") == "caf\\xe9 \x00\x1b[31m \xe9"


def test_log_is_private_and_names_its_streams(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "sales.log"
    assert write_log(log, {"stdout": KeptOutput("hello\n", "", 0, 6), "stderr": KeptOutput("", "", 0, 0)})
    assert log.read_text() == "--- stdout: 6 bytes ---\nhello\n\n--- stderr: 0 bytes ---\n\n"
    assert log.stat().st_mode & 0o777 == 0o600


def test_nothing_printed_leaves_no_log(tmp_path: Path) -> None:
    assert not write_log(tmp_path / "sales.log", {"stdout": KeptOutput("", "", 0, 0)})
    assert not (tmp_path / "sales.log").exists()


def test_log_of_any_output_stays_within_10_mib(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"x" * 12_000_000)
    (tmp_path / "err").write_bytes("line with é\n".encode() * 1_000_000)
    streams = {name: keep_output(tmp_path / name, LOG_SHARE_BYTES, str) for name in ("out", "err")}
    assert write_log(tmp_path / "log", streams)
    assert (tmp_path / "log").stat().st_size <= 10 << 20


def test_last_lines_leave_empty_ones_out() -> None:
    assert last_lines("a\n\nb\n  \nc\n\n", 2) == "b\nc"
    assert last_lines("") == ""


@pytest.mark.parametrize(
    ("raw", "step"),
    [
        (b"", None),
        (b'{"name": "load"}\n', "load"),
        (b'{"name": "load"}\n{"name": "join", "rows": 3}\n', "join"),
        (b'{"name": "load"}\n{"name": "jo', "load"),
        (b'{"name": "load"}\nnonsense\n[1]\n{}\n', "load"),
        (b"x" * 10_000 + b'\n{"name": "late"}\n', "late"),
        (b"\xff\xfe\n", None),
        (b'{"name": 3}\n', "3"),
    ],
)
def test_last_whole_line_names_the_step(tmp_path: Path, raw: bytes, step: str | None) -> None:
    (tmp_path / "steps").write_bytes(raw)
    assert read_present_step(tmp_path / "steps") == step


def test_no_file_is_no_step(tmp_path: Path) -> None:
    assert read_present_step(tmp_path / "steps") is None


def test_looking_changes_no_mode_and_follows_no_link(tmp_path: Path) -> None:
    steps, secret, link = tmp_path / "steps", tmp_path / "secret", tmp_path / "link"
    for file in (steps, secret):
        file.write_text('{"name": "load"}\n')
        file.chmod(0)
    link.symlink_to(secret)
    read_present_step(steps)
    assert read_present_step(link) is None
    assert [stat.S_IMODE(file.stat().st_mode) for file in (steps, secret)] == [0, 0]


def test_a_fifo_that_nobody_writes_to_is_no_step_and_does_not_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "steps")
    assert read_present_step(tmp_path / "steps") is None
