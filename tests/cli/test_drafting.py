from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.cli.drafting import DraftedProject, draft_found, quote, write_draft
from pytest_golden.cli.finding_pipelines import FoundPipeline, find_pipelines
from pytest_golden.manifest.reader import parse_manifest

UNUSUAL = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)


def make_environment(place: Path) -> None:
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(sys.executable)


@given(UNUSUAL)
def test_any_text_survives_quoting(text: str) -> None:
    assert yaml.safe_load(quote(text)) == text
    assert yaml.safe_load(f"[{quote(text)}, x]") == [text, "x"]


def test_words_that_mean_something_in_yaml_are_quoted() -> None:
    assert [quote(text) for text in ("yes", "null", "a-b.c/d", "3")] == ['"yes"', '"null"', "a-b.c/d", '"3"']


def test_bytes_that_are_no_text_become_a_wildcard() -> None:
    assert quote("a\udcff.txt") == '"a?.txt"'


@given(st.lists(st.text("ab/.ü ", min_size=1, max_size=8).map(lambda text: f"x{text}.ipynb"), unique=True, max_size=8))
def test_draft_is_a_valid_manifest_whatever_the_paths(paths: list[str]) -> None:
    drafted = draft_found([FoundPipeline(path, "notebook") for path in paths])
    manifest = parse_manifest(write_draft(drafted), "g.yaml", "/w")
    assert [project.path for project in manifest.projects] == paths


def test_names_are_told_apart() -> None:
    paths = ("dbt_project.yml", "a/etl.ipynb", "b/etl.ipynb", "b_etl.ipynb", "c/b_etl.ipynb", "shop/dbt_project.yml")
    runners = {".yml": "dbt", ".ipynb": "notebook"}
    found = [FoundPipeline(path, runners[Path(path).suffix]) for path in (*paths, "ü.ipynb", "!.ipynb", "?.ipynb")]
    names = [project.name for project in draft_found(found)]
    assert names == ["dbt", "etl", "b_etl", "b_etl_2", "c_b_etl", "shop", "u", "notebook", "notebook_2"]


def test_command_and_patterns_are_written_so_that_they_read_back() -> None:
    project = DraftedProject(
        "x", "a.py", "python", "drafted", ("python", "-c", "print('a: #b')"), ".", ("out/**", "- odd: [x]")
    )
    (read,) = parse_manifest(write_draft([project]), "g.yaml", "/w").projects
    assert read.command == project.command
    assert read.writes == project.writes
    assert read.project_dir == "."


def test_projects_of_engines_are_found_and_named_after_their_folders(tmp_path: Path) -> None:
    files = {
        "shop/pyproject.toml": "[tool.kedro]\n",
        "lib/pyproject.toml": "[project]\n",
        "genes/Snakefile": "",
        "genes/modules/align.nf": "",
        "data/dvc.yaml": "stages: {}\n",
        "marts/config.yaml": "model_defaults: {dialect: duckdb}\n",
        "web/config.yaml": "port: 80\n",
        "build/Makefile": "all:\n",
        "study/_targets.R": "",
        "study/R/functions.R": "",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    drafted = draft_found(find_pipelines(tmp_path))
    assert [(project.name, project.runner) for project in drafted] == [
        ("data", "dvc"),
        ("genes", "snakemake"),
        ("marts", "sqlmesh"),
        ("shop", "kedro"),
        ("study", "targets"),
    ]


def test_environments_beside_or_above_a_pipeline_are_declared(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")
    make_environment(tmp_path / "shop" / "venv")
    found = [FoundPipeline("shop/dbt_project.yml", "dbt"), FoundPipeline("a/b/Snakefile", "snakemake")]
    drafted = draft_found(found, tmp_path)
    assert [project.venv for project in drafted] == ["shop/venv", ".venv"]
    assert [project.venv for project in parse_manifest(write_draft(drafted), "g.yaml", "/w").projects] == [
        "shop/venv",
        ".venv",
    ]


def test_a_variable_that_is_asked_for_is_passed(tmp_path: Path) -> None:
    (tmp_path / "etl.yaml").write_text("key: ${STORE_KEY}\n")
    drafted = draft_found([FoundPipeline("etl.yaml", "odibi")], tmp_path)
    assert drafted[0].told == (
        "it asks for STORE_KEY: the gate passes that, once you have looked at it; it is tried without",
    )
    (project,) = parse_manifest(write_draft(drafted), "g.yaml", tmp_path).projects
    assert project.pass_env == ("STORE_KEY",)


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (FoundPipeline("dbt_project.yml", "dbt"), "my_shop"),
        (FoundPipeline("genes/workflow/Snakefile", "snakemake", None, "genes"), "genes"),
        (FoundPipeline("workflow/Snakefile", "snakemake", None, "."), "my_shop"),
        (FoundPipeline("etl/definitions.py", "dagster", (), "."), "etl"),
        (FoundPipeline("etl/orders.py", "luigi", ("All",), "."), "orders"),
        (FoundPipeline("config.py", "sqlmesh", ()), "my_shop"),
    ],
)
def test_a_name_says_what_a_person_would_say(tmp_path: Path, found: FoundPipeline, name: str) -> None:
    folder = tmp_path / "my shop"
    folder.mkdir()
    assert [project.name for project in draft_found([found], folder)] == [name]


def test_data_beside_the_projects_folder_is_mounted(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "etl.yaml").write_text("base_path: ../data\n")
    drafted = draft_found([FoundPipeline("jobs/etl.yaml", "odibi")], tmp_path)
    (project,) = parse_manifest(write_draft(drafted), "g.yaml", tmp_path).projects
    assert [(mount.path, mount.mode) for mount in project.mounts] == [("data", "read")]
