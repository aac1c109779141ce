"""Well-known plug-ins beside us, one at a time: each tells the same outcomes as pytest."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from tests.session.workspace import FAILS, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

# What pytest tells without any of them, also in its own JUnit report, which calls an error in a call a failure.
EXPECTED = {
    "fine": "passed",
    "broken": "failed",
    "lost": "error",
    "absent": "skipped",
    "waits": "failed",
    "known": "xfailed",
    "test_good": "passed",
    "test_bad": "failed",
    "test_left_out": "skipped",
}
IN_JUNIT = EXPECTED | {"lost": "failed"}


@pytest.fixture
def workspace(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    made = Workspace(pytester)
    made.declare(
        {"name": "fine", "tags": ["timeout"]},
        {"name": "broken", "script": FAILS},
        {"name": "lost", "path": "nowhere/run.sh"},
        {"name": "absent", "skip_if_missing": ["no_such_program_here"]},
        {"name": "waits", "needs": ["broken"]},
        {"name": "known", "script": FAILS, "quarantine": {"until": "2999-12-31", "reason": "flaky upstream"}},
    )
    pytester.makepyfile(
        test_plain="""
        import pytest
        def test_good(): pass
        def test_bad(): assert False
        @pytest.mark.skip(reason="not today")
        def test_left_out(): pass
        """
    )
    return made


def run(workspace: Workspace, *arguments: str) -> pytest.RunResult:
    """Run everything with the plug-ins that the arguments name, and let pytest tell its own outcomes too."""
    ours = ("-p", "pytest_golden.pytest_plugin", "--golden", "--golden-sandbox=copy", "--junitxml=pytest.xml")
    result = workspace.pytester.runpytest_subprocess(*ours, *arguments, "test_plain.py", timeout=300)
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert result.ret == 1
    return result


def read_junit(folder: Path) -> dict[str, str]:
    told = {}
    for case in ElementTree.parse(folder / "pytest.xml").iterfind(".//testcase"):
        kinds = {child.tag: child.get("type") for child in case}
        skipped = "xfailed" if kinds.get("skipped") == "pytest.xfail" else "skipped"
        word = "failed" if "failure" in kinds else "error" if "error" in kinds else "passed"
        told[case.attrib["name"]] = skipped if "skipped" in kinds else word
    return told


def read_allure(folder: Path) -> dict[str, str]:
    results = [json.loads(path.read_text()) for path in (folder / "allure").glob("*-result.json")]
    # Its words know no expected failure, and call an exception that is not an assertion broken.
    words = {"broken": "error"}
    told = {one["name"]: words.get(one["status"], one["status"]) for one in results}
    assert len(told) == len(results)
    return told | ({"known": "xfailed"} if told["known"] == "skipped" else {})


def read_reportlog(folder: Path) -> dict[str, str]:
    told = {}
    for line in (folder / "log.jsonl").read_text().splitlines():
        report = json.loads(line)
        if report["$report_type"] == "TestReport" and (report["when"] == "call" or report["outcome"] != "passed"):
            properties = dict(report["user_properties"])
            is_error = report["outcome"] == "failed" and properties.get("golden_status") == "ERROR"
            outcome = "error" if is_error else "xfailed" if "wasxfail" in report else report["outcome"]
            told[report["nodeid"].rpartition("::")[2]] = outcome
    return told


def read_json_report(folder: Path) -> dict[str, str]:
    report = json.loads((folder / "report.json").read_text())
    return {one["nodeid"].rpartition("::")[2]: one["outcome"] for one in report["tests"]}


def read_html(folder: Path) -> dict[str, str]:
    blob = re.search(r'data-jsonblob="([^"]*)"', (folder / "report.html").read_text())
    assert blob is not None
    tests: Mapping[str, list[dict[str, str]]] = json.loads(html.unescape(blob[1]))["tests"]
    return {
        name.rpartition("::")[2]: one["result"].lower() for name, told in tests.items() for one in told if one["result"]
    }


def test_pytest_itself_tells_the_outcomes(workspace: Workspace) -> None:
    run(workspace).assert_outcomes(passed=2, failed=3, errors=1, skipped=2, xfailed=1)
    assert read_junit(workspace.path) == IN_JUNIT


@pytest.mark.parametrize(
    ("plugins", "option", "read"),
    [
        (["allure_pytest.plugin"], "--alluredir=allure", read_allure),
        (["pytest_reportlog.plugin"], "--report-log=log.jsonl", read_reportlog),
        (["pytest_metadata.plugin", "pytest_jsonreport.plugin"], "--json-report-file=report.json", read_json_report),
        (["pytest_metadata.plugin", "pytest_html.plugin", "pytest_html.fixtures"], "--html=report.html", read_html),
    ],
)
def test_report_of_a_plugin_tells_the_same(
    workspace: Workspace, plugins: list[str], option: str, read: Callable[[Path], dict[str, str]]
) -> None:
    more = ["--json-report"] if "json-report" in option else []
    run(workspace, *(word for plugin in plugins for word in ("-p", plugin)), option, *more).assert_outcomes(
        passed=2, failed=3, errors=1, skipped=2, xfailed=1
    )
    assert read_junit(workspace.path) == IN_JUNIT
    # pytest-html has no errors in a call either.
    assert read(workspace.path) == (IN_JUNIT if read is read_html else EXPECTED)


def test_rerunfailures_runs_no_golden_project_again(workspace: Workspace) -> None:
    result = run(workspace, "-p", "pytest_rerunfailures", "--reruns=2")
    assert read_junit(workspace.path) == IN_JUNIT
    assert result.parseoutcomes()["rerun"] == 2
    result.stdout.fnmatch_lines(["golden: --reruns does not run golden projects again: set `retries:` in the manifest"])
    forced = run(workspace, "-p", "pytest_rerunfailures", "--force-reruns=1")
    assert read_junit(workspace.path) == IN_JUNIT
    forced.stdout.fnmatch_lines(["golden: --force-reruns counts reruns of golden projects but runs none again: *"])


def test_reruns_of_the_ini_file_or_a_mark_are_answered_too(workspace: Workspace) -> None:
    workspace.pytester.makeini("[pytest]\nreruns = 2\n")
    result = run(workspace, "-p", "pytest_rerunfailures")
    assert result.parseoutcomes()["rerun"] == 2
    result.stdout.fnmatch_lines(["golden: reruns in the ini file does not run golden projects again: *"])
    workspace.pytester.makeini("[pytest]\n")
    workspace.pytester.makeconftest(
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items: item.add_marker(pytest.mark.flaky(reruns=2))\n"
    )
    result = run(workspace, "-p", "pytest_rerunfailures")
    assert result.parseoutcomes()["rerun"] == 2
    result.stdout.fnmatch_lines(["*a `flaky` mark does not run a golden project again: set `retries:` in the manifest"])


def test_timeout_ends_a_project_and_a_tag_of_its_name_is_not_its_marker(workspace: Workspace) -> None:
    result = run(workspace, "-p", "pytest_timeout", "--timeout=300")
    assert read_junit(workspace.path) == IN_JUNIT
    result.stdout.fnmatch_lines(["golden: pytest or a plug-in uses the marker timeout: *-m golden_tag_timeout"])
    workspace.declare({"name": "slow", "script": "sleep 600"}, {"name": "fine"})
    result = run(workspace, "-p", "pytest_timeout", "--timeout=5")
    assert {name: told for name, told in read_junit(workspace.path).items() if "test" not in name} == {
        "slow": "failed",
        "fine": "passed",
    }
    result.stdout.fnmatch_lines(["ERROR   slow *"])


def test_sugar_shows_another_terminal_and_the_same_outcomes(workspace: Workspace) -> None:
    result = run(workspace, "-p", "pytest_sugar", "--force-sugar")
    assert read_junit(workspace.path) == IN_JUNIT
    assert "FAILED  broken" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", result.stdout.str())


def test_randomly_leaves_the_order_of_golden_projects(workspace: Workspace) -> None:
    run(workspace, "-p", "pytest_randomly")
    told = read_junit(workspace.path)
    assert told == IN_JUNIT
    assert [name for name in told if not name.startswith("test_")] == list(EXPECTED)[:6]


def test_repeat_repeats_python_tests_only(workspace: Workspace) -> None:
    result = run(workspace, "-p", "pytest_repeat", "--count=2")
    told = {name: outcome for name, outcome in read_junit(workspace.path).items() if name in EXPECTED}
    assert told == {name: outcome for name, outcome in IN_JUNIT.items() if not name.startswith("test_")}
    result.assert_outcomes(passed=3, failed=4, errors=1, skipped=3, xfailed=1)
    result.stdout.fnmatch_lines(["golden: --count does not repeat golden projects: each runs once"])
