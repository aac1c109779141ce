"""How long a test waits on a slow and loaded machine, and how work is measured where time would depend on it."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

PATIENCE_SECONDS = 60.0


@contextmanager
def without_hanging(seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Fail when what is inside took that long: a guard against what hangs, far above what anything here takes."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < seconds, "it hangs"


def wait_until(holds: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Look again and again until something holds."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.01)


def wait_for_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return lessons all the time for git that a gate does not have: what they know is the same on every machine."""
    monkeypatch.setattr("pytest_golden.gate.teaching._LONGEST_GIT_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr("pytest_golden.gate.known._GIT_SECONDS", PATIENCE_SECONDS)


def count_calls(work: Callable[[], object]) -> int:
    """Count the calls that some work makes, of Python's functions and of those in C: the same on every machine."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
