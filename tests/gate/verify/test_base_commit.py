from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.verify.base_commit import BaseCommit, find_base, find_checkout, read_head
from tests.gate.verify.repository import MANIFEST, Repository

if TYPE_CHECKING:
    from pathlib import Path


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
    with pytest.raises(GoldenError, match="in no git repository"):
        find_base(tmp_path / MANIFEST, "main", read_head(tmp_path))
    with pytest.raises(GoldenError, match="in no git repository"):
        find_checkout(tmp_path)


def test_root_of_the_checkout_is_found_from_below(declared: Repository) -> None:
    assert find_checkout(declared.folder / "a") == declared.folder
