"""The gate's end of a channel over which a launched process hands out a listening socket of its own network.

The other end goes to the supervisor with each launch; what is sent through it is read while the launch runs.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Nothing else is in a network that was just made, so exporters are led to the port that they would take by themselves.
PORT = 4318
_SCRIPT = Path(__file__).with_name("handover_child.py")
_MESSAGE_BYTES = 1 << 10


class Handover:
    """A channel for the launches of one run. `adopt` gets each listening socket that comes through it."""

    def __init__(self, adopt: Callable[[socket.socket], None]) -> None:
        self._adopt = adopt
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ours.setblocking(False)
        self._has_failed = False
        #: Why no socket could be handed out; empty when all went well.
        self.trouble = ""

    @property
    def launcher(self) -> tuple[str, ...]:
        """Give the start of a command line that hands a socket out before it becomes what follows."""
        return (sys.executable, "-I", "-S", str(_SCRIPT), str(PORT))

    def fileno(self) -> int:
        """Give the number that says, to `select`, when there is something to `receive`."""
        return self._ours.fileno()

    def send_to(self, control: socket.socket) -> None:
        """Give the other end to the supervisor, for what it launches next."""
        socket.send_fds(control, [b"\n"], [self._theirs.fileno()])

    def receive(self) -> None:
        """Take what has been sent; waits for nothing."""
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
