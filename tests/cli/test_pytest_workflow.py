from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.cli.pytest_workflow import translate_tests
from pytest_golden.errors import SettingsError
from pytest_golden.manifest.reader import load_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

TESTS = """
- name: count the herd
  tags: [animals, two words]
  command: sh count.sh cow
  files:
    - path: herd.txt
      contains: cow
      must_not_contain: [sheep]
      contains_regex: ["^cow"]
      encoding: latin-1
    - path: herd.txt.gz
      extract_md5sum: 093dbe225ebbc913d3c1dfd75e6fac53
    - path: counted.txt
      md5sum: 093dbe225ebbc913d3c1dfd75e6fac53
      contains: [1]
    - path: rejected.txt
      should_exist: false
  stdout:
    contains: ["3 animals"]
    must_not_contain_regex: ["[0-9]{3}"]
  later: something new
- name: refuse
  command: sh count.sh unicorn
  exit_code: 2
  stderr: {must_not_contain: [Traceback]}
- name: refuse
  command: sh count.sh
"""


@pytest.fixture
def tests_folder(folder: Path) -> Path:
    (folder / "tests").mkdir()
    (folder / "tests" / "test_herd.yml").write_text(TESTS)
    (folder / "tests" / "test_other.yaml").write_text("a: {b: c}\n")
    (folder / "tests" / "test_broken.yml").write_text("- {name: [\n")
    (folder / "count.sh").touch()
    return folder


def test_each_test_becomes_a_project_with_what_has_an_equal(tests_folder: Path, golden: Golden) -> None:
    ran = golden("init", "--from", "pytest-workflow")
    assert ran.code == 0, ran.err
    herd, refuse, again = load_manifest(tests_folder / "golden_projects.yaml").projects
    assert (herd.name, herd.title, herd.path, herd.project_dir) == ("count_the_herd", "count the herd", "count.sh", ".")
    assert (herd.command, herd.tags) == (("sh", "count.sh", "cow"), ("animals", "two_words"))
    found, packed, counted = herd.outputs
    assert (found.path, found.compare, found.contains, found.not_contains) == (
        "herd.txt",
        "exists",
        ("cow",),
        ("sheep",),
    )
    assert (packed.path, packed.compare) == ("herd.txt.gz", "bytes")
    assert (counted.path, counted.compare, counted.contains) == ("counted.txt", "text", ("1",))
    assert herd.unexpected_files == "fail"
    assert herd.stdout is not None
    assert herd.stdout.contains == ("3 animals",)
    assert (refuse.name, refuse.expected_outcome, again.name) == ("refuse", "exit_code:2", "refuse_2")
    assert refuse.stderr is not None
    assert refuse.stderr.not_contains == ("Traceback",)


def test_what_has_no_equal_is_said(tests_folder: Path, golden: Golden) -> None:
    told = golden("init", "--from", "pytest-workflow").out
    for sentence in (
        "later: has no equal",
        "herd.txt: contains_regex has no equal",
        "herd.txt: encoding has no equal",
        "stdout: must_not_contain_regex has no equal",
        "herd.txt.gz: instead of its checksum",
        "rejected.txt must not exist",
    ):
        assert sentence in told, tests_folder


def test_they_are_added_to_a_manifest_under_names_of_their_own(tests_folder: Path, golden: Golden) -> None:
    manifest = tests_folder / "golden_projects.yaml"
    manifest.write_text("version: 1\ngolden_projects:\n- {name: refuse, path: count.sh}\n")
    assert golden("init", "--add", "--from", "pytest-workflow").code == 0
    names = [project.name for project in load_manifest(manifest).projects]
    assert names == ["refuse", "count_the_herd", "refuse_2", "refuse_3"]


@pytest.mark.parametrize(
    "keys",
    [
        "tags: 5",
        "tags: {a: b}",
        "files: 7",
        "files: [7, {path: 1}, {}]",
        "files: [{path: /abs}]",
        "files: [{path: ../up, md5sum: 1}]",
        "files: [{path: 'a[1].txt', contains: {b: c}}]",
        "exit_code: z",
        "exit_code: 700",
        "stdout: {contains: 4}",
        "stdout: [a]",
        "stderr: {must_not_contain: [[1], null, x]}",
    ],
)
def test_odd_values_cost_only_themselves(folder: Path, golden: Golden, keys: str) -> None:
    (folder / "test_a.yml").write_text(f"- name: odd\n  command: cat a.txt > b.txt\n  {keys}\n")
    ran = golden("init", "--from", "pytest-workflow")
    assert ran.code == 0, ran.err
    (project,) = load_manifest(folder / "golden_projects.yaml").projects
    assert project.command == ("cat", "a.txt", ">", "b.txt")


@pytest.mark.parametrize("command", ["''", "'a \"b'", "5"])
def test_a_test_without_a_command_is_none(tmp_path: Path, command: str) -> None:
    (tmp_path / "test_a.yml").write_text(f"- name: odd\n  command: {command}\n")
    with pytest.raises(SettingsError, match="there are no tests of pytest-workflow"):
        translate_tests(tmp_path)


def test_a_folder_without_such_tests_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_a.yml").write_text("- {name: 1}\n")
    with pytest.raises(SettingsError, match="there are no tests of pytest-workflow"):
        translate_tests(tmp_path)
