from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.history.checkout import descends, find_commit_of, has_commit, list_commits, list_files_since
from pytest_golden.history.git import find_commit
from tests.gate.test_base_manifest import git

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "sub").mkdir()
    commit(tmp_path, "sub/a.py", "1", "first")
    return tmp_path


def commit(folder: Path, file: str, content: str, subject: str) -> str:
    (folder / file).write_text(content)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", subject)
    return git(folder, "rev-parse", "HEAD")


def test_commits_that_came_are_listed_newest_first_without_merges(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "side")
    second = commit(repository, "sub/a.py", "2", "second, password=hunter2hunter2")
    git(repository, "checkout", "-q", "main")
    third = commit(repository, "b.py", "3", "third")
    git(repository, "merge", "-q", "--no-ff", "-m", "Merge it", "side")
    merge = git(repository, "rev-parse", "HEAD")
    came = list_commits(repository, first, merge)
    assert {one.id for one in came} == {second, third}
    assert "hunter2" not in str(came)
    assert [one.id for one in list_commits(repository, first, merge, within="sub")] == [second]
    assert list_commits(repository, merge, first) == ()
    assert list_commits(repository, third, merge)[0].id == second
    with pytest.raises(GoldenError, match="not in this clone"):
        list_commits(repository, "f" * 40, merge)


def test_descent_is_known_only_of_commits_that_are_here(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    second = commit(repository, "b.py", "1", "second")
    assert descends(repository, second, first)
    assert descends(repository, first, first)
    assert not descends(repository, first, second)
    assert not descends(repository, second, "f" * 40)
    assert not descends(repository, second, "--help")
    assert not descends(repository / "gone", second, first)
    assert has_commit(repository, first)
    assert not has_commit(repository, "f" * 40)
    assert not has_commit(repository, "HEAD")


def test_without_git_nothing_is_known(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = git(repository, "rev-parse", "HEAD")
    monkeypatch.setenv("PATH", "")
    assert not descends(repository, first, "f" * 40)
    assert not has_commit(repository, first)
    assert find_commit_of(repository, first, {"sub/a.py": "f" * 40}) is None


def test_commit_that_an_edit_was_put_into_is_found_by_its_content(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    commit(repository, "sub/a.py", "2", "other content")
    wanted = commit(repository, "sub/a.py", "3", "the edit")
    commit(repository, "sub/a.py", "4", "later")
    blob = git(repository, "rev-parse", f"{wanted}:sub/a.py")
    found = find_commit_of(repository, first, {"sub/a.py": blob})
    assert found is not None
    assert (found.id, found.subject) == (wanted, "the edit")
    assert find_commit_of(repository, first, {"sub/a.py": "f" * 40}) is None
    assert find_commit_of(repository, first, {}) is None
    assert find_commit_of(repository, "f" * 40, {"sub/a.py": blob}) is None
    git(repository, "rm", "-q", "sub/a.py")
    git(repository, "commit", "-q", "-m", "remove it")
    gone = find_commit_of(repository, first, {"sub/a.py": None})
    assert gone is not None
    assert gone.subject == "remove it"


def test_files_since_a_ref_are_those_of_this_branch_with_edits_and_new_ones(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "feature")
    commit(repository, "b.py", "1", "mine")
    git(repository, "checkout", "-q", "main")
    commit(repository, "c.py", "1", "theirs")
    git(repository, "checkout", "-q", "feature")
    (repository / "sub" / "a.py").write_text("edit")
    (repository / "new ä.py").write_text("new")
    (repository / ".gitignore").write_text("*.log\n")
    (repository / "x.log").write_text("ignored")
    expected = (".gitignore", "b.py", "new ä.py", "sub/a.py")
    assert list_files_since(repository, "main") == expected
    assert list_files_since(repository / "sub", "main") == expected


@pytest.mark.parametrize(
    ("ref", "told"),
    [("nowhere", "git fetch origin nowhere"), ("up/topic", "git fetch up topic"), ("--all", "no such commit")],
)
def test_ref_that_is_not_here_says_what_to_fetch(repository: Path, ref: str, told: str) -> None:
    with pytest.raises(GoldenError, match=told):
        find_commit(repository, ref)


def test_repository_of_another_user_says_how_it_is_trusted(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    told = f"git does not trust {repository}, which is another user's: git config --global --add safe.directory "
    with pytest.raises(GoldenError, match=told):
        find_commit(repository, "HEAD")


def test_folder_outside_git_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match="in no git repository"):
        list_files_since(tmp_path, "main")


def test_virtual_environment_that_git_sees_is_no_edit(repository: Path) -> None:
    library = repository / "env" / "lib"
    library.mkdir(parents=True)
    (library / "module.py").write_text("")
    (repository / "env" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (repository / "environment.md").write_text("")
    assert list_files_since(repository, "main") == ("environment.md",)
