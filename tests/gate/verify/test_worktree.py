from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.verify.base_worktree import BaseWorktree, PrivateFolder
from tests.gate.verify.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def private(repository: Repository) -> Iterator[Path]:
    with PrivateFolder(outside=repository.folder) as folder:
        yield folder.path


def test_commit_is_checked_out_beside_the_head_and_forgotten_again(repository: Repository, private: Path) -> None:
    repository.script("a", "first\n")
    first = repository.commit("first")
    repository.script("a", "second\n")
    repository.commit("second")
    tree = BaseWorktree(repository.folder, private, first)
    assert (tree.root / "a" / "run.sh").read_text() == "first\n"
    assert repository.worktrees() == [str(repository.folder), str(tree.root)]
    (tree.root / "new").write_text("")
    tree.close()
    tree.close()
    assert not tree.root.exists()
    assert repository.worktrees() == [str(repository.folder)]


def test_hooks_of_the_repository_are_not_run(repository: Repository, private: Path, tmp_path: Path) -> None:
    commit = repository.commit()
    hook = repository.folder / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    BaseWorktree(repository.folder, private, commit).close()
    assert not (tmp_path / "hooked").exists()


def test_worktree_of_a_killed_verification_is_forgotten_and_no_other(
    repository: Repository, private: Path, tmp_path: Path
) -> None:
    commit = repository.commit()
    repository.git("worktree", "add", "-q", "--detach", str(tmp_path / "on a disk"), commit)
    shutil.move(tmp_path / "on a disk", tmp_path / "away")
    with PrivateFolder(outside=repository.folder) as killed:
        left = BaseWorktree(repository.folder, killed.path, commit)
    assert str(left.root) in repository.worktrees()
    with PrivateFolder(outside=repository.folder) as alive:
        beside = BaseWorktree(repository.folder, alive.path, commit)
        BaseWorktree(repository.folder, private, commit).close()
        told = repository.worktrees()
        beside.close()
    assert sorted(told) == sorted([str(repository.folder), str(tmp_path / "on a disk"), str(beside.root)])


def test_what_git_cannot_check_out_is_said(repository: Repository, private: Path) -> None:
    commit = repository.commit()
    (private / "base").mkdir()
    (private / "base" / "file").write_text("")
    with pytest.raises(GoldenError, match=r"git cannot check .* out in a worktree: fatal: .* already exists"):
        BaseWorktree(repository.folder, private, commit)


def test_submodule_that_the_head_has_is_missed(repository: Repository, private: Path, tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    library = Repository(tmp_path / "library")
    library.write(file="content")
    library.commit()
    repository.git("submodule", "add", "-q", str(library.folder), "sub")
    commit = repository.commit("with a submodule")
    tree = BaseWorktree(repository.folder, private, commit)
    (gap,) = tree.find_gaps()
    assert gap == "submodules are empty there (sub): let `setup:` run `git submodule update --init`"
    (tree.root / "sub" / "file").write_text("content")
    assert tree.find_gaps() == ()
    tree.close()
    assert repository.worktrees() == [str(repository.folder)]


def test_files_of_git_lfs_that_are_not_fetched_are_missed(repository: Repository, private: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    names = [f"{number}.bin" for number in range(5)]
    repository.write(**{".gitattributes": "*.bin filter=lfs\n"})
    for name in [*names, "also-here.bin"]:
        (repository.folder / name).write_text(pointer)
    commit = repository.commit("pointers")
    for name in names:
        (repository.folder / name).write_text("what it points to")
    tree = BaseWorktree(repository.folder, private, commit)
    (gap,) = tree.find_gaps()
    assert gap == (
        "files of git-lfs are not fetched there (0.bin, 1.bin, 2.bin and 2 more): let `setup:` run `git lfs pull`"
    )
    tree.close()
