from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.report.shell_command import shell_command

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep").mkdir()
    (tmp_path / "golden_projects.yaml").touch()
    (tmp_path / "deep" / "our gate.yaml").touch()
    return tmp_path


def test_manifest_that_the_command_finds_by_itself_is_not_named(folder: Path) -> None:
    manifest = folder / "golden_projects.yaml"
    assert shell_command("a", manifest, folder, {}) == "golden run a --shell"
    assert shell_command("a", manifest, folder / "deep", {}) == "golden run a --shell"
    (folder / "linked").symlink_to(folder)
    assert shell_command("a", folder / "linked" / "golden_projects.yaml", folder, {}) == "golden run a --shell"


def test_other_manifest_is_named_relative_where_it_is_below(folder: Path) -> None:
    other = folder / "deep" / "our gate.yaml"
    assert shell_command("a", other, folder, {}) == "golden run a --shell --manifest 'deep/our gate.yaml'"
    assert shell_command("a", other, folder / "else", {}) == f"golden run a --shell --manifest '{other}'"
    nearest = folder / "deep" / "golden_projects.yaml"
    nearest.touch()
    outer = folder / "golden_projects.yaml"
    assert shell_command("a", outer, folder / "deep", {}) == f"golden run a --shell --manifest {outer}"


def test_manifest_is_named_where_the_environment_names_one(folder: Path) -> None:
    told = shell_command("a", folder / "golden_projects.yaml", folder, {"GOLDEN_MANIFEST": "deep/our gate.yaml"})
    assert told == "golden run a --shell --manifest golden_projects.yaml"
