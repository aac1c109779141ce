"""Takes the terminal over for a shell inside a seal, then becomes that shell; a bare script.

The terminal belongs to a process group outside the shell's PID namespace, which a shell cannot name: it would refuse job
control, and a Ctrl-C would reach the sandbox instead of what runs in the shell.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Make a process group of our own the terminal's, where there is one, and run the command in the arguments."""
    if os.isatty(0):
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
