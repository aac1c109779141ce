from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.history.base import read_base_manifest

if TYPE_CHECKING:
    from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "golden_projects.yaml").write_text("version: 1\n# first, ä\n", encoding="utf-8")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_text_at_the_base_is_given_and_nothing_is_checked_out(repository: Path) -> None:
    manifest = repository / "sub" / "golden_projects.yaml"
    manifest.write_text("version: 1\n# second\n")
    base = read_base_manifest(manifest, "main")
    assert base.text == "version: 1\n# first, ä\n"
    assert base.commit == git(repository, "rev-parse", "main")
    assert manifest.read_text() == "version: 1\n# second\n"


def test_base_without_a_manifest_is_told_apart(repository: Path) -> None:
    assert read_base_manifest(repository / "golden_projects.yaml", "main").text is None


def test_unknown_ref_says_what_to_fetch(repository: Path) -> None:
    manifest = repository / "sub" / "golden_projects.yaml"
    with pytest.raises(
        GoldenError, match=r"no such commit here\. Check its name, or fetch it first: git fetch origin gone"
    ):
        read_base_manifest(manifest, "gone")
    with pytest.raises(GoldenError, match=r"git fetch upstream release/1"):
        read_base_manifest(manifest, "upstream/release/1")


@pytest.mark.parametrize("ref", ["", "--output=x"])
def test_ref_that_git_would_take_for_an_option_is_refused(repository: Path, ref: str) -> None:
    with pytest.raises(GoldenError, match="is no git ref"):
        read_base_manifest(repository / "sub" / "golden_projects.yaml", ref)


def test_folder_outside_git_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(GoldenError, match="is in no git repository"):
        read_base_manifest(tmp_path / "golden_projects.yaml", "main")


def test_missing_git_is_said(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    with pytest.raises(GoldenError, match="--golden-base main: there is no git on PATH: install it"):
        read_base_manifest(repository / "sub" / "golden_projects.yaml", "main")


def test_folder_in_the_manifests_place_is_no_manifest(repository: Path) -> None:
    assert read_base_manifest(repository / "sub", "main").text is None
