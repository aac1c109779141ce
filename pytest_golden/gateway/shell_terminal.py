"""A terminal of its own for an interactive shell in a view, so that nothing in it can type into the user's.

What runs on the user's own terminal could push characters into its input (TIOCSTI), which the user's shell would then run
outside of the seal. Run as a bare script (standard library only), this file takes the new terminal over inside the seal.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import termios
import tty
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_CHUNK_BYTES = 1 << 16
_KEYBOARD, _SCREEN = 0, 1


def run_in_terminal(argv: Sequence[str], folder: str, environment: Mapping[str, str], beside: int | None = None) -> int:
    """Run a command on a new terminal that is relayed to ours, and return its exit code, negative for a signal.

    With `beside` it runs in the network of that process.
    """
    pid, relay = pty.fork()
    if pid == 0:
        _become(argv, folder, environment, beside)
    _pass_size_on(relay)
    before = signal.signal(signal.SIGWINCH, lambda *_: _pass_size_on(relay))
    try:
        with _raw(_KEYBOARD):
            _relay(relay)
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(relay)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _become(
    argv: Sequence[str], folder: str, environment: Mapping[str, str], beside: int | None
) -> None:  # pragma: no cover - the child
    try:
        if beside is not None:
            _enter_network(beside)
        os.chdir(folder)
        os.execve(argv[0], list(argv), dict(environment))
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _enter_network(pid: int) -> None:  # pragma: no cover - the child
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    namespaces = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in ("user", "net")]
    for namespace in namespaces:
        if libc.setns(namespace, 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        os.close(namespace)


@contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Let every key through to the new terminal, Ctrl-C included."""
    if not os.isatty(terminal):
        yield
        return
    before = termios.tcgetattr(terminal)
    tty.setraw(terminal, termios.TCSADRAIN)  # what was typed ahead is for the shell
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _relay(relay: int) -> None:
    """Copy both ways until no process has the new terminal open."""
    sources = [relay, _KEYBOARD]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if relay in ready:
            shown = _read(relay)
            if not shown:
                return
            _write(_SCREEN, shown)
        if _KEYBOARD in ready:
            typed = _read(_KEYBOARD)
            if typed:
                _write(relay, typed)
            else:
                sources.remove(_KEYBOARD)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK_BYTES)
    except OSError:
        return b""  # Linux says EIO when the last holder of a terminal is gone.


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _pass_size_on(relay: int) -> None:
    with suppress(termios.error):
        termios.tcsetwinsize(relay, termios.tcgetwinsize(_KEYBOARD))


def become_shell(argv: list[str]) -> None:  # pragma: no cover - inside the seal
    """Give the terminal to a process group of our own, where there is a terminal, and become the shell.

    The terminal belongs to a group outside the shell's PID namespace, which a shell cannot name: it would refuse job
    control, and a Ctrl-C would reach the sandbox instead of what runs in the shell.
    """
    if os.isatty(0):
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    become_shell(sys.argv[1:])
