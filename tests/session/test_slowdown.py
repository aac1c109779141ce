from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import update

from pytest_golden.cli.main import main
from pytest_golden.storage.schema import gate_results
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from tests.session.recorded import Recorded
    from tests.session.workspace import Workspace

SLOW = "sleep 0.2; echo passed > out.txt"


def declare(workspace: Workspace, **more: Any) -> None:
    workspace.declare({"name": "one", "script": SLOW, "max_slowdown": 1.5, **more}, {"name": "two"})


@pytest.fixture
def fast(workspace: Workspace, recorded: Recorded) -> Workspace:
    """A project whose three passes took a millisecond each, as the store tells, and that takes far longer now."""
    declare(workspace)
    for _ in range(3):
        assert workspace.run("-k", "one").ret == 0
    with Store.open(recorded.path) as store, store.write() as connection:
        connection.execute(update(gate_results).values(execution_time_seconds=0.001))
    return workspace


def test_too_slow_a_pass_fails_with_its_time_the_limit_and_the_median(fast: Workspace, recorded: Recorded) -> None:
    result = fast.run("--golden-json=report.json")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["FAILED: took *, longer than the limit of 51ms: the median of its last 3 passes is 1ms*"]
    )
    told = json.loads((fast.path / "report.json").read_text())["results"][0]
    assert [reason["kind"] for reason in told["reasons"]] == ["slowdown"]
    # What failed is no pass, and changes nothing of what is usual.
    assert recorded.past("one")[0].status == "FAILED"
    assert fast.run("-k", "one").ret == 1


def test_view_of_a_run_that_was_only_too_slow_is_kept(fast: Workspace) -> None:
    assert fast.run("--golden-keep=failed").ret == 1
    assert (fast.path / ".golden/kept/one/out.txt").read_text() == "passed\n"
    assert not (fast.path / ".golden/kept/two").exists()


def test_slow_pass_is_tried_again_as_often_as_any_failure(fast: Workspace) -> None:
    declare(fast, retries=1)
    assert fast.run("--golden-json=report.json").ret == 1
    told = json.loads((fast.path / "report.json").read_text())["results"][0]
    assert (told["attempts"], told["status"]) == (2, "FAILED")


def test_person_accepts_the_new_duration_and_history_begins_anew(
    fast: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    assert fast.run("--golden-update").ret == 0
    result = fast.run("-k", "one")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*note: max_slowdown is not judged: 1 of at least 3 passes*"])


def test_workers_get_the_medians_from_the_controller(fast: Workspace) -> None:
    pytest.importorskip("xdist")
    result = fast.run("-n1")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED: *longer than the limit of 51ms*"])


def test_passes_of_one_worker_do_not_judge_those_beside_others(fast: Workspace) -> None:
    pytest.importorskip("xdist")
    result = fast.run("-n2")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*note: max_slowdown is not judged: 0 of at least 3 passes in the same environment*"])


@pytest.mark.parametrize("option", ["-v", "-q"])
def test_without_a_store_durations_are_not_judged(workspace: Workspace, option: str) -> None:
    declare(workspace)
    result = workspace.run("--golden-store=none", option)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*note: *max_slowdown is not judged: no store keeps how long earlier runs took"])


def test_golden_run_judges_by_the_same_past(
    fast: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another view is another environment.
    monkeypatch.setenv("GOLDEN_SANDBOX", "copy")
    capsys.readouterr()
    assert main(["run", "one", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["results"][0]
    assert [reason["kind"] for reason in told["reasons"]] == ["slowdown"]


def test_history_tells_the_limit_of_the_next_run(fast: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["history", "one", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["trend"]["pass_count"] == 3
    assert told["trend"]["limit_seconds"] == pytest.approx(0.051)
    assert main(["history", "one"]) == 0
    assert "limit      51ms (max_slowdown 1.5; median 1ms and MAD 0ms of its last 3 passes" in capsys.readouterr().out
