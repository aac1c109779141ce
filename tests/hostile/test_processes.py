"""Pipelines that will not stop, or take more than they may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway.model import Ending
from tests.gateway.conftest import processes_with

if TYPE_CHECKING:
    from pathlib import Path

Run = Any
in_both_views = pytest.mark.parametrize("view", ["auto", "copy"])
everywhere = pytest.mark.parametrize("view", ["overlay", "unsealed"])


@in_both_views
def test_timeout_interrupts_the_pipeline_inside_the_seal_so_that_it_can_say_something(view: str, run: Run) -> None:
    script = """
        import time
        try:
            while True:
                time.sleep(0.05)
        except KeyboardInterrupt:
            print("was in the join")
            raise SystemExit(0)
    """
    outcome = run(script, view=view, timeout=4)
    assert (outcome.ending, outcome.stdout) == (Ending.TIMEOUT, "was in the join\n")
    assert outcome.trajectory.outcome == "timeout"


def test_pipeline_that_ignores_every_signal_is_killed(run: Run, tmp_path: Path) -> None:
    outcome = run(f"trap '' INT TERM HUP QUIT; while :; do sleep 0.05; done # {tmp_path}", timeout=2)
    assert outcome.ending is Ending.TIMEOUT
    assert outcome.duration_seconds >= 7
    assert processes_with(str(tmp_path)) == []


@in_both_views
def test_pipeline_that_takes_too_much_memory_is_killed(view: str, run: Run) -> None:
    script = """
        import os, time
        for _ in range(3):
            if os.fork() == 0:
                held = bytearray(60_000_000)
                time.sleep(300)
        time.sleep(300)
    """
    outcome = run(script, view=view, memory_limit=120_000_000, timeout=120)
    assert outcome.ending is Ending.MEMORY_LIMIT
    assert outcome.peak_memory_bytes > 120_000_000


@in_both_views
def test_pipeline_that_takes_too_much_cpu_time_is_stopped(view: str, run: Run) -> None:
    outcome = run("import os\nos.fork()\nwhile True: pass", view=view, cpu_limit=0.6, timeout=120)
    assert outcome.ending is Ending.CPU_LIMIT
    assert outcome.cpu_seconds >= 0.6


@pytest.mark.parametrize("view", ["auto", "copy", "unsealed"])
@pytest.mark.parametrize("place", ["big", "$HOME/big", "$TMPDIR/big", "/dev/stdout"])
def test_pipeline_that_fills_the_disk_is_killed(
    view: str, place: str, run: Run, run_in_view: Any, project_dir: Path
) -> None:
    (project_dir / "data").write_bytes(b"x" * 30_000_000)
    script = f"cat /dev/zero > {place}"
    if view == "unsealed":
        done = run_in_view(view, script, disk_limit="20MB", timeout=120).executed.exit
    else:
        done = run(script, view=view, disk_limit="20MB", timeout=120)
    assert done.ending is Ending.DISK_LIMIT
    assert done.disk_bytes > 20_000_000


@in_both_views
def test_pipeline_that_starts_too_many_processes_is_killed(view: str, run: Run, tmp_path: Path) -> None:
    script = f"for i in $(seq 100); do sleep 300 & done; wait # {tmp_path}"
    assert run(script, view=view, process_limit=20, timeout=120).ending is Ending.PROCESS_LIMIT
    assert processes_with(str(tmp_path)) == []
    assert run("sleep 0.2 & sleep 0.2 & wait", view=view, process_limit=3).ending is Ending.EXITED


@everywhere
def test_storm_of_forks_is_ended(view: str, run_in_view: Any, tmp_path: Path) -> None:
    script = """
        import os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for _ in range(7):
            if os.fork() == 0:
                os.setsid()
        time.sleep(60)
    """
    done = run_in_view(view, script, timeout=3)
    assert done.executed.exit.ending is Ending.TIMEOUT
    assert done.executed.exit.left_behind == 0
    assert processes_with(str(tmp_path)) == []


@everywhere
def test_chain_of_forks_cannot_outrun_its_end(view: str, run_in_view: Any, tmp_path: Path) -> None:
    script = """
        import os, time
        if os.fork() == 0:
            os.setsid()
            for _ in range(2000):
                if os.fork():
                    os._exit(0)
            time.sleep(60)
    """
    done = run_in_view(view, script)
    assert (done.executed.exit.exit_code, done.executed.exit.left_behind) == (0, 0)
    assert processes_with(str(tmp_path)) == []


@in_both_views
def test_ten_thousand_open_files_are_the_pipelines_own_problem(view: str, run: Run) -> None:
    script = """
        import os
        files = []
        try:
            for number in range(10_000):
                files.append(os.open("pipeline.py", os.O_RDONLY))
        except OSError as error:
            print(error.strerror)
        print(len(files) > 100)
    """
    outcome = run(script, view=view)
    assert (outcome.ending, outcome.exit_code, outcome.problem) == (Ending.EXITED, 0, None)
    assert outcome.stdout.endswith("True\n")


@pytest.mark.parametrize(
    ("view", "ending", "code"), [("overlay", Ending.EXITED, 139), ("unsealed", Ending.SIGNALLED, -11)]
)
def test_crash_is_told_as_the_seal_lets_it_be_seen(view: str, ending: Ending, code: int, run_in_view: Any) -> None:
    done = run_in_view(view, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    assert (done.executed.exit.ending, done.executed.exit.exit_code) == (ending, code)


# An overlay is demanded, so that this never runs without a seal.
@pytest.mark.usefixtures("sealing")
def test_pipeline_that_kills_all_it_can_see_ends_only_itself(run: Run) -> None:
    outcome = run("trap '' TERM; kill -TERM -1; kill -KILL -1; echo still here; exit 3", view="overlay")
    assert outcome.problem is None
    assert outcome.ending in {Ending.EXITED, Ending.SIGNALLED}
