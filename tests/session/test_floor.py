from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gate.test_base_manifest import git

if TYPE_CHECKING:
    from tests.session.workspace import Workspace


@pytest.fixture
def based(workspace: Workspace) -> Workspace:
    workspace.declare({"name": "one"}, {"name": "two"})
    git(workspace.path, "init", "-q", "-b", "main")
    git(workspace.path, "add", "-A")
    git(workspace.path, "commit", "-q", "-m", "the floor")
    return workspace


def test_same_floor_passes(based: Workspace) -> None:
    result = based.run("--golden-base=main")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*weakened floor*")


def test_weakened_floor_fails_although_all_passed(based: Workspace) -> None:
    based.declare({"name": "one", "retries": 2})
    result = based.run("--golden-base=main", "--golden-json=out.json")
    assert result.ret == 1
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*= weakened floor =*",
            "one: retries was raised*",
            "two: is gone*",
            "*accepts this with --golden-floor=accept*",
            "golden: 1 passed, floor weakened",
        ]
    )
    assert '"project_gone"' in (based.path / "out.json").read_text()


def test_weakened_floor_accepted_by_a_person_passes_and_is_shown(based: Workspace) -> None:
    based.declare({"name": "one"})
    result = based.run("--golden-base=main", "--golden-floor=accept")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*weakened floor, accepted*", "two: is gone*"])


def test_floor_does_not_accept_itself(based: Workspace) -> None:
    based.pytester.makeini("[pytest]\naddopts = --golden-floor=accept\n")
    result = based.run("--golden-base=main")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*in addopts is not taken*"])


@pytest.mark.parametrize("selection", [["-k", "one"], ["-k", "nobody"], ["golden_projects.yaml::one"]])
def test_deselecting_by_any_means_weakens(based: Workspace, selection: list[str]) -> None:
    result = based.run("--golden-base=main", *selection)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["two: was not run: deselected"])


def test_deselecting_in_the_configuration_weakens(based: Workspace) -> None:
    based.pytester.makeini("[pytest]\naddopts = -k one\n")
    assert based.run("--golden-base=main").ret == 1


def test_skipping_weakens(based: Workspace) -> None:
    based.pytester.makeconftest(
        "import pytest\ndef pytest_collection_modifyitems(items): items[0].add_marker(pytest.mark.skip('no'))\n"
    )
    result = based.run("--golden-base=main")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["one: was not run: skipped by pytest: no"])


def test_base_without_a_manifest_is_said(based: Workspace) -> None:
    based.declare({"name": "three"}, file="other.yaml")
    result = based.run("--golden-base=main", "--golden-manifest=other.yaml")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["golden: the base main (*) has no other.yaml: there is no floor to compare."])


def test_unknown_base_is_a_usage_error_and_nothing_runs(based: Workspace) -> None:
    result = based.run("--golden-base=origin/main")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --golden-base origin/main: *git fetch origin main"])
    assert not (based.path / ".golden").exists()


def test_base_with_a_manifest_that_cannot_be_read_needs_a_person(based: Workspace) -> None:
    (based.path / "golden_projects.yaml").write_text("version: 1\nnonsense: true\n")
    git(based.path, "commit", "-aqm", "broken")
    based.declare({"name": "one"}, {"name": "two"})
    result = based.run("--golden-base=main")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*the manifest of the base main cannot be read*main:golden_projects.yaml:2:1*"])
    assert based.run("--golden-base=main", "--golden-floor=accept").ret == 0


def test_inline_form_has_no_floor(based: Workspace) -> None:
    result = based.run("--golden-base=main", "--golden-projects=one/run.sh")
    assert result.ret == 4


def test_collecting_compares_nothing(based: Workspace) -> None:
    based.declare({"name": "one"})
    assert based.run("--golden-base=main", "--collect-only").ret == 0


def test_github_shows_the_weakening_at_its_line(based: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(based.path))
    based.declare({"name": "one", "retries": 2}, {"name": "two", "script": "exit 1"}, require_golden_projects=False)
    result = based.run("--golden-base=main")
    result.stdout.fnmatch_lines(
        [
            "::error file=golden_projects.yaml,line=*,title=two%3A FAILED::exit code 1, expected 0*",
            "::error file=golden_projects.yaml,line=*,title=weakened floor::one: retries was raised*",
        ]
    )
