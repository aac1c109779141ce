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


def test_history_and_golden_run_know_the_limit_of_the_next_run(
    fast: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capsys.readouterr()
    assert main(["history", "one", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["trend"]["pass_count"] == 3
    assert told["trend"]["limit_seconds"] == pytest.approx(0.051)
    assert main(["history", "one"]) == 0
    assert "limit      51ms (max_slowdown 1.5; median 1ms and MAD 0ms of its last 3 passes" in capsys.readouterr().out
    # Another view is another environment.
    monkeypatch.setenv("GOLDEN_SANDBOX", "copy")
    assert main(["run", "one", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["results"][0]
    assert [reason["kind"] for reason in told["reasons"]] == ["slowdown"]


def test_too_slow_a_pass_fails_as_any_failure_until_a_person_accepts_the_new_duration(
    fast: Workspace, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = fast.run("--golden-json=report.json", "--golden-keep=failed")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["FAILED: took *, longer than the limit of 51ms: the median of its last 3 passes is 1ms*"]
    )
    told = json.loads((fast.path / "report.json").read_text())["results"][0]
    assert [reason["kind"] for reason in told["reasons"]] == ["slowdown"]
    assert (fast.path / ".golden/kept/one/out.txt").read_text() == "passed\n"
    assert not (fast.path / ".golden/kept/two").exists()
    # What failed is not a pass, and changes nothing of what is usual. It is tried again as often as any failure.
    assert recorded.past("one")[0].status == "FAILED"
    declare(fast, retries=1)
    assert fast.run("-k", "one", "--golden-json=report.json").ret == 1
    told = json.loads((fast.path / "report.json").read_text())["results"][0]
    assert (told["attempts"], told["status"]) == (2, "FAILED")
    for name in ("CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    assert fast.run("--golden-update").ret == 0
    result = fast.run("-k", "one")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*note: max_slowdown is not judged: 1 of at least 3 passes*"])


def test_workers_get_the_medians_from_the_controller_and_several_those_of_several_alone(fast: Workspace) -> None:
    pytest.importorskip("xdist")
    result = fast.run("-n1")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED: *longer than the limit of 51ms*"])
    result = fast.run("-n2")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*note: max_slowdown is not judged: 0 of at least 3 passes in the same environment*"])


@pytest.mark.parametrize("option", ["-v", "-q"])
def test_without_a_store_durations_are_not_judged(workspace: Workspace, option: str) -> None:
    declare(workspace)
    result = workspace.run("--golden-store=none", option)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*note: *max_slowdown is not judged: no store has the durations of earlier runs"])
