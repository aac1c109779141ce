from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_golden.regression.model import ResultStatus
from pytest_golden.verify.gates import (
    BrokenDownError,
    ChildProcess,
    GatePlace,
    StartedGate,
    find_cause,
    finish_gate,
    result_of,
    start_gate,
    use_store,
)
from tests.patience import wait_until
from tests.requirement import require

PLACE = GatePlace(Path("golden_projects.yaml"), {"PATH": "/bin"}, options=("--golden-learning=off",))
PARENT = """
import os, sys, time
from pathlib import Path
from pytest_golden.verify.gates import ChildProcess
folder = Path(sys.argv[1])
program = f"echo $$ > {folder}/pid.part && mv {folder}/pid.part {folder}/pid && exec sleep 300"
ChildProcess(["sh", "-c", program], cwd=folder, environment=os.environ, log=folder / "log")
time.sleep(300)
"""
WHOLE: dict[str, Any] = {
    "results": [{"name": "a", "path": "a.sh", "status": "PASSED"}],
    "weakened_floor": [],
    "gate": {"not_run": [], "environment": {"python": "CPython 3.11"}, "entry_id": "entry_1"},
}
INTERNAL_ERROR = """\
INTERNALERROR> Traceback (most recent call last):
INTERNALERROR>   File "/python/site-packages/_pytest/main.py", line 283, in wrap_session
INTERNALERROR>     config._do_configure()
INTERNALERROR>   File "{checkout}/conftest.py", line 2, in pytest_configure
INTERNALERROR>     import orders
INTERNALERROR>   File "{checkout}/.venv/lib/site-packages/orders.py", line 9, in <module>
INTERNALERROR>     raise RuntimeError(f"no {{table}}")
INTERNALERROR> RuntimeError: no orders in {checkout}/data
"""
CONFTEST = """\
ImportError while loading conftest '{checkout}/sub/conftest.py'.
conftest.py:3: in <module>
    import nowhere
E   ModuleNotFoundError: No module named 'nowhere'
"""
USAGE = "ERROR: usage: __main__.py [options] [file_or_dir]\n__main__.py: error: unrecognized arguments: --golden\n  rootdir: /r\n"


def test_servers_url_with_its_password_is_on_no_command_line() -> None:
    url = "postgresql://ada:secret@db.example/golden"
    place = use_store(PLACE, url)
    assert place.options == PLACE.options
    assert place.environment == {"PATH": "/bin", "GOLDEN_STORE_URL": url}


def test_file_is_said_by_an_option_which_wins_over_a_configuration() -> None:
    for told in ("golden.db", "sqlite:///golden.db", "none"):
        place = use_store(PLACE, told)
        assert place.options == (*PLACE.options, f"--golden-store={told}")
        assert place.environment == PLACE.environment


def start(folder: Path, program: str) -> ChildProcess:
    return ChildProcess(["sh", "-c", program], cwd=folder, environment=os.environ, log=folder / "log")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stream:  # noqa: PTH123 - gone the next moment, perhaps
        return stream.read().rpartition(")")[2].split()[0] != "Z"


def test_end_is_waited_for_and_the_last_lines_are_kept(tmp_path: Path) -> None:
    child = start(tmp_path, "seq 1 40; echo last >&2; exit 7")
    assert child.wait() == 7
    lines = child.read_end().splitlines()
    assert lines[-1] == "last"
    assert len(lines) == 15


def test_waiting_may_have_an_end_of_its_own(tmp_path: Path) -> None:
    child = start(tmp_path, "sleep 300")
    assert child.wait(0.01) is None
    child.end()
    assert child.wait() == -signal.SIGINT


def test_child_that_heeds_no_request_is_killed_with_all_of_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_INTERRUPT_SECONDS", "_TERMINATE_SECONDS"):
        monkeypatch.setattr(f"pytest_golden.verify.gates.{name}", 0.05)
    program = "trap '' INT TERM; sleep 300 & echo $! > pid; touch ready; while :; do sleep 300; done"
    child = start(tmp_path, program)
    wait_until((tmp_path / "ready").exists)
    child.end()
    assert child.wait() == -signal.SIGKILL
    wait_until(lambda: not is_alive(int((tmp_path / "pid").read_text())))


def test_what_the_child_leaves_behind_in_its_group_is_ended(tmp_path: Path) -> None:
    child = start(tmp_path, "sleep 300 & echo $! > pid")
    assert child.wait() == 0
    wait_until(lambda: not is_alive(int((tmp_path / "pid").read_text())))


def test_child_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    require(sys.platform == "linux", "the kernel's word of a parent's death")
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)])
    wait_until((tmp_path / "pid").exists)
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_alive(int((tmp_path / "pid").read_text())))


def gate(tmp_path: Path, program: str, report: dict[str, Any] | None = None) -> StartedGate:
    """Start a program in the place of the interpreter that runs a gate."""
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{program}\n")
    script.chmod(0o755)
    if report is not None:
        (tmp_path / "gate.json").write_text(json.dumps(report))
    place = GatePlace(tmp_path / "golden_projects.yaml", os.environ, str(script))
    return start_gate(place, tmp_path, "gate")


def test_report_of_a_gate_is_read(tmp_path: Path) -> None:
    report = finish_gate(gate(tmp_path, "exit 0", WHOLE), "head")
    assert report.results["a"].status is ResultStatus.PASSED
    assert (report.run_id, report.environment, report.exit_code) == ("entry_1", {"python": "CPython 3.11"}, 0)
    assert not report.fails_unexplained
    assert result_of(report, "a").status is ResultStatus.PASSED
    assert result_of(report, "b").status is ResultStatus.SKIPPED


def test_gate_that_fails_although_nothing_failed_is_noticed(tmp_path: Path) -> None:
    assert finish_gate(gate(tmp_path, "exit 1", WHOLE), "head").fails_unexplained
    assert not finish_gate(gate(tmp_path, "exit 1", WHOLE), "head").fails_for_skips
    weaker = {**WHOLE, "weakened_floor": [{"project": "a", "message": "gone"}]}
    assert not finish_gate(gate(tmp_path, "exit 1", weaker), "head").fails_unexplained


@pytest.mark.parametrize(("kind", "fails"), [("skip_if_missing", True), ("unchanged", False)])
def test_gate_that_is_to_fail_for_what_is_skipped_says_so(tmp_path: Path, kind: str, *, fails: bool) -> None:
    skipped = {"name": "a", "path": "a.sh", "status": "SKIPPED", "reasons": [{"kind": kind, "message": "x"}]}
    report = {**WHOLE, "results": [skipped], "gate": {**WHOLE["gate"], "require": True}}
    assert finish_gate(gate(tmp_path, "exit 1", report), "head").fails_for_skips is fails


@pytest.mark.parametrize("code", [3, 4, 137])
def test_gate_that_ends_otherwise_is_broken_and_its_last_words_are_told(tmp_path: Path, code: int) -> None:
    broken = gate(tmp_path, f"echo INTERNALERROR; exit {code}", WHOLE)
    with pytest.raises(BrokenDownError, match=f"the gate of the base ended with exit code {code}: INTERNALERROR"):
        finish_gate(broken, "base")


def test_gate_that_is_killed_is_broken_whatever_it_left(tmp_path: Path) -> None:
    killed = gate(tmp_path, "echo '1 passed'; kill -9 $$", WHOLE)
    told = r"^the gate of the proposal was killed from outside \(SIGKILL\), so that nothing that it found counts$"
    with pytest.raises(BrokenDownError, match=told):
        finish_gate(killed, "proposal")


@pytest.mark.parametrize("report", [{}, {**WHOLE, "results": [{"name": "a"}]}, {**WHOLE, "gate": None}])
def test_gate_whose_report_cannot_be_read_is_broken(tmp_path: Path, report: dict[str, Any]) -> None:
    with pytest.raises(BrokenDownError, match="the gate of the base left a report that cannot be read: "):
        finish_gate(gate(tmp_path, "exit 0", report), "base")


def test_gate_without_a_report_is_broken(tmp_path: Path) -> None:
    with pytest.raises(BrokenDownError, match="exit code 0"):
        finish_gate(gate(tmp_path, "exit 0"), "base")


def test_gate_that_ended_before_a_projects_turn_is_broken(tmp_path: Path) -> None:
    report = {**WHOLE, "gate": {**WHOLE["gate"], "not_run": ["c"]}}
    with pytest.raises(BrokenDownError, match="before the turn of c"):
        finish_gate(gate(tmp_path, "exit 1", report), "base")


def test_interrupted_gate_interrupts(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        finish_gate(gate(tmp_path, "exit 2", WHOLE), "head")
    interrupted = {"name": "a", "path": "a.sh", "status": "ERROR", "reasons": [{"kind": "interrupted", "message": "x"}]}
    with pytest.raises(KeyboardInterrupt):
        finish_gate(gate(tmp_path, "exit 1", {**WHOLE, "results": [interrupted]}), "head")


def test_what_a_gate_prints_is_shown_meanwhile(tmp_path: Path) -> None:
    shown: list[str] = []

    def show(line: str) -> None:
        shown.append(line)
        if line == "two":
            (tmp_path / "go").touch()

    finish_gate(gate(tmp_path, "echo one; echo two; until [ -e go ]; do sleep 0.05; done", WHOLE), "head", show)
    assert shown[-1] == "two"


def test_gate_is_ended_when_waiting_for_it_is_interrupted(tmp_path: Path) -> None:
    running = gate(tmp_path, "exec sleep 300", WHOLE)

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finish_gate(running, "head", interrupt)
    assert running.process.wait() is not None


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").touch()
    return folder


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (INTERNAL_ERROR, "RuntimeError: no orders in data (conftest.py:2)"),
        (CONFTEST, "ModuleNotFoundError: No module named 'nowhere' (sub/conftest.py:3)"),
        (USAGE, "__main__.py: error: unrecognized arguments: --golden"),
        ("ERROR: no such package\n\n[notice] There is a newer pip\n", "ERROR: no such package"),
        ("one\npython: No module named pytest\n\n", "python: No module named pytest"),
        ("password=hunter2-and-more\n", "password=[REDACTED]"),
        ("", "it printed nothing"),
    ],
)
def test_cause_is_one_line_of_what_was_printed(checkout: Path, tmp_path: Path, printed: str, told: str) -> None:
    log = tmp_path / "log"
    log.write_text(printed.format(checkout=checkout))
    assert find_cause(log, checkout / "sub") == told


def test_all_that_was_printed_is_kept_without_secrets_and_never_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("one\npassword=hunter2-and-more\n")
    state, elsewhere = tmp_path / ".golden", tmp_path / "elsewhere"
    state.mkdir()
    elsewhere.write_text("mine")
    (state / "verify.log").symlink_to(elsewhere)
    told = BrokenDownError("it broke down", tmp_path / "log").keep(tmp_path, "verify.log", "Mend it")
    assert told == f"it broke down. Mend it. All that it printed is in {state / 'verify.log'}"
    assert (state / "verify.log").read_text() == "one\npassword=[REDACTED]\n"
    assert elsewhere.read_text() == "mine"


def test_log_that_cannot_be_kept_changes_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    (tmp_path / ".golden" / "verify.log").mkdir(parents=True)
    told = BrokenDownError("it broke down", tmp_path / "log").keep(tmp_path, "verify.log", "Mend it")
    assert told.startswith("it broke down. Mend it. What it printed cannot be kept: ")
    assert sorted(path.name for path in (tmp_path / ".golden").iterdir()) == [".gitignore", "verify.log"]
