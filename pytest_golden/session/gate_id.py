"""The id of this session's gate, the same for the controller and all workers; its logs lie below it."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_golden.clock import new_id

_SESSION_KEY = "golden_session"
_ID = pytest.StashKey[str]()


def name_session(config: pytest.Config) -> str:
    """Give this session's id, which xdist workers get from their controller."""
    told: dict[str, Any] | None = getattr(config, "workerinput", None)
    if told is not None:
        return str(told[_SESSION_KEY])
    return config.stash.setdefault(_ID, new_id("gate"))


def tell_worker(config: pytest.Config, workerinput: dict[str, Any]) -> None:
    """Tell a worker this session's id."""
    workerinput[_SESSION_KEY] = name_session(config)
