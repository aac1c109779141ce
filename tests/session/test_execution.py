from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.session.workspace import FAILS, OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.session.workspace import Workspace


def test_each_status_is_counted_where_a_person_expects_it(workspace: Workspace) -> None:
    workspace.declare(
        {"name": "fine"},
        {"name": "broken", "script": FAILS},
        {"name": "lost", "path": "nowhere/run.sh"},
        {"name": "absent", "skip_if_missing": ["no_such_program_here"]},
        {"name": "known", "script": FAILS, "quarantine": {"until": "2999-12-31", "reason": "flaky upstream"}},
        {"name": "late", "script": FAILS, "quarantine": {"until": "2020-01-01", "reason": "was flaky"}},
    )
    result = workspace.run("-rA", "--durations=3")
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=2, errors=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "PASSED  fine *",
            "FAILED  broken *exit code 3, expected 0*",
            "ERROR   lost *does not exist*",
            "SKIPPED absent *no_such_program_here is not installed here",
            "FAILED  known *quarantined, flaky upstream (until 2999-12-31)",
            "FAILED  late *exit code 3*",
            "*ERROR at call of lost*",
            "golden: 1 passed, 3 failed, 1 skipped, 1 quarantined",
            "*slowest 3 durations*",
        ]
    )
    result.stdout.fnmatch_lines(["note: The quarantine of late ended on 2020-01-01: was flaky."])
    result.stdout.fnmatch_lines(["FAILED golden_projects.yaml::broken - exit code 3, expected 0*"])
    result.stdout.fnmatch_lines(["ERROR golden_projects.yaml::lost - *"])
    result.stdout.fnmatch_lines(["XFAIL golden_projects.yaml::known - quarantined, *"])
    result.stdout.fnmatch_lines(["SKIPPED [[]1[]] golden_projects.yaml:*: no_such_program_here is not installed here"])


def test_failure_text_starts_with_the_reason_and_ends_with_what_to_try(workspace: Workspace) -> None:
    steps = 'echo \'{"name": "load orders", "error": "no such table"}\' >> "$GOLDEN_STEPS"; '
    workspace.declare({"name": "broken", "script": steps + FAILS})
    result = workspace.run()
    result.stdout.fnmatch_lines(
        [
            "*___ broken ___*",
            "FAILED: exit code 3, expected 0*",
            "failing step: load orders",
            "last output:",
            "  it broke",
            "try next: golden run broken --shell *",
            "full log: *broken.log",
        ],
        consecutive=True,
    )


def test_next_move_names_another_manifest_and_is_left_out_for_the_inline_form(workspace: Workspace) -> None:
    workspace.declare({"name": "broken", "script": FAILS}, file="deep/gate.yaml", workspace_root="..")
    workspace.run("--golden-manifest=deep/gate.yaml").stdout.fnmatch_lines(
        ["try next: golden run broken --shell --manifest deep/gate.yaml   (*"]
    )
    result = workspace.run("--golden-projects=broken/run.sh")
    result.stdout.fnmatch_lines(["FAILED: exit code 3*"])
    result.stdout.no_fnmatch_line("try next:*")


@pytest.mark.parametrize("style", ["short", "long", "line", "native", "no"])
def test_every_traceback_style_works(workspace: Workspace, style: str) -> None:
    workspace.declare({"name": "broken", "script": FAILS})
    result = workspace.run(f"--tb={style}", "-s")
    assert result.ret == 1
    if style == "line":  # one line for a crash, or the whole text since pytest 9
        result.stdout.fnmatch_lines(["*exit code 3, expected 0: it broke*"])
    else:
        assert ("  it broke" in result.outlines) is (style != "no")


def test_retry_that_passes_is_flaky_and_passes(workspace: Workspace) -> None:
    marker = workspace.path / "tried"
    workspace.declare(
        {
            "name": "wobbly",
            "script": "test -e ../marks/tried || { touch ../marks/tried; exit 1; }",
            "retries": 2,
            "mounts": [{"path": "marks", "mode": "write"}],
        }
    )
    (workspace.path / "marks").mkdir()
    result = workspace.run()
    assert not marker.exists()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["PASSED  wobbly *flaky: passed on attempt 2", "golden: 1 passed, 1 flaky"])


def test_project_whose_need_failed_is_a_regression_that_did_not_run(workspace: Workspace) -> None:
    workspace.declare({"name": "base", "script": FAILS}, {"name": "report", "needs": ["base"]})
    result = workspace.run()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["SKIPPED report *report needs base, which did not pass (FAILED)*"])


def test_need_that_was_deselected_is_taken_as_it_is(workspace: Workspace) -> None:
    workspace.declare({"name": "base", "script": FAILS}, {"name": "report", "needs": ["base"]})
    workspace.run("-k", "report").assert_outcomes(passed=1, deselected=1)


def test_first_failure_ends_the_session_when_asked(workspace: Workspace) -> None:
    workspace.declare({"name": "one", "script": FAILS}, {"name": "two"}, {"name": "three"})
    result = workspace.run("-x")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["not run: two, three", "golden: 1 failed, 2 not run"])


def test_requirement_lets_a_skip_fail(workspace: Workspace) -> None:
    workspace.declare({"name": "absent", "skip_if_missing": ["no_such_program_here"]})
    assert workspace.run().ret == 0
    result = workspace.run("--golden-require")
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["golden: 1 failed"])


def test_xfail_marker_cannot_hide_a_failure(workspace: Workspace) -> None:
    workspace.declare({"name": "broken", "script": FAILS})
    workspace.pytester.makeconftest(
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items: item.add_marker(pytest.mark.xfail)\n"
    )
    result = workspace.run()
    assert result.ret == 1
    result.assert_outcomes(failed=1)


def test_skip_marker_is_a_skip_that_is_counted(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makeconftest(
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items: item.add_marker(pytest.mark.skip(reason='not today'))\n"
    )
    result = workspace.run()
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED one *skipped by pytest: not today", "golden: 1 skipped"])
    assert workspace.run("--golden-require").ret == 1


def test_setup_that_fails_is_an_error(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makeconftest("def pytest_runtest_setup(item): raise OSError('no disk')\n")
    result = workspace.run()
    assert result.ret == 1
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["ERROR   one *pytest's setup of one failed:*no disk*"])


def test_other_distribution_of_nearly_the_same_name_is_warned_of(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    foreign = workspace.pytester.mkdir("pytest_golden-1.0.0.dist-info")
    (foreign / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-golden\nVersion: 1.0.0\n")
    workspace.pytester.syspathinsert()
    result = workspace.run("-k", "nothing")
    result.stdout.fnmatch_lines(["golden: the other distribution pytest-golden 1.0.0 is installed too*"])


@pytest.mark.parametrize("more", [[], ["-x"]])
def test_ctrl_c_records_what_was_running_and_ends_with_2(workspace: Workspace, more: list[str]) -> None:
    (workspace.path / "marks").mkdir()
    mounts = [{"path": "marks", "mode": "write"}]
    script = "touch ../marks/begun; sleep 600"
    workspace.declare({"name": "slow", "script": script, "mounts": mounts}, {"name": "later"})
    command = [sys.executable, "-m", "pytest", "--golden", *OPTIONS, *more]
    log = workspace.path / "output.txt"
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=workspace.path, stdout=output, stderr=output, start_new_session=True) as gate,
    ):
        wait_for((workspace.path / "marks" / "begun").exists)
        os.killpg(gate.pid, signal.SIGINT)
        assert gate.wait(timeout=60) == 2, log.read_text()
    told = log.read_text()
    assert "ERROR   slow" in told
    assert "interrupted while slow was running" in told
    assert "golden: 1 failed, 1 not run" in told


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
