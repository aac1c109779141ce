from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.gateway.git import describe_commit, run_git
from tests.repository import git

if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN = {"commit": None, "branch": None, "dirty": None}


def test_commit_branch_and_dirt_are_told(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "topic")
    (tmp_path / "a").touch()
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert describe_commit(tmp_path) == {"commit": commit, "branch": "topic", "dirty": False}
    (tmp_path / "b").touch()
    git(tmp_path, "checkout", "-q", "--detach")
    assert describe_commit(tmp_path) == {"commit": commit, "branch": None, "dirty": True}


def test_nothing_is_known_outside_git_and_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert describe_commit(tmp_path) == UNKNOWN
    monkeypatch.setenv("PATH", str(tmp_path))
    assert describe_commit(tmp_path) == UNKNOWN


def test_git_that_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = tmp_path / "git"
    stuck.write_text("#!/bin/sh\nexec sleep 60\n")
    stuck.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(GoldenError, match=r"did not answer within 0\.2 s"):
        run_git(tmp_path, "status", longest_seconds=0.2)
