"""What a session leaves in the store, by real gates in real workspaces."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from pytest_golden.cli.main import main
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.journal.model import Assessment, ImmediateResult
from pytest_golden.learning.gate_results_store import count_unlearned
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.store import Store
from pytest_golden.trajectory.store import find_trajectory
from tests.gate.record_place import damage
from tests.repository import git
from tests.requirement import require
from tests.session.recorded import STEP, Recorded
from tests.session.test_running import wait_for
from tests.session.workspace import FAILS, OPTIONS

if TYPE_CHECKING:
    from tests.session.workspace import Workspace


def test_gate_is_recorded_beside_the_manifest_and_the_header_says_so(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one"}, {"name": "two", "script": FAILS})
    result = workspace.run("--golden-json=out.json")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["golden store: .golden/golden.db"])

    (run,) = recorded.runs()
    assert (run.assessment, run.immediate_result) == (Assessment.FAILURE, ImmediateResult.FAILURE)
    assert run.immediate_notes == "FAILED: 1 passed, 1 failed"
    assert recorded.results() == {"one": "PASSED", "two": "FAILED"}
    facts = recorded.facts()
    assert facts["command_line"][:2] == ["pytest", "--golden"]
    assert (facts["manifest"], facts["final_status"], facts["pid"]) == (
        "golden_projects.yaml",
        "failed",
        os.getpid(),
    )
    gate = json.loads((workspace.path / "out.json").read_text())["gate"]
    assert gate["entry_id"] == run.id
    assert check_store(recorded.path).problems == ()


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_pipelines_see_no_store_wherever_it_is(workspace: Workspace, workers: tuple[str, ...]) -> None:
    with ExecutionGateway(workspace.path) as gateway:
        require(gateway.describe().seal != "none", "a seal")
    place = workspace.path / "elsewhere.db"
    script = f"cat {place}* > seen; test ! -s seen && ls {place} {place}-wal"
    workspace.declare(*({"name": f"reads-{number}", "script": script} for number in range(3)))
    for _ in range(2):
        assert workspace.run(f"--golden-store={place}", *workers).ret == 0
    assert b"reads-1" in place.read_bytes()


@pytest.mark.parametrize("how", ["flag", "url", "environment", "ini"])
def test_store_is_where_it_was_said(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    workspace.declare({"name": "one"})
    place = workspace.path / "elsewhere" / "gates.db"
    options = []
    if how == "flag":
        options = ["--golden-store=elsewhere/gates.db"]
    elif how == "url":
        options = [f"--golden-store=sqlite:///{place}"]
    elif how == "environment":
        monkeypatch.setenv("GOLDEN_STORE_URL", f"sqlite:///{place}")
    else:
        workspace.pytester.makeini("[pytest]\ngolden_store = elsewhere/gates.db\n")
    result = workspace.run(*options)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["golden store: elsewhere/gates.db"])
    assert Recorded(place).results() == {"one": "PASSED"}
    assert not (workspace.path / ".golden" / "golden.db").exists()


@pytest.mark.parametrize("url", ["mysql://u:hunter22@h/db", "sqlite://u:hunter22@h/x", "no://"])
def test_place_where_no_store_can_be_is_refused_without_its_password(workspace: Workspace, url: str) -> None:
    workspace.declare({"name": "one"})
    result = workspace.run(f"--golden-store={url}")
    assert result.ret == 4
    told = result.stderr.str()
    assert "store" in told
    assert "hunter22" not in told


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("folder", "*folder is a folder; give a file"),
        ("notes.txt", "*notes.txt is not a golden store; nothing was changed"),
        ("theirs.db", "*theirs.db is not a golden store; nothing was changed"),
        ("", "*--golden-store is empty: give a file or none*"),
    ],
)
def test_what_is_named_and_is_no_store_is_refused_before_anything_runs(
    workspace: Workspace, named: str, told: str
) -> None:
    workspace.declare({"name": "one"})
    (workspace.path / "folder").mkdir()
    (workspace.path / "notes.txt").write_text("no database\n")
    with closing(sqlite3.connect(workspace.path / "theirs.db")) as theirs:
        theirs.execute("CREATE TABLE customers (name TEXT)")
    before = sorted(workspace.path.rglob("*"))
    result = workspace.run(f"--golden-store={named}")
    assert result.ret == 4
    result.stderr.fnmatch_lines([told])
    assert sorted(workspace.path.rglob("*")) == before


def test_damaged_store_that_was_named_costs_no_verdict(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    place = workspace.path / "named.db"
    assert workspace.run(f"--golden-store={place}").ret == 0
    damage(place)
    result = workspace.run(f"--golden-store={place}")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["golden: WARNING: the store *it is damaged*; results are kept in the spool, *"])


def test_results_of_a_run_that_must_not_be_learned_from_are_never(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one", "script": FAILS})
    workspace.run("--golden-learning=off")
    workspace.run("--golden-learning=recall")
    workspace.run()
    with Store.open(recorded.path) as store:
        outcomes = MemoryStore(store).list_keys(("outcomes", "golden"))
        with store.read() as connection:
            assert count_unlearned(connection) == 0
    assert len(outcomes) == 1


def test_state_folder_that_comes_back_is_ignored_by_git_again(workspace: Workspace) -> None:
    workspace.declare({"name": "one"}, {"name": "two"})
    workspace.pytester.makeconftest(
        """
        import shutil
        def pytest_golden_result_recorded(result, entry):
            if result.name == "one":
                shutil.rmtree(".golden")
        """
    )
    assert workspace.run().ret == 0
    assert (workspace.path / ".golden" / "golden.db").exists()
    assert (workspace.path / ".golden" / ".gitignore").read_text() == "*\n"


LOADED = """
import sys
def pytest_unconfigure(config):
    database = {"sqlalchemy", "alembic", "sqlite3", "pytest_golden.storage.schema", "pytest_golden.gate.store"}
    print("loaded", sorted(database & sys.modules.keys()))
"""


def test_without_a_store_nothing_is_written_and_no_database_is_loaded(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makeconftest(LOADED)
    result = workspace.run_apart("--golden-store=none", "--golden-json=out.json")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["loaded []"])
    result.stdout.no_fnmatch_line("golden store:*")
    assert not list((workspace.path / ".golden").glob("*.db*"))
    assert json.loads((workspace.path / "out.json").read_text())["gate"]["entry_id"] is None


@pytest.mark.parametrize("more", [["--collect-only"], ["--co", "-n2"]])
def test_collection_alone_writes_nothing_and_loads_no_database(workspace: Workspace, more: list[str]) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makeconftest(LOADED)
    result = workspace.run_apart(*more)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["loaded []"])
    assert not (workspace.path / ".golden" / "golden.db").exists()


def test_session_without_a_selected_project_writes_nothing(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one"})
    assert workspace.run("-k", "nobody").ret == 5
    assert not recorded.path.exists()


def test_every_kind_of_result_is_kept_as_what_it_is(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare(
        {"name": "passes"},
        {"name": "fails", "script": FAILS},
        {"name": "skips", "skip_if_missing": ["no-such-program"]},
        {"name": "known", "script": FAILS, "quarantine": {"reason": "broken feed", "until": "2999-01-01"}},
        {"name": "errs", "command": ["no-such-program"]},
    )
    workspace.run()
    expected = {"passes": "PASSED", "fails": "FAILED", "skips": "SKIPPED", "known": "FAILED", "errs": "ERROR"}
    assert recorded.results() == expected
    (run,) = recorded.runs()
    kinds = {signal.data["project"]: signal.signal_type for signal in run.signals}
    assert kinds == {
        "passes": "positive",
        "fails": "negative",
        "skips": "neutral",
        "known": "neutral",
        "errs": "negative",
    }
    assert {one.status for one in run.expectations} == {"met", "unmet", "expired"}


def test_selected_projects_alone_are_expected(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one"}, {"name": "two"})
    workspace.run("-k", "one")
    (run,) = recorded.runs()
    assert [one.description for one in run.expectations] == ["one passes"]
    assert run.assessment is Assessment.SUCCESS
    assert recorded.facts()["facts"]["deselected"] == ["two"]


def test_what_the_first_failure_kept_from_running_is_no_success(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one", "script": FAILS}, {"name": "two"})
    workspace.run("-x")
    (run,) = recorded.runs()
    assert (run.assessment, run.immediate_result) == (Assessment.FAILURE, ImmediateResult.FAILURE)
    assert [one.status for one in run.expectations] == ["unmet", "expired"]
    assert recorded.facts()["facts"]["not_run"] == ["two"]


def test_session_that_another_test_ended_early_is_no_success(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one"}, {"name": "two"})
    workspace.pytester.makeconftest(
        """
        import pytest
        def pytest_golden_result_recorded(result, entry):
            pytest.exit("enough", returncode=0)
        """
    )
    workspace.run()
    (run,) = recorded.runs()
    assert run.immediate_result is ImmediateResult.PARTIAL
    assert run.assessment is Assessment.PARTIAL


@pytest.mark.parametrize(("accepted", "assessment"), [(True, Assessment.SUCCESS), (False, Assessment.FAILURE)])
def test_weakened_floor_is_journalled(
    workspace: Workspace, recorded: Recorded, accepted: bool, assessment: Assessment
) -> None:
    workspace.declare({"name": "one"}, {"name": "two"})
    git(workspace.path, "init", "-q", "-b", "main")
    git(workspace.path, "add", "-A")
    git(workspace.path, "commit", "-q", "-m", "the floor")
    workspace.declare({"name": "one"})
    workspace.run("--golden-base=main", *(["--golden-floor=accept"] if accepted else []))
    (run,) = recorded.runs()
    assert run.assessment is assessment
    assert run.signals[-1].summary.startswith(f"weakened floor{', accepted by a person' if accepted else ''}: two: ")
    told = "PASSED: 1 passed, weakened floor accepted by a person" if accepted else "FAILED: 1 passed, floor weakened"
    assert run.immediate_notes == told
    assert recorded.facts()["facts"]["floor_accepted"] is accepted


def test_hook_gets_the_entry_and_none_without_a_store(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makeconftest(
        """
        def pytest_golden_result_recorded(result, entry):
            print("entry", entry and (entry.id, entry.parent_id, entry.intent_type))
        """
    )
    result = workspace.run("-s")
    (past,) = recorded.past("one")
    result.stdout.fnmatch_lines([f"*entry ('{past.entry_id}', '{past.run_id}', 'golden_run')"])
    workspace.run("-s", "--golden-store=none").stdout.fnmatch_lines(["*entry None"])


def test_gateway_without_a_trajectory_is_recorded_too(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one", "pass_env": ["PATH"]})
    workspace.pytester.makeconftest(
        """
        from pytest_golden import Ending, PipelineOutcome

        class Elsewhere:
            def run_pipeline(self, project, *, role, permissions):
                return PipelineOutcome(Ending.EXITED, 3)
            def redact(self, project, text):
                raise TypeError("a bug in somebody's gateway")

        def pytest_golden_gateway(config):
            return Elsewhere()
        """
    )
    for _ in range(2):
        assert workspace.run().ret == 1
    assert [one.trajectory_id for one in recorded.past("one")] == [None, None]
    # What a gateway cannot redact is not kept.
    assert recorded.facts()["command_line"] == []


def test_secret_on_the_command_line_is_hidden_although_its_project_cannot_be_found(
    workspace: Workspace, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "kX9fresh42")
    (workspace.path / "creds.env").write_text("API_TOKEN=filed9911rty\n")
    secretive = {"pass_env": ["SHOP_PASSWORD"], "pass_files": ["creds.env"]}
    workspace.declare({"name": "gone", "path": "gone.sh", **secretive})
    workspace.run("-k", "not kX9fresh42 and not filed9911rty")
    assert recorded.facts()["command_line"][-1] == "not [REDACTED] and not [REDACTED]"


def test_project_that_another_plug_in_starts_again_runs_once_and_is_recorded_once(
    workspace: Workspace, recorded: Recorded
) -> None:
    workspace.declare({"name": "one", "script": FAILS})
    workspace.pytester.makeconftest(
        """
        import pytest
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_protocol(item, nextitem):
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            result = yield
            from _pytest.runner import runtestprotocol
            runtestprotocol(item, nextitem=nextitem)
            return result
        """
    )
    assert workspace.run().ret == 1
    assert [one.status for one in recorded.past("one")] == [ResultStatus.FAILED]
    assert check_store(recorded.path).problems == ()


def test_trajectory_of_a_result_is_kept(workspace: Workspace, recorded: Recorded) -> None:
    workspace.declare({"name": "one", "script": f"{STEP % 'extract'}; {STEP % 'load'}"})
    workspace.run()
    (past,) = recorded.past("one")
    assert past.trajectory_id is not None
    with Store.open(recorded.path) as store, store.read() as connection:
        kept = find_trajectory(connection, past.trajectory_id)
    assert kept is not None
    assert [step.content for step in kept.steps] == ["extract", "load"]


@pytest.mark.xdist
def test_controller_alone_records_what_the_workers_ran_and_an_error_for_the_project_of_a_crashed_one(
    workspace: Workspace, recorded: Recorded
) -> None:
    names = ("before", "crashes", "after", *(f"p{number}" for number in range(5)))
    workspace.declare(*({"name": name, "independent": name.startswith("p")} for name in names))
    workspace.pytester.makeconftest(
        """
        import os
        from pytest_golden import Ending, PipelineOutcome

        class Crashing:
            def run_pipeline(self, project, *, role, permissions):
                if project.name == "crashes":
                    os._exit(77)
                return PipelineOutcome(Ending.EXITED, 0)

        def pytest_golden_gateway(config):
            return Crashing()
        """
    )
    assert workspace.run("-n2").ret == 1
    assert recorded.results() == {name: "ERROR" if name == "crashes" else "PASSED" for name in names}
    (run,) = recorded.runs()
    assert run.assessment is Assessment.FAILURE
    assert check_store(recorded.path).problems == ()


@pytest.mark.parametrize("more", [[], pytest.param(["-n1"], marks=pytest.mark.xdist)], ids=["plain", "xdist"])
def test_ctrl_c_loses_nothing_and_the_run_is_no_success(
    workspace: Workspace, recorded: Recorded, more: list[str]
) -> None:
    (workspace.path / "marks").mkdir()
    mounts = [{"path": "marks", "mode": "write"}]
    script = "touch ../marks/begun; sleep 600"
    workspace.declare({"name": "quick"}, {"name": "slow", "script": script, "mounts": mounts}, {"name": "later"})
    command = [sys.executable, "-m", "pytest", "--golden", *OPTIONS, *more]
    with subprocess.Popen(
        command, cwd=workspace.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as gate:
        try:
            wait_for((workspace.path / "marks" / "begun").exists)
            wait_for(lambda: "quick" in recorded.results())
            os.killpg(gate.pid, signal.SIGINT)
            told, _ = gate.communicate(timeout=60)
        finally:
            # What fails before the end would otherwise wait for the pipeline's.
            gate.kill()
    assert gate.returncode == 2, told
    assert "interrupted while slow was running" in told
    assert "golden: INTERRUPTED (partial: 1 not run): 1 passed, 1 failed" in told
    (run,) = recorded.runs()
    assert recorded.results() == {"quick": "PASSED", "slow": "ERROR"}
    assert (run.immediate_result, run.assessment) == (ImmediateResult.PARTIAL, Assessment.FAILURE)
    assert run.immediate_notes == "INTERRUPTED (partial: 1 not run): 1 passed, 1 failed"
    assert "was cut off after" not in workspace.run("-k", "quick").stdout.str()


def test_step_whose_error_was_cut_within_a_character_costs_no_history(
    workspace: Workspace, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = json.dumps({"name": "load \ud83d", "error": "boom \ud83d", "rows\ud83d": ["\ud83d\0"]})
    script = f"cat >> \"$GOLDEN_STEPS\" <<'END'\n{line}\nEND\nexit 3"
    workspace.declare({"name": "one", "script": script})
    for _ in range(2):
        assert workspace.run("--golden-json=out.json", "--golden-html=out.html", "--golden-junit=out.xml").ret == 1
    monkeypatch.chdir(workspace.path)
    for command in ("history", "history one", "learn", "recall boom", "report", "store check", "journal export"):
        assert main(command.split()) == 0, command
    workspace.declare({"name": "one"})
    fixed = workspace.run()
    assert fixed.ret == 0
    fixed.stdout.no_fnmatch_line("*nothing was learned*")
    with Store.open(recorded.path) as store, store.read() as connection:
        assert count_unlearned(connection) == 0
        body = connection.exec_driver_sql("SELECT body FROM trajectories ORDER BY number").scalars().all()[0]
    assert r"boom \\ud83d" in body
    assert json.loads((workspace.path / "out.json").read_text())
