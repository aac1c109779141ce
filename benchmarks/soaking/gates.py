"""Gates as processes: started cold or forked from a warm one, with every line that they print, until they end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESULT_LINE = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED) +([a-z]+\d*)\b")
#: A gate that takes longer hangs.
LONGEST_SECONDS = 180.0


class Gate:
    """One gate, its lines as they come, and its exit code when it has ended."""

    def __init__(self, number: int, report: Path) -> None:
        self.number = number
        self.report = report
        self.pid = 0
        self.code: int | None = None
        self.lines: list[str] = []
        self.news = threading.Condition()
        self.reading, self.writing = os.pipe()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def started(self, pid: int) -> None:
        """Note its process, and read on."""
        self.pid = pid
        os.close(self.writing)
        self._reader.start()

    def ended(self, code: int) -> None:
        """Note its end."""
        with self.news:
            self.code = code
            self.news.notify_all()

    @property
    def is_over(self) -> bool:
        """Tell whether it has ended."""
        return self.code is not None

    def count_results(self) -> int:
        """Count the results that it has printed so far."""
        return sum(RESULT_LINE.match(line) is not None for line in self.lines)

    def wait_for_results(self, count: int, seconds: float) -> None:
        """Wait until it has printed so many results, ended, or the time is over."""
        with self.news:
            self.news.wait_for(lambda: self.is_over or self.count_results() >= count, seconds)

    def wait(self) -> None:
        """Wait for its end, and for the last line of its output.

        Raises:
            RuntimeError: it hangs; it is killed.
        """
        with self.news:
            has_ended = self.news.wait_for(lambda: self.is_over, LONGEST_SECONDS)
        if not has_ended:
            self.kill(whole_group=True)
            raise RuntimeError(f"gate {self.number} hangs:\n{''.join(self.lines)}")
        self._reader.join(30)

    def kill(self, *, whole_group: bool = False) -> bool:
        """Kill it by SIGKILL, or its process group; tell whether it was still there."""
        if self.is_over:
            return False
        with suppress(ProcessLookupError):
            if whole_group:
                os.killpg(self.pid, signal.SIGKILL)
            else:
                os.kill(self.pid, signal.SIGKILL)
            return True
        return False

    def _read(self) -> None:
        with os.fdopen(self.reading, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                # A line that was cut off by a kill was not read by anybody.
                if line.endswith("\n"):
                    with self.news:
                        self.lines.append(line)
                        self.news.notify_all()


class Launcher:
    """Starts gates in one workspace."""

    def __init__(self, folder: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._arguments = tuple(arguments)
        self._environment = {**os.environ, **environment}
        self._gates: dict[int, Gate] = {}
        self._dead: dict[int, int] = {}
        self._known = threading.Condition()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        child = Path(__file__).with_name("zygote_child.py")
        self._zygote = subprocess.Popen(
            [sys.executable, "-P", str(child), str(theirs.fileno()), str(folder)],
            cwd=folder,
            env=self._environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._channel.recv(1 << 16)
        self._asking = threading.Lock()
        self._answers: list[int] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, number: int, more: Sequence[str] = (), *, is_cold: bool = False) -> Gate:
        """Start a gate; a cold one is an interpreter of its own from the beginning."""
        report = self._folder / "reports" / f"gate-{number:06d}.json"
        arguments = [*self._arguments, f"--golden-json=reports/{report.name}", *more]
        gate = Gate(number, report)
        if is_cold:
            self._start_cold(gate, arguments)
        else:
            gate.started(self._fork(gate, arguments))
        return gate

    def close(self) -> None:
        """End the warm process."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._zygote.kill()
        self._zygote.wait()

    def _start_cold(self, gate: Gate, arguments: list[str]) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=gate.writing,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        gate.started(process.pid)
        threading.Thread(target=lambda: gate.ended(process.wait()), daemon=True).start()

    def _fork(self, gate: Gate, arguments: list[str]) -> int:
        packet = json.dumps({"folder": str(self._folder), "arguments": arguments}).encode()
        with self._asking, self._known:
            socket.send_fds(self._channel, [packet], [gate.writing])
            if not self._known.wait_for(lambda: bool(self._answers), LONGEST_SECONDS):
                raise RuntimeError("the warm process does not answer")
            pid = self._answers.pop()
            self._gates[pid] = gate
            if pid in self._dead:
                gate.ended(self._dead.pop(pid))
        return pid

    def _listen(self) -> None:
        while packet := self._channel.recv(1 << 16):
            told: dict[str, Any] = json.loads(packet)
            with self._known:
                if "started" in told:
                    self._answers.append(told["started"])
                    self._known.notify_all()
                    continue
                gate = self._gates.pop(told["ended"], None)
                if gate is None:
                    self._dead[told["ended"]] = told["code"]
            if gate is not None:
                gate.ended(told["code"])
