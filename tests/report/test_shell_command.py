from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.report.shell_command import NAME_SIGNS, accept_arguments, accept_command, as_template, shell_command

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
    assert shell_command("a", outer, folder / "deep", {}) == "golden run a --shell --manifest ../golden_projects.yaml"


def test_manifest_is_named_where_the_environment_names_one(folder: Path) -> None:
    told = shell_command("a", folder / "golden_projects.yaml", folder, {"GOLDEN_MANIFEST": "deep/our gate.yaml"})
    assert told == "golden run a --shell --manifest golden_projects.yaml"


def test_accepting_names_the_project_alone_and_the_manifest(tmp_path: Path) -> None:
    manifest = tmp_path / "golden_projects.yaml"
    arguments = accept_arguments(["a", "b"], manifest, tmp_path)
    ids = ["golden_projects.yaml::a", "golden_projects.yaml::b"]
    assert arguments == ["--golden", "--golden-manifest=golden_projects.yaml", *ids, "--golden-update"]
    arguments = accept_arguments(["a"], tmp_path / "-x/g.yaml", tmp_path)
    assert arguments == ["--golden", "--golden-manifest=./-x/g.yaml", "./-x/g.yaml::a", "--golden-update"]


def test_command_with_braces_is_a_template_for_the_name_alone(tmp_path: Path) -> None:
    assert as_template(f"x {{0}} {NAME_SIGNS}").format(name="a.b-c") == "x {0} a.b-c"
    odd = tmp_path / "g{0}.yaml"
    assert accept_command(odd, tmp_path, {}).format(name="a") == "golden accept a --manifest 'g{0}.yaml'"
