from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.gateway.git import BlobNames, find_commit
from pytest_golden.history.checkout import (
    MOST_FILES,
    Checkout,
    CheckoutChanges,
    changes_between,
    descends,
    find_commit_of,
    has_commit,
    list_commits,
    list_files_since,
    read_checkout,
)
from tests.permissions import without_powers
from tests.repository import git

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with one commit of three files, in two folders."""
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for name, text in (("sales/clean.sql", "select 1"), ("sales/load.py", "x = 1"), ("lib/util.py", "y = 1")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    commit(folder, "first")
    return folder


def commit(folder: Path, subject: str) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", subject)
    return git(folder, "rev-parse", "HEAD")


def blob(folder: Path, name: str) -> str:
    return git(folder, "hash-object", "--no-filters", name)


def test_clean_checkout_has_commit_and_branch(work: Path) -> None:
    found = read_checkout(work / "sales")
    assert found == Checkout(
        git(work, "rev-parse", "HEAD"), "main", dirty=False, dirty_files={}, root=work.resolve(), ignored=()
    )
    git(work, "checkout", "-q", "--detach")
    assert read_checkout(work).branch is None


def test_files_that_differ_from_the_commit_are_named_by_their_content(work: Path) -> None:
    (work / ".gitignore").write_text("ignored\n")
    (work / "ignored").touch()
    (work / "sales" / "clean.sql").write_text("select 2")
    (work / "sales" / "load.py").unlink()
    git(work, "mv", "lib/util.py", "lib/tool.py")
    (work / "new").mkdir()
    (work / "new" / "a b").write_text("untracked")
    found = read_checkout(work / "lib")
    assert found.dirty
    assert found.dirty_files == {
        ".gitignore": blob(work, ".gitignore"),
        "sales/clean.sql": blob(work, "sales/clean.sql"),
        "sales/load.py": None,
        "lib/util.py": None,
        "lib/tool.py": blob(work, "lib/tool.py"),
        "new/a b": blob(work, "new/a b"),
    }
    assert found.to_dict() == {
        "commit": found.commit,
        "branch": "main",
        "dirty": True,
        "dirty_files": found.dirty_files,
    }


@pytest.mark.skipif(sys.platform == "win32", reason="such names and links are not for Windows")
def test_odd_names_and_links_are_read(work: Path) -> None:
    names = ["two\nlines", "carriage\rreturn", '"quoted"', "tab\t", "ä", " blank ", "-rf", "# branch.oid x"]
    for name in names:
        (work / name).write_text(name)
    (work / os.fsdecode(b"raw\xff")).write_text("raw")
    (work / "link").symlink_to("nowhere")
    (work / "lib" / "util.py").unlink()
    (work / "lib" / "util.py").symlink_to("../sales")
    found = read_checkout(work).dirty_files
    assert found is not None
    assert {name: found[name] for name in names} == {name: blob(work, f"./{name}") for name in names if name}
    assert found["raw\udcff"]
    git(work, "add", "-A")
    staged = dict(line.split("\t")[::-1] for line in git(work, "ls-files", "-s", "link", "lib/util.py").splitlines())
    assert found["link"] == staged["link"].split()[1]
    assert found["lib/util.py"] == f"{staged['lib/util.py'].split()[1]} 120000"


def test_a_change_that_was_taken_back_is_none(work: Path) -> None:
    (work / "sales" / "clean.sql").write_text("select 2")
    git(work, "add", "-A")
    (work / "sales" / "clean.sql").write_text("select 1")
    found = read_checkout(work)
    assert (found.dirty, found.dirty_files) == (True, {})


def test_conflicting_files_are_read(work: Path) -> None:
    git(work, "checkout", "-q", "-b", "other")
    (work / "sales" / "clean.sql").write_text("select 3")
    commit(work, "theirs")
    git(work, "checkout", "-q", "main")
    (work / "sales" / "clean.sql").write_text("select 4")
    commit(work, "ours")
    with pytest.raises(Exception, match="exit status 1"):
        git(work, "merge", "other")
    assert read_checkout(work).dirty_files == {"sales/clean.sql": blob(work, "sales/clean.sql")}


def test_submodule_is_known_by_its_commit_and_whether_it_is_changed(work: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    (inner / "a").touch()
    commit(inner, "inner")
    git(work, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    commit(work, "with submodule")
    assert read_checkout(work).dirty_files == {}
    moved = commit(work / "sub", "moved")
    assert read_checkout(work).dirty_files == {"sub": moved}
    git(work / "sub", "checkout", "-q", "--detach")
    assert read_checkout(work).dirty_files == {"sub": moved}
    (work / "sub" / "a").write_text("changed")
    assert read_checkout(work).dirty_files == {"sub": f"{moved} with changes of its own"}


def test_repository_inside_that_is_not_tracked_is_known_by_its_commit(work: Path) -> None:
    inner = work / "inner"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    assert read_checkout(work).dirty_files == {"inner/": "folder"}
    head = commit(inner, "x")
    assert read_checkout(work).dirty_files == {"inner/": head}


def test_only_so_many_files_are_kept_and_tracked_ones_first(work: Path) -> None:
    for number in range(MOST_FILES + 20):
        (work / f"a{number}").touch()
    (work / "sales" / "load.py").write_text("x = 2")
    found = read_checkout(work).dirty_files
    assert found is not None
    assert len(found) == MOST_FILES
    assert "sales/load.py" in found


def test_large_and_unreadable_files_are_named_without_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = BlobNames(tmp_path, "sha1")
    with (tmp_path / "large").open("wb") as large:
        large.truncate(17 * 1024 * 1024)
    assert str(names.find("large")).startswith("17825792 bytes of ")
    monkeypatch.setattr("pytest_golden.gateway.git.MOST_BYTES", 4)
    names = BlobNames(tmp_path, "sha256")
    for name in ("a", "b"):
        (tmp_path / name).write_text("123")
    assert len(str(names.find("a"))) == 64
    assert str(names.find("b")).startswith("3 bytes of ")
    assert names.find("gone") is None
    assert names.find("nul\0") is None
    (tmp_path / "folder").mkdir()
    assert names.find("folder") == "folder"


@without_powers
def test_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").touch(mode=0)
    assert BlobNames(tmp_path, "sha1").find("a") == "unreadable: Permission denied"


def test_repository_without_a_commit_has_files_and_no_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a").write_text("1")
    found = read_checkout(tmp_path)
    assert (found.commit, found.branch, found.dirty) == (None, "main", True)
    (tmp_path / "a").write_text("2")
    assert changes_between(tmp_path, found, read_checkout(tmp_path)) == CheckoutChanges(files=("a",), inside_count=1)


def test_repository_with_long_ids_is_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256", "-b", "main")
    first = commit(tmp_path, "first")
    (tmp_path / "a").write_text("1")
    found = read_checkout(tmp_path)
    assert (found.commit, len(first)) == (first, 64)
    assert found.dirty_files == {"a": blob(tmp_path, "a")}


def test_nothing_is_known_outside_git_and_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert read_checkout(tmp_path) == Checkout()
    assert read_checkout(tmp_path / "gone") == Checkout()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_checkout(tmp_path) == Checkout()
    assert Checkout().to_dict() == {"commit": None, "branch": None, "dirty": None, "dirty_files": None}
    found = changes_between(tmp_path, Checkout(), Checkout())
    assert not found.is_known
    assert found.note == "no checkout here, so what changed in the files is not known"


def test_secrets_in_names_are_not_kept(work: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    (work / f"{token}.txt").touch()
    git(work, "checkout", "-q", "-b", f"try-{token}")
    found = read_checkout(work)
    assert token not in repr(found)
    assert found.dirty_files is not None
    assert len(found.dirty_files) == 1
    (work / f"{token}.txt").write_text("x")
    commit(work, f"use {token}")
    changes = changes_between(work, found, read_checkout(work))
    assert token not in repr(changes)
    assert changes.inside_count == 1


def test_edits_without_a_commit_are_told_apart(work: Path) -> None:
    (work / "sales" / "clean.sql").write_text("select 2")
    (work / "notes").write_text("1")
    before = read_checkout(work)
    assert changes_between(work, before, read_checkout(work)) == CheckoutChanges()
    (work / "sales" / "clean.sql").write_text("select 3")
    changes = changes_between(work, before, read_checkout(work), work / "sales")
    assert changes == CheckoutChanges(files=("sales/clean.sql",), inside_count=1)
    (work / "notes").unlink()
    (work / "lib" / "util.py").unlink()
    changes = changes_between(work, before, read_checkout(work), work / "sales")
    assert changes == CheckoutChanges(
        files=("sales/clean.sql", "lib/util.py", "notes"), inside_count=1, outside_count=2
    )
    git(work, "checkout", "-q", "sales/clean.sql")
    assert changes_between(work, before, read_checkout(work), work / "sales").inside_count == 1


def test_commits_between_are_counted_and_named_newest_first(work: Path) -> None:
    before = read_checkout(work)
    for number in range(7):
        (work / "sales" / "clean.sql").write_text(f"select {number}")
        (work / "lib" / f"{number}.py").touch()
        commit(work, f"change {number}\n\nwith a body")
    now = read_checkout(work)
    changes = changes_between(work / "lib", before, now, work / "sales")
    assert (before.commit, now.commit) != (None, None)
    assert changes.commit_range == f"{str(before.commit)[:7]}..{str(now.commit)[:7]}"
    assert (changes.commit_count, changes.lost_count) == (7, 0)
    assert changes.subjects == tuple(f"change {number}" for number in (6, 5, 4, 3, 2))
    assert changes.files == ("sales/clean.sql", *(f"lib/{number}.py" for number in range(7)))
    assert (changes.inside_count, changes.outside_count) == (1, 7)
    back = changes_between(work, now, before)
    assert (back.commit_count, back.lost_count, back.subjects) == (0, 7, ())
    assert changes.to_dict()["subjects"] == list(changes.subjects)
    assert set(changes.to_dict()) >= {"commit_range", "commit_count", "files", "note"}


def test_what_was_edited_at_the_pass_and_committed_since_is_no_change(work: Path) -> None:
    (work / "sales" / "clean.sql").write_text("select 2")
    (work / "sales" / "load.py").unlink()
    (work / "new.sh").write_text("echo")
    (work / "new.sh").chmod(0o755)
    (work / "lib" / "util.py").chmod(0o755)
    before = read_checkout(work)
    commit(work, "as it passed")
    changes = changes_between(work, before, read_checkout(work))
    assert (changes.commit_count, changes.files) == (1, ())
    (work / "lib" / "util.py").chmod(0o644)
    assert changes_between(work, before, read_checkout(work)).files == ("lib/util.py",)


def test_file_that_was_committed_and_edited_again_is_a_change(work: Path) -> None:
    (work / "sales" / "clean.sql").write_text("select 2")
    before = read_checkout(work)
    commit(work, "second")
    (work / "sales" / "clean.sql").write_text("select 3")
    assert changes_between(work, before, read_checkout(work)).files == ("sales/clean.sql",)


@pytest.mark.parametrize("unknown", ["f" * 40, "--output=x", "HEAD"])
def test_commit_that_is_not_here_is_said(work: Path, unknown: str) -> None:
    now = read_checkout(work)
    changes = changes_between(work, replace(now, commit=unknown), now)
    assert changes.commit_range is not None
    assert changes.commit_count is None
    assert "is not in this clone (it is shallow, or history was rewritten)" in str(changes.note)
    assert not (work / "x").exists()


def test_commit_that_is_not_known_is_said(work: Path) -> None:
    now = read_checkout(work)
    assert changes_between(work, Checkout(), now).note == "the commit then is not known"
    assert changes_between(work, now, Checkout()).note == "the commit now is not known"


def test_shallow_clone_is_said(work: Path, tmp_path: Path) -> None:
    before = read_checkout(work)
    commit(work, "second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{work}", "shallow")
    shallow = tmp_path / "shallow"
    assert "shallow" in str(changes_between(shallow, before, read_checkout(shallow)).note)


def test_git_that_went_away_is_said(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_checkout(work)
    commit(work, "second")
    now = read_checkout(work)
    monkeypatch.setenv("PATH", str(work))
    assert changes_between(work, before, now).note == "there is no git on PATH: install it"


def test_unknown_edits_hide_no_commits(work: Path) -> None:
    before = replace(read_checkout(work), dirty_files=None)
    (work / "notes").touch()
    (work / "sales" / "load.py").write_text("x = 2")
    assert changes_between(work, before, read_checkout(work)).note == "what changed in the files is not known"
    git(work, "add", "sales")
    git(work, "commit", "-q", "-m", "second")
    assert changes_between(work, before, read_checkout(work)).files == ("sales/load.py",)


def test_file_beyond_those_that_are_kept_is_no_change(work: Path) -> None:
    now = read_checkout(work)
    many = {f"a{number}": "x" for number in range(MOST_FILES)}
    full, other = replace(now, dirty_files=many), replace(now, dirty_files={**many, "a0": "y", "b": "z"})
    found = changes_between(work, full, other)
    assert found.files == ("a0",)
    assert not found.is_known
    assert (
        found.note
        == f"{MOST_FILES} files or more are not committed, and not all of them were compared; commit or ignore them"
    )


def test_virtual_environment_that_git_sees_is_no_edit(work: Path) -> None:
    clean = read_checkout(work)
    for folder in ("env", "tools/env"):
        (work / folder / "lib").mkdir(parents=True)
        (work / folder / "pyvenv.cfg").touch()
        (work / folder / "lib" / "module.py").touch()
    (work / "tools" / "environment.py").touch()
    assert (clean.dirty, read_checkout(work).dirty_files) == (
        False,
        {"tools/environment.py": blob(work, "tools/environment.py")},
    )


def test_project_outside_the_checkout_has_no_files_in_it(work: Path, tmp_path: Path) -> None:
    before = read_checkout(work)
    (work / "notes").touch()
    assert changes_between(work, before, read_checkout(work), tmp_path / "other").outside_count == 1
    assert changes_between(work, before, read_checkout(work), work).inside_count == 1


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "sub").mkdir()
    commit_file(tmp_path, "sub/a.py", "1", "first")
    return tmp_path


def commit_file(folder: Path, file: str, content: str, subject: str) -> str:
    (folder / file).write_text(content)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", subject)
    return git(folder, "rev-parse", "HEAD")


def test_commits_that_came_are_listed_newest_first_without_merges(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "side")
    second = commit_file(repository, "sub/a.py", "2", "second, password=hunter2hunter2")
    git(repository, "checkout", "-q", "main")
    third = commit_file(repository, "b.py", "3", "third")
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
    second = commit_file(repository, "b.py", "1", "second")
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
    commit_file(repository, "sub/a.py", "2", "other content")
    wanted = commit_file(repository, "sub/a.py", "3", "the edit")
    commit_file(repository, "sub/a.py", "4", "later")
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
    commit_file(repository, "b.py", "1", "mine")
    git(repository, "checkout", "-q", "main")
    commit_file(repository, "c.py", "1", "theirs")
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
    with pytest.raises(GoldenError, match="not in a git repository"):
        list_files_since(tmp_path, "main")


def test_virtual_environment_that_git_sees_is_no_file_since_a_ref(repository: Path) -> None:
    library = repository / "env" / "lib"
    library.mkdir(parents=True)
    (library / "module.py").write_text("")
    (repository / "env" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (repository / "environment.md").write_text("")
    assert list_files_since(repository, "main") == ("environment.md",)
