from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.manifest.reader import load_manifest
from tests.permissions import without_powers

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden, GoldenProcess

ODIBI = "project: Sales\nengine: pandas\nconnections: {}\nstory: {}\npipelines: []\n"


def test_recognised_pipelines_are_declared_and_next_steps_told(golden_process: GoldenProcess, folder: Path) -> None:
    (folder / "sales").mkdir()
    (folder / "sales" / "orders.yaml").write_text(ODIBI)
    (folder / "dbt" / "shop").mkdir(parents=True)
    (folder / "dbt" / "shop" / "dbt_project.yml").write_text("name: shop\n")
    (folder / "some.yaml").write_text("a: 1\n")
    (folder / "helper.py").touch()
    ran = golden_process("init")
    assert (ran.code, ran.err) == (0, "")
    assert "wrote golden_projects.yaml with 2 golden projects" in ran.out
    for told in ("golden check", "golden run shop", "pytest --golden"):
        assert told in ran.out
    manifest = load_manifest(folder / "golden_projects.yaml")
    assert [(project.name, project.path) for project in manifest.projects] == [
        ("shop", "dbt/shop/dbt_project.yml"),
        ("orders", "sales/orders.yaml"),
    ]


def test_nothing_recognised_gives_a_template_with_an_example(golden: Golden, folder: Path) -> None:
    ran = golden("init")
    assert ran.code == 0
    assert "no pipeline was recognized with certainty" in ran.out
    text = (folder / "golden_projects.yaml").read_text()
    assert load_manifest(folder / "golden_projects.yaml").projects == ()
    uncommented = text.replace("  # - name", "  - name").replace("  #   path", "    path")
    (folder / "golden_projects.yaml").write_text(uncommented)
    (project,) = load_manifest(folder / "golden_projects.yaml").projects
    assert (project.name, project.path) == ("sales_daily", "sales/pipeline.yaml")


def test_every_key_that_the_comments_name_is_valid(golden: Golden, folder: Path) -> None:
    golden("init")
    text = (folder / "golden_projects.yaml").read_text()
    examples = [line.removeprefix("#") for line in text.splitlines() if line.startswith("#     ")]
    assert len(examples) == 8
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n  - path: a.py\n" + "".join(f"{line[1:]}\n" for line in examples)
    )
    (project,) = load_manifest(folder / "golden_projects.yaml").projects
    assert project.timeout == 1800


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_manifest_that_exists_is_never_overwritten(golden: Golden, folder: Path, kind: str) -> None:
    manifest = folder / "golden_projects.yaml"
    if kind == "file":
        manifest.write_text("mine")
    elif kind == "link":
        manifest.symlink_to("nowhere")
    else:
        manifest.mkdir()
    ran = golden("init", "--from", "touch ran")
    assert (ran.code, ran.out) == (2, "")
    assert "exists and is not overwritten" in ran.err
    if kind == "file":
        assert manifest.read_text() == "mine"


def test_manifest_may_have_another_name_and_place(golden: Golden, folder: Path) -> None:
    (folder / "gate").mkdir()
    ran = golden("init", "--manifest", "gate/floor.yaml")
    assert ran.code == 0
    assert "pytest --golden --golden-manifest gate/floor.yaml" in ran.out
    assert "golden check --manifest gate/floor.yaml" in ran.out
    assert "golden run NAME --manifest gate/floor.yaml" in ran.out
    assert (folder / "gate" / "floor.yaml").exists()
    ran = golden("init", "--manifest", "nowhere/floor.yaml")
    assert ran.code == 2
    assert "nowhere does not exist" in ran.err


def test_json_names_what_was_declared(golden: Golden, folder: Path) -> None:
    (folder / "orders.yml").write_text(ODIBI)
    ran = golden("init", "--json")
    assert ran.json == {
        "manifest": str(folder / "golden_projects.yaml"),
        "projects": [{"name": "orders", "path": "orders.yml", "runner": "odibi"}],
    }


def test_command_is_run_once_and_declared_with_what_it_wrote(golden_process: GoldenProcess, folder: Path) -> None:
    (folder / "etl.py").write_text(
        "import pathlib, sys\npathlib.Path('out/deep').mkdir(parents=True)\n"
        "pathlib.Path('out/deep/a.csv').write_text(sys.argv[1])\npathlib.Path('log[1].txt').touch()\n"
    )
    ran = golden_process("init", "--from", "python etl.py 'first of May'")
    assert (ran.code, ran.err) == (0, "")
    assert not (folder / "out").exists()
    (project,) = load_manifest(folder / "golden_projects.yaml").projects
    assert project.path == "etl.py"
    assert project.command == ("python", "etl.py", "first of May")
    assert project.writes == ("log[[]1].txt", "out/**")
    assert project.unexpected_files == "warn"
    again = golden_process("run", project.name)
    assert again.code == 0
    assert "note:" not in again.out


def test_failing_command_is_exit_code_1_with_its_reason_and_no_file(golden: Golden, folder: Path) -> None:
    command = f"{sys.executable} -c 'raise SystemExit(\"no seed\")'"
    ran = golden("init", "--from", command)
    assert ran.code == 1
    assert "nothing was written" in ran.out
    assert "no seed" in ran.out
    assert "--shell" not in ran.out
    as_json = golden("init", "--json", "--from", command)
    assert as_json.code == 1
    assert as_json.json["exit_code"] == 1
    assert not (folder / "golden_projects.yaml").exists()


def test_missing_program_is_told(golden: Golden) -> None:
    ran = golden("init", "--from", "nothing_like_it --now")
    assert ran.code == 1
    assert "`nothing_like_it` is not on PATH" in ran.out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "has no command"),
        ("python 'etl.py", "No closing quotation"),
        ("python etl.py | tee log", "sh -c"),
        ("python a.py && python b.py", "'&&' has no meaning"),
    ],
)
def test_text_that_is_no_command_is_bad_input(golden: Golden, command: str, said: str) -> None:
    ran = golden("init", "--from", command)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


@without_powers
def test_folder_that_cannot_be_written_is_a_sentence(golden: Golden, folder: Path) -> None:
    folder.chmod(0o500)
    try:
        ran = golden("init")
    finally:
        folder.chmod(0o700)
    assert ran.code == 2
    assert "Permission denied" in ran.err


def test_more_pipelines_than_are_declared_is_said(golden: Golden, folder: Path) -> None:
    for number in range(51):
        (folder / f"n{number}.ipynb").write_text("{}")
    ran = golden("init")
    assert ran.code == 0
    assert "it stops at 50" in ran.out
    assert len(load_manifest(folder / "golden_projects.yaml").projects) == 50
