from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from typing import TYPE_CHECKING

import pytest

from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.session.header import fit, result_row
from tests.patience import PATIENCE_SECONDS
from tests.session.recorded import STEP
from tests.session.workspace import FAILS, OPTIONS, PASSES

if TYPE_CHECKING:
    from tests.session.workspace import Workspace


@pytest.fixture
def mixed(workspace: Workspace) -> Workspace:
    workspace.declare({"name": "fine"}, {"name": "broken", "script": FAILS})
    workspace.pytester.makepyfile(test_other="def test_a(): pass\ndef test_b(): pass\n")
    return workspace


def test_header_says_what_is_declared_and_how_it_is_sealed(mixed: Workspace) -> None:
    mixed.run("-k", "fine").stdout.fnmatch_lines(
        ["golden: golden_projects.yaml, 2 projects", "golden sandbox: copy view*"]
    )
    mixed.run("-k", "fine", "-v").stdout.fnmatch_lines(["golden sandbox: copy view*", "  *"])
    mixed.run("-k", "fine", "--no-header").stdout.no_fnmatch_line("golden sandbox*")


def test_header_says_why_pipelines_reach_the_servers_of_this_machine(
    mixed: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/no-such-folder")
    result = mixed.run("-k", "fine")
    result.stdout.fnmatch_lines(["  pipelines with `network: true` reach*: slirp4netns is not installed"])


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_durations_say_where_the_time_of_the_slowest_went(workspace: Workspace, workers: tuple[str, ...]) -> None:
    slow = "sleep 0.6\n"
    workspace.declare({"name": "quick"}, {"name": "slow", "script": slow}, {"name": "left", "skip_if_missing": ["NO"]})
    result = workspace.run("--golden-durations", "1", *workers)
    at = next(at for at, line in enumerate(result.outlines) if "prepare" in line)
    assert result.outlines[at].split() == ["total", "prepare", "pipeline", "compare", "record", "project"]
    *times, name = result.outlines[at + 1].split()
    seconds = [float(time.removesuffix("s")) for time in times]
    assert name == "slow"
    assert seconds[0] == pytest.approx(sum(seconds[1:]), abs=0.01)
    assert seconds[2] >= 0.6
    assert all(second > 0 for second in seconds)
    assert result.outlines[at + 2].startswith("golden:")
    everything = workspace.run("-q", "--golden-durations=0", *workers).outlines
    at = next(at for at, line in enumerate(everything) if "prepare" in line)
    assert [line.split()[-1] for line in everything[at + 1 : at + 3]] == ["slow", "quick"]
    assert everything[at + 3].startswith("golden:")


@pytest.mark.parametrize("said", ["-1", "two", "1.5", "٣"])
def test_durations_are_a_whole_number(workspace: Workspace, said: str) -> None:
    workspace.declare({"name": "quick"})
    result = workspace.run(f"--golden-durations={said}")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: --golden-durations: '{said}' is not a whole number from 0 on."])


def test_quiet_writes_what_is_not_fine_and_one_count(mixed: Workspace) -> None:
    result = mixed.run("-q", "--tb=no", "test_other.py")
    lines = [line for line in result.outlines if line.strip()]
    assert lines[0].startswith("..")
    row = next(at for at, line in enumerate(lines) if line.startswith("FAILED  broken"))
    # pytest's dots, one of them for the project that passed, and nothing else.
    assert not [line for line in lines[:row] if line.replace("[100%]", "").strip(" .")]
    assert "golden: FAILED: 1 passed, 1 failed" in lines[row + 1 : row + 3]


def test_quiet_writes_the_dots_of_passes_in_one_line(workspace: Workspace) -> None:
    names = ("one", "two", "red", "three", "four")
    workspace.declare(*({"name": name, **({"script": FAILS} if name == "red" else {})} for name in names))
    lines = workspace.run("-q", "--tb=no").outlines
    assert [line.split()[0] for line in lines[:3]] == ["..", "FAILED", ".."]


def test_quieter_writes_nothing_of_ours(mixed: Workspace) -> None:
    result = mixed.run("-qq", "--tb=no")
    result.stdout.no_fnmatch_line("golden:*")
    result.stdout.no_fnmatch_line("FAILED  broken*")
    assert result.ret == 1


@pytest.mark.parametrize(
    ("style", "end"), [("progress", "[[]100%]"), ("count", "[[]4/4]"), ("classic", ""), ("times", "*s")]
)
def test_progress_of_pytest_ends_the_last_row(mixed: Workspace, style: str, end: str) -> None:
    result = mixed.run("-o", f"console_output_style={style}", "test_other.py", "--no-summary")
    result.stdout.fnmatch_lines(["test_other.py ..", "PASSED  fine *", f"FAILED  broken *{end}", ""], consecutive=True)


def test_verbose_shows_node_ids_time_and_percentage(mixed: Workspace) -> None:
    result = mixed.run("-v", "test_other.py")
    result.stdout.fnmatch_lines(
        [
            "test_other.py::test_a PASSED *[[] 25%]",
            "test_other.py::test_b PASSED *[[] 50%]",
            "golden_projects.yaml::fine PASSED *s *[[] 75%]",
            "golden_projects.yaml::broken FAILED *s *[[]100%]",
            "",
        ],
        consecutive=True,
    )


def test_more_verbose_adds_steps_and_write_set(workspace: Workspace) -> None:
    workspace.declare({"name": "fine", "script": f"{STEP % 'load orders'}; {PASSES}", "unexpected_files": "warn"})
    workspace.run("-vv").stdout.fnmatch_lines(
        [
            "golden_projects.yaml::fine PASSED *",
            "        note: wrote files that no pattern *: out.txt",
            "        step: load orders",
            "        created: out.txt",
        ],
        consecutive=True,
    )


def test_reason_of_a_failure_is_told_twice_and_a_pass_once(mixed: Workspace) -> None:
    lines = mixed.run().outlines
    assert sum("exit code 3, expected 0" in line for line in lines) == 2
    assert sum("fine" in line for line in lines) == 1


@pytest.mark.parametrize("arguments", [["--no-summary"], ["--tb=no", "-rN"], ["--tb=no", "-rE"]])
def test_row_of_a_failure_tells_the_reason_where_nothing_else_does(mixed: Workspace, arguments: list[str]) -> None:
    mixed.run(*arguments).stdout.fnmatch_lines(["FAILED  broken *exit code 3, expected 0: it broke*"])


def test_long_name_leaves_time_and_reason_in_sight() -> None:
    result = GoldenProjectResult("n" * 60, "p.py", ResultStatus.SKIPPED, error_message="no such program here")
    for limit in (40, 60, 80):
        row = result_row(result, 40, limit)
        shown = fit(row, limit - 8)
        assert " - " in shown
        assert "no such" in shown


def test_log_names_a_project_that_takes_longer_than_a_moment(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.declare({"name": "quick"}, {"name": "slow", "script": "sleep 3"})
    # As in CI: what goes into a pipe or a file is buffered.
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    workspace.run_apart().stdout.fnmatch_lines(
        ["collected 2 items", "", "PASSED  quick *", "running slow", "PASSED  slow *"], consecutive=True
    )


def test_need_that_was_deselected_is_noted_once(workspace: Workspace) -> None:
    workspace.declare({"name": "load"}, {"name": "report", "needs": ["load"]}, {"name": "other"})
    result = workspace.run("-k", "report")
    note = "note: load was deselected: report ran without it having been checked"
    assert result.outlines.count(note) == 1
    workspace.run("-k", "other").stdout.no_fnmatch_line("note: *")
    workspace.run("-q", "-k", "report").stdout.no_fnmatch_line("note: *")


def test_session_without_a_terminal_runs_too(mixed: Workspace) -> None:
    assert mixed.run("-p", "no:terminal").ret == 1


def test_control_characters_reach_neither_terminal_nor_junit(workspace: Workspace) -> None:
    workspace.declare(
        {"name": "loud", "script": "printf '\\033[31mred\\033[0m \\001\\202 \\033]0;title\\007' >&2; exit 1"}
    )
    result = workspace.run("--junitxml=pytest.xml", "--golden-junit=golden.xml")
    assert "\x1b" not in result.stdout.str()
    assert "\x01" not in result.stdout.str()
    for name in ("pytest.xml", "golden.xml"):
        text = (workspace.path / name).read_text()
        assert "\x1b" not in text
        assert "red" in text


def test_report_that_cannot_be_written_is_said_and_no_success(workspace: Workspace) -> None:
    workspace.declare({"name": "fine"})
    (workspace.path / "file").touch()
    result = workspace.run("--golden-json=file/out.json")
    assert result.ret == 3
    result.stdout.fnmatch_lines(["WARNING: *--golden-json*"])


def test_notes_of_what_passed_stand_below_its_row(workspace: Workspace) -> None:
    workspace.declare(
        {"name": "fine", "unexpected_files": "warn", "steps": ["nobody"]},
        {"name": "broken", "script": FAILS, "steps": ["nobody"]},
    )
    result = workspace.run("--golden-keep=all")
    result.stdout.fnmatch_lines(
        [
            "PASSED  fine *",
            "        note: no step reader is called 'nobody'; known are *",
            "        note: wrote files that no pattern of `writes:` or `outputs:` names: out.txt",
            f"        kept view: {workspace.path}/.golden/kept/fine",
            "FAILED  broken *",
        ],
        consecutive=True,
    )
    quiet = workspace.run("-q", "--golden-keep=all", "-k", "fine").stdout.str()
    assert "note:" not in quiet
    assert "kept view:" not in quiet


def test_long_table_counts_the_notes_that_it_leaves_out(workspace: Workspace) -> None:
    path = workspace.write_pipeline("fine", "true")
    workspace.declare(
        *({"name": f"fine{n}", "path": path, "steps": ["nobody"] if n < 2 else "auto"} for n in range(41))
    )
    result = workspace.run()
    result.stdout.fnmatch_lines(["2 that passed have notes: -v shows them"])
    result.stdout.no_fnmatch_line("*note: *")
    assert sum(line.startswith("PASSED  fine") for line in result.outlines) == 41
    told = workspace.run("-v", "-k", "fine0 or fine1 or fine2").outlines
    assert sum("note: no step reader" in line for line in told) == 2


def test_header_names_what_is_really_written_to(workspace: Workspace) -> None:
    (workspace.path / "lake").mkdir()
    mounts = [{"path": "lake", "mode": "write"}]
    path = workspace.write_pipeline("fine", "true")
    workspace.declare({"name": "reads", "path": path, "mounts": [{"path": "lake"}]})
    workspace.run("-k", "nobody").stdout.no_fnmatch_line("*writes outside*")
    workspace.declare(*({"name": f"p{n}", "path": path, "mounts": mounts} for n in range(12)))
    workspace.run("-k", "nobody").stdout.fnmatch_lines(
        [
            "golden: p0 writes outside its view: lake",
            "golden: p9 writes outside its view: lake",
            "golden: 2 more projects write outside their views: `golden check` names them",
        ]
    )


# What would decide about colours before the terminal does.
_DECIDING = frozenset({"NO_COLOR", "FORCE_COLOR", "PY_COLORS", "CI", "GITHUB_ACTIONS"})


def run_on_a_terminal(workspace: Workspace, columns: int, *arguments: str, **environment: str) -> str:
    """Return everything that a session writes to a terminal of its own."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    told: list[bytes] = []

    def listen() -> None:
        try:
            while chunk := os.read(ours, 65536):
                told.append(chunk)
        except OSError:
            return  # the other side is closed

    listener = threading.Thread(target=listen)
    listener.start()
    variables = {key: value for key, value in os.environ.items() if key not in _DECIDING}
    variables |= {"TERM": "xterm", "COLUMNS": str(columns), **environment}
    command = [sys.executable, "-m", "pytest", "--golden", *OPTIONS, *arguments]
    subprocess.run(command, cwd=workspace.path, env=variables, stdin=theirs, stdout=theirs, stderr=theirs, check=False)
    os.close(theirs)
    listener.join(timeout=60)
    os.close(ours)
    return b"".join(told).decode()


@pytest.fixture
def slow(workspace: Workspace) -> Workspace:
    step = 'echo \'{"name": "load orders"}\' >> "$GOLDEN_STEPS"; sleep 1.2'
    workspace.declare({"name": "slow_project", "script": step}, {"name": "broken", "script": FAILS})
    return workspace


def test_live_line_shows_what_runs_and_its_step_and_erases_itself(slow: Workspace) -> None:
    told = run_on_a_terminal(slow, 80)
    assert "slow_project  0." in told
    assert "load orders" in told
    assert "\r\x1b[2K\x1b[32mPASSED " in told


def test_live_line_fits_a_narrow_terminal_rows_are_cut_and_no_color_is_respected(workspace: Workspace) -> None:
    step = 'echo \'{"name": "load orders"}\' >> "$GOLDEN_STEPS"; sleep 1.2'
    long = {"name": "a_project_with_a_long_name", "skip_if_missing": ["no_such_program"]}
    workspace.declare({"name": "slow_project", "script": step}, {"name": "broken", "script": FAILS}, long)
    told = run_on_a_terminal(workspace, 30, NO_COLOR="1")
    spinning = [part for part in told.split("\r\x1b[2K") if part[:2] in {"| ", "/ ", "- ", "\\ "}]
    assert spinning
    assert all(len(part) < 30 for part in spinning)
    assert re.search(r"slow_project +\d\.\ds", told)
    rows = [line for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", told).splitlines() if "SKIPPED a_" in line]
    # A very narrow terminal keeps the time and the beginning of the reason.
    assert re.match(r"SKIPPED a_\.\.\. +-  no_", rows[0])
    assert "\x1b[32m" not in told
    assert "\x1b[31m" not in told


def test_stream_without_a_descriptor_is_written_to(slow: Workspace) -> None:
    code = """
        import io, sys, pytest
        class Stream(io.StringIO):
            def fileno(self): raise AttributeError("no descriptor")
        real, sys.stdout = sys.stdout, Stream()
        ended = pytest.main(sys.argv[1:])
        real.write(sys.stdout.getvalue())
        sys.exit(ended)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), "--golden", *OPTIONS, "-s"]
    done = subprocess.run(command, cwd=slow.path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "golden: FAILED: 1 passed, 1 failed" in done.stdout


@pytest.mark.xdist
def test_looponfail_shows_results_and_waits_for_changes(workspace: Workspace) -> None:
    workspace.declare({"name": "fine"}, {"name": "broken", "script": FAILS})
    # Unbuffered: it does not flush what it says before it waits.
    command = [sys.executable, "-u", "-m", "pytest", "--golden", *OPTIONS, "-f"]
    told = ""
    with subprocess.Popen(
        command, cwd=workspace.path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        assert process.stdout is not None
        end = threading.Timer(PATIENCE_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        end.start()
        for line in process.stdout:
            told += line
            if "waiting for changes" in line:
                break
        end.cancel()
        os.killpg(process.pid, signal.SIGKILL)
    assert "waiting for changes" in told
    assert "golden: FAILED: 1 passed, 1 failed" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"GITHUB_ACTIONS": "true"}])
def test_no_live_line_where_nobody_watches(slow: Workspace, environment: dict[str, str]) -> None:
    told = run_on_a_terminal(slow, 80, **environment)
    assert "load orders" not in told
    assert "\x1b[2K" not in told
