"""A child process of a verification: a gate or the setup. It hears of Ctrl-C once, and does not outlive us.

Only the standard library: see `private_folder.py`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# A gate that is interrupted ends its pipeline by a ladder of its own and records what it has.
_INTERRUPT_SECONDS = 20.0
_TERMINATE_SECONDS = 5.0
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>
_MOST_READ = 65_536
_LAST_LINES = 15
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class ChildProcess:
    """A started process whose output goes into a file. Its process group is its own: a terminal's Ctrl-C reaches us alone."""

    def __init__(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # Safe beside threads too: it takes no lock and allocates nothing of the interpreter's but a small number.
                preexec_fn=None if _LIBC is None else _die_with_parent,  # noqa: PLW1509
            )

    def wait(self, seconds: float | None = None) -> int | None:
        """Wait for its end and give the exit code; None when it did not end in so many seconds."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._signal(signal.SIGKILL)  # whatever it has left behind in its group
        return code

    def end(self) -> None:
        """End it: by an interrupt first, so that a gate stops its pipeline and says so. A Ctrl-C meanwhile kills."""
        try:
            for number, seconds in ((signal.SIGINT, _INTERRUPT_SECONDS), (signal.SIGTERM, _TERMINATE_SECONDS)):
                if self._process.poll() is None:
                    self._signal(number)
                    self.wait(seconds)
        finally:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def read_end(self) -> str:
        """Give the last lines of its output."""
        with self.log.open("rb") as stream:
            stream.seek(max(0, self.log.stat().st_size - _MOST_READ))
            text = stream.read().decode("utf-8", "replace")
        return "\n".join(text.rstrip().splitlines()[-_LAST_LINES:])

    def _signal(self, number: int) -> None:
        # Asked at once after the leader's end: the number of a group in which nobody is left may be given anew.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _die_with_parent() -> None:
    """Ask the kernel to end this process with its parent, which kill -9 lets end nothing itself."""
    if _LIBC is not None:
        _LIBC.prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
