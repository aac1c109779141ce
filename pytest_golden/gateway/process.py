"""The gate's end of the supervisor: start it once, send launches, wait for exits, pass interrupts on, receive sockets.

`supervisor_child.py` is the supervisor; nothing here starts a pipeline itself.
"""

from __future__ import annotations

import json
import os
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
from pytest_golden.gateway.limits import open_control_groups
from pytest_golden.gateway.model import Ending
from pytest_golden.gateway.own_network import NetworkHelper, find_closed_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


INTERRUPT_GRACE_SECONDS = 3.0
TERMINATE_GRACE_SECONDS = 2.0
#: What a supervisor says when it has made a network of its own.
NETWORK_IS_MADE = "network"
#: What Python runs as a supervisor. Our code is found last, so that nothing beside it stands in for the standard library.
SUPERVISOR = (
    *("-I", "-S", "-c"),
    f"import sys; sys.path.append({str(Path(__file__).parents[2])!r})\n"
    "from pytest_golden.gateway.supervisor_child import main; main()",
)

#: The port that exporters use by default; in a network that was just made nothing else has taken it.
PORT = 4318
_HANDOVER_SCRIPT = Path(__file__).with_name("handover_child.py")
_MESSAGE_BYTES = 1 << 10


@dataclass(frozen=True, slots=True)
class Launch:
    """One command to run to its end. `stdout` and `stderr` are files to be made; `sealed` tells that argv is bwrap's.

    `filter` is the seal's filter of system calls in hexadecimal digits. What `disk_folder` holds beyond `disk_before_bytes`
    was written by the run.
    """

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    stdout: str
    stderr: str
    sealed: bool
    filter: str = ""
    timeout_seconds: float | None = None
    memory_limit_bytes: int | None = None
    cpu_limit_seconds: float | None = None
    process_limit: int | None = None
    disk_limit_bytes: int | None = None
    disk_folder: str = ""
    disk_before_bytes: int = 0
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
    disk_bytes: int = 0
    left_behind: int = 0
    message: str = ""
    errno: int | None = None


class Supervisor:
    """A process that runs launches one at a time and kills all that is left when this object, or we, are gone.

    With `own_network` all that it launches is in a network of its own, which does not reach this machine.
    """

    def __init__(self, *, own_network: bool = False) -> None:
        self._has_own_network = own_network
        self._helper: NetworkHelper | None = None
        self._groups = ""
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def start(self) -> None:
        """Start it now; else the first launch does.

        Raises:
            GatewayError: it cannot be started, or can have no network of its own here.
        """
        with self._lock:
            self._start()

    @property
    def pid(self) -> int | None:
        """Return its process id, None while it is not running."""
        return None if self._process is None else self._process.pid

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
                fields = {name: getattr(launch, name) for name in Launch.__slots__}
                self._send(control, {"op": "run", "control_groups": self._groups, **fields})
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
        if self._helper is not None:
            self._helper.close()
        if self._process is not None:
            self._process.wait()
        self._socket, self._process, self._helper = None, None, None

    def _start(self) -> socket.socket:
        if self._socket is not None and (self._helper is None or self._helper.is_alive):
            return self._socket
        self.close()
        self._groups = open_control_groups()
        closed = find_closed_addresses() if self._has_own_network else ()
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, *SUPERVISOR, *closed],
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
        if closed:
            self._open_network(ours, self._process.pid)
        return ours

    def _open_network(self, control: socket.socket, pid: int) -> None:
        try:
            trouble = control.recv(1 << 16).decode("utf-8", "replace").strip()
            if trouble != NETWORK_IS_MADE:
                raise GatewayError(f"no network can be made: {trouble or 'the process supervisor ended'}")
            self._helper = NetworkHelper(pid)
        except OSError as error:
            raise GatewayError(f"no network can be made: {error}") from error
        finally:
            if self._helper is None:
                self.close()

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
            control.sendall(json.dumps(message).encode() + b"\n")


class Handover:
    """The gate's end of a channel over which launched processes hand out a listening socket of their own network.

    The other end goes to the supervisor with each launch; what arrives is read while the launch runs. `adopt` receives each
    socket.
    """

    def __init__(self, adopt: Callable[[socket.socket], None]) -> None:
        self._adopt = adopt
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ours.setblocking(False)
        self._has_failed = False
        #: Why no socket could be handed out; empty when all went well.
        self.trouble = ""

    @property
    def launcher(self) -> tuple[str, ...]:
        """Return the start of a command line that hands a socket out before it becomes what follows."""
        return (sys.executable, "-I", "-S", str(_HANDOVER_SCRIPT), str(PORT))

    def fileno(self) -> int:
        """Return the file descriptor by which `select` tells that there is something to `receive`."""
        return self._ours.fileno()

    def send_to(self, control: socket.socket) -> None:
        """Send the other end to the supervisor, for its next launch."""
        socket.send_fds(control, [b"\n"], [self._theirs.fileno()])

    def receive(self) -> None:
        """Take what has been sent, without waiting."""
        while True:
            try:
                message, numbers, _, _ = socket.recv_fds(self._ours, _MESSAGE_BYTES, 1)
            except BlockingIOError:
                return
            for number in numbers:
                self._take(number)
            if message == b"failed":
                self._has_failed = True
            elif message.startswith(b"trouble "):
                self.trouble = message.partition(b" ")[2].decode("utf-8", "replace")

    def take_failure(self) -> bool:
        """Tell, once, whether the program of the last launch could not be started."""
        failed, self._has_failed = self._has_failed, False
        return failed

    def close(self) -> None:
        """Close both ends; safe to call twice."""
        self._ours.close()
        self._theirs.close()

    def _take(self, number: int) -> None:
        try:
            listener = socket.socket(fileno=number)
        except OSError:
            with suppress(OSError):
                os.close(number)
            return
        self._adopt(listener)
