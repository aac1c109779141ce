"""Another time for a pipeline, by libfaketime (https://github.com/wolfcw/libfaketime): for `clock:` and `golden calibrate`."""

from __future__ import annotations

import sys
from glob import glob
from pathlib import Path

from pytest_golden.gateway.resolution import ProjectUnusableError

# The one for programs with threads first: with the other, waiting threads spin.
_LIBRARIES = (
    *("libfaketimeMT.so.1", "faketime/libfaketimeMT.so.1", "libfaketimeMT.1.dylib"),
    *("libfaketime.so.1", "faketime/libfaketime.so.1", "libfaketime.1.dylib"),
)
_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/opt/homebrew/lib/faketime", "/usr/lib/*-linux-gnu*")
HOW_TO_INSTALL = "apt install faketime, or brew install libfaketime"


def find_faketime() -> Path | None:
    """Find the library that gives programs another time; None where it is not installed."""
    places = (Path(folder, name) for pattern in _FOLDERS for folder in glob(pattern) for name in _LIBRARIES)
    return next((place for place in places if place.is_file()), None)


def set_clock(library: Path, time: str) -> dict[str, str]:
    """Return the variables that give a program a time: `@2026-11-20 00:00:00` to start at, or `+60`, seconds to add."""
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": time,
        "NO_FAKE_STAT": "1",
        # It tells no time of day, and a program that waits by it, such as Snakemake, would never end.
        "DONT_FAKE_MONOTONIC": "1",
        # With it, each wait for a lock ends at once, and threads of Python take ten times as long. It mends what is not faked here.
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }


def start_clock(declared: str) -> dict[str, str]:
    """Return the variables for a project's `clock:`.

    Raises:
        ProjectUnusableError: libfaketime is not installed, or this is not Linux.
    """
    if sys.platform != "linux":
        raise ProjectUnusableError(f"`clock: {declared}` works on Linux alone, and this is {sys.platform}")
    library = find_faketime()
    if library is None:
        raise ProjectUnusableError(f"`clock: {declared}` needs libfaketime, which is not installed: {HOW_TO_INSTALL}")
    return set_clock(library, f"@{declared}")
