from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.cli.init import FoundPipeline, find_pipelines

if TYPE_CHECKING:
    from pathlib import Path


def put(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("{}")


def test_only_what_is_certain_is_found(folder: Path) -> None:
    put(folder, "b/report.ipynb", "a/dbt_project.yml", "etl.py", "run.sh", "docker-compose.yml", "data.csv")
    assert find_pipelines(folder) == (
        FoundPipeline("a/dbt_project.yml", "dbt"),
        FoundPipeline("b/report.ipynb", "notebook"),
    )


def test_folders_of_tools_are_left_out(folder: Path) -> None:
    put(
        folder,
        "shop/dbt_project.yml",
        "shop/dbt_packages/utils/dbt_project.yml",
        "shop/target/dbt_project.yml",
        "node_modules/x/a.ipynb",
        ".hidden/a.ipynb",
        "work/.ipynb_checkpoints/a.ipynb",
        "env/pyvenv.cfg",
        "env/share/a.ipynb",
    )
    assert [pipeline.path for pipeline in find_pipelines(folder)] == ["shop/dbt_project.yml"]


def test_folder_without_end_is_given_up(folder: Path) -> None:
    put(folder, "a/a.ipynb", "b/b.ipynb", "c/c.ipynb")
    assert len(find_pipelines(folder, most_looked_at=2)) == 2


def test_file_that_cannot_be_read_is_passed_over(folder: Path) -> None:
    (folder / "dangling.yaml").symlink_to("nowhere")
    assert find_pipelines(folder) == ()
