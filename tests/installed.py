"""Tests that run gates one after another and expect that nothing was installed in between: whoever works beside them may."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, ParamSpec

import pytest

from pytest_golden.history.run_environment import read_distributions

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")


def while_nothing_is_installed(test: Callable[_P, None]) -> Callable[_P, None]:
    """Skip a test that fails after packages came or went while it ran: its gates saw another environment each."""

    @functools.wraps(test)
    def run(*arguments: _P.args, **named: _P.kwargs) -> None:
        before = read_distributions(sys.path)
        try:
            test(*arguments, **named)
        except AssertionError:
            if read_distributions(sys.path) != before:
                pytest.skip("packages were installed meanwhile")
            raise

    return run
