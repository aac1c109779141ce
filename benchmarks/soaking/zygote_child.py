"""A process that has loaded what a gate loads and done nothing, and forks a gate of its own for each that it is asked for.

A fork saves the second that an interpreter takes to load pytest and SQLAlchemy, and nothing else: each gate is a process
with an id, a process group, open files and a death of its own. It speaks packets of JSON over an inherited socket.
"""

from __future__ import annotations

import array
import importlib
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

# What a gate has loaded and is not its own session's.
_KEPT = (
    "_pytest",
    "alembic",
    "anyio",
    "filelock",
    "hypothesis",
    "pluggy",
    "psycopg",
    "pydantic",
    "pytest",
    "rich",
    "sqlalchemy",
    "xdist",
    "yaml",
)


def warm(folder: str) -> None:
    """Let a child run a gate, and load what it has loaded."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _become_gate(
            {"folder": folder, "arguments": ["--golden", "-q", "-p", "no:cacheprovider"]},
            os.open(os.devnull, os.O_RDWR),
        )
        import pytest

        with suppress(BaseException):
            pytest.main(sys.argv[1:])
        with os.fdopen(writing, "w") as file:
            file.write("\n".join(sys.modules))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        names = file.read().split()
    os.waitpid(child, 0)
    for name in names:
        if name.partition(".")[0] in (*_KEPT, "pytest_golden"):
            with suppress(Exception):
                importlib.import_module(name)


def serve(channel: socket.socket) -> dict[str, Any]:
    """Fork gates until the other side is gone; this returns in each of them, with what it is asked for."""
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    channel.send(b"{}")
    while True:
        readable, _, _ = select.select([channel, woken], [], [])
        if woken in readable:
            os.read(woken, 4096)
            _tell_dead(channel)
        if channel in readable:
            packet, handles = _receive(channel)
            if not packet:
                sys.exit()
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for handle in (woken, waking, channel.detach()):
                    os.close(handle)
                asked: dict[str, Any] = json.loads(packet)
                _become_gate(asked, handles[0])
                return asked
            os.close(handles[0])
            channel.send(json.dumps({"started": child}).encode())


def _receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    handles = array.array("i")
    packet, told, _, _ = channel.recvmsg(1 << 16, socket.CMSG_LEN(handles.itemsize))
    for _, _, content in told:
        handles.frombytes(content)
    return packet, list(handles)


def _tell_dead(channel: socket.socket) -> None:
    with suppress(ChildProcessError):
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                return
            channel.send(json.dumps({"ended": child, "code": os.waitstatus_to_exitcode(status)}).encode())


def _become_gate(asked: dict[str, Any], output: int) -> None:
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.chdir(asked["folder"])
    sys.argv = ["pytest", *asked["arguments"]]


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    warm(sys.argv[2])
    asked = serve(channel)
    import pytest

    sys.exit(pytest.main(asked["arguments"]))


if __name__ == "__main__":
    main()
