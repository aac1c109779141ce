from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.cli.finding_pipelines import FoundPipeline, find_pipelines, find_venv, list_asked, list_neighbours

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


def test_the_nearest_environment_is_found_or_a_lock_file_that_one_is_made_of(folder: Path) -> None:
    put(folder, "etl/daily/run.py", "uv.lock")
    assert find_venv(folder, "etl/daily/run.py") == "uv:."
    put(folder, "etl/uv.lock")
    assert find_venv(folder, "etl/daily/run.py") == "uv:etl"
    put(folder, "etl/.venv/bin/python")
    assert find_venv(folder, "etl/daily/run.py") == "etl/.venv"
    assert find_venv(folder, "other.py") == "uv:."


def test_a_pipeline_is_started_where_people_start_it(folder: Path) -> None:
    put(folder, "genes/workflow/Snakefile", "etl/__init__.py", "etl/jobs/__init__.py")
    (folder / "etl" / "jobs" / "definitions.py").write_text("import dagster as dg\n\ndefs = dg.Definitions()\n")
    (folder / "plain.py").write_text("import dagster as dg\n\ndefs = dg.Definitions()\n")
    assert find_pipelines(folder) == (
        FoundPipeline("etl/jobs/definitions.py", "dagster", (), "."),
        FoundPipeline("genes/workflow/Snakefile", "snakemake", None, "genes"),
        FoundPipeline("plain.py", "dagster", ()),
    )


@pytest.mark.parametrize(
    ("packages", "found"),
    [
        ("packages:\n  - local: ../\n", [("tests/dbt_project.yml", ".")]),
        ("packages: [{local: ..}, {package: dbt-labs/dbt_utils, version: 1.1.1}]\n", [("tests/dbt_project.yml", ".")]),
        ("packages: [{package: dbt-labs/dbt_utils}]\n", [("dbt_project.yml", None), ("tests/dbt_project.yml", None)]),
        ("packages: [local, {local: [x]}]\n", [("dbt_project.yml", None), ("tests/dbt_project.yml", None)]),
        ("{{ not yaml\n", [("dbt_project.yml", None), ("tests/dbt_project.yml", None)]),
    ],
)
def test_a_package_of_dbt_is_no_project_but_an_input(
    folder: Path, packages: str, found: list[tuple[str, str | None]]
) -> None:
    put(folder, "dbt_project.yml", "tests/dbt_project.yml")
    (folder / "tests" / "packages.yml").write_text(packages)
    assert [(one.path, one.project_dir) for one in find_pipelines(folder)] == found


def test_a_package_of_a_declared_project_is_no_project_either(folder: Path) -> None:
    put(folder, "dbt_project.yml", "tests/dbt_project.yml", "own/dbt_project.yml")
    (folder / "tests" / "packages.yml").write_text("packages: [{local: ../}]\n")
    # Nothing is a package of itself.
    (folder / "own" / "packages.yml").write_text("packages: [{local: ''}, {local: .}]\n")
    known = {str(folder / "tests" / "dbt_project.yml")}
    assert [one.path for one in find_pipelines(folder, known=known)] == ["own/dbt_project.yml"]


def test_a_package_inside_its_project_stays_there(folder: Path) -> None:
    put(folder, "shop/dbt_project.yml", "shop/local/macros/dbt_project.yml")
    (folder / "shop" / "dependencies.yml").write_text("packages: [{local: local/macros}]\n")
    assert [(one.path, one.project_dir) for one in find_pipelines(folder)] == [("shop/dbt_project.yml", None)]


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("class All(luigi.WrapperTask):\n    def requires(self): ...\n", ("All",)),
        ("class All(luigi.WrapperTask):\n    task_namespace = 'shop'\n\n    def requires(self): ...\n", ("shop.All",)),
        ("class All(WrapperTask):\n    day = luigi.DateParameter(default=D)\n", ("All",)),
        ("class Base(WrapperTask):\n    day = luigi.DateParameter()\n", None),
        ("class Base(WrapperTask):\n    day = luigi.DateParameter()\nclass All(WrapperTask):\n    x = 1\n", ("All",)),
    ],
)
def test_a_task_of_luigi_is_named_as_luigi_names_it(folder: Path, text: str, args: tuple[str, ...] | None) -> None:
    (folder / "tasks.py").write_text(text)
    assert find_pipelines(folder) == (() if args is None else (FoundPipeline("tasks.py", "luigi", args),))


def test_a_sqlmesh_project_may_be_configured_by_a_script(folder: Path) -> None:
    text = "from sqlmesh.core.config import Config\n\nconfig = Config(gateways={})\n"
    (folder / "config.py").write_text(text)
    assert find_pipelines(folder) == (FoundPipeline("config.py", "sqlmesh", ()),)
    (folder / "config.py").write_text("from pydantic import Config\n\nconfig = Config()\n")
    assert find_pipelines(folder) == ()


@pytest.mark.parametrize(
    ("name", "text", "asked"),
    [
        ("etl.py", "os.environ['A']; os.environ[\"B\"] = 'x'; os.environ.get('C'); os.environ['HOME']", ("A",)),
        ("etl.py", "os.environ['A'] == 'x'\nurl = '${NOT_THIS}'", ("A",)),
        ("odibi.yaml", "key: ${STORE_KEY}\nday: ${date:today}\n", ("STORE_KEY",)),
        ("dbt_project.yml", "x: \"{{ env_var('A') }} {{ env_var('B', 'default') }}\"", ("A", "DB_PASSWORD")),
        ("gone.yaml", None, ()),
    ],
)
def test_variables_that_a_pipeline_asks_for_are_listed(
    folder: Path, name: str, text: str | None, asked: tuple[str, ...]
) -> None:
    (folder / "profiles.yml").write_text("password: \"{{ env_var( 'DB_PASSWORD' ) }}\"")
    if text is not None:
        (folder / name).write_text(text)
    assert list_asked(folder / name) == asked


def test_what_a_pipeline_names_beside_its_folder_is_listed(folder: Path) -> None:
    put(folder, "data/raw/a.csv", "lib/x.py", "jobs/daily/own.csv", "jobs/shared.sql")
    # What leads out of the folder must not be shown to a pipeline that nobody has looked at.
    (folder / "leads_out").symlink_to(folder.parent)
    (folder / "leads_in").symlink_to("lib")
    text = "a: ../../data/raw\nb: '../../data/raw/a.csv'\nc: ../shared.sql\nd: ../../gone\ne: ../../../out\nf: ../daily/own.csv\ng: ../..\nh: ../../leads_out\ni: ../../leads_in/x.py\n"
    (folder / "jobs" / "daily" / "job.yaml").write_text(text)
    found = FoundPipeline("jobs/daily/job.yaml", "odibi")
    assert list_neighbours(folder, found) == ("data/raw", "jobs/shared.sql", "leads_in/x.py")
    assert list_neighbours(folder, found._replace(project_dir="jobs")) == ("data/raw", "leads_in/x.py")
