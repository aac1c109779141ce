from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from tests.session.workspace import FAILS, OPTIONS

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


def test_quiet_writes_what_is_not_fine_and_one_count(mixed: Workspace) -> None:
    result = mixed.run("-q", "--tb=no", "test_other.py")
    lines = [line for line in result.outlines if line.strip()]
    assert lines[0].startswith("..")
    assert lines[1].startswith("FAILED  broken")
    assert lines[2] == "golden: 1 passed, 1 failed"


def test_quieter_writes_nothing_of_ours(mixed: Workspace) -> None:
    result = mixed.run("-qq", "--tb=no")
    result.stdout.no_fnmatch_line("golden:*")
    result.stdout.no_fnmatch_line("FAILED  broken*")
    assert result.ret == 1


@pytest.mark.parametrize("style", ["progress", "count", "classic", "times"])
def test_progress_of_other_tests_is_not_written_below_our_lines(mixed: Workspace, style: str) -> None:
    result = mixed.run("-o", f"console_output_style={style}", "test_other.py", "--no-summary")
    lines = result.outlines
    assert lines[lines.index(next(line for line in lines if line.startswith("test_other.py"))) + 1].startswith(
        "PASSED  fine"
    )
    assert not any(line.strip() in {"[ 50%]", "[100%]", "[2/4]"} for line in lines)


def test_verbose_keeps_pytests_lines_and_ours_apart(mixed: Workspace) -> None:
    result = mixed.run("-v", "test_other.py")
    result.stdout.fnmatch_lines(
        ["test_other.py::test_a PASSED *", "test_other.py::test_b PASSED *", "PASSED  fine *", "FAILED  broken *"],
        consecutive=True,
    )


def test_no_summary_leaves_the_table_out(mixed: Workspace) -> None:
    mixed.run("--no-summary").stdout.no_fnmatch_line("*= golden projects =*")


def test_table_repeats_no_reason_that_the_short_summary_tells(mixed: Workspace) -> None:
    for arguments, told in (([], ""), (["-rN"], "exit code 3, expected 0: it broke"), (["-rE"], "exit code 3, ")):
        lines = mixed.run("--golden-store=none", *arguments).outlines
        table = lines[next(index for index, line in enumerate(lines) if "= golden projects =" in line) :]
        row = next(line for line in table if line.startswith("FAILED  broken"))
        assert row.partition("s  ")[2].startswith(told)
        assert bool(row.partition("s  ")[2]) is bool(told)


def test_need_that_was_deselected_is_noted_once(workspace: Workspace) -> None:
    workspace.declare({"name": "load"}, {"name": "report", "needs": ["load"]}, {"name": "other"})
    result = workspace.run("-k", "report")
    note = "note: load was deselected: report ran without it having been checked"
    assert result.outlines.count(note) == 1
    workspace.run("-k", "other").stdout.no_fnmatch_line("note: *")
    workspace.run("-q", "-k", "report").stdout.no_fnmatch_line("note: *")


def test_long_tables_show_what_is_not_fine(workspace: Workspace) -> None:
    path = workspace.write_pipeline("fine", "true")
    workspace.declare({"name": "broken", "script": FAILS}, *({"name": f"fine{n}", "path": path} for n in range(41)))
    for arguments, rows in (([], 1), (["-v"], 42)):
        lines = workspace.run(*arguments).outlines
        start = next(index for index, line in enumerate(lines) if "= golden projects =" in line)
        assert lines.index("golden: 41 passed, 1 failed") - start - 1 == rows


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
    table = result.outlines[result.outlines.index(next(line for line in result.outlines if "= golden proj" in line)) :]
    assert table[1].startswith("PASSED  fine ")
    assert table[2].startswith("        note: no step reader is called 'nobody'; known are ")
    assert table[3] == "        note: wrote files that no pattern of `writes:` or `outputs:` names: out.txt"
    assert table[4] == f"        kept view: {workspace.path}/.golden/kept/fine"
    assert table[5].startswith("FAILED  broken ")
    assert table[6] == "golden: 1 passed, 1 failed"
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
    assert sum("note: no step reader" in line for line in workspace.run("-v").outlines) == 2


def test_header_names_what_is_really_written_to(workspace: Workspace) -> None:
    (workspace.path / "lake").mkdir()
    mounts = [{"path": "lake", "mode": "write"}]
    path = workspace.write_pipeline("fine", "true")
    workspace.declare({"name": "reads", "path": path, "mounts": [{"path": "lake"}]})
    workspace.run("-k", "nobody").stdout.no_fnmatch_line("*really writes*")
    workspace.declare(*({"name": f"p{n}", "path": path, "mounts": mounts} for n in range(12)))
    workspace.run("-k", "nobody").stdout.fnmatch_lines(
        [
            "golden: p0 really writes: lake",
            "golden: p9 really writes: lake",
            "golden: 2 more really write outside their views: `golden check` names them",
        ]
    )


# What would decide about colours before the terminal does.
_DECIDING = frozenset({"NO_COLOR", "FORCE_COLOR", "PY_COLORS", "CI", "GITHUB_ACTIONS"})


def run_on_a_terminal(workspace: Workspace, columns: int, *arguments: str, **environment: str) -> str:
    """Give everything that a session writes to a terminal of its own."""
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


def test_live_line_fits_a_narrow_terminal_and_rows_are_cut(slow: Workspace) -> None:
    told = run_on_a_terminal(slow, 30)
    spinning = [part for part in told.split("\r\x1b[2K") if part[:2] in {"| ", "/ ", "- ", "\\ "}]
    assert spinning
    assert all(len(part) < 30 for part in spinning)
    lines = told.replace("\r\x1b[2K", "\n").split("\n")
    assert any(line.endswith("...\r") and line.startswith("\x1b[") for line in lines)


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"GITHUB_ACTIONS": "true"}])
def test_no_live_line_where_nobody_watches(slow: Workspace, environment: dict[str, str]) -> None:
    told = run_on_a_terminal(slow, 80, **environment)
    assert "load orders" not in told
    assert "\x1b[2K" not in told


def test_no_color_is_respected(slow: Workspace) -> None:
    told = run_on_a_terminal(slow, 80, NO_COLOR="1")
    assert "\x1b[32m" not in told
    assert "\x1b[31m" not in told
