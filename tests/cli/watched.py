"""Runs the command on a terminal of its own and plays the person in front of it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.cli.conftest import Ran

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_PATIENCE_SECONDS = 60


def run_watched(
    folder: Path,
    words: Sequence[str],
    *,
    typed: Sequence[tuple[str, str | Callable[[], object]]] = (),
    columns: int = 80,
    environment: Mapping[str, str] | None = None,
) -> Ran:
    """Run `golden` on a terminal; each pair in `typed` is what to wait for on the screen and what to type or do then."""
    ours, theirs = pty.openpty()
    device = os.fstat(theirs).st_rdev
    process = subprocess.Popen(
        [sys.executable, "-c", _TAKE_TERMINAL, *words],
        cwd=folder,
        env={**os.environ, "TERM": "xterm", "SHELL": "/bin/sh", "COLUMNS": str(columns), **(environment or {})},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        shown = ""
        for mark, answer in typed:
            part = _read_until(ours, mark)
            shown += part
            if isinstance(answer, str):
                os.write(ours, answer.encode())
            else:
                answer()
        shown += _read_until(ours, None)
        return Ran(process.wait(_PATIENCE_SECONDS), shown, "", device)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


# Without a controlling terminal no Ctrl-C arrives.
_TAKE_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from pytest_golden.cli.main import main
sys.exit(main())
"""


def _read_until(terminal: int, mark: str | None) -> str:
    read = b""
    end = time.monotonic() + _PATIENCE_SECONDS
    while mark is None or mark.encode() not in read:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise AssertionError(f"{mark!r} did not appear: {read.decode(errors='replace')}")
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # Linux: the other side is closed.
            part = b""
        if not part:
            assert mark is None, f"{mark!r} did not appear: {read.decode(errors='replace')}"
            break
        read += part
    return read.decode("utf-8", "replace")
