"""Our end of the supervisor: start it once, hand it launches, wait for exits, pass an interrupt on.

What the supervisor does is in `supervisor_child.py`; nothing here starts a pipeline itself.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GatewayError
from pytest_golden.gateway.model import Ending

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.gateway.sockets import Handover

INTERRUPT_GRACE_SECONDS = 3.0
TERMINATE_GRACE_SECONDS = 2.0
_SCRIPT = Path(__file__).with_name("supervisor_child.py")


@dataclass(frozen=True, slots=True)
class Launch:
    """One command to run to its end. `stdout` and `stderr` are files to be made; `sealed` tells that argv is bwrap's."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    stdout: str
    stderr: str
    sealed: bool
    timeout_seconds: float | None = None
    memory_limit_bytes: int | None = None
    cpu_limit_seconds: float | None = None
    interrupt_grace_seconds: float = INTERRUPT_GRACE_SECONDS
    terminate_grace_seconds: float = TERMINATE_GRACE_SECONDS


@dataclass(frozen=True, slots=True)
class Exit:
    """How a launch ended. `exit_code` is negative for a signal; None when it never started, with a `message`."""

    ending: Ending
    exit_code: int | None = None
    duration_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    left_behind: int = 0
    message: str = ""
    errno: int | None = None


class Supervisor:
    """A process that runs launches one at a time and kills all that is left when this object, or we, are gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def run(self, launch: Launch, handover: Handover | None = None) -> Exit:
        """Run a launch to its end. A Ctrl-C stops it step by step and the ending is `INTERRUPTED`.

        With a `handover` what is launched must be by its launcher.

        Raises:
            GatewayError: the supervisor cannot be started, or it died.
        """
        with self._lock:
            control = self._start()
            try:
                if handover is not None:
                    handover.send_to(control)
                self._send(control, {"op": "run", **{name: getattr(launch, name) for name in Launch.__slots__}})
                answer = self._wait(control, handover)
            except OSError as error:
                self.close()
                raise GatewayError(f"the process supervisor broke down: {error}") from error
            except KeyboardInterrupt:
                # A second Ctrl-C while the first was passed on: no ladder, everything is ended.
                self.close()
                raise
        return Exit(**{**answer, "ending": Ending(answer["ending"])})

    def interrupt(self) -> None:
        """Stop what is running now, if anything is, as a Ctrl-C does; may be called from another thread."""
        if (control := self._socket) is not None:
            with suppress(OSError):
                self._send(control, {"op": "interrupt"})

    def close(self) -> None:
        """End the supervisor and whatever it still runs; safe to call twice."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.wait()
        self._socket, self._process = None, None

    def _start(self) -> socket.socket:
        if self._socket is not None:
            return self._socket
        if sys.platform == "win32":
            raise GatewayError("pipelines cannot be run on Windows yet; run the gate in WSL, where it has its seal too")
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SCRIPT)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise GatewayError(f"the process supervisor cannot be started with {sys.executable}: {error}") from error
        finally:
            theirs.close()
        self._socket = ours
        return ours

    def _wait(self, control: socket.socket, handover: Handover | None) -> dict[str, Any]:
        received = b""
        watched: list[socket.socket | Handover] = [control] if handover is None else [control, handover]
        while not received.endswith(b"\n"):
            try:
                ready, _, _ = select.select(watched, [], [])
                if handover is not None:
                    handover.receive()
                if control not in ready:
                    continue
                part = control.recv(1 << 16)
            except KeyboardInterrupt:
                self._send(control, {"op": "interrupt"})
                continue
            if not part:
                raise ConnectionError("it ended without an answer")
            received += part
        answer: dict[str, Any] = json.loads(received)
        return answer

    def _send(self, control: socket.socket, message: Mapping[str, Any]) -> None:
        with self._sending:
            control.sendall(_line(message))


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
