from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from pytest_golden.cycle.worktree import CycleWorktree, list_changed_settings, read_git_settings, read_own_files
from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.repository import Repository


def test_what_is_not_committed_is_committed_neutrally_on_the_branch(
    tree: CycleWorktree, repository: Repository
) -> None:
    (tree.root / "lib.py").write_text("x = 2\n")
    (tree.root / "new.py").write_text("y = 1\n")
    commit = tree.take_work("Improvement")
    assert repository.git("rev-parse", "golden/cycle-test") == commit
    assert repository.git("log", "-1", "--format=%an <%ae> %cn %s", commit) == (
        "golden cycle <golden-cycle@localhost> golden cycle Improvement"
    )
    assert tree.list_changes(commit) == ("lib.py", "new.py")
    assert tree.close() == commit
    assert repository.worktrees() == [str(repository.folder)]
    assert not tree.folder.exists()
    assert repository.git("status", "--porcelain") == ""


def test_what_a_command_commits_on_whatever_branch_is_on_the_cycles_branch(
    tree: CycleWorktree, repository: Repository
) -> None:
    (tree.root / "lib.py").write_text("x = 3\n")
    for words in (["checkout", "-q", "-b", "elsewhere"], ["commit", "-q", "-a", "-m", "mine"]):
        repository.git("-C", str(tree.root), *words)
    commit = tree.take_work("Improvement")
    assert repository.git("log", "-1", "--format=%s", "golden/cycle-test") == "mine"
    (tree.root / "lib.py").write_text("x = 4\n")
    assert tree.take_work("Improvement") == repository.git("rev-parse", "golden/cycle-test") != commit


def test_what_was_written_beside_the_worktree_goes_with_it(tree: CycleWorktree) -> None:
    (tree.root / "lib.py").write_text("x = 2\n")
    (tree.folder / "beside").mkdir()
    (tree.folder / "beside" / "notes.txt").write_text("notes\n")
    commit = tree.take_work("Improvement")
    assert tree.close() == commit
    assert not tree.folder.exists()


def test_a_commit_of_another_history_is_not_built_on_the_base(tree: CycleWorktree, repository: Repository) -> None:
    (tree.root / "lib.py").write_text("x = 2\n")
    assert tree.builds_on_base(tree.take_work("Improvement"))
    repository.git("-C", str(tree.root), "checkout", "-q", "--orphan", "new")
    assert not tree.builds_on_base(tree.take_work("Improvement"))


def test_nothing_done_leaves_no_branch(tree: CycleWorktree, repository: Repository) -> None:
    assert tree.take_work("Improvement") == tree.base
    assert tree.close() is None
    assert repository.git("branch", "--list", "golden/*") == ""


@pytest.mark.parametrize("kind", ["removed", "repository", "elsewhere", "link"])
def test_a_command_that_spoils_the_link_to_the_repository_spoils_nothing(
    tree: CycleWorktree, repository: Repository, tmp_path: Path, kind: str
) -> None:
    link = tree.root / ".git"
    link.unlink()
    if kind == "repository":
        repository.git("init", "-q", str(tree.root))
    elif kind == "elsewhere":
        link.write_text("gitdir: /nowhere\n")
    elif kind == "link":
        link.symlink_to(tmp_path)
    (tree.root / "lib.py").write_text("x = 2\n")
    assert tree.list_changes(tree.take_work("Improvement")) == ("lib.py",)
    assert tmp_path.is_dir()


def test_a_lock_of_a_killed_git_is_no_hindrance(tree: CycleWorktree, repository: Repository) -> None:
    git_folder = repository.folder / ".git" / "worktrees" / tree.root.name
    (git_folder / "index.lock").touch()
    (tree.root / "lib.py").write_text("x = 2\n")
    assert tree.list_changes(tree.take_work("Improvement")) == ("lib.py",)


def test_what_git_does_not_take_stays_where_it_is_and_the_rest_is_kept(
    tree: CycleWorktree, repository: Repository
) -> None:
    (tree.root / "lib.py").write_text("x = 2\n")
    repository.git("init", "-q", str(tree.root / "inner"))
    (tree.root / "inner" / "notes").write_text("notes\n")
    with pytest.raises(GoldenError, match=r"cannot add everything .*'inner/' does not have a commit"):
        tree.take_work("Improvement")
    commit = tree.close()
    assert repository.git("show", f"{commit}:lib.py") == "x = 2"
    assert (tree.root / "inner" / "notes").is_file()
    shutil.rmtree(tree.root / "inner")
    assert tree.close() == commit
    assert not tree.folder.exists()


def test_a_repository_within_is_named(tree: CycleWorktree, repository: Repository) -> None:
    repository.git("init", "-q", str(tree.root / "inner"))
    repository.git("-C", str(tree.root / "inner"), "commit", "-q", "--allow-empty", "-m", "theirs")
    (tree.root / "lib.py").write_text("x = 2\n")
    assert tree.list_repositories(tree.take_work("Improvement")) == ("inner",)


def test_a_removed_worktree_is_said_and_what_was_committed_stays(tree: CycleWorktree, repository: Repository) -> None:
    (tree.root / "lib.py").write_text("x = 2\n")
    commit = tree.take_work("Improvement")
    shutil.rmtree(tree.root)
    with pytest.raises(GoldenError, match="removed the cycle's worktree"):
        tree.take_work("Improvement")
    assert tree.close() == commit
    assert repository.worktrees() == [str(repository.folder)]


@pytest.mark.parametrize("level", ["root", "folder"])
def test_a_link_in_the_worktrees_place_is_not_followed(
    tree: CycleWorktree, repository: Repository, tmp_path: Path, level: str
) -> None:
    (tree.root / "lib.py").write_text("x = 2\n")
    commit = tree.take_work("Improvement")
    other = tmp_path / "other"
    other.mkdir()
    repository.git("init", "-q", str(other / tree.root.name))
    (other / tree.root.name / "private").touch()
    place = tree.root if level == "root" else tree.folder
    shutil.rmtree(place)
    place.symlink_to(other / tree.root.name if level == "root" else other)
    with pytest.raises(GoldenError, match="removed the cycle's worktree"):
        tree.take_work("Improvement")
    tree.put_back(commit)
    assert tree.close() == commit
    assert not place.exists()
    assert (other / tree.root.name / ".git" / "HEAD").is_file()
    assert (other / tree.root.name / "private").is_file()
    assert repository.worktrees() == [str(repository.folder)]


def test_a_removed_repository_is_said(tree: CycleWorktree, repository: Repository) -> None:
    shutil.rmtree(repository.folder / ".git")
    with pytest.raises(GoldenError, match="or the repository itself"):
        tree.take_work("Improvement")
    assert tree.close() is None


def test_a_worktree_that_is_gone_is_made_again_from_its_branch(tree: CycleWorktree) -> None:
    (tree.root / "lib.py").write_text("x = 2\n")
    tree.take_work("Improvement")
    (tree.root / "lib.py").write_text("x = 3\n")
    tree.open()
    assert (tree.root / "lib.py").read_text() == "x = 3\n"
    shutil.rmtree(tree.root)
    tree.open()
    assert (tree.root / "lib.py").read_text() == "x = 2\n"


def test_a_review_leaves_nothing_behind(tree: CycleWorktree, repository: Repository) -> None:
    (tree.root / "lib.py").write_text("x = 2\n")
    commit = tree.take_work("Improvement")
    (tree.root / "lib.py").write_text("x = 9\n")
    (tree.root / "junk").write_text("junk")
    repository.git("-C", str(tree.root), "commit", "-q", "-a", "-m", "sneaked in")
    tree.put_back(commit)
    assert repository.git("rev-parse", "golden/cycle-test") == commit
    assert not (tree.root / "junk").exists()
    assert (tree.root / "lib.py").read_text() == "x = 2\n"


def test_the_difference_from_the_base_is_a_patch(tree: CycleWorktree, tmp_path: Path) -> None:
    (tree.root / "lib.py").write_bytes(b"\xff\x00")
    tree.take_work("Improvement")
    tree.write_difference(tmp_path / "patch")
    assert b"GIT binary patch" in (tmp_path / "patch").read_bytes()


def test_somebody_elses_folder_is_not_entered(repository: Repository, tmp_path: Path) -> None:
    tree = CycleWorktree(repository.folder, "cycle_x", repository.git("rev-parse", "HEAD"), "golden/cycle-x")
    (tmp_path / "target").mkdir()
    tree.folder.symlink_to(tmp_path / "target")
    with pytest.raises(GoldenError, match="belongs to another user"):
        tree.open()


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
