from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.cli.nf_test import translate_tests
from pytest_golden.errors import SettingsError
from pytest_golden.manifest.reader import load_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

TESTS = """
nextflow_pipeline {
    // A comment, with { a brace
    name "Whole pipeline"
    script "../main.nf"
    tag "pipeline"
    profile "docker"

    test("Should run end-to-end") {
        tag "two words"
        options "-stub -resume"
        when {
            params {
                input = "${projectDir}/tests/data/simple.csv"
                outdir = "$outputDir"
                url = 'https://example.org/a'
                min_length = 100
                strict = true
                moment = new Date()
                home = "$HOME/x"
            }
        }
        then {
            assertAll(
                { assert workflow.success },
                { assert workflow.trace.tasks().size() == 3 },
                { assert snapshot(
                    stable_path
                ).match() }
            )
            assert path("$outputDir/native/10x").exists()
            assert file("${outputDir}/total.txt").exists()
            assert new File("$outputDir/run.txt").text.contains('Illumina 2500')
            assert !path("$outputDir/gone.txt").exists()
            assert path("/somewhere/else.txt").exists()
            def names = getAllFilesFromDir(params.outdir, ignore: ['pipeline_info/*.{html,txt}'])
            /* assert workflow.failed
            */ assert workflow.stdout.contains("3 samples")
        }
    }

    test("Refuses {a} bad sample") {
        then { assert workflow.failed }
    }
}
"""


@pytest.fixture
def tests(folder: Path) -> Path:
    (folder / "main.nf").touch()
    (folder / "tests").mkdir()
    (folder / "tests" / "main.nf.test").write_text(TESTS)
    (folder / "tests" / "one.nf.test").write_text('nextflow_process {\n script "x.nf"\n test("one") { }\n}\n')
    (folder / "nf-test.config").write_text(
        'config {\n    profile "test"\n    configFile = "tests/nextflow.config"\n}\n'
    )
    return folder


def test_tests_of_pipelines_become_golden_projects(golden: Golden, tests: Path) -> None:
    ran = golden("init", "--from", "nf-test")
    assert ran.code == 0, ran.err
    whole, refused = load_manifest(tests / "golden_projects.yaml").projects
    assert (whole.name, whole.title, whole.path) == ("Should_run_end-to-end", "Should run end-to-end", "main.nf")
    assert whole.tags == ("pipeline", "two_words")
    assert whole.args == (
        *("-profile", "docker", "-c", "tests/nextflow.config", "-stub", "-resume"),
        *("--input", "tests/data/simple.csv", "--outdir", "results", "--url", "https://example.org/a"),
        *("--min_length", "100", "--strict", "true"),
    )
    assert [(output.path, output.compare, output.contains) for output in whole.outputs] == [
        ("results/native/10x/**", "exists", ()),
        ("results/total.txt", "exists", ()),
        ("results/run.txt", "exists", ("Illumina 2500",)),
    ]
    assert whole.stdout is not None
    assert whole.stdout.contains == ("3 samples",)
    assert whole.writes == ("results/**",)
    assert (refused.title, refused.expected_outcome) == ("Refuses {a} bad sample", "exit_code:1")
    told = " ".join(ran.out.split())
    assert "params.moment = new Date(): give its value in `args:`" in told
    assert 'params.home = "$HOME/x": give its value in `args:`' in told
    assert "assert workflow.trace.tasks().size() == 3: has no equal" in told
    assert 'assert !path("$outputDir/gone.txt").exists(): has no equal' in told
    assert 'assert path("/somewhere/else.txt").exists(): has no equal' in told
    assert "a snapshot: declare its files in `outputs:`, whose baselines you accept once" in told


def test_a_script_in_a_folder_is_run_from_the_root(folder: Path) -> None:
    (folder / "a.nf.test").write_text('nextflow_pipeline {\n script "flows/main.nf"\n test("x") {\n then {')
    (project,) = translate_tests(folder)
    assert (project.name, project.path, project.project_dir, project.keys) == (
        "x",
        "flows/main.nf",
        ".",
        {"title": "x"},
    )


@pytest.mark.parametrize(
    "text", ["", 'nextflow_process {\n script "x.nf"\n test("one") { }\n}', "nextflow_pipeline {}"]
)
def test_no_test_of_a_pipeline_is_told(folder: Path, text: str) -> None:
    (folder / "a.nf.test").write_text(text)
    with pytest.raises(SettingsError, match="no tests of pipelines by nf-test"):
        translate_tests(folder)


@pytest.mark.parametrize(
    "text", ["/*" * 400_000, "test('x' " * 100_000, "\n" * 1_000_000, " tag " * 200_000, "test('x') {\n" * 60_000]
)
def test_a_file_that_is_made_to_be_slow_is_read_to_its_end(folder: Path, text: str) -> None:
    # In time that grows with the square of its size this would never end.
    (folder / "a.nf.test").write_text(f'nextflow_pipeline {{\n script "main.nf"\n {text}')
    (folder / "b.nf.test").write_text('nextflow_pipeline {\n script "main.nf"\n test("last") {\n then {')
    assert translate_tests(folder)[-1].name == "last"
