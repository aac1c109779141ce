from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import GatewayError
from pytest_golden.gateway.model import Ending
from pytest_golden.gateway.process import Exit, Launch, Supervisor
from tests.gateway.conftest import processes_with, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


# By then a shell has come to its traps, however busy the machine is.
TRAPS_ARE_SET = 2.0


@pytest.fixture
def start(tmp_path: Path, supervisor: Supervisor) -> Callable[..., Exit]:
    """Run a shell script, or an argv, below the supervisor; output goes to tmp_path/out and tmp_path/err."""

    def run(*argv: str, by: Supervisor = supervisor, **limits: Any) -> Exit:
        command = ("sh", "-c", argv[0]) if len(argv) == 1 else argv
        out, err = str(tmp_path / "out"), str(tmp_path / "err")
        return by.run(Launch(command, str(tmp_path), ENVIRONMENT, out, err, sealed=False, **limits))

    return run


def test_exit_code_times_and_output_are_given(start: Callable[..., Exit], tmp_path: Path) -> None:
    done = start("echo hello; echo oh >&2; exit 3")
    assert (done.ending, done.exit_code, done.left_behind) == (Ending.EXITED, 3, 0)
    assert done.duration_seconds > 0
    assert (tmp_path / "out").read_text() == "hello\n"
    assert (tmp_path / "err").read_text() == "oh\n"
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


def test_input_is_empty_and_no_descriptor_is_inherited(start: Callable[..., Exit], tmp_path: Path) -> None:
    with (tmp_path / "inherited").open("w") as open_file:
        os.set_inheritable(open_file.fileno(), True)
        by = Supervisor()
        done = start("cat; ls -l /proc/self/fd | grep -c -e inherited$ -e socket:; true", by=by)
        by.close()
    assert done.exit_code == 0
    assert (tmp_path / "out").read_text() == "0\n"


def test_death_by_signal_is_a_negative_number(start: Callable[..., Exit]) -> None:
    done = start("kill -SEGV $$")
    assert (done.ending, done.exit_code) == (Ending.SIGNALLED, -signal.SIGSEGV)


def test_signals_have_their_usual_effect_in_a_pipeline(start: Callable[..., Exit], tmp_path: Path) -> None:
    assert start('for s in INT TERM HUP PIPE; do sh -c "kill -$s \\$\\$"; echo $?; done').exit_code == 0
    assert (tmp_path / "out").read_text().split() == ["130", "143", "129", "141"]


@pytest.mark.parametrize("argv", [("/no/such/program", "x"), ("/etc/passwd", "x"), ("sh", "a\0b")])
def test_what_cannot_be_started_says_why(start: Callable[..., Exit], argv: tuple[str, ...]) -> None:
    done = start(*argv)
    assert (done.ending, done.exit_code) == (Ending.NOT_STARTED, None)
    assert done.message
    assert start("exit 0").exit_code == 0


def test_cpu_time_and_memory_count_the_children(start: Callable[..., Exit]) -> None:
    burn = "import time\nx = bytearray(60_000_000)\nt = time.process_time()\nwhile time.process_time() - t < 0.2: pass"
    done = start("sh", "-c", '"$0" -c "$1"; :', sys.executable, burn)
    assert done.cpu_seconds >= 0.2
    assert done.peak_memory_bytes >= 60_000_000


def test_timeout_interrupts_first_so_that_a_pipeline_can_say_something(
    start: Callable[..., Exit], tmp_path: Path
) -> None:
    done = start("trap 'echo stopping; exit 5' INT; while :; do sleep 0.01; done", timeout_seconds=TRAPS_ARE_SET)
    assert (done.ending, done.exit_code) == (Ending.TIMEOUT, 5)
    assert (tmp_path / "out").read_text() == "stopping\n"


def test_timeout_terminates_what_ignores_the_interrupt(start: Callable[..., Exit], tmp_path: Path) -> None:
    script = "trap '' INT; trap 'echo terminated; exit 6' TERM; while :; do sleep 0.01; done"
    done = start(script, timeout_seconds=TRAPS_ARE_SET, interrupt_grace_seconds=0.2)
    assert (done.ending, done.exit_code) == (Ending.TIMEOUT, 6)
    assert (tmp_path / "out").read_text() == "terminated\n"


def test_timeout_kills_what_ignores_everything(start: Callable[..., Exit]) -> None:
    script = "trap '' INT TERM HUP; while :; do sleep 0.01; done"
    done = start(script, timeout_seconds=TRAPS_ARE_SET, interrupt_grace_seconds=0.1, terminate_grace_seconds=0.1)
    assert (done.ending, done.exit_code) == (Ending.TIMEOUT, -signal.SIGKILL)
    assert done.duration_seconds >= TRAPS_ARE_SET + 0.2


def test_memory_limit_counts_the_whole_tree(start: Callable[..., Exit]) -> None:
    hold = "import time\nx = bytearray(80_000_000)\ntime.sleep(300)"
    done = start("sh", "-c", '"$0" -c "$1" & "$0" -c "$1" & wait', sys.executable, hold, memory_limit_bytes=120_000_000)
    assert done.ending is Ending.MEMORY_LIMIT
    assert done.peak_memory_bytes > 100_000_000


def test_shared_memory_counts_once(start: Callable[..., Exit]) -> None:
    fork = (
        "import os, time\nx = b'x' * 80_000_000\nfor _ in range(3):\n  if not os.fork(): time.sleep(0.5); os._exit(0)\n"
    )
    done = start(sys.executable, "-c", fork + "for _ in range(3): os.wait()", memory_limit_bytes=200_000_000)
    assert (done.ending, done.exit_code) == (Ending.EXITED, 0)


def test_memory_that_may_not_be_looked_into_counts_too(start: Callable[..., Exit]) -> None:
    hide = "import ctypes, time\nctypes.CDLL(None).prctl(4, 0)\nx = bytearray(150_000_000)\ntime.sleep(300)"
    assert start(sys.executable, "-c", hide, memory_limit_bytes=100_000_000).ending is Ending.MEMORY_LIMIT


def test_process_limit_counts_the_threads_of_the_whole_tree(start: Callable[..., Exit]) -> None:
    script = "import threading, time\nfor _ in range(6): threading.Thread(target=time.sleep, args=(300,)).start()"
    assert start(sys.executable, "-c", script, process_limit=5).ending is Ending.PROCESS_LIMIT
    assert start("sleep 0.2 & sleep 0.2 & wait", process_limit=5).ending is Ending.EXITED


def test_disk_limit_ends_what_writes_on_and_counts_what_is_told_only_at_the_end(
    start: Callable[..., Exit], tmp_path: Path
) -> None:
    limit = {"disk_limit_bytes": 8 << 20, "disk_folder": str(tmp_path), "disk_before_bytes": 0}
    done = start("cat /dev/zero > big", **limit)
    assert (done.ending, done.left_behind) == (Ending.DISK_LIMIT, 0)
    assert done.disk_bytes > 8 << 20
    (tmp_path / "big").unlink()
    assert start("head -c 9000000 /dev/zero > big", **limit).ending is Ending.DISK_LIMIT
    (tmp_path / "big").unlink()
    kept = start("head -c 1000000 /dev/zero > big", **limit)
    assert (kept.ending, 1_000_000 <= kept.disk_bytes < 8 << 20) == (Ending.EXITED, True)


def test_cpu_limit_counts_children_that_are_gone(start: Callable[..., Exit]) -> None:
    burn = "import time\nt = time.process_time()\nwhile time.process_time() - t < 0.3: pass"
    script = 'for i in $(seq 300); do "$0" -c "$1" || exit; done'
    done = start("sh", "-c", script, sys.executable, burn, cpu_limit_seconds=0.7, interrupt_grace_seconds=0.2)
    assert done.ending is Ending.CPU_LIMIT
    assert done.cpu_seconds >= 0.7


def test_daemons_are_gone_when_the_run_is(start: Callable[..., Exit], tmp_path: Path) -> None:
    mark = f"daemon-{os.getpid()}-{time.monotonic_ns()}"
    assert (
        start(f"setsid sh -c 'trap \"\" TERM INT HUP; while :; do sleep 1; done # {mark}' & sleep 0.05").exit_code == 0
    )
    assert processes_with(mark) == []


def test_interrupt_stops_the_pipeline_and_not_the_supervisor(start: Callable[..., Exit], tmp_path: Path) -> None:
    def interrupt() -> None:
        wait_until((tmp_path / "ready").exists)
        # By then the main thread waits for the pipeline: before, the interrupt would be this test's own.
        time.sleep(TRAPS_ARE_SET)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    done = start("trap 'echo bye; exit 0' INT; touch ready; while :; do sleep 0.01; done", timeout_seconds=120)
    thread.join()
    assert (done.ending, (tmp_path / "out").read_text()) == (Ending.INTERRUPTED, "bye\n")
    assert start("exit 4").exit_code == 4


def test_lost_supervisor_is_an_error_and_the_next_run_gets_a_new_one(start: Callable[..., Exit]) -> None:
    by = Supervisor()
    with pytest.raises(GatewayError, match="supervisor broke down"):
        start("kill -9 $PPID; sleep 5", by=by)
    assert start("exit 0", by=by).exit_code == 0
    by.close()
    by.close()


def test_supervisor_that_cannot_be_started_is_an_error(
    start: Callable[..., Exit], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(GatewayError, match="cannot be started with /no/such/python"):
        start("true", by=Supervisor())


def test_second_interrupt_ends_everything_at_once(tmp_path: Path) -> None:
    """A process of its own, since the interrupts must not reach the tests."""
    mark = f"stubborn-{time.monotonic_ns()}"
    code = f"""
import os, signal, socket
from pytest_golden.gateway import process
from pytest_golden.gateway.process import Launch, Supervisor
class Interrupted(socket.socket):
    def sendall(self, data):
        if b"interrupt" in data:
            raise KeyboardInterrupt
        super().sendall(data)
supervisor = Supervisor()
ours = supervisor._start()
supervisor._socket = Interrupted(fileno=ours.detach())
script = "trap '' INT TERM; kill -INT {{}}; while :; do sleep 0.05; done # {mark}".format(os.getpid())
try:
    supervisor.run(Launch(("sh", "-c", script), "/", {{"PATH": "/bin"}}, "{tmp_path}/out", "{tmp_path}/err", False))
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "interrupted\n", done.stderr
    assert processes_with(mark) == []
