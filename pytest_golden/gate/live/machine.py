"""Where a pid means a process, and whether that process is there."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_OWN_PIDS = Path("/proc/self/ns/pid")


def describe_machine() -> str:
    """Name the host, and on Linux its present boot and this process's space of pids: containers share the first two."""
    told = [platform.node()]
    with suppress(OSError):
        told += [_BOOT.read_text(encoding="ascii").strip(), str(_OWN_PIDS.stat().st_ino)]
    return " ".join(told)


def has_process(pid: int) -> bool:
    """Tell whether there is a process of this machine with a pid; true where that cannot be told."""
    if sys.platform == "win32" or pid <= 0:
        # There, what asks elsewhere whether a process is there would end it.
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
