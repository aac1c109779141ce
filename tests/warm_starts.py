"""Programs that start warm: forked from a process that has imported pytest and this package already.

The start of a gate or a command takes about a second of a processor, most of it for imports. What starts warm is a process
of its own all the same: it runs the same program with the words, the environment, the folder, the umask and the standard
streams that it is given, and gives its exit code; signals reach it, and gates that it starts are warm too. It is not for
tests of what a start imports, of process groups, or of what is seen under a process id.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

_SERVER = Path(__file__).with_name("warm_server.py")
_PROGRAMS, _MODULES = ("pytest", "golden"), ("pytest", "pytest_golden", "pytest_golden.verify.judge_child")
#: Flags that mean the same to a process that is forked: where modules are not looked for.
FLAGS = ("-P", "-s", "-E")
# It imports as little as it can. The size comes first, then the rest of what is asked for, for a socket takes it in parts.
_CLIENT = """\
#!{python} -IS
import _socket, marshal, os, signal, sys
program = {program!r}
words = [{python!r}, *([program] if program else []), *sys.argv[1:]]
first = 1
while words[first:] and words[first] in {flags!r}:
    first += 1
kind = words[first:first + 1]
if not (program or kind == ["-m"] and words[first + 1] in {warm!r} or words[1:3] == ["-u", "-c"] or kind and kind[0].endswith(".py")):
    os.execv(words[0], words)
mask = os.umask(0)
os.umask(mask)
asked = marshal.dumps((words, os.getcwd(), dict(os.environ), mask))
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({socket!r})
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, lambda number, _: server.send(bytes([number])))
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([len(asked).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(asked)
told = server.recv(2)
code = int.from_bytes(told, "big", signed=True) if told else 255
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@contextmanager
def starting_warm(*more: str) -> Iterator[Path]:
    """Serve warm starts, and give a folder with `pytest`, `golden` and a `python` that starts warm.

    That is so for scripts, `-u -c`, and `-m` with pytest, this package, the judge of `golden verify` or one of these modules.
    """
    with tempfile.TemporaryDirectory() as name:
        folder, scripts = Path(name), Path(sys.executable).parent
        for program, script in (("python", ""), *((one, str(scripts / one)) for one in _PROGRAMS)):
            client = folder / program
            client.write_text(
                _CLIENT.format(
                    python=sys.executable,
                    program=script,
                    flags=FLAGS,
                    warm=(*_MODULES, *more),
                    socket=str(folder / "socket"),
                )
            )
            client.chmod(0o755)
        with subprocess.Popen(
            [sys.executable, str(_SERVER), str(folder / "socket"), *more], stdin=subprocess.PIPE, start_new_session=True
        ) as server:
            try:
                wait_until(lambda: (folder / "ready").exists() or server.poll() is not None)
                assert server.poll() is None, "the server of warm starts has ended"
                yield folder
            finally:
                os.killpg(server.pid, signal.SIGKILL)
