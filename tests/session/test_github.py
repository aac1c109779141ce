"""What GitHub shows of a session by itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.session.workspace import FAILS, Workspace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def step_summary(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = workspace.path / "runner" / "step_summary.md"
    path.parent.mkdir()
    path.touch()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(workspace.path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


def test_summary_of_the_job_is_written_by_itself(workspace: Workspace, step_summary: Path) -> None:
    step_summary.write_text("an open line")
    workspace.declare({"name": "fine"}, {"name": "broken", "script": FAILS}, {"name": "left_out"})
    assert workspace.run("-k", "not left_out").ret == 1
    text = step_summary.read_text()
    assert text.startswith("an open line\n## Golden projects: FAILED (partial: 1 deselected)\n\n1 passed, 1 failed\n")
    assert "| <code>broken</code> | FAILED |" in text
    assert "<pre>\nFAILED: exit code 3, expected 0: it broke\nlast output:\n  it broke\ntry next: " in text


def test_second_session_of_a_step_adds_to_the_first(workspace: Workspace, step_summary: Path) -> None:
    workspace.declare({"name": "fine"})
    workspace.run("-q")
    workspace.run("-p", "no:terminal")
    assert step_summary.read_text().count("## Golden projects: PASSED\n") == 2


def test_secrets_stay_out_of_the_summary(
    workspace: Workspace, step_summary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE_PASSWORD", "correct-horse-battery")
    script = 'echo "cannot log in with $WAREHOUSE_PASSWORD" >&2; exit 1'
    workspace.declare({"name": "broken", "script": script, "pass_env": ["WAREHOUSE_PASSWORD"]})
    workspace.run()
    text = step_summary.read_text()
    assert "cannot log in with" in text
    assert "correct-horse-battery" not in text


@pytest.mark.xdist
def test_controller_alone_writes_the_summary(workspace: Workspace, step_summary: Path) -> None:
    workspace.declare({"name": "fine"}, {"name": "alone", "independent": True})
    workspace.run("-n2")
    assert step_summary.read_text().count("## Golden projects") == 1


def test_summary_that_cannot_be_written_changes_no_verdict(
    workspace: Workspace, step_summary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step_summary.parent))
    workspace.declare({"name": "fine"})
    result = workspace.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["WARNING: GITHUB_STEP_SUMMARY *: nothing can be appended (Is a directory)*"])


def test_nothing_is_written_where_there_is_no_runner(
    workspace: Workspace, step_summary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.declare({"name": "fine"})
    workspace.run("--collect-only")
    with monkeypatch.context() as patched:
        patched.delenv("GITHUB_STEP_SUMMARY")
        assert workspace.run().ret == 0
    monkeypatch.delenv("GITHUB_ACTIONS")
    workspace.run()
    assert step_summary.read_text() == ""


def test_full_summary_leaves_room_for_githubs_limit(workspace: Workspace, step_summary: Path) -> None:
    os.truncate(step_summary, 1024 * 1024 - 4000)
    workspace.declare({"name": "broken", "script": f"head -c 9000 /dev/zero | tr '\\0' x >&2; {FAILS}"})
    workspace.run()
    assert step_summary.stat().st_size <= 1024 * 1024
    assert b"## Golden projects: FAILED" in step_summary.read_bytes()


def test_other_troubles_of_the_run_stand_in_the_summary(workspace: Workspace, step_summary: Path) -> None:
    (workspace.path / "file").touch()
    workspace.declare({"name": "load"}, {"name": "report", "needs": ["load"]})
    assert workspace.run("-k", "report", "--golden-json=file/out.json").ret == 3
    text = step_summary.read_text()
    assert "- <code>--golden-json " in text
    assert "- <code>load was deselected: report ran without it having been checked</code>" in text


def test_empty_manifest_is_warned_of(workspace: Workspace, step_summary: Path) -> None:
    workspace.declare()
    workspace.run()
    assert "## Golden projects: NOTHING RAN" in step_summary.read_text()
    assert "- <code>No golden projects: golden&#95;projects" not in step_summary.read_text()
    assert "- <code>No golden projects: golden_projects.yaml declares none" in step_summary.read_text()


def test_inline_form_has_annotations_without_a_place(workspace: Workspace, step_summary: Path) -> None:
    path = workspace.write_pipeline("broken", FAILS)
    workspace.run(f"--golden-projects=broken:{path}").stdout.fnmatch_lines(
        ["::error title=broken%3A FAILED::exit code 3, expected 0: it broke"]
    )
    assert "| <code>broken</code> | FAILED |" in step_summary.read_text()


@pytest.mark.usefixtures("step_summary")
def test_what_a_pipeline_prints_gives_the_runner_no_command(workspace: Workspace) -> None:
    script = "echo '::stop-commands::x'; echo '  ::add-mask::a'; echo 'b ##[error]c' >&2; exit 3"
    workspace.declare({"name": "broken", "script": script})
    lines = workspace.run("-v", "--golden-junit=report.xml").outlines
    report = (workspace.path / "report.xml").read_text()
    assert "\\x3a:stop-commands::x" in report
    assert not [line for line in report.splitlines() if line.lstrip().startswith("::") or "##[" in line]
    commands = [line for line in lines if line.lstrip().startswith("::") or "##[" in line]
    of_project, of_run = commands
    assert of_project.startswith("::error file=golden_projects.yaml,line=")
    assert of_run.endswith("::FAILED: 1 failed")
    assert "\\x3a:stop-commands::x" in lines
