from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pytest_golden.cycle.cycle_commands import describe_ending, run_command
from pytest_golden.errors import GoldenError
from pytest_golden.gateway.model import Ending
from pytest_golden.gateway.process import Exit
from tests.patience import wait_until

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open("pid.new", "w") as file:
            file.write(str(os.getpid()))
        os.rename("pid.new", "pid")
        time.sleep(600)
    os._exit(0)
"""
AWAIT = "while [ ! -e pid ]; do sleep 0.05; done"


class Watched:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        (folder / "daemon.py").write_text(DAEMON)
        self.log = folder / "cycle.log"

    def run(self, command: str, *, seconds: float = 120.0, **environment: str) -> Exit:
        return run_command(
            *("improve", command, self.folder),
            seconds=seconds,
            environment={**os.environ, **environment},
            passed=["DB_HOST"],
            scratch=self.folder,
            log=self.log,
            show=self.lines.append,
        )

    def wait_for_end(self) -> None:
        stat = Path("/proc", (self.folder / "pid").read_text(), "stat")
        wait_until(lambda: has_ended(stat))


def has_ended(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_a_commands_output_is_shown_with_its_name_and_kept_without_secrets(watched: Watched) -> None:
    ended = watched.run("echo one; echo $KEY_TOKEN >&2; printf last", KEY_TOKEN="correct-horse-battery")
    assert (ended.ending, ended.exit_code) == (Ending.EXITED, 0)
    assert watched.lines[0] == "improve | one"
    assert watched.lines[-1] == "improve | last"
    assert "correct-horse" not in watched.log.read_text()
    assert "REDACTED" in watched.log.read_text()
    assert watched.log.read_text().splitlines() == watched.lines
    assert not list(watched.folder.glob("*.raw"))


def test_a_line_without_an_end_is_shown_in_parts(watched: Watched) -> None:
    watched.run("head -c 200000 /dev/zero | tr '\\0' x")
    assert sum(len(line) - len("improve | ") for line in watched.lines) == 200_000


def test_a_secret_in_a_line_without_an_end_is_not_shown_in_two_halves(watched: Watched) -> None:
    watched.run("head -c 65525 /dev/zero | tr '\\0' x; echo $KEY_TOKEN", KEY_TOKEN="correct-horse-battery")
    assert "REDACTED" in watched.log.read_text()
    assert "horse" not in watched.log.read_text()
    assert "battery" not in watched.log.read_text()


def test_of_much_more_output_than_can_be_shown_in_time_the_end_is_shown(watched: Watched) -> None:
    watched.run("head -c 100000000 /dev/zero | tr '\\0' '\\n'; echo last")
    assert watched.lines[-1] == "improve | last"
    assert any("bytes of output are left out" in line for line in watched.lines)
    assert len(watched.lines) < 50_000_000


def test_a_command_that_hangs_is_ended_with_all_it_started(watched: Watched) -> None:
    ended = watched.run(f"{sys.executable} daemon.py; {AWAIT}; trap '' INT TERM; sleep 600 & wait", seconds=5)
    assert ended.ending is Ending.TIMEOUT
    assert "did not end within the time limit" in describe_ending(ended)
    if (watched.folder / "pid").exists():
        watched.wait_for_end()


def test_a_daemon_that_forked_twice_ends_with_its_command(watched: Watched) -> None:
    assert watched.run(f"{sys.executable} daemon.py; {AWAIT}").exit_code == 0
    watched.wait_for_end()


def test_a_command_that_kills_what_watches_over_it_is_ended_and_said(watched: Watched) -> None:
    with pytest.raises(GoldenError, match="ended what watched over it"):
        watched.run(f"{sys.executable} daemon.py; {AWAIT}; kill -9 $PPID; sleep 600")
    watched.wait_for_end()


def test_a_daemon_that_cleared_its_environment_does_not_outlive_the_supervisor_that_was_killed(
    watched: Watched,
) -> None:
    with pytest.raises(GoldenError, match="ended what watched over it"):
        watched.run(f"env -i {sys.executable} daemon.py; {AWAIT}; kill -9 $PPID; sleep 600")
    watched.wait_for_end()


def test_a_command_whose_watch_cannot_be_started_is_said_not_to_have_run(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(GoldenError, match=r"was not run .*cannot be started with /nowhere/python"):
        watched.run("touch ran")
    assert not (watched.folder / "ran").exists()


def test_how_a_command_ended_is_said_in_words(watched: Watched) -> None:
    assert describe_ending(watched.run("exit 7")) == "ended with exit code 7"
    assert describe_ending(watched.run("kill -9 $$")) == "was ended by signal 9"
    assert "could not be started: no" in describe_ending(Exit(Ending.NOT_STARTED, message="no"))


def test_passed_values_are_hidden(watched: Watched) -> None:
    watched.run("echo $DB_HOST $OTHER", DB_HOST="db7.example.org", OTHER="other-value-1")
    assert watched.lines == ["improve | [REDACTED] other-value-1"]
    assert watched.log.read_text() == "improve | [REDACTED] other-value-1\n"
