"""A process that has imported what a gate needs; for each that asks it forks one, which runs a program. See `tests.warm_starts`.

Run as `python warm_server.py SOCKET [MODULE]...`: it imports these too, and serves there until its standard input ends.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import marshal
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

_STREAMS = 3
_PYTHON = str(Path(sys.argv[1]).with_name("python"))
# What the interpreter itself reads when it starts, and Dask when it is imported: too late here.
_READ_AT_START = ("PYTHON", "DASK_")
_FLAGS = frozenset({"-P", "-s", "-E"})
# It takes as long as half of the others.
_LEFT_OUT = "pytest_golden.fleet."


class _StartsPythonWarm(subprocess.Popen[bytes]):
    """A child that starts warm too where it is this interpreter, such as a gate of `golden verify` or a worker of xdist."""

    def __init__(self, args: Any, *more: Any, **options: Any) -> None:
        if isinstance(args, list) and args[0] == sys.executable and _skip_flags(args)[1].endswith(("-m", "-u", ".py")):
            args = [_PYTHON, *args[1:]]
        super().__init__(args, *more, **options)


def main() -> None:
    _import_all()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen(64)
        # What lives now is never looked at again, so that the memory it is in stays shared.
        gc.collect()
        gc.freeze()
        signal.signal(signal.SIGCHLD, _reap)
        Path(sys.argv[1]).with_name("ready").touch()
        while True:
            if sys.stdin in select.select([listening, sys.stdin], [], [])[0]:
                # What started it has ended, however that was.
                os.killpg(0, signal.SIGKILL)
            connection, _ = listening.accept()
            if not os.fork():
                listening.close()
                break
            connection.close()
    _answer(connection)


def _import_all() -> None:
    # The folder of this script, whose `mcp` is another one.
    sys.path[0] = ""
    importlib.import_module("pytest")
    package = importlib.import_module("pytest_golden")
    for found in pkgutil.walk_packages(package.__path__, "pytest_golden."):
        if not found.name.startswith(_LEFT_OUT) and not found.name.endswith(".__main__"):
            # Of an extra that is not installed.
            with suppress(ImportError):
                importlib.import_module(found.name)
    for name in sys.argv[2:]:
        importlib.import_module(name)


def _reap(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(connection: socket.socket) -> None:
    """Run what is asked for in a child, and tell its exit code; return only in that child, when it is over."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    said, streams, _, _ = socket.recv_fds(connection, 1 << 20, _STREAMS)
    size, said = int.from_bytes(said[:8]), said[8:]
    while len(said) < size:
        said += connection.recv(1 << 20)
    child = os.fork()
    if not child:
        connection.close()
        _run(streams, *marshal.loads(said))
        return
    for stream in streams:
        os.close(stream)
    threading.Thread(target=_pass_on, args=(connection, child), daemon=True).start()
    status = os.waitpid(child, 0)[1]
    with suppress(OSError):
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(2, signed=True))
    os._exit(0)


def _pass_on(connection: socket.socket, child: int) -> None:
    """Send a child the signals of who asked for it, and kill it when they are gone."""
    with suppress(OSError):
        while number := connection.recv(1):
            os.kill(child, number[0])
        os.kill(child, signal.SIGKILL)


def _run(streams: list[int], words: list[str], folder: str, environment: dict[str, str], mask: int) -> None:
    _take(streams)
    os.chdir(folder)
    os.umask(mask)
    if _list_read_at_start(environment) != _list_read_at_start(os.environ):
        os.execve(words[0], words, environment)
    os.environ.clear()
    os.environ.update(environment)
    importlib.invalidate_caches()
    subprocess.Popen = _StartsPythonWarm  # type: ignore[misc, assignment]
    is_safe = "-P" in words[: len(words) - len(_skip_flags(words)) + 1]
    words = _skip_flags(words)
    if words[1] == "-m":
        sys.path[:1] = [] if is_safe else [folder]
        if "." in words[2]:
            # It was imported, and is to be run.
            sys.modules.pop(words[2], None)
        sys.argv[:] = [words[2], *words[3:]]
        runpy.run_module(words[2], run_name="__main__", alter_sys=True)
    elif words[1:3] == ["-u", "-c"]:
        sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
        sys.path[0] = ""
        sys.argv[:] = ["-c", *words[4:]]
        exec(words[3], vars(sys.modules["__main__"]))
    else:
        sys.path[0] = str(Path(words[1]).resolve().parent)
        sys.argv[:] = words[1:]
        runpy.run_path(words[1], run_name="__main__")


def _skip_flags(words: list[str]) -> list[str]:
    """Return a command line without the flags by which modules are not looked for in some places."""
    rest = list(itertools.dropwhile(_FLAGS.__contains__, words[1:]))
    return [words[0], *rest]


def _take(streams: list[int]) -> None:
    """Open standard streams as the interpreter does."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        os.dup2(streams[number], number)
        os.close(streams[number])
        old = getattr(sys, f"__{name}__")
        lines = name == "stderr" or (name == "stdout" and os.isatty(number))
        new = open(number, mode, 1 if lines else -1, old.encoding, old.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def _list_read_at_start(environment: os._Environ[str] | dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


if __name__ == "__main__":
    main()
