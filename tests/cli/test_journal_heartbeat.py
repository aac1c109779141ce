from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any

import pytest

from pytest_golden.cli import journal as journal_command
from pytest_golden.journal.service import Journal
from pytest_golden.storage.store import Store
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  \d+ resolved; \d+ checked.*; \d+ rerouted.*\n")


def expect(folder: Path, *checks: Any) -> str:
    with Journal.open(folder / ".golden" / "golden.db") as journal:
        entry = journal.log_intent("deploy", agent_id="builder")
        wanted = [{"description": f"d{number}", "check": {"after": "1ms", **one}} for number, one in enumerate(checks)]
        journal.log_outcome(entry.id, "success", expectations=wanted)
    time.sleep(0.01)
    return entry.id


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest_golden", "journal", "heartbeat", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def read_line(stream: IO[str] | None) -> str:
    assert stream is not None
    assert select.select([stream], [], [], PATIENCE_SECONDS)[0]
    return stream.readline()


def test_a_beat_tells_what_it_did(golden: Golden, folder: Path) -> None:
    (folder / "golden_projects.yaml").write_text("workspace_root: inner\ngolden_projects: []\n")
    (folder / "inner").mkdir()
    (folder / "inner" / "data.txt").write_text("42\n")
    (folder / "inner" / ".golden").mkdir()
    with Journal.open(folder / "inner" / ".golden" / "golden.db") as journal:
        entry = journal.log_intent("deploy", agent_id="builder")
        checks = [{"command": "nosuchprogram"}, {"url": "http://127.0.0.1:1/"}]
        wanted = [{"description": "d", "check": {"after": "1ms", **one}} for one in checks]
        journal.log_outcome(entry.id, "success", expectations=wanted)
    time.sleep(0.01)
    ran = golden("journal", "heartbeat", "--timeout", "20s")
    assert (ran.code, ran.err) == (0, "")
    first, header, *rows = ran.out.splitlines()
    assert first == "0 resolved; 2 checked (2 neutral); 0 rerouted"
    assert header.split()[:2] == ["answer", "expected"]
    assert [row.split()[0] for row in rows] == ["neutral", "neutral"]
    assert any("Connection refused" in row for row in rows)
    assert golden("journal", "heartbeat").out == "0 resolved; 0 checked; 0 rerouted\n"
    assert golden("journal", "heartbeat", "--json").json == {"resolved": 0, "checks": [], "rerouted": 0, "left": 0}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--every", "soon"), "--every: 'soon' is not a duration"),
        (("--every", "0"), "--every: '0' is not above 0"),
        (("--every", "10ms"), "--every 10ms is too often; give one second or more"),
        (("--timeout", "-1"), "--timeout: '-1' is not above 0"),
        ((), "nothing is recorded yet in"),
    ],
)
def test_what_cannot_be_meant_is_refused(golden: Golden, words: tuple[str, ...], message: str) -> None:
    ran = golden("journal", "heartbeat", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_a_sigterm_is_heard_as_before_afterwards(golden: Golden, folder: Path) -> None:
    expect(folder)
    before = signal.getsignal(signal.SIGTERM)
    assert golden("journal", "heartbeat").code == 0
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_beats_until_it_is_stopped(folder: Path, golden: Golden, number: signal.Signals) -> None:
    expect(folder, {"url": "http://127.0.0.1:1/"})
    process = start(folder, "--every", "1s")
    lines = [read_line(process.stdout) for _ in range(3)]
    assert all(LINE.fullmatch(line) for line in lines)
    assert "1 checked (1 neutral)" in lines[0]
    assert "0 checked;" in lines[1]
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, err) == (0, "")
    assert out.count("\n") <= 1


def test_rounds_are_told_as_lines_of_json_and_do_not_drift(
    folder: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect(folder)
    moments, waits = iter([100.0, 100.7, 101.9, 104.4]), []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(journal_command, "monotonic_seconds", lambda: next(moments))
    monkeypatch.setattr(journal_command, "time", SimpleNamespace(sleep=wait))
    ran = golden("journal", "heartbeat", "--every", "1s", "--json")
    assert ran.code == 0
    assert [json.loads(line)["checks"] for line in ran.out.splitlines()] == [[]] * 3
    # Until the next whole second after the first, however long the rounds took.
    assert waits == pytest.approx([0.3, 0.1, 0.6])


def test_a_store_that_is_not_there_costs_a_round(folder: Path, golden: Golden) -> None:
    process = start(folder, "--every", "1s", "--json")
    first = json.loads(read_line(process.stdout))
    assert "nothing is recorded yet in" in first["error"]
    assert "nothing is recorded yet in" in read_line(process.stderr)
    expect(folder)
    told: dict[str, Any] = first
    while "error" in told:
        told = json.loads(read_line(process.stdout))
    assert told["resolved"] == 0
    process.terminate()
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0


def test_a_command_that_is_being_run_is_stopped_with_it(folder: Path, golden: Golden) -> None:
    entry = expect(folder, {"command": "sleep 600"})
    process = start(folder, "--every", "1s")
    with Store.open(folder / ".golden" / "golden.db") as store:
        tries = 0
        while not tries:
            time.sleep(0.05)
            with store.read() as connection:
                tries = connection.exec_driver_sql("SELECT check_tries FROM expectations").scalar_one()
        # It may be in the midst of making its view, or of running the command.
        time.sleep(1)
        os.kill(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, err) == (0, "")
        with store.read() as connection:
            assert connection.exec_driver_sql("SELECT check_tries FROM expectations").scalar_one() == 0
        assert Journal(store).get(entry).signals == ()
