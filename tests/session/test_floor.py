from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gate_processes import WITHOUT_PLUGINS
from tests.repository import git

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
            "*accepts this with --golden-floor=accept (golden gate: --floor accept).",
            "golden: FAILED: 1 passed, floor weakened",
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
    result.stderr.fnmatch_lines(["*in addopts is refused*"])


@pytest.mark.parametrize("selection", [["-k", "one"], ["-k", "nobody"], ["golden_projects.yaml::one"]])
def test_deselecting_by_any_means_weakens(based: Workspace, selection: list[str]) -> None:
    result = based.run("--golden-base=main", *selection)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["two: was not run: deselected"])


def test_deselecting_in_the_configuration_weakens(based: Workspace) -> None:
    based.pytester.makeini("[pytest]\naddopts = -k one\n")
    assert based.run("--golden-base=main").ret == 1


def test_comparison_cannot_be_taken_away_by_the_configuration(based: Workspace) -> None:
    based.pytester.makeini("[pytest]\naddopts = -p no:golden_floor\n")
    result = based.run("--golden-base=main")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: -p no:golden_floor disables a part of the gate*"])


def test_skipping_weakens(based: Workspace) -> None:
    based.pytester.makeconftest(
        "import pytest\ndef pytest_collection_modifyitems(items): items[0].add_marker(pytest.mark.skip('no'))\n"
    )
    result = based.run("--golden-base=main")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["one: was not run: skipped by pytest: no"])


def test_base_without_any_manifest_is_said(workspace: Workspace) -> None:
    git(workspace.path, "init", "-q", "-b", "main")
    git(workspace.path, "add", "-A")
    git(workspace.path, "commit", "-q", "-m", "no floor")
    workspace.declare({"name": "three"}, file="other.yaml")
    for name, more in (("other.yaml", ["--golden-manifest=other.yaml"]), ("golden_projects.yaml", [])):
        workspace.declare({"name": "three"}, file=name)
        result = workspace.run("--golden-base=main", *more)
        assert result.ret == 0
        result.stdout.fnmatch_lines([f"golden: the base main (*) has no {name}: there is no floor to compare."])


def test_manifest_that_a_change_moves_is_compared_with_the_default_one_of_the_base(based: Workspace) -> None:
    based.declare({"name": "one"}, file="other.yaml")
    based.pytester.makeini("[pytest]\ngolden_manifest = other.yaml\n")
    result = based.run("--golden-base=main")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "*= weakened floor =*",
            "the manifest moved from golden_projects.yaml to other.yaml",
            "two: is gone*",
        ]
    )


def test_moved_manifest_needs_a_person_also_when_it_asks_the_same(based: Workspace) -> None:
    based.declare({"name": "one"}, {"name": "two"}, file="gate/floor.yaml", workspace_root="..")
    (based.path / "golden_projects.yaml").unlink()
    moved = based.run("--golden-base=main", "--golden-manifest=gate/floor.yaml")
    assert moved.ret == 1
    moved.stdout.fnmatch_lines(
        ["*= weakened floor =*", "the manifest moved from golden_projects.yaml to gate/floor.yaml"]
    )
    assert based.run("--golden-base=main", "--golden-manifest=gate/floor.yaml", "--golden-floor=accept").ret == 0


def test_what_a_change_tells_pytest_about_the_gate_is_compared(based: Workspace) -> None:
    based.pytester.makeini("[pytest]\naddopts = -ra -x\n")
    based.pytester.makeconftest("import pytest\ndef pytest_runtest_makereport(item, call): pass\n")
    result = based.run("--golden-base=main")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "*= weakened floor =*",
            "tox.ini: addopts gained -x",
            "conftest.py: changed what it does in the gate: pytest_runtest_makereport",
        ]
    )
    (based.path / "named.ini").write_text("[pytest]\n")
    git(based.path, "add", "-A")
    git(based.path, "commit", "-qm", "now the floor")
    assert based.run("--golden-base=main", "-c", "named.ini").ret == 0


def test_base_of_the_environment_wins_over_one_that_a_change_puts_into_addopts(
    based: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    based.declare({"name": "one"})
    based.pytester.makeini("[pytest]\naddopts = --golden-base=HEAD\n")
    git(based.path, "commit", "-aqm", "sink", "--allow-empty")
    git(based.path, "branch", "sunk")
    git(based.path, "branch", "-f", "floor", "main~1")
    assert based.run().ret == 0
    monkeypatch.setenv("GOLDEN_BASE", "floor")
    assert based.run().ret == 1
    assert based.run("--golden-base", "sunk").ret == 0


@pytest.mark.parametrize(
    "option", ["--collect-only", "--co", "--fixtures", "--help", "-qh", "--version", "--setup-plan", "--cache-show=x"]
)
def test_configuration_cannot_keep_a_gate_from_running(workspace: Workspace, option: str) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makeini(f"[pytest]\naddopts = -ra {option}\n")
    result = workspace.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        [f"ERROR: {option.replace('-qh', '-h')} in addopts is refused, because the gate would run nothing*"]
    )
    assert workspace.pytester.runpytest_inprocess(*WITHOUT_PLUGINS, "--co").ret != 4


def test_pass_on_an_input_that_the_change_has_emptied_is_told_and_is_not_red(workspace: Workspace) -> None:
    scripts = {name: {"name": name, "script": "cat *.csv > all.csv"} for name in ("full", "bare", "gone", "moved")}
    workspace.declare(*scripts.values())
    for name in scripts:
        (workspace.path / name / "rows.csv").write_text(f"id,amount\n1,{name}\n")
        (workspace.path / name / "other.csv").write_text("id,amount\n1,2\n")
        (workspace.path / name / "code.py").write_text("pass\n")
    git(workspace.path, "init", "-q", "-b", "main")
    git(workspace.path, "add", "-A")
    git(workspace.path, "commit", "-q", "-m", "the floor")
    (workspace.path / "full" / "rows.csv").write_text("id,amount\n3,4\n")
    (workspace.path / "full" / "code.py").write_text("")
    (workspace.path / "bare" / "rows.csv").write_text("id,amount\n")
    (workspace.path / "gone" / "rows.csv").unlink()
    (workspace.path / "moved" / "rows.csv").rename(workspace.path / "moved" / "lines.csv")
    git(workspace.path, "add", "-A")
    result = workspace.run("--golden-base=main")
    assert result.ret == 0
    told = [line for line in result.outlines if "passes also" in line]
    assert told == [
        "golden: bare passes also with an empty input: bare/rows.csv holds nothing any more.",
        "golden: gone passes also with an empty input: gone/rows.csv holds nothing any more.",
    ]


def test_unknown_base_is_a_usage_error_and_nothing_runs(based: Workspace) -> None:
    result = based.run("--golden-base=origin/main")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --golden-base origin/main: *git fetch origin main*"])
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


@pytest.fixture
def baselined(workspace: Workspace) -> Workspace:
    """A base whose project compares what it writes, `a.txt`, with an accepted output."""
    workspace.declare({"name": "one", "script": "echo 1 > a.txt", "outputs": [{"path": "a.txt"}]})
    baseline = workspace.path / "golden_baselines" / "one" / "a.txt"
    baseline.parent.mkdir(parents=True)
    baseline.write_text("1\n")
    git(workspace.path, "init", "-q", "-b", "main")
    git(workspace.path, "add", "-A")
    git(workspace.path, "commit", "-q", "-m", "the floor")
    return workspace


def test_output_that_is_given_up_weakens(baselined: Workspace) -> None:
    baselined.declare({"name": "one", "script": "echo 1 > a.txt"})
    result = baselined.run("--golden-base=main", "--golden-json=out.json")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["one: the output a.txt: is no longer an output*"])
    assert '"output"' in (baselined.path / "out.json").read_text()


def test_changed_baseline_weakens_although_all_passed(baselined: Workspace) -> None:
    baselined.declare({"name": "one", "script": "echo 2 > a.txt", "outputs": [{"path": "a.txt"}]})
    (baselined.path / "golden_baselines" / "one" / "a.txt").write_text("2\n")
    result = baselined.run("--golden-base=main")
    assert result.ret == 1
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["one: baseline was changed: a.txt", "golden: FAILED: 1 passed, floor weakened"])
    assert baselined.run("--golden-base=main", "--golden-floor=accept").ret == 0


def test_update_is_refused_in_ci_and_nothing_runs(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    workspace.declare({"name": "one"})
    result = workspace.run("--golden-update")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --golden-update is refused in CI (CI is set)*"])
    assert not (workspace.path / ".golden").exists()


def test_session_that_accepts_outputs_is_not_red_for_the_baselines_that_it_accepts(
    baselined: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    (baselined.path / "golden_baselines" / "one" / "a.txt").write_text("2\n")
    assert baselined.run("--golden-base=main").ret == 1
    assert baselined.run("--golden-base=main", "--golden-update").ret == 0


def test_base_whose_baselines_git_cannot_list_is_a_usage_error_and_nothing_runs(baselined: Workspace) -> None:
    tree = git(baselined.path, "rev-parse", "main:golden_baselines")
    (baselined.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    result = baselined.run("--golden-base=main")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: the floor cannot be compared: the baselines at * cannot be listed*"])
    result.stdout.no_fnmatch_line("*PASSED*")
