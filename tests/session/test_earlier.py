"""What a session shows of earlier ones and learns from them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gate.recorded import RecordedGates
from pytest_golden.history.checkout import Checkout
from pytest_golden.journal.model import Assessment
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.session.earlier import GoldenHistory, _has_cause
from pytest_golden.storage.store import Store
from tests.gate.gate_events import begin, judge
from tests.gate.record_place import Place, locked
from tests.repository import git
from tests.session.recorded import STEP, Recorded
from tests.session.workspace import FAILS, OPTIONS, PASSES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.session.workspace import Workspace


def test_failure_tells_of_the_last_pass_of_what_changed_and_of_where_it_parted(workspace: Workspace) -> None:
    load = f"{STEP % 'extract'}; {STEP % 'load'}"
    workspace.declare({"name": "one", "script": load})
    git(workspace.path, "init", "-q", "-b", "main")
    (workspace.path / ".gitignore").write_text(".golden\n")
    git(workspace.path, "add", "-A")
    git(workspace.path, "commit", "-q", "-m", "it works")
    assert workspace.run().ret == 0
    workspace.declare(
        {"name": "one", "script": f"{STEP % 'extract'}; echo 'no table orders' >&2; exit 3", "timeout": 90}
    )
    git(workspace.path, "commit", "-q", "-a", "-m", "load no more")
    first = workspace.run("--golden-json=out.json")
    first.stdout.fnmatch_lines(
        [
            "FAILED: exit code 3, expected 0*",
            "last passed * UTC at ???????",
            "since then: 1 commit *'load no more'*",
            "files: *one/run.sh*",
            "manifest: *timeout*",
            "first difference from the last good run: step 2: *",
        ]
    )
    first.stdout.no_fnmatch_line("*seen before*")
    (known,) = json.loads((workspace.path / "out.json").read_text())["results"][0]["known"]
    assert known["kind"] == "changed_since_pass"
    with Store.open(workspace.path / ".golden" / "golden.db") as store:
        assert RecordedGates(store).explain_failure("one").to_dict()["changed_since_last_pass"] == known
    second = workspace.run()
    second.stdout.fnmatch_lines(["*- What earlier runs know -*"])
    second.stdout.fnmatch_lines(["FAILED  one *  2nd failure in a row*"])
    second.stdout.no_fnmatch_line("*seen before*")
    hidden = workspace.run("--show-capture=no")
    hidden.stdout.no_fnmatch_line("*- What earlier runs know -*")
    hidden.stdout.fnmatch_lines(["one: last passed * UTC at ???????"])


def test_row_tells_the_streak(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    workspace.run().stdout.no_fnmatch_line("*in a row*")
    workspace.run().stdout.fnmatch_lines(["PASSED  one *  2nd pass in a row*"])
    workspace.declare({"name": "one", "script": FAILS})
    workspace.run().stdout.fnmatch_lines(["FAILED  one *  first failure after 2 passes*"])
    workspace.declare({"name": "one", "script": PASSES})
    workspace.run().stdout.fnmatch_lines(["PASSED  one *  passes again after 1 failure*"])


def test_last_ten_that_ran_are_found_among_skipped_ones(tmp_path: Path) -> None:
    place = Place(tmp_path)
    record = place.open()
    statuses = [ResultStatus.FAILED, *[ResultStatus.PASSED] * 3, *[ResultStatus.SKIPPED] * 9, ResultStatus.PASSED]
    for minute, status in enumerate(statuses):
        begun = begin("one", minute=minute)
        record.begin(begun)
        record.record(judge(begun, "one", status))
    history = GoldenHistory(record, Checkout(), {}, tmp_path, learning="off", warn=place.warned.append)
    assert history.describe_streak("one") == "4th pass in a row, failed 1 of the last 5"
    record.close()


def test_store_that_does_not_take_this_run_tells_no_streak(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for minute in range(2):
        place.run(begin("one", minute=minute))
    begun, record = begin("one", minute=2), place.open()
    history = GoldenHistory(record, Checkout(), {}, tmp_path, learning="off", warn=place.warned.append)
    record.begin(begun)
    assert history.describe_streak("one") == "2nd pass in a row"
    with locked(place.path):
        record.record(judge(begun, "one", ResultStatus.FAILED))
    assert record.store is not None
    assert history.describe_streak("one") == ""
    record.close()


def test_project_that_waited_for_another_repeats_nothing(workspace: Workspace) -> None:
    workspace.declare({"name": "base"}, {"name": "report", "needs": ["base"]})
    assert workspace.run().ret == 0
    workspace.declare({"name": "base", "script": FAILS}, {"name": "report", "needs": ["base"]})
    told = workspace.run("--golden-json=out.json").stdout.str()
    assert told.count("last passed") == 1
    known = {one["name"]: one["known"] for one in json.loads((workspace.path / "out.json").read_text())["results"]}
    assert (len(known["base"]), known["report"]) == (1, [])


@pytest.mark.parametrize(
    ("kinds", "has_cause"),
    [
        ([ReasonKind.EXIT_CODE], True),
        ([ReasonKind.EXIT_CODE, ReasonKind.NEED_NOT_PASSED], True),
        ([ReasonKind.NEED_NOT_PASSED], False),
        ([ReasonKind.INTERRUPTED], False),
    ],
)
def test_what_was_interrupted_or_waited_has_no_cause_of_its_own(kinds: list[ReasonKind], has_cause: bool) -> None:
    reasons = tuple(Reason(kind, "told") for kind in kinds)
    assert _has_cause(GoldenProjectResult("one", "one.py", ResultStatus.ERROR, reasons=reasons)) is has_cause


@pytest.mark.parametrize(
    ("learning", "is_stored", "is_shown"), [("on", True, True), ("recall", False, True), ("off", False, False)]
)
def test_learning_stores_and_shows_what_it_was_told_to(
    workspace: Workspace, recorded: Recorded, learning: str, is_stored: bool, is_shown: bool
) -> None:
    workspace.declare({"name": "one", "script": FAILS}, {"name": "two"})
    workspace.run()
    assert recorded.namespaces() == ["outcomes/golden/", "signatures/golden/", "training/golden/"]
    for script in (PASSES, FAILS):
        before = recorded.count_memories()
        workspace.declare({"name": "one", "script": script}, {"name": "two"})
        result = workspace.run(f"--golden-learning={learning if script == FAILS else 'on'}")
    result.stdout.no_fnmatch_line("*it has not passed since*")
    assert ("seen before in one: last fixed on " in result.stdout.str()) is is_shown
    assert (recorded.count_memories() > before) is is_stored
    assert len(recorded.past("one")) == 3


def test_what_must_not_be_learned_from_never_is(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one"})
    workspace.run("--golden-learning=off")
    assert recorded.namespaces() == []
    workspace.run()
    # An outcome and an example of the second.
    assert recorded.count_memories() == 2


def test_home_of_nobody_in_the_manifest_is_that_projects_error_alone(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one", "venv": "~nobody-here/venv"}, {"name": "two", "pass_files": ["~nobody-here/x"]})
    result = workspace.run()
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["ERROR: venv ~nobody-here/venv does not exist *"])
    assert recorded.results() == {"one": "ERROR", "two": "ERROR"}


def test_gate_that_was_killed_is_told_by_the_next(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one"}, {"name": "two"})
    workspace.pytester.makeconftest(
        """
        import os
        def pytest_golden_result_recorded(result, entry):
            if os.environ.get("KILL"):
                os.kill(os.getpid(), 9)
        """
    )
    environment = {**os.environ, "KILL": "1"}
    command = [sys.executable, "-m", "pytest", "--golden", *OPTIONS]
    assert (
        subprocess.run(command, cwd=workspace.path, env=environment, check=False, capture_output=True).returncode == -9
    )
    result = workspace.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["golden: the gate of * UTC was cut off after 1 of 2 projects"])
    assert [run.assessment for run in recorded.runs()] == [Assessment.PARTIAL, Assessment.SUCCESS]
