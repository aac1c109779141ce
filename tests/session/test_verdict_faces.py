"""One table of runs, and every face that shows a run: all show one verdict, and none shows another."""

from __future__ import annotations

import json
import pkgutil
import re
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import jsonschema
import pytest
from starlette.testclient import TestClient

from pytest_golden import web
from pytest_golden.cli.main import main
from pytest_golden.mcp.tool_answers import describe_answers
from pytest_golden.mcp.tool_calls import golden_status
from pytest_golden.mcp.tools import GoldenStatus
from pytest_golden.mcp.workplace import Caller, Workplace
from pytest_golden.report.gate_report import report_schema
from pytest_golden.storage.store import Store
from pytest_golden.web.access import PublicPlace
from pytest_golden.web.app import make_app
from pytest_golden.web.services import ServeOptions, Services
from tests.repository import git
from tests.session.test_changed import commit
from tests.session.workspace import FAILS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.session.recorded import Recorded
    from tests.session.workspace import Workspace

# pytester forgets what a session imported, and half a site that is imported again has lost its routes.
for _part in pkgutil.walk_packages(web.__path__, "pytest_golden.web."):
    import_module(_part.name)

ONE, TWO = {"name": "one"}, {"name": "two"}
BROKEN: dict[str, Any] = {"name": "broken", "script": FAILS}
LOST = {"name": "lost", "path": "nowhere/run.sh"}
ABSENT = {"name": "absent", "skip_if_missing": ["no_such_program_here"]}
HELD = {**BROKEN, "quarantine": {"until": "2999-12-31", "reason": "flaky upstream"}}
WOBBLY = {
    "name": "one",
    "script": "test -e ../marks/tried || { touch ../marks/tried; exit 1; }",
    "retries": 1,
    "mounts": [{"path": "marks", "mode": "write"}],
}
INTERRUPTS = """
import pytest
def pytest_golden_result_recorded(result, entry):
    pytest.exit("enough")
"""
EXITS = """
import pytest
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    yield
    session.exitstatus = {}
"""
WARNS = "import warnings\ndef test_warns(): warnings.warn('old')\n"
OTHER = "def test_other():\n    assert False\n"


def _pass_on_main(workspace: Workspace) -> None:
    workspace.declare(ONE, TWO)
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    assert workspace.run().ret == 0


def _weaken(workspace: Workspace) -> None:
    workspace.declare(ONE, TWO)
    git(workspace.path, "init", "-q", "-b", "main")
    commit(workspace.path)
    workspace.declare(ONE)


def _make_marks(workspace: Workspace) -> None:
    (workspace.path / "marks").mkdir()


@dataclass(frozen=True)
class Case:
    """A run, and what everybody is to see of it. `prepare` does what is to be done when the projects are declared."""

    told: str
    exit_code: int
    projects: list[dict[str, Any]]
    options: list[str] = field(default_factory=list)
    prepare: Callable[[Workspace], object] | None = None
    is_recorded: bool = True
    has_html: bool = True

    @property
    def heading(self) -> str:
        found = re.match(r"[A-Z ]+(?<! )( \(partial: [^)]*\))?", self.told)
        assert found is not None
        return found[0]

    @property
    def word(self) -> str:
        return self.heading.split(" (")[0]

    @property
    def status(self) -> str:
        return self.word.lower().replace(" ", "_")


CASES = {
    "all passed": Case("PASSED: 2 passed", 0, [ONE, TWO]),
    "one failed of two": Case("FAILED: 1 passed, 1 failed", 1, [ONE, BROKEN]),
    "one error": Case("ERROR: 1 failed", 1, [LOST]),
    "skipped": Case("PASSED: 1 passed, 1 skipped", 0, [ONE, ABSENT]),
    "skipped, all required": Case("FAILED: 1 passed, 1 failed", 1, [ONE, ABSENT], ["--golden-require"]),
    "quarantined": Case("PASSED: 1 passed, 1 quarantined", 0, [ONE, HELD]),
    "flaky": Case("PASSED: 1 passed, 1 flaky", 0, [WOBBLY], prepare=_make_marks),
    "weakened floor": Case("FAILED: 1 passed, floor weakened", 1, [], ["--golden-base=main"], _weaken),
    "weakened floor, accepted": Case(
        "PASSED: 1 passed, weakened floor accepted by a person",
        0,
        [],
        ["--golden-base=main", "--golden-floor=accept"],
        _weaken,
    ),
    "deselected": Case("PASSED (partial: 1 deselected): 1 passed", 0, [ONE, TWO], ["-k", "one"]),
    "ended at the first failure": Case("FAILED (partial: 1 not run): 1 failed", 1, [BROKEN, ONE], ["-x"]),
    "interrupted": Case(
        "INTERRUPTED (partial: 1 not run): 1 passed",
        2,
        [ONE, TWO],
        prepare=lambda workspace: workspace.pytester.makeconftest(INTERRUPTS),
    ),
    "interrupted after the last": Case(
        "INTERRUPTED: 1 passed", 2, [ONE], prepare=lambda workspace: workspace.pytester.makeconftest(INTERRUPTS)
    ),
    "nothing selected": Case("NOTHING RAN (partial: 1 deselected)", 5, [ONE], ["-k", "nobody"], is_recorded=False),
    "empty shard": Case("NOTHING RAN (partial: 1 in other shards)", 0, [ONE], ["--golden-shard=2/2"]),
    "unchanged": Case("PASSED (partial: 2 unchanged)", 0, [], ["--golden-changed=main"], _pass_on_main),
    "need did not pass": Case("FAILED: 3 failed", 1, [BROKEN, {"name": "user", "needs": ["broken"]}, LOST]),
    "another test failed": Case(
        "FAILED: 1 passed, 1 other test failed",
        1,
        [ONE],
        ["test_other.py", "golden_projects.yaml"],
        lambda workspace: workspace.pytester.makepyfile(test_other=OTHER),
    ),
    "report not written": Case(
        "ERROR: 1 passed, 1 report could not be written", 3, [ONE], ["--golden-html=."], has_html=False
    ),
    "exit status of a plug-in": Case(
        "ERROR: 1 passed, pytest ended with exit status 7",
        7,
        [ONE],
        prepare=lambda workspace: workspace.pytester.makeconftest(EXITS.format(7)),
    ),
    "plug-in that hides a failure": Case(
        "FAILED: 1 failed", 1, [BROKEN], prepare=lambda workspace: workspace.pytester.makeconftest(EXITS.format(0))
    ),
    "device full": Case(
        "ERROR: 1 passed, 1 report could not be written", 3, [ONE], ["--golden-html=/dev/full"], has_html=False
    ),
}
if hasattr(pytest.ExitCode, "MAX_WARNINGS_ERROR"):  # pytest 9.2
    CASES["too many warnings"] = Case(
        "ERROR: 1 passed, pytest ended with exit status 6",
        6,
        [ONE],
        ["--max-warnings=0", "-Wdefault", "test_warns.py", "golden_projects.yaml"],
        lambda workspace: workspace.pytester.makepyfile(test_warns=WARNS),
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_face_shows_the_one_verdict(
    case: Case,
    workspace: Workspace,
    recorded: Recorded,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if case.projects:
        workspace.declare(*case.projects)
    if case.prepare is not None:
        case.prepare(workspace)
    folder = workspace.path.parent / f"{workspace.path.name}-reports"
    folder.mkdir()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    reports = [f"--golden-junit={folder}/gate.xml", f"--golden-json={folder}/gate.json"]
    html = [f"--golden-html={folder}/gate.html"] if case.has_html else []
    result = workspace.run(*reports, *html, "-p", "no:cacheprovider", *case.options)

    assert result.ret == case.exit_code
    lines = [line for line in result.stdout.lines if line.startswith("golden: ")]
    assert f"golden: {case.told}" in lines
    _check_annotations(case, result.stdout.lines)
    summary = (folder / "summary.md").read_text(encoding="utf-8").splitlines()
    assert summary[0] == f"## Golden projects: {case.heading}"
    report = json.loads((folder / "gate.json").read_text(encoding="utf-8"))
    _check_report(case, report)
    _check_junit(case, report, ElementTree.parse(folder / "gate.xml").getroot())
    if case.has_html:
        _check_page(case, (folder / "gate.html").read_text(encoding="utf-8"))
    if case.is_recorded:
        _check_store(case, report, workspace, recorded, partial(_run_golden, monkeypatch, workspace, capsys))


def _check_annotations(case: Case, lines: list[str]) -> None:
    found = [line for line in lines if line.startswith("::") and line.endswith(f"::{case.told}")]
    is_good = case.word == "PASSED"
    assert len(found) == (0 if is_good else 1)
    assert all(line.startswith("::error" if case.word in {"FAILED", "ERROR"} else "::warning") for line in found)


def _check_report(case: Case, report: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(report_schema()).validate(report)
    assert (report["final_status"], report["verdict"]) == (case.status, case.told)
    assert report["is_partial"] is ("partial" in case.told)
    assert report["gate"]["interrupted"] is (case.status == "interrupted")


def _check_junit(case: Case, report: dict[str, Any], suites: ElementTree.Element) -> None:
    """Compare the failing test cases: each project that fails the gate is one, the floor, and what else is not as it should be."""
    assert suites.findall(".//property[@name='golden_verdict']")[0].attrib["value"] == case.told
    failing = sum(int(suites.attrib[name]) for name in ("failures", "errors"))
    is_floor_bad = bool(report["weakening_count"]) and not report["floor_accepted"]
    is_more = bool(report["problems"]) or report["other_failures_count"] > 0 or case.word == "INTERRUPTED"
    assert failing == report["failed_count"] + is_floor_bad + is_more
    assert (failing > 0) is (case.exit_code not in {0, 5})
    assert len(suites.findall(".//flakyFailure")) == report["flaky_count"]


def _check_page(case: Case, page: str) -> None:
    kind = {"PASSED": "good", "FAILED": "bad", "ERROR": "bad"}.get(case.word, "warn")
    assert f'Golden projects: <span class="{kind}">{case.heading}</span>' in page
    assert f"<title>Golden projects: {case.heading}</title>" in page


def _run_golden(
    monkeypatch: pytest.MonkeyPatch, workspace: Workspace, capsys: pytest.CaptureFixture[str], *words: str
) -> str:
    monkeypatch.chdir(workspace.path)
    monkeypatch.setenv("COLUMNS", "200")
    capsys.readouterr()
    assert main(words) == 0
    return capsys.readouterr().out


def _check_store(
    case: Case, report: dict[str, Any], workspace: Workspace, recorded: Recorded, golden: Callable[..., str]
) -> None:
    """Check the faces that read the run back from the store."""
    told = golden("report").splitlines()
    assert told[0] == case.heading
    _check_report(case, json.loads(golden("report", "--json")))
    golden("report", "--html", "again.html")
    _check_page(case, (workspace.path / "again.html").read_text(encoding="utf-8"))
    assert golden("history").splitlines()[-1].endswith(f"): {case.told}")
    last = json.loads(golden("history", "--json"))["last_run"]
    assert (last["final_status"], last["verdict"]) == (case.status, case.told)
    run = recorded.runs()[-1]
    assert run.immediate_notes == case.told
    assert run.id == report["gate"]["entry_id"]
    assert case.told in golden("journal", "review", "--agent", "golden")
    if case.word != "PASSED":
        assert "success" not in {str(run.immediate_result), str(run.assessment)}
    manifest = workspace.path / "golden_projects.yaml"
    with closing(Store.open(recorded.path, follows=True)) as store:
        _check_site(case, run.id, store, manifest)
    with Workplace(lambda: Store.open(recorded.path), manifest, is_read_only=True) as place:
        status = golden_status(place, Caller("tests", "here"), GoldenStatus())
    jsonschema.Draft202012Validator(describe_answers()["golden_status"]).validate(status)
    assert (status["final_status"], status["verdict"]) == (case.status, case.told)


def _check_site(case: Case, run_id: str, store: Store, manifest: Any) -> None:
    options = ServeOptions(manifest, PublicPlace.parse(None, "127.0.0.1"), token="t" * 24)
    client = TestClient(make_app(options, Services.on(store, manifest)), "http://127.0.0.1:8765")
    home, page = client.get("/").text, client.get(f"/runs/{run_id}").text
    row = home[home.index("<tbody>") :].partition("</tr>")[0]
    for told in (row, page):
        badge = re.search(r'<span class="badge (\w+)"><span aria-hidden="true">.</span>([A-Z ]+)</span>', told)
        assert badge is not None
        assert badge[2] == case.word
        assert (badge[1] == "good") is (case.word == "PASSED")
        assert case.heading.removeprefix(case.word).strip() in told
        assert case.told.removeprefix(case.heading).removeprefix(": ") in told
    cell = re.search(rf'class="(\w+)" href="/runs/{run_id}" title="([^"]+)"', home)
    if cell is not None:
        assert (cell[1], re.sub(r" \d{4}-\d\d-\d\d \d\d:\d\d.*", "", cell[2])) == (
            case.word.replace(" ", "_"),
            case.heading,
        )
    _check_report(case, client.get(f"/api/v1/runs/{run_id}").json())
    (first, *_) = client.get("/api/v1/runs").json()["items"]
    assert (first["id"], first["final_status"], first["verdict"]) == (run_id, case.status, case.told)
