"""Tests of what a user may not read or write, also where root runs them, who may."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec

from tests.requirement import require

if TYPE_CHECKING:
    from collections.abc import Callable

Arguments = ParamSpec("Arguments")

#: The system call's present version, with two words for each set of powers.
_VERSION = 0x20080522
#: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: to go by no permissions.
_POWERS = 1 << 1 | 1 << 2


def without_powers(test: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Run a test as one whom permissions bind: for root in a thread of its own, which gives up the powers not to be."""

    @functools.wraps(test)
    def run(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> None:
        require(hasattr(os, "geteuid"), "permissions")
        if os.geteuid() != 0:
            test(*arguments, **keywords)
            return
        require(sys.platform == "linux", "powers that root can give up")
        # They are a thread's, and what it gave up it never gets back.
        with ThreadPoolExecutor(1, initializer=_give_up) as thread:
            thread.submit(test, *arguments, **keywords).result()

    return run


def _give_up() -> None:
    kernel = ctypes.CDLL(None, use_errno=True)
    whose = (ctypes.c_uint32 * 2)(_VERSION, 0)
    # Effective, permitted and inheritable ones, then the same of the higher numbers.
    powers = (ctypes.c_uint32 * 6)()
    for call in (kernel.capget, kernel.capset):
        if call(whose, powers) != 0:
            raise OSError(ctypes.get_errno(), "powers cannot be given up")
        for place in range(3):
            powers[place] &= ~_POWERS
