"""Where the full logs of this session lie, the same folder for all workers, and how many sessions' logs are kept."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.clock import new_id

if TYPE_CHECKING:
    from pathlib import Path

KEPT_SESSIONS = 20
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


def choose_log_folder(config: pytest.Config, state_folder: Path) -> Path:
    """Give the folder of this session's logs, and remove those of the oldest sessions."""
    logs = state_folder / "logs"
    if logs.is_dir():
        # The ids sort by time.
        for old in sorted(logs.iterdir())[: -KEPT_SESSIONS + 1]:
            shutil.rmtree(old, ignore_errors=True)
    return logs / name_session(config)
