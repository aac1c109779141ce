from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.session.workspace import FAILS, PASSES

if TYPE_CHECKING:
    from tests.session.recorded import Recorded
    from tests.session.workspace import Workspace

THREE = ({"name": "zebra"}, {"name": "ant", "tags": ["nightly", "a.b-c", "_x"]}, {"name": "mole"})


def collected(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


def test_golden_alone_runs_the_gate_and_nothing_else(workspace: Workspace) -> None:
    workspace.declare(*THREE)
    workspace.pytester.makepyfile(test_other="def test_other(): assert False")
    result = workspace.run()
    assert result.ret == 0
    result.assert_outcomes(passed=3)


def test_testpaths_do_not_count_as_given_paths(workspace: Workspace) -> None:
    workspace.declare(*THREE)
    workspace.pytester.makeini("[pytest]\ntestpaths = tests\n")
    workspace.pytester.mkdir("tests").joinpath("test_other.py").write_text("def test_other(): assert False")
    result = workspace.run()
    result.assert_outcomes(passed=3)
    result.stdout.no_fnmatch_line("testpaths:*")


def test_given_tests_run_first_and_the_gate_after_them(workspace: Workspace) -> None:
    workspace.declare(*THREE)
    workspace.pytester.makepyfile(test_other="def test_other(): pass")
    assert collected(workspace.run("--collect-only", "-q", "test_other.py")) == [
        "test_other.py::test_other",
        "golden_projects.yaml::zebra",
        "golden_projects.yaml::ant",
        "golden_projects.yaml::mole",
    ]


@pytest.mark.parametrize("given", [["."], ["golden_projects.yaml"], ["--keep-duplicates", ".", "golden_projects.yaml"]])
def test_manifest_that_is_given_already_is_collected_once(workspace: Workspace, given: list[str]) -> None:
    workspace.declare(*THREE)
    assert len(collected(workspace.run("--collect-only", "-q", *given))) == 3


def test_path_of_an_option_does_not_hide_the_manifest_from_a_gate_without_a_configuration(workspace: Workspace) -> None:
    workspace.declare(*THREE)
    (workspace.path / "tox.ini").unlink()
    aside = workspace.path.parent / "aside"
    aside.mkdir()
    # pytest takes what this path and the folder have in common for the rootdir.
    result = workspace.run("--golden-json", str(aside / "report.json"), "--collect-only", "-q")
    assert len(collected(result)) == 3


def test_one_project_can_be_named(workspace: Workspace) -> None:
    workspace.declare(*THREE)
    assert collected(workspace.run("--collect-only", "-q", "golden_projects.yaml::ant")) == [
        "golden_projects.yaml::ant"
    ]


def test_unknown_project_is_a_usage_error(workspace: Workspace) -> None:
    workspace.declare(*THREE)
    assert workspace.run("golden_projects.yaml::nobody").ret == 4


def test_collect_only_executes_nothing_and_writes_nothing(workspace: Workspace) -> None:
    workspace.declare({"name": "loud", "script": f"touch {workspace.path}/was-run"})
    before = sorted(workspace.path.rglob("*"))
    result = workspace.run("--collect-only", "-p", "no:cacheprovider")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*GoldenManifestFile golden_projects.yaml*", "*GoldenItem loud*"])
    assert sorted(workspace.path.rglob("*")) == before


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("golden", ["zebra", "ant", "mole"]),
        ("nightly", ["ant"]),
        ("a.b-c", ["ant"]),
        ("golden_tag__x", ["ant"]),
        ("golden and not nightly", ["zebra", "mole"]),
    ],
)
def test_markers_select(workspace: Workspace, expression: str, names: list[str]) -> None:
    workspace.declare(*THREE)
    found = collected(workspace.run("--collect-only", "-q", "-m", expression))
    assert found == [f"golden_projects.yaml::{name}" for name in names]


def test_keywords_select_by_name_and_tag(workspace: Workspace) -> None:
    workspace.declare(*THREE)
    assert collected(workspace.run("--collect-only", "-q", "-k", "mole or nightly")) == [
        "golden_projects.yaml::ant",
        "golden_projects.yaml::mole",
    ]


def test_selecting_nothing_runs_nothing(workspace: Workspace) -> None:
    workspace.declare({"name": "loud", "script": f"touch {workspace.path}/was-run"})
    result = workspace.run("-k", "nothing")
    assert result.ret == 5
    result.stdout.fnmatch_lines(["golden: NOTHING RAN (partial: 1 deselected)"])
    assert not (workspace.path / "was-run").exists()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_declaration_order_survives_shuffling(workspace: Workspace, seed: int) -> None:
    pytest.importorskip("pytest_randomly")
    workspace.declare(*THREE)
    result = workspace.pytester.runpytest_inprocess(
        "--golden", "--collect-only", "-q", "-p", "no:hypothesispytest", f"--randomly-seed={seed}"
    )
    assert [line.rpartition(":")[2] for line in collected(result)] == ["zebra", "ant", "mole"]


def test_declaration_order_survives_failed_first(workspace: Workspace) -> None:
    workspace.declare({"name": "one"}, {"name": "two", "script": "exit 1"}, {"name": "three"})
    workspace.run()
    result = workspace.run("--ff", "--collect-only", "-q")
    assert [line.rpartition(":")[2] for line in collected(result)] == ["one", "two", "three"]


def test_last_failed_runs_what_failed(workspace: Workspace) -> None:
    workspace.declare({"name": "one"}, {"name": "two", "script": "exit 1"}, {"name": "three"})
    workspace.run()
    result = workspace.run("--lf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["golden: FAILED (partial: 2 deselected): 1 failed"])


def test_inline_form_is_selected_like_any_test(workspace: Workspace) -> None:
    for name in ("one", "two", "three"):
        workspace.write_pipeline(name, PASSES if name != "two" else "exit 1")
    inline = "--golden-projects=one:one/run.sh, two:two/run.sh, three:three/run.sh"
    assert collected(workspace.run(inline, "--collect-only", "-q")) == [
        "golden_projects.yaml::one",
        "golden_projects.yaml::two",
        "golden_projects.yaml::three",
    ]
    workspace.run(inline).assert_outcomes(passed=2, failed=1)
    assert len(collected(workspace.run(inline, "--lf", "--collect-only", "-q"))) == 1
    assert len(collected(workspace.run(inline, "-k", "one", "--nf", "--collect-only", "-q"))) == 1
    workspace.pytester.makepyfile(test_other="def test_other(): pass")
    workspace.run(inline, "test_other.py", "-m", "not golden").assert_outcomes(passed=1, deselected=3)


def test_inline_projects_are_named_by_their_node_ids(workspace: Workspace) -> None:
    for name in ("one", "two", "three"):
        workspace.write_pipeline(name, PASSES)
    inline = "--golden-projects=one:one/run.sh, two:two/run.sh, three:three/run.sh"
    result = workspace.run(inline, "golden_projects.yaml::three", "golden_projects.yaml::one")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["deselected: two", "golden: PASSED (partial: 1 deselected): 2 passed"])
    workspace.pytester.makepyfile(test_other="def test_other(): pass")
    assert collected(workspace.run(inline, "--collect-only", "-q", "test_other.py", "golden_projects.yaml::two")) == [
        "test_other.py::test_other",
        "golden_projects.yaml::two",
    ]
    assert len(collected(workspace.run(inline, "--collect-only", "-q", "golden_projects.yaml"))) == 3


def test_unknown_inline_project_is_a_usage_error(workspace: Workspace) -> None:
    workspace.write_pipeline("one", PASSES)
    result = workspace.run("--golden-projects=one:one/run.sh", "golden_projects.yaml::nobody")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --golden-projects declares no nobody; it declares one."])


def test_gate_runs_from_a_folder_below_the_rootdir(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.declare({"name": "one"})
    below = workspace.pytester.mkdir("below")
    monkeypatch.chdir(below)
    workspace.run().assert_outcomes(passed=1)


@pytest.mark.parametrize("named", [[], ["../golden_projects.yaml::one"], ["-n1"]])
def test_gate_without_configuration_runs_from_a_folder_below_its_manifest(
    workspace: Workspace, recorded: Recorded, monkeypatch: pytest.MonkeyPatch, named: list[str]
) -> None:
    workspace.declare({"name": "one"})
    (workspace.path / "tox.ini").unlink()
    monkeypatch.chdir(workspace.pytester.mkdir("below"))
    result = workspace.run(f"--junitxml={workspace.path}/junit.xml", "-rA", *named)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["golden: PASSED: 1 passed", "PASSED ../golden_projects.yaml::one*"])
    assert 'name="one"' in (workspace.path / "junit.xml").read_text()
    assert recorded.results() == {"one": "PASSED"}


def test_manifest_elsewhere_is_taken(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.declare({"name": "one"}, file="deep/gate.yaml", workspace_root="..")
    assert collected(workspace.run("--golden-manifest=deep/gate.yaml", "--collect-only", "-q")) == [
        "deep/gate.yaml::one"
    ]
    inside = workspace.pytester.mkdir("inside")
    (inside / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(inside)
    result = workspace.run("--golden-manifest=../deep/gate.yaml")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["golden: ../deep/gate.yaml, 1 project", "golden: PASSED: 1 passed"])


def test_pyargs_does_not_hide_the_manifest(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    assert collected(workspace.run("--pyargs", "--collect-only", "-q")) == ["golden_projects.yaml::one"]


def test_brackets_in_the_path_to_the_workspace_do_no_harm(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.declare({"name": "one"}, file="odd[1]/golden_projects.yaml", workspace_root="..")
    (workspace.path / "odd[1]" / "pytest.ini").write_text("[pytest]\n")
    refused = workspace.run("--golden-manifest=odd[1]/golden_projects.yaml")
    assert refused.ret == 4
    refused.stderr.fnmatch_lines(["*pytest takes '[[]' and '::' in a path for a test's name*"])
    monkeypatch.chdir(workspace.path / "odd[1]")
    assert collected(workspace.run("--collect-only", "-q")) == ["golden_projects.yaml::one"]


def test_missing_manifest_says_what_to_do(workspace: Workspace) -> None:
    result = workspace.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: *golden_projects.yaml does not exist*run `golden init`*"])


def test_all_mistakes_of_a_manifest_are_said_at_once_and_nothing_runs(workspace: Workspace) -> None:
    (workspace.path / "golden_projects.yaml").write_text(
        "version: 1\ngolden_projects:\n  - {name: one, path: a.sh, retrys: 1}\n  - {name: one, path: b.sh}\n"
    )
    result = workspace.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*golden_projects.yaml:3:*retries*", "*golden_projects.yaml:4:*"])
    assert result.outlines == []


def test_tag_that_means_something_to_pytest_is_refused(workspace: Workspace) -> None:
    workspace.declare({"name": "one", "tags": ["skip"]})
    result = workspace.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*golden_projects.yaml:*the tag 'skip' already has a meaning in pytest*"])


def test_manifest_and_inline_form_together_are_refused(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    result = workspace.run("--golden-manifest=golden_projects.yaml", "--golden-projects=a.sh")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*give one of them*"])


@pytest.mark.parametrize("mode", ["improvement", "learning"])
def test_empty_manifest_warns_in_improvement_mode_and_is_exit_5(workspace: Workspace, mode: str) -> None:
    workspace.declare()
    result = workspace.run(f"--golden-mode={mode}")
    assert result.ret == 5
    warned = [line for line in result.outlines if "No golden projects" in line]
    assert len(warned) == (2 if mode == "improvement" else 0)


def test_inline_form_that_names_nothing_is_an_empty_manifest(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    result = workspace.run("--golden-projects=")
    assert result.ret == 5
    result.stdout.fnmatch_lines(["*No golden projects*"])
    required = workspace.run("--golden-projects= , ", "--golden-require")
    assert required.ret == 4
    required.stderr.fnmatch_lines(["*--golden-projects declares no golden projects, and they are required*"])


def test_empty_manifest_annotates_on_github(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(workspace.path))
    workspace.declare()
    result = workspace.run()
    result.stdout.fnmatch_lines(["::warning file=golden_projects.yaml,*::No golden projects*"])


@pytest.mark.parametrize("how", ["flag", "manifest"])
def test_empty_manifest_with_the_requirement_is_a_usage_error(workspace: Workspace, how: str) -> None:
    workspace.declare(require_golden_projects=how == "manifest")
    result = workspace.run(*(["--golden-require"] if how == "flag" else []))
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*declares no golden projects, and they are required*"])


def test_bad_value_in_the_ini_is_a_usage_error(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makeini("[pytest]\ngolden_keep = some\n")
    result = workspace.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: ini key golden_keep: 'some' is not one of none, failed, all."])


def test_markers_are_listed(workspace: Workspace) -> None:
    workspace.declare(*THREE)
    result = workspace.run("--markers")
    result.stdout.fnmatch_lines(
        ["*mark.golden: a golden project*", "*mark.nightly: golden projects with the tag nightly.*"]
    )


@pytest.mark.parametrize("also", ["", "\n timeout: limits"])
def test_marker_of_a_plugin_stays_its_own_and_the_tag_has_another(workspace: Workspace, also: str) -> None:
    workspace.pytester.makeini(f"[pytest]\nmarkers =\n shared: ours and theirs{also}\n")
    workspace.pytester.makeconftest(
        "def pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'timeout(seconds): ends a test')\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items: assert item.get_closest_marker('timeout') is None\n"
    )
    workspace.declare({"name": "one", "tags": ["timeout", "shared"]}, {"name": "two"})
    result = workspace.run("--strict-markers", "-m", "golden_tag_timeout and shared")
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines(
        ["golden: pytest or a plug-in uses the marker timeout: select the tag timeout with -m golden_tag_timeout"]
    )


@pytest.mark.parametrize("word", ["and", "or", "not"])
def test_tag_that_is_an_operator_of_m_is_selected_by_another_marker(workspace: Workspace, word: str) -> None:
    workspace.declare({"name": "one", "tags": [word]}, {"name": "two"})
    workspace.run("-m", f"golden_tag_{word}").assert_outcomes(passed=1, deselected=1)


def test_failed_first_moves_independent_projects_only_and_says_so(workspace: Workspace) -> None:
    free = {"script": FAILS, "independent": True}
    workspace.declare({"name": "one"}, {"name": "two", "script": FAILS}, {"name": "three", **free}, {"name": "four"})
    workspace.run("-p", "cacheprovider")
    result = workspace.run("-p", "cacheprovider", "--ff")
    rows = [line.split()[1] for line in result.outlines if re.match("(PASSED|FAILED) ", line)][:4]
    assert rows == ["three", "one", "two", "four"]
    result.stdout.fnmatch_lines(["golden: --ff moves only `independent` golden projects to the front; *"])


@pytest.mark.parametrize("given", [".", "{folder}"])
def test_tests_beside_the_manifest_are_collected_with_their_folder(workspace: Workspace, given: str) -> None:
    # pytest 8 leaves out what is beside a file that is named after its folder.
    workspace.declare(*THREE)
    workspace.pytester.makepyfile(test_other="def test_other(): pass")
    found = collected(workspace.run("--collect-only", "-q", given.format(folder=workspace.path)))
    assert (found[0], len(found)) == ("test_other.py::test_other", 4)
