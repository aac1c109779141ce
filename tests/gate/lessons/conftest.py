from __future__ import annotations

import pytest

from tests.patience import wait_for_git


@pytest.fixture(autouse=True)
def git_of_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_git(monkeypatch)
