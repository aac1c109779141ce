"""Run a cycle's commands to their end, show their redacted output as it comes, and clear the stale worktrees of cycles."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.clock import monotonic_seconds, new_id
from pytest_golden.cycle.cycle_record import CycleFile
from pytest_golden.cycle.worktree import CycleWorktree, is_cycle_folder, name_branch
from pytest_golden.errors import GatewayError, GoldenError
from pytest_golden.gateway.git import list_worktrees, run_git
from pytest_golden.gateway.model import Ending
from pytest_golden.gateway.process import Launch, Supervisor
from pytest_golden.redaction.literals import secret_literals
from pytest_golden.redaction.passed_values import passed_literals
from pytest_golden.redaction.redactor import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import BinaryIO

    from pytest_golden.gateway.process import Exit


_LOOK_SECONDS = 0.2
_LEAST_SECONDS = 0.001
# PR_SET_CHILD_SUBREAPER and PR_GET_CHILD_SUBREAPER of <linux/prctl.h>
_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37
_SWEEP_SECONDS = 30.0
_SHORTEST_PART, _LONGEST_LINE, _LONGEST_WORD = 4_000, 1 << 18, 1 << 20
_MOST_LOGGED = 64 * 1024 * 1024
# Output that is further behind than this is not shown, except its end.
_MOST_BEHIND, _LEAST_SHOWN = 1 << 24, 1 << 16


def run_command(
    name: str,
    command: str,
    folder: Path,
    *,
    seconds: float,
    environment: Mapping[str, str],
    passed: Collection[str] = (),
    scratch: Path,
    log: Path,
    show: Callable[[str], None],
) -> Exit:
    """Run a command with `sh -c` in a folder to its end, and end everything that it started.

    Args:
        name: stands before each line of its output.
        command: for the shell.
        folder: where it runs.
        seconds: how long it may take.
        environment: its variables.
        passed: the names of those whose values are hidden, as all values under secret names are.
        scratch: a private folder for its raw output.
        log: receives the lines of its output, redacted.
        show: receives them too.

    Raises:
        GoldenError: it could not be started or not be watched to its end; nothing of it is left running.
        KeyboardInterrupt: somebody interrupted it.
    """
    raw = scratch / f"{new_id('output')}.raw"
    launch = Launch(
        argv=("sh", "-c", command),
        cwd=str(folder),
        environment=environment,
        stdout=str(raw),
        stderr=str(raw),
        sealed=False,
        timeout_seconds=max(_LEAST_SECONDS, seconds),
    )
    hidden = passed_literals({variable: value for variable, value in environment.items() if variable in passed})
    follower = _Follower(raw, log, f"{name} | ", Redactor(secret_literals(environment), passed=hidden), show)
    before = _list_children()
    was_adopting = _adopt_orphans(True)
    supervisor = Supervisor()
    try:
        ended = supervisor.run(launch)
    except GatewayError as error:
        is_begun = isinstance(error.__cause__, ConnectionError)
        told = "ended what watched over it, and was ended" if is_begun else "was not run"
        raise GoldenError(f"the command {told} ({error})") from None
    finally:
        supervisor.close()
        _kill_children(before)
        _adopt_orphans(was_adopting)
        follower.close()
        raw.unlink(missing_ok=True)
    if ended.ending is Ending.INTERRUPTED:
        raise KeyboardInterrupt
    return ended


def describe_ending(ended: Exit) -> str:
    """Say in a few words how a command ended."""
    if ended.ending is Ending.TIMEOUT:
        return f"did not end within the time limit and was ended after {ended.duration_seconds:.0f} s"
    if ended.exit_code is None:
        return f"could not be started: {ended.message}"
    if ended.ending is Ending.SIGNALLED:
        return f"was ended by signal {-ended.exit_code}"
    return f"ended with exit code {ended.exit_code}"


class _Follower:
    """Reads a growing file line by line in a thread of its own."""

    def __init__(self, raw: Path, log: Path, prefix: str, redactor: Redactor, show: Callable[[str], None]) -> None:
        self._raw = raw
        self._prefix = prefix
        self._redactor = redactor
        self._show = show
        self._log = log.open("ab")
        self._rest = b""
        self._has_ended = threading.Event()
        raw.touch(mode=0o600)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Read what is left, and end."""
        self._has_ended.set()
        self._thread.join()
        self._log.close()

    def _follow(self) -> None:
        with self._raw.open("rb") as stream:
            is_last = False
            while not is_last:
                # Asked before reading: what was written until then is read.
                is_last = self._has_ended.wait(_LOOK_SECONDS)
                while part := stream.read(1 << 16):
                    self._take(part)
                    self._catch_up(stream)
            if self._rest:
                self._tell(self._rest)

    def _catch_up(self, stream: BinaryIO) -> None:
        """Skip output that is too much to be shown in time: the end of the command would wait for it."""
        size, now = os.fstat(stream.fileno()).st_size, stream.tell()
        if size - now <= _MOST_BEHIND:
            return
        stream.seek(size - _LEAST_SHOWN)
        # The lines at both ends of the gap are not whole ones, and half a secret would not be recognised.
        skipped = stream.readline(_LEAST_SHOWN)
        left_out = size - _LEAST_SHOWN + len(skipped) - now + len(self._rest)
        self._rest = b""
        self._tell(f"... {left_out} bytes of output are left out ...".encode())

    def _take(self, part: bytes) -> None:
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            self._tell(line)
        # Not in the middle of a word, which a secret may be: half of one is not recognised.
        breaks = (b"\r",) if len(self._rest) <= _LONGEST_LINE else (b"\r", b"\t", b" ")
        end = 1 + max(map(self._rest.rfind, breaks))
        if len(self._rest) > _SHORTEST_PART and end:
            self._tell(self._rest[:end])
            self._rest = self._rest[end:]
        if len(self._rest) > _LONGEST_WORD:
            self._tell(self._rest)
            self._rest = b""

    def _tell(self, line: bytes) -> None:
        told = self._prefix + self._redactor.text(line.decode("utf-8", "replace").rstrip("\r"))
        if self._log.tell() < _MOST_LOGGED:
            self._log.write(told.encode("utf-8") + b"\n")
            self._log.flush()
        with suppress(Exception):
            self._show(told)


def _kill_children(spared: set[int]) -> None:
    """Kill what outlived its supervisor: the children of each killed process become ours, and are killed in turn."""
    limit = monotonic_seconds() + _SWEEP_SECONDS
    while (found := _list_children() - spared) and monotonic_seconds() < limit:
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _adopt_orphans(is_wanted: bool) -> bool:
    """Set whether orphans of a killed supervisor become our children, and return the setting before.

    Only Linux can.
    """
    was = ctypes.c_int(0)
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        prctl(_GET_CHILD_SUBREAPER, ctypes.byref(was), 0, 0, 0)
        prctl(_SET_CHILD_SUBREAPER, int(is_wanted), 0, 0, 0)
    return bool(was.value)


def _list_children() -> set[int]:
    found: set[int] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found.update(map(int, file.read_text(encoding="ascii").split()))
    return found


def clear_leftovers(checkout: Path, project_root: Path, say: Callable[[str], None]) -> None:
    """Remove the stale worktrees of killed cycles that cannot be resumed, after committing their content to their branch.

    Name those that can be resumed, and those of cycles that are not known here.
    """
    for path in list_worktrees(checkout):
        if is_cycle_folder(path.parent):
            # A worktree that cannot be cleared does not keep another cycle from beginning.
            with suppress(GoldenError, OSError):
                _clear(checkout, project_root, path, say)


def _clear(checkout: Path, project_root: Path, path: Path, say: Callable[[str], None]) -> None:
    file = CycleFile(project_root, path.name)
    if not file.path.exists():
        say(f"a worktree of a cycle that is not known here is left: git worktree remove --force {path}")
        return
    with file.hold():
        if file.read().position is not None:
            say(
                f"{path.name} was not ended, and its worktree is left: resume it with `golden cycle --resume {path.name}`, "
                f"or remove it by `git worktree remove --force {path}`"
            )
            return
        base = run_git(checkout, "merge-base", "HEAD", f"refs/heads/{name_branch(path.name)}").stdout.strip()
        CycleWorktree(checkout, path.name, base, name_branch(path.name)).close()
        if path.exists():
            say(f"git cannot add everything in {path}: look at it, then git worktree remove --force {path}")
        else:
            say(f"the worktree of {path.name}, which was left, is removed")
