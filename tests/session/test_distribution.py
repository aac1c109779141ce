from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.session.workspace import FAILS

if TYPE_CHECKING:
    from tests.session.workspace import Workspace

pytestmark = pytest.mark.xdist

# Each notes when it began and ended in a folder that is really written to.
NOTED = "date +%s.%N > ../marks/{name}.begun; sleep 0.2; date +%s.%N > ../marks/{name}.ended"


def declare_noted(workspace: Workspace, *names: str, **more: object) -> None:
    (workspace.path / "marks").mkdir()
    mounts = [{"path": "marks", "mode": "write"}]
    workspace.declare(*({"name": name, "script": NOTED.format(name=name), "mounts": mounts, **more} for name in names))


def times(workspace: Workspace, name: str) -> tuple[float, float]:
    begun, ended = (float((workspace.path / "marks" / f"{name}.{what}").read_text()) for what in ("begun", "ended"))
    return begun, ended


def test_independent_projects_run_side_by_side(workspace: Workspace) -> None:
    declare_noted(workspace, "one", "two", "three", "four", independent=True)
    workspace.run("-n2").assert_outcomes(passed=4)
    spans = sorted(times(workspace, name) for name in ("one", "two", "three", "four"))
    assert any(later[0] < earlier[1] for earlier, later in pairwise(spans))


def test_results_texts_and_needs_travel_from_a_worker(workspace: Workspace) -> None:
    # Half a character travels as an escape.
    line = json.dumps({"name": "load \ud83d", "error": "boom \ud83d"})
    workspace.declare(
        {"name": "fine"},
        {"name": "broken", "script": FAILS},
        {"name": "needy", "needs": ["broken"]},
        {"name": "lost", "path": "nowhere.sh"},
        {"name": "absent", "skip_if_missing": ["no_such_program_here"]},
        {"name": "known", "script": FAILS, "quarantine": {"until": "2999-12-31", "reason": "flaky upstream"}},
        {"name": "half", "script": f"cat >> \"$GOLDEN_STEPS\" <<'END'\n{line}\nEND\nexit 3"},
        {"name": "unwanted"},
    )
    result = workspace.run("-n1", "-k", "not unwanted", "--golden-json=out.json", "--junitxml=out.xml")
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=3, errors=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "FAILED: exit code 3, expected 0*",
            "it broke",
            r"FAILED: exit code 3, expected 0: load \ud83d: boom \ud83d",
            "deselected: unwanted",
            "golden: FAILED (partial: 1 deselected): 1 passed, *",
            "FAILED golden_projects.yaml::broken - exit code 3, expected 0*",
        ]
    )
    assert (workspace.path / "out.json").exists()
    assert "exit code 3, expected 0" in (workspace.path / "out.xml").read_text()


def test_no_workers_at_all_is_a_plain_session(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    workspace.run("-n0").assert_outcomes(passed=1)


def test_every_worker_running_everything_is_refused(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    result = workspace.run("-n2", "--dist=each")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--dist each would run every golden project on every worker*"])


@pytest.mark.parametrize("workers", [1, 2])
def test_worker_that_is_gone_before_it_is_given_work_costs_nothing(workspace: Workspace, workers: int) -> None:
    names = ("first", "second", "alone", "apart")
    workspace.declare(*({"name": name, "independent": name.startswith("a")} for name in names))
    # In the controller, right before the work is spread.
    workspace.pytester.makeconftest(
        f"""
        known = []

        def pytest_xdist_node_collection_finished(node):
            known.append(node)
            if len(known) == {workers}:
                process = known[0].gateway._io.popen
                process.kill()
                process.wait()
        """
    )
    result = workspace.run(f"-n{workers}", "--golden-json=out.json")
    assert result.ret == 0
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["replacing crashed worker gw*", "golden: PASSED: 4 passed"])
    written = json.loads((workspace.path / "out.json").read_text())
    assert [(one["name"], one["status"]) for one in written["results"]] == [(name, "PASSED") for name in names]


def test_worker_that_crashes_after_it_told_a_result_leaves_that_result_alone(workspace: Workspace) -> None:
    workspace.declare({"name": "before"}, {"name": "told"}, {"name": "needy", "needs": ["told"]})
    workspace.pytester.makeconftest(
        """
        import os

        def pytest_runtest_teardown(item):
            if item.name == "told":
                os._exit(77)
        """
    )
    result = workspace.run("-n1", "--golden-json=out.json")
    assert result.ret == 0
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["replacing crashed worker gw0", "golden: PASSED: 3 passed"])
    written = json.loads((workspace.path / "out.json").read_text())
    assert [(one["name"], one["status"]) for one in written["results"]] == [
        (name, "PASSED") for name in ("before", "told", "needy")
    ]


def test_first_failure_ends_the_session_when_asked(workspace: Workspace) -> None:
    workspace.declare({"name": "one", "script": FAILS}, {"name": "two"}, {"name": "three"})
    result = workspace.run("-n1", "-x")
    assert result.ret in {1, 2}
    result.stdout.fnmatch_lines(["golden: FAILED (partial: 2 not run): 1 failed"])
