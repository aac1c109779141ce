from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.history.base_files import find_checkout
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.verify.base_worktree import (
    HEAD_VARIABLE,
    BaseEnvironment,
    BaseWorktree,
    PrivateFolder,
    find_base,
    find_setup_seconds,
    find_sources_below,
    is_private_folder,
    read_head,
    site_packages_of,
)
from pytest_golden.verify.gates import BaseCommit, BrokenDownError, clean_environment, move_below
from tests.repository import MANIFEST, Repository

if TYPE_CHECKING:
    from collections.abc import Iterator

KILLED = """
import os, signal, sys
from pathlib import Path
from pytest_golden.verify.base_worktree import PrivateFolder
private = PrivateFolder(outside=Path("/nowhere"))
(private.path / "file").write_text("left")
print(private.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


@pytest.fixture
def declared(repository: Repository) -> Repository:
    repository.declare("a")
    repository.script("a", "true\n")
    repository.commit("first")
    return repository


def compared_with(repository: Repository, ref: str) -> str:
    return find_base(repository.folder / MANIFEST, ref, read_head(repository.folder)).commit


def test_branch_is_compared_with_where_it_left_the_ref(declared: Repository) -> None:
    left = declared.git("rev-parse", "HEAD")
    declared.git("checkout", "-q", "-b", "topic")
    declared.commit("mine")
    declared.git("checkout", "-q", "main")
    theirs = declared.commit("theirs")
    declared.git("checkout", "-q", "topic")
    base = find_base(declared.folder / MANIFEST, "main", read_head(declared.folder))
    assert base == BaseCommit("main", theirs, left, declared.folder / MANIFEST)


def test_head_in_the_past_of_the_ref_is_compared_with_the_ref_unless_it_has_edits(declared: Repository) -> None:
    old = declared.git("rev-parse", "HEAD")
    newer = declared.commit("newer")
    declared.git("checkout", "-q", "--detach", old)
    assert compared_with(declared, "main") == newer
    declared.script("a", "false\n")
    assert compared_with(declared, "main") == old


def test_head_itself_may_be_the_base(declared: Repository) -> None:
    assert compared_with(declared, "HEAD") == declared.git("rev-parse", "HEAD")


def test_ref_without_a_common_commit_is_compared_with_as_it_is(declared: Repository) -> None:
    declared.git("checkout", "-q", "--orphan", "other")
    other = declared.commit("no parent")
    declared.git("checkout", "-q", "main")
    assert compared_with(declared, "other") == other


def test_tag_stands_for_its_commit(declared: Repository) -> None:
    declared.git("tag", "-a", "-m", "one", "v1")
    tagged = declared.git("rev-parse", "HEAD")
    declared.commit("later")
    assert compared_with(declared, "v1") == tagged


def find_manifest(repository: Repository, path: str = MANIFEST) -> Path | None:
    return find_base(repository.folder / path, "HEAD", read_head(repository.folder)).manifest


def test_base_without_any_manifest_has_none_also_where_another_one_stays(repository: Repository) -> None:
    repository.script("a", "true\n")
    repository.write(one___golden__yml='{"golden_projects": []}', docs___page__yaml="see: golden_projects\n")
    repository.commit("before")
    repository.declare("a")
    assert find_manifest(repository) is None


@pytest.mark.parametrize("old", ["one/golden.yml", "two/golden_projects.yaml"])
def test_moved_manifest_is_compared_with_the_one_that_it_was(repository: Repository, old: str) -> None:
    place = repository.folder / old
    place.parent.mkdir()
    place.write_text('{"golden_projects": []}\n')
    repository.write(stays___golden__yaml="golden_projects: []\n")
    repository.commit("before")
    place.rename(repository.folder / MANIFEST)
    assert find_manifest(repository) == place


def test_manifest_beside_the_one_of_the_default_name_is_compared_with_that(declared: Repository) -> None:
    declared.write(other__yaml="golden_projects: []\n")
    assert find_manifest(declared, "other.yaml") == declared.folder / MANIFEST


def test_change_that_touches_several_manifests_leaves_unclear_which_one_became_this_one(repository: Repository) -> None:
    repository.write(a__yaml="golden_projects: []\n", b__yaml="golden_projects: []\n")
    before = repository.commit("before")
    repository.git("rm", "-q", "a.yaml", "b.yaml")
    repository.declare("a")
    told = rf"the base {before[:12]} has no golden_projects.yaml, and it is not clear .* removes a.yaml, b.yaml: make a"
    with pytest.raises(GoldenError, match=told):
        find_manifest(repository)


@pytest.mark.parametrize("rest", ["golden_projects: []\n", "# moved\n"])
def test_manifest_that_is_moved_and_leaves_a_rest_behind_is_not_a_first_one(repository: Repository, rest: str) -> None:
    repository.write(old__yaml="golden_projects: [{name: a, path: a}]\n")
    repository.commit("before")
    (repository.folder / "old.yaml").rename(repository.folder / MANIFEST)
    repository.write(old__yaml=rest)
    with pytest.raises(GoldenError, match=r"edits or removes old.yaml: make a change that only moves"):
        find_manifest(repository)


def test_base_that_a_partial_clone_cannot_read_is_not_one_without_a_manifest(
    declared: Repository, tmp_path: Path
) -> None:
    declared.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    declared.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{declared.folder}", str(clone))
    declared.git("-C", str(clone), "remote", "set-url", "origin", f"file://{tmp_path / 'nowhere'}")
    assert find_base(clone / MANIFEST, "HEAD", read_head(clone)).manifest == clone / MANIFEST
    (clone / "new").mkdir()
    with pytest.raises(GoldenError, match=r"git cannot read the base \w{12} \(.+\): fetch what is missing"):
        find_base(clone / "new/projects.yaml", "HEAD", read_head(clone))


def test_commit_that_a_shallow_clone_lacks_is_said_to_be_fetched(declared: Repository, tmp_path: Path) -> None:
    declared.commit("second")
    declared.git("clone", "-q", "--depth", "1", f"file://{declared.folder}", str(tmp_path / "shallow"))
    manifest = tmp_path / "shallow" / MANIFEST
    told = r"or fetch it first: git fetch origin HEAD~1 \(this clone is shallow: git fetch --unshallow"
    with pytest.raises(GoldenError, match=told):
        find_base(manifest, "HEAD~1", read_head(manifest.parent))


def test_what_is_advised_brings_a_branch_to_a_clone_of_another_one(declared: Repository, tmp_path: Path) -> None:
    main = declared.git("rev-parse", "HEAD")
    declared.git("checkout", "-q", "-b", "topic")
    declared.commit("second")
    clone = tmp_path / "clone"
    declared.git("clone", "-q", "--depth", "1", "--branch", "topic", f"file://{declared.folder}", str(clone))
    with pytest.raises(GoldenError, match="or fetch it first: ") as refused:
        find_base(clone / MANIFEST, "origin/main", read_head(clone))
    advice = str(refused.value).partition("or fetch it first: git ")[2].partition(" (")[0]
    declared.git("-C", str(clone), *advice.split())
    assert find_base(clone / MANIFEST, "origin/main", read_head(clone)).commit == main


def test_repository_without_a_remote_says_that_too(declared: Repository) -> None:
    with pytest.raises(GoldenError, match=r"git fetch origin nowhere \(this repository has no remote yet"):
        compared_with(declared, "nowhere")


def test_folder_outside_git_has_no_base(tmp_path: Path) -> None:
    assert read_head(tmp_path) == (None, None)
    with pytest.raises(GoldenError, match="not in a git repository"):
        find_base(tmp_path / MANIFEST, "main", read_head(tmp_path))
    with pytest.raises(GoldenError, match="not in a git repository"):
        find_checkout(tmp_path)


def test_root_of_the_checkout_is_found_from_below(declared: Repository) -> None:
    assert find_checkout(declared.folder / "a") == declared.folder


@pytest.mark.usefixtures("temporary_folder")
def test_folder_is_private_and_removed_with_all_that_is_in_it(temporary_folder: Path, tmp_path: Path) -> None:
    with PrivateFolder(outside=tmp_path / "checkout") as private:
        assert stat.S_IMODE(private.path.stat().st_mode) == 0o700
        assert is_private_folder(private.path)
        locked = private.path / "locked"
        locked.mkdir()
        (locked / "file").write_text("")
        locked.chmod(0o500)
    assert list(temporary_folder.iterdir()) == []


@pytest.mark.usefixtures("temporary_folder")
def test_folder_of_a_killed_verification_is_removed_by_the_next(temporary_folder: Path, tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    left = temporary_folder / killed.stdout.strip().rpartition("/")[2]
    assert (left / "file").read_text() == "left"
    with PrivateFolder(outside=tmp_path / "checkout"):
        assert not left.exists()


@pytest.mark.usefixtures("temporary_folder")
def test_folder_of_a_verification_that_lives_stays(tmp_path: Path) -> None:
    with PrivateFolder(outside=tmp_path / "checkout") as first, PrivateFolder(outside=tmp_path / "checkout"):
        assert first.path.exists()


@pytest.mark.usefixtures("temporary_folder")
def test_what_is_just_being_made_or_is_no_folder_stays(temporary_folder: Path, tmp_path: Path) -> None:
    with PrivateFolder(outside=tmp_path / "checkout") as private:
        prefix = private.path.name[:-8]
    (temporary_folder / f"{prefix}new").mkdir()
    (temporary_folder / f"{prefix}link").symlink_to(tmp_path)
    with PrivateFolder(outside=tmp_path / "checkout"):
        assert (temporary_folder / f"{prefix}new").is_dir()
        assert (temporary_folder / f"{prefix}link").is_symlink()


@pytest.mark.usefixtures("temporary_folder")
def test_folder_lies_outside_the_checkout(temporary_folder: Path) -> None:
    with PrivateFolder(outside=temporary_folder.parent) as private:
        assert not private.path.is_relative_to(temporary_folder.parent)


@pytest.mark.usefixtures("temporary_folder")
def test_folder_is_never_found_without_its_lock_being_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = fcntl.flock

    def begin_another_first(number: int, how: int) -> None:
        monkeypatch.setattr("fcntl.flock", lock)
        PrivateFolder(outside=tmp_path / "checkout").close()
        lock(number, how)

    monkeypatch.setattr("fcntl.flock", begin_another_first)
    with PrivateFolder(outside=tmp_path / "checkout") as private:
        assert private.path.is_dir()


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


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The head's checkout, the base's worktree, and a private folder."""
    folders = (tmp_path / "head", tmp_path / "private" / "base", tmp_path / "private")
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def installed_below(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let an environment be found in which a folder is installed in editable form."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "__editable__.thing-1.0.pth").write_text(f"{folder}\n")
    monkeypatch.setattr("site.getsitepackages", lambda: [str(packages)])


def test_without_a_setup_the_base_runs_in_the_heads_environment(sides: tuple[Path, Path, Path]) -> None:
    head, base, private = sides
    place = BaseEnvironment(head, base, private, ENVIRONMENT).prepare(base / "golden_projects.yaml", None)
    assert place.python == sys.executable
    assert place.environment == ENVIRONMENT


def test_python_path_leads_below_the_base(sides: tuple[Path, Path, Path]) -> None:
    head, base, private = sides
    search = os.pathsep.join([str(head), str(head / "src"), f"{head}er", "", "/usr/lib/x"])
    environment = BaseEnvironment(head, base, private, {**ENVIRONMENT, "PYTHONPATH": search})
    moved = environment.prepare(base / "golden_projects.yaml", None).environment["PYTHONPATH"]
    assert [os.path.normpath(path) if path else "" for path in moved.split(os.pathsep)] == [
        str(base),
        str(base / "src"),
        f"{head}er",
        "",
        "/usr/lib/x",
    ]


def test_python_path_through_a_symlink_is_moved_too(sides: tuple[Path, Path, Path], tmp_path: Path) -> None:
    head, base, _ = sides
    (head / "src").mkdir()
    (tmp_path / "link").symlink_to(head)
    assert move_below(str(tmp_path / "link" / "src"), head, base) == str(base / "src")


def test_environment_in_which_the_head_is_installed_is_refused_without_a_setup(
    sides: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    head, base, private = sides
    (head / "src").mkdir()
    installed_below(head / "src", monkeypatch, tmp_path)
    assert find_sources_below(head) == (str(head / "src"),)
    assert find_sources_below(base) == ()
    with pytest.raises(GoldenError, match=r"the head's code is installed in this environment .*/head/src.* `setup: "):
        BaseEnvironment(head, base, private, ENVIRONMENT).prepare(base / "golden_projects.yaml", None)


def test_copy_that_was_installed_from_the_head_is_found_too(
    sides: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    head, _, _ = sides
    for name, text in (
        ("thing", json.dumps({"url": head.as_uri(), "dir_info": {}})),
        ("elsewhere", json.dumps({"url": "https://example.com/x.whl"})),
        ("damaged", "{"),
        ("odd", "[]"),
    ):
        metadata = tmp_path / "site-packages" / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "direct_url.json").write_text(text)
    monkeypatch.setattr("site.getsitepackages", lambda: [str(tmp_path / "site-packages")])
    assert find_sources_below(head) == (str(head),)


def test_setup_installs_over_the_heads_environment_and_leaves_it_as_it_is(sides: tuple[Path, Path, Path]) -> None:
    head, base, private = sides
    program = (
        "import os, sys, sysconfig, pytest\n"
        "from pathlib import Path\n"
        "assert os.getcwd() == sys.argv[1], os.getcwd()\n"
        f"assert os.environ['{HEAD_VARIABLE}'] == sys.argv[2]\n"
        "Path(sysconfig.get_path('purelib'), 'thing.py').write_text('made = True')\n"
    )
    setup = ("python", "-c", program, str(base), str(head))
    place = BaseEnvironment(head, base, private, ENVIRONMENT).prepare(base / "golden_projects.yaml", setup)
    prefix = private / "environment"
    assert Path(site_packages_of(prefix), "thing.py").is_file()
    assert place.environment["VIRTUAL_ENV"] == str(prefix)
    look = "import thing, pytest, pytest_golden, sys; print(sys.prefix)"
    seen = subprocess.run([place.python, "-c", look], capture_output=True, text=True, check=True, cwd=base)
    assert seen.stdout.strip() == str(prefix)
    assert subprocess.run([sys.executable, "-c", "import thing"], capture_output=True, check=False).returncode


def test_pip_of_a_setup_installs_into_the_bases_environment(sides: tuple[Path, Path, Path]) -> None:
    head, base, private = sides
    setup = ("sh", "-c", "pip --version > pip.txt; pip3 --version >> pip.txt")
    BaseEnvironment(head, base, private, ENVIRONMENT).prepare(base / "golden_projects.yaml", setup)
    programs = {path.name for path in (private / "environment" / "bin").iterdir()}
    has_pip = bool((base / "pip.txt").read_text())
    assert ({"pip", "pip3"} <= programs) or not has_pip
    assert "environment" in (private / "environment" / "bin" / "pip").read_text()


@pytest.mark.parametrize(
    ("setup", "told"),
    [
        (("sh", "-c", "echo no such mirror >&2; exit 3"), "`setup:` ended with exit code 3: no such mirror"),
        (("false",), "`setup:` ended with exit code 1: it printed nothing"),
        (("/nowhere/to-be-found",), "`setup:` cannot be started: /nowhere/to-be-found: No such file"),
    ],
)
def test_setup_that_fails_is_said(sides: tuple[Path, Path, Path], setup: tuple[str, ...], told: str) -> None:
    head, base, private = sides
    with pytest.raises(GoldenError, match=told):
        BaseEnvironment(head, base, private, ENVIRONMENT).prepare(base / "golden_projects.yaml", setup)


def test_setup_that_fails_tells_no_value_that_is_passed_to_projects(sides: tuple[Path, Path, Path]) -> None:
    head, base, private = sides
    setup = ("sh", "-c", "echo looking for $DB_HOST; echo no host $DB_HOST >&2; exit 3")
    environment = BaseEnvironment(head, base, private, {**ENVIRONMENT, "DB_HOST": "db7.example.org"}, {"DB_HOST"})
    with pytest.raises(BrokenDownError, match=r"exit code 3: no host \[REDACTED\]") as raised:
        environment.prepare(base / "golden_projects.yaml", setup)
    raised.value.keep(base, "setup.log", "Mend it")
    kept = (base / ".golden" / "setup.log").read_text()
    assert kept == "looking for [REDACTED]\nno host [REDACTED]\n"


def test_setup_that_does_not_end_is_ended_and_said(sides: tuple[Path, Path, Path]) -> None:
    head, base, private = sides
    setup = ("sh", "-c", "echo waiting for a mirror; exec sleep 600")
    with pytest.raises(GoldenError, match="`setup:` did not end within 1 s, and was ended: waiting for a mirror"):
        BaseEnvironment(head, base, private, ENVIRONMENT).prepare(base / "golden_projects.yaml", setup, 1.0)


def test_setup_may_take_an_hour_or_as_long_as_a_project_may() -> None:
    projects = [GoldenProjectConfig("a", "a.sh", timeout=60.0), GoldenProjectConfig("b", "b.sh", timeout=7200.0)]
    assert [find_setup_seconds(some) for some in ((), projects[:1], projects)] == [3600, 3600, 7200]


def test_what_is_meant_for_one_gate_is_not_handed_on() -> None:
    given = {"GOLDEN_BASE": "main", "GOLDEN_SANDBOX": "copy", "GITHUB_ACTIONS": "true", "GIT_DIR": ".git", "HOME": "/h"}
    assert clean_environment(given) == {"GOLDEN_SANDBOX": "copy", "HOME": "/h"}
