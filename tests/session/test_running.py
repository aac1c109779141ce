from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from tests.session.workspace import FAILS, OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.session.workspace import Workspace


EACH_STATUS: tuple[dict[str, Any], ...] = (
    {"name": "fine"},
    {"name": "broken", "script": FAILS},
    {"name": "lost", "path": "nowhere/run.sh"},
    {"name": "absent", "skip_if_missing": ["no_such_program_here"]},
    {"name": "known", "script": FAILS, "quarantine": {"until": "2999-12-31", "reason": "flaky upstream"}},
)


def test_each_status_is_counted_where_a_person_expects_it(workspace: Workspace) -> None:
    workspace.declare(
        *EACH_STATUS,
        {"name": "late", "script": FAILS, "quarantine": {"until": "2020-01-01", "reason": "was flaky"}},
    )
    result = workspace.run("-rA", "--durations=3")
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=2, errors=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "PASSED  fine *",
            "FAILED  broken *",
            "ERROR   lost *",
            "SKIPPED absent *no_such_program_here is not installed here",
            "FAILED  known *quarantined, flaky upstream (until 2999-12-31)",
            "FAILED  late *",
            "*ERROR at call of lost*",
            "ERROR: *does not exist*",
            "FAILED: exit code 3, expected 0*",
            "golden: FAILED: 1 passed, 3 failed, 1 skipped, 1 quarantined",
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
            "try next: golden run broken --shell *",
            "full log: *broken.log",
            "*- Captured stdout/stderr call -*",
            "it broke",
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


@pytest.mark.parametrize(
    ("style", "told"),
    [
        ("auto", ["FAILED: exit code 3, *", "try next: *", "*- Captured stdout/stderr call -*", "it broke"]),
        ("native", ["FAILED: exit code 3, *", "try next: *", "*- Captured stdout/stderr call -*", "it broke"]),
        ("short", ["FAILED: exit code 3, *", "*- Captured stdout/stderr call -*", "it broke"]),
        ("line", ["golden_projects.yaml:*: exit code 3, expected 0: it broke"]),
        ("no", []),
        # On a worker the text is made before it travels.
        pytest.param("short", ["FAILED: exit code 3, *", "*- Captured *", "it broke"], marks=pytest.mark.xdist),
    ],
)
def test_traceback_style_decides_how_much_is_told(
    workspace: Workspace, request: pytest.FixtureRequest, style: str, told: list[str]
) -> None:
    workspace.declare({"name": "broken", "script": FAILS})
    more = ["-n", "1"] if request.node.get_closest_marker("xdist") else []
    result = workspace.run(f"--tb={style}", *more)
    assert result.ret == 1
    result.stdout.fnmatch_lines([*told, "FAILED golden_projects.yaml::broken - exit code 3, expected 0: it broke"])
    if style in {"short", "line", "no"}:
        result.stdout.no_fnmatch_line("try next: *")
    if style == "no":
        result.stdout.no_fnmatch_line("it broke")


@pytest.mark.parametrize(("shown", "is_told"), [("all", True), ("stdout", True), ("stderr", True), ("no", False)])
def test_output_is_captured_output(workspace: Workspace, shown: str, is_told: bool) -> None:
    workspace.declare({"name": "broken", "script": FAILS})
    assert ("it broke" in workspace.run(f"--show-capture={shown}").outlines) is is_told


def test_every_hook_sees_what_pytest_sees(workspace: Workspace) -> None:
    workspace.declare(*EACH_STATUS)
    workspace.pytester.makeconftest(
        """
        import json, pytest
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            if call.when == "call":
                status = dict(report.user_properties)["golden_status"]
                assert json.loads(report.golden)["status"] == status
                raised = None if call.excinfo is None else call.excinfo.typename
                print("SEEN", item.name, report.outcome, raised, status, hasattr(report, "wasxfail"))
            return report
        def pytest_exception_interact(node): print("INTERACT", node.name)
        def pytest_runtest_logstart(nodeid): print("START", nodeid)
        def pytest_runtest_logfinish(nodeid): print("FINISH", nodeid)
        """
    )
    lines = [line.removeprefix("golden_projects.yaml ") for line in workspace.run("-s", "--runxfail").outlines]
    for told in (
        "SEEN fine passed None PASSED False",
        "SEEN broken failed NotAsExpectedError FAILED False",
        "SEEN lost failed GoldenHarnessError ERROR False",
        "SEEN absent skipped Skipped SKIPPED False",
        "SEEN known skipped XFailed FAILED True",
        "golden: --runxfail does not end a quarantine: remove `quarantine:` from the manifest",
    ):
        assert told in lines
    assert [line.partition("INTERACT ")[2] for line in lines if "INTERACT" in line] == ["broken", "lost"]
    assert "".join(lines).count("START golden_projects.yaml::") == 5
    assert "".join(lines).count("FINISH golden_projects.yaml::") == 5


def test_properties_are_in_pytests_own_junit_report(workspace: Workspace) -> None:
    workspace.declare({"name": "broken", "script": FAILS})
    workspace.run("--junitxml=pytest.xml")
    case = ElementTree.parse(workspace.path / "pytest.xml").find(".//testcase")
    assert case is not None
    told = {one.get("name"): one.get("value") for one in case.iterfind("./properties/property")}
    assert told["golden_status"] == "FAILED"
    assert told["golden_reasons"] == "exit code 3, expected 0: it broke"
    assert float(told["golden_duration_seconds"] or "") > 0


def test_report_that_a_plugin_has_turned_green_fails_the_session_all_the_same(workspace: Workspace) -> None:
    workspace.declare({"name": "broken", "script": FAILS})
    workspace.pytester.makeconftest(
        """
        import pytest
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_makereport():
            report = yield
            report.outcome, report.longrepr = "passed", None
            return report
        """
    )
    assert workspace.run().ret == 1


def test_options_that_mean_something_else_here_are_told(workspace: Workspace) -> None:
    workspace.declare({"name": "fine"})
    result = workspace.run("--trace", "--pdb", "-k", "fine")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "golden: --pdb stops at the result of a golden project, not inside its pipeline: `golden run NAME --shell` *",
            "golden: --trace does not step into golden projects: `golden run NAME --shell` *",
        ]
    )


@pytest.mark.parametrize(
    "option", ["--fixtures", "--cache-show", "--fixtures-per-test", "--setup-plan", "--setup-only"]
)
def test_no_word_of_ours_where_nothing_runs(workspace: Workspace, option: str) -> None:
    result = workspace.run(option)
    assert result.ret in {0, 5}
    result.stdout.no_fnmatch_line("golden*:*")


@pytest.mark.parametrize("manifest", [None, "golden_projects: 7\n"])
def test_markers_are_listed_whatever_the_manifest_is(workspace: Workspace, manifest: str | None) -> None:
    if manifest is not None:
        (workspace.path / "golden_projects.yaml").write_text(manifest)
    result = workspace.run("--markers")
    assert result.ret == 0
    assert not result.errlines
    result.stdout.fnmatch_lines(["@pytest.mark.skipif(*"])


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
    result.stdout.fnmatch_lines(["PASSED  wobbly *flaky: passed on attempt 2*", "golden: PASSED: 1 passed, 1 flaky"])


def test_project_whose_need_failed_is_a_regression_that_did_not_run(workspace: Workspace) -> None:
    workspace.declare({"name": "base", "script": FAILS}, {"name": "report", "needs": ["base"]})
    result = workspace.run()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["SKIPPED: report needs base, which did not pass (FAILED)*"])


def test_need_that_was_deselected_is_taken_as_it_is(workspace: Workspace) -> None:
    workspace.declare({"name": "base", "script": FAILS}, {"name": "report", "needs": ["base"]})
    workspace.run("-k", "report").assert_outcomes(passed=1, deselected=1)


def test_first_failure_ends_the_session_when_asked(workspace: Workspace) -> None:
    workspace.declare({"name": "one", "script": FAILS}, {"name": "two"}, {"name": "three"})
    result = workspace.run("-x")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["not run: two, three", "golden: FAILED (partial: 2 not run): 1 failed"])


def test_requirement_lets_a_skip_fail(workspace: Workspace) -> None:
    workspace.declare({"name": "absent", "skip_if_missing": ["no_such_program_here"]})
    assert workspace.run().ret == 5
    result = workspace.run("--golden-require")
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*not installed here; a skipped project fails the gate because --golden-require is set*"]
    )
    result.stdout.fnmatch_lines(["golden: FAILED: 1 failed"])


def test_failed_after_comes_second_to_the_failure_of_the_pipeline(workspace: Workspace) -> None:
    workspace.declare({"name": "broken", "script": FAILS, "after": ["sh -c 'echo not tidied; exit 7'"]})
    result = workspace.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["FAILED: exit code 3, expected 0: it broke", "also: `after:` command *(exit code 7):*"]
    )
    assert not [line for line in result.outlines if line.startswith("ERROR")]


@pytest.mark.parametrize(
    ("hook", "more"),
    [
        ("pytest_collection_modifyitems(items)", []),
        ("pytest_runtest_setup(item)", []),
        pytest.param("pytest_runtest_setup(item)", ["-n", "1"], marks=pytest.mark.xdist),
    ],
)
def test_xfail_mark_is_refused_whenever_it_comes(workspace: Workspace, hook: str, more: list[str]) -> None:
    workspace.declare(
        {"name": "broken", "script": f"touch {workspace.path}/was-run"}, {"name": "later", "needs": ["broken"]}
    )
    items = "items[:1]" if "items" in hook else "[item] if item.name == 'broken' else []"
    workspace.pytester.makeconftest(
        f"import pytest\ndef {hook}:\n    for one in {items}: one.add_marker(pytest.mark.xfail(run=False))\n"
    )
    result = workspace.run(*more)
    assert result.ret == 1
    result.assert_outcomes(errors=1, failed=1)
    result.stdout.fnmatch_lines(["ERROR: an xfail mark does not apply *: remove the mark, or write `quarantine:` *"])
    assert not (workspace.path / "was-run").exists()


def test_skip_marker_is_a_skip_that_is_counted(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makeconftest(
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items: item.add_marker(pytest.mark.skip(reason='not today'))\n"
    )
    result = workspace.run()
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED one *skipped by pytest: not today*", "golden: NOTHING RAN: 1 skipped"])
    workspace.pytester.makeini("[pytest]\naddopts = --strict-markers\ngolden_require = true\n")
    required = workspace.run()
    assert required.ret == 1
    required.assert_outcomes(failed=1)
    required.stdout.fnmatch_lines(
        [
            "SKIPPED: skipped by pytest: not today; a skipped project fails the gate because golden_require in tox.ini is set*"
        ]
    )


@pytest.mark.parametrize("hook", ["setup", "call"])
@pytest.mark.parametrize("leave", ["skip", "xfail"])
def test_skip_by_a_hook_fails_the_gate_where_skips_do(workspace: Workspace, hook: str, leave: str) -> None:
    workspace.declare({"name": "one", "script": f"touch {workspace.path}/was-run"})
    workspace.pytester.makeconftest(
        f"import pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_{hook}(item): pytest.{leave}('not today')\n"
    )
    result = workspace.run()
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED one *skipped by pytest: not today*", "golden: NOTHING RAN: 1 skipped"])
    required = workspace.run("--golden-require")
    assert required.ret == 1
    required.assert_outcomes(failed=1)
    required.stdout.fnmatch_lines(["SKIPPED: skipped by pytest: not today; a skipped project fails the gate *"])
    assert not (workspace.path / "was-run").exists()


def test_setup_that_fails_is_an_error(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makeconftest("def pytest_runtest_setup(item): raise OSError('no disk')\n")
    result = workspace.run()
    assert result.ret == 1
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["ERROR   one *", "*OSError: no disk*"])


def test_other_distribution_of_nearly_the_same_name_is_warned_of(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    foreign = workspace.pytester.mkdir("pytest_golden-1.0.0.dist-info")
    (foreign / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-golden\nVersion: 1.0.0\n")
    workspace.pytester.syspathinsert()
    result = workspace.run("-k", "nothing")
    result.stdout.fnmatch_lines(["golden: the other distribution pytest-golden 1.0.0 is installed too*"])


def test_ctrl_c_records_what_was_running_and_ends_with_2(workspace: Workspace) -> None:
    (workspace.path / "marks").mkdir()
    mounts = [{"path": "marks", "mode": "write"}]
    script = "touch ../marks/begun; sleep 600"
    workspace.declare({"name": "slow", "script": script, "mounts": mounts}, {"name": "later"})
    command = [sys.executable, "-m", "pytest", "--golden", *OPTIONS, "-x"]
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
    assert "golden: INTERRUPTED (partial: 1 not run): 1 failed" in told


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
