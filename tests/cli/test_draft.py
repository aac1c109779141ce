from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.cli.init import DraftedProject, FoundPipeline, draft_found, quote, write_draft
from pytest_golden.manifest.reader import parse_manifest

UNUSUAL = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)


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
    found = [FoundPipeline(path, "x") for path in (*paths, "ü.ipynb", "!.ipynb", "?.ipynb")]
    names = [project.name for project in draft_found(found)]
    assert names == ["dbt", "etl", "b_etl", "b_etl_2", "c_b_etl", "shop", "u", "project", "project_2"]


def test_command_and_patterns_are_written_so_that_they_read_back() -> None:
    project = DraftedProject(
        "x", "a.py", "python", "drafted", ("python", "-c", "print('a: #b')"), ".", ("out/**", "- odd: [x]")
    )
    (read,) = parse_manifest(write_draft([project]), "g.yaml", "/w").projects
    assert read.command == project.command
    assert read.writes == project.writes
    assert read.project_dir == "."
