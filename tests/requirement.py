"""What a test wants of the machine it runs on."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def require(is_here: object, what: str) -> None:
    """Skip a test where something is not here, as `lack` does."""
    if not is_here:
        lack(f"this machine lacks {what}")


def lack(what: str) -> NoReturn:
    """Skip a test for what this machine lacks; where it must lack nothing, with GOLDEN_TEST_REQUIRE=all, fail it."""
    if os.environ.get("GOLDEN_TEST_REQUIRE") == "all":
        pytest.fail(f"GOLDEN_TEST_REQUIRE=all, and {what}", pytrace=False)
    pytest.skip(what)
