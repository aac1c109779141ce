from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.cycle.worktree import list_changed_settings, read_git_settings, read_own_files
from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from tests.gate.verify.repository import Repository


def test_a_filter_and_attributes_that_were_set_are_named_and_a_persons_name_is_not(repository: Repository) -> None:
    before = read_git_settings(repository.folder)
    repository.git("config", "user.name", "an agent")
    repository.git("config", "core.hooksPath", ".husky")
    assert list_changed_settings(before, read_git_settings(repository.folder)) == ()
    repository.git("config", "filter.x.smudge", "sed s/exit 3/exit 0/")
    (repository.folder / ".git" / "info" / "attributes").write_text("lib.py filter=x\n")
    found = list_changed_settings(before, read_git_settings(repository.folder))
    assert [(one["kind"], one["message"].split()[2]) for one in found] == [
        ("gate_configuration", ".git/info/attributes,"),
        ("gate_configuration", "filter.x.smudge,"),
    ]


def test_settings_that_git_cannot_read_are_an_error_and_not_none(repository: Repository) -> None:
    (repository.folder / ".git" / "config").write_text("[core\n")
    with pytest.raises(GoldenError, match="does not tell its settings"):
        read_git_settings(repository.folder)


def test_the_repositorys_own_settings_and_hooks_are_told_apart_by_their_content(repository: Repository) -> None:
    before = read_own_files(repository.folder)
    assert list(before) == [".git/config"]
    repository.git("config", "core.hooksPath", ".husky")
    (repository.folder / ".git" / "hooks").mkdir(exist_ok=True)
    (repository.folder / ".git" / "hooks" / "post-commit").write_text("touch done\n")
    now = read_own_files(repository.folder)
    assert list(now) == [".git/config", ".git/hooks/post-commit"]
    assert now[".git/config"] != before[".git/config"]
