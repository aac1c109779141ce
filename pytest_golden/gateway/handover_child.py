"""Opens a listening socket where the pipeline's network is, hands it out to the gate, and becomes the pipeline.

A bare script: `python -I -S handover_child.py PORT PROGRAM ARGUMENT...`, with the channel's number in GOLDEN_HANDOVER. A
private network cannot be reached from outside, but a socket that was opened in it can be served by any process that holds
it. The other end is `Handover` in `process.py`.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import sys

BACKLOG = 1024


def main() -> None:
    """Hand over and go on; without a socket the pipeline runs all the same."""
    channel = socket.socket(fileno=int(os.environ.pop("GOLDEN_HANDOVER")))
    channel.set_inheritable(False)
    try:
        listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=BACKLOG)
        socket.send_fds(channel, [b"listener"], [listener.fileno()])
    except OSError as error:
        # In a network that outlives a command only the socket of an earlier command can have the port, and it still serves.
        if error.errno != errno.EADDRINUSE:
            channel.send(b"trouble " + str(error).encode())
    # Python ignores these, and what is ignored would stay ignored in the pipeline.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    program, arguments = sys.argv[2], sys.argv[2:]
    try:
        become(program, arguments)
    except OSError as error:
        # The sandbox's own words, since without this script it would have started the program.
        print(f"execvp {program}: {error.strerror}", file=sys.stderr)
        channel.send(b"failed")
        sys.exit(127)


def become(program: str, arguments: list[str]) -> None:
    """Replace this process as `execvp` of the C library does, which runs by a shell what has no first line for one."""
    try:
        os.execvp(program, arguments)
    except OSError as error:
        found = shutil.which(program)
        if error.errno != errno.ENOEXEC or found is None:
            raise
        os.execv("/bin/sh", ["/bin/sh", found, *arguments[1:]])


if __name__ == "__main__":
    main()
