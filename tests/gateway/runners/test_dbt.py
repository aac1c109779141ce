from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.runners.choice import find_narrowing, find_runner_command
from pytest_golden.gateway.runners.runner import CHANGED_FILES, RunnerError
from tests.gateway.runners.conftest import needs

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from pytest_golden.gateway.runners.runner import PipelineFile
    from tests.gateway.runners.conftest import MakePipeline

    Run = Callable[..., subprocess.CompletedProcess[str]]

PROJECT = {
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop\nseed-paths: [seeds]\nmodel-paths: [models]\n",
    "profiles.yml": "shop:\n  target: gate\n  outputs:\n    gate: {type: duckdb, path: shop.duckdb}\n",
    "seeds/orders.csv": "order_id,amount\n1,10\n2,20\n",
    "models/revenue.sql": "select sum(amount) as revenue from {{ ref('orders') }}\n",
    "models/schema.yml": "models:\n  - name: revenue\n    columns:\n      - name: revenue\n        data_tests: [not_null]\n",
}

MORE = {
    "models/count_of_orders.sql": "select count(*) as n from {{ ref('orders') }}",
    "models/average.sql": "select avg(amount) as a from {{ ref('orders') }}",
    "tests/as_many.sql": "select * from {{ ref('revenue') }}, {{ ref('count_of_orders') }} where n > revenue",
    "macros/half.sql": "{% macro half(x) %}{{ x }} / 2{% endmacro %}",
}
EVERYTHING = {"orders", "revenue", "average", "count_of_orders", "not_null_revenue_revenue", "as_many"}


@pytest.fixture
def tool_path(tmp_path: Path) -> str:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "dbt").write_text(f"#!{sys.executable}\n", encoding="utf-8")
    (folder / "dbt").chmod(0o755)
    return str(folder)


def test_dbt_builds_the_project_of_the_file(make_pipeline: MakePipeline, tool_path: str) -> None:
    command = find_runner_command(
        make_pipeline("dbt_project.yml", args=("--select", "staging"), path_variable=tool_path)
    )
    assert command.argv[0] == sys.executable
    assert Path(command.argv[1]).name == "dbt_child.py"
    assert command.argv[2:] == ("build", "--project-dir", ".", "--select", "staging")
    assert command.step_readers == ("dbt",)
    assert command.environment["DBT_SEND_ANONYMOUS_USAGE_STATS"] == "false"
    assert "DBT_PROFILES_DIR" not in command.environment


def test_project_and_profiles_in_a_subfolder_are_named_relative_to_the_working_folder(
    make_pipeline: MakePipeline, tool_path: str
) -> None:
    make_pipeline("shop/profiles.yml")
    command = find_runner_command(make_pipeline("shop/dbt_project.yml", path_variable=tool_path))
    assert command.argv[2:] == ("build", "--project-dir", "shop")
    assert command.environment["DBT_PROFILES_DIR"] == "shop"


def test_project_outside_the_working_folder_is_named_by_its_path(
    make_pipeline: MakePipeline, tool_path: str, tmp_path: Path
) -> None:
    pipeline = make_pipeline("dbt_project.yml", path_variable=tool_path)
    elsewhere = type(pipeline)(pipeline.config, pipeline.file, tmp_path / "other", tool_path, sys.executable)
    assert find_runner_command(elsewhere).argv[-1] == str(pipeline.file.parent)


def test_command_that_begins_with_dbt_is_watched_too(make_pipeline: MakePipeline, tool_path: str) -> None:
    command = find_runner_command(make_pipeline("x.txt", command=("dbt", "test"), path_variable=tool_path))
    assert Path(command.argv[1]).name == "dbt_child.py"
    assert command.argv[2:] == ("test",)


def test_missing_dbt_is_refused_with_what_to_install(make_pipeline: MakePipeline) -> None:
    with pytest.raises(RunnerError, match="install dbt"):
        find_runner_command(make_pipeline("dbt_project.yml", path_variable="/nowhere", python="/nowhere/python"))


def shop(make_pipeline: MakePipeline, *args: str, **changed: str) -> PipelineFile:
    for path, content in PROJECT.items():
        make_pipeline(f"shop/{path}", changed.get(Path(path).stem, content))
    return make_pipeline("shop/dbt_project.yml", args=args)


@pytest.mark.parametrize(
    ("content", "nodes"),
    [
        ("", ["models/a/b.sql", "models/c.py", "seeds/d.csv", "snapshots/e.sql", "tests/f.sql"]),
        ("model-paths: [sql]", ["sql/g.sql", "seeds/d.csv", "snapshots/e.sql", "tests/f.sql"]),
        (
            "model-paths: 3\nseed-paths: [sql, 4]",
            ["models/a/b.sql", "models/c.py", "sql/g.sql", "snapshots/e.sql", "tests/f.sql"],
        ),
        ("{", ["models/a/b.sql", "models/c.py", "seeds/d.csv", "snapshots/e.sql", "tests/f.sql"]),
    ],
)
def test_only_files_of_its_graph_narrow_a_run(make_pipeline: MakePipeline, content: str, nodes: list[str]) -> None:
    pipeline = make_pipeline("dbt_project.yml", content)
    is_node = find_narrowing(pipeline.config, pipeline.project_dir)
    assert is_node is not None
    others = [
        "models/schema.yml",
        "macros/h.sql",
        "tests/generic/i.sql",
        "models/odd name.sql",
        "dbt_project.yml",
        "scripts/j.py",
    ]
    every = ["models/a/b.sql", "models/c.py", "sql/g.sql", "seeds/d.csv", "snapshots/e.sql", "tests/f.sql", *others]
    assert [path for path in every if is_node(path)] == nodes
    # One of its selectors may be the default, which a selection would replace.
    pipeline.file.with_name("selectors.yml").touch()
    assert find_narrowing(pipeline.config, pipeline.project_dir) is None


@pytest.mark.dbt
@needs("dbt")
@needs("duckdb")
class TestRealDbt:
    def test_failing_data_test_is_exit_code_1(self, make_pipeline: MakePipeline, run: Run) -> None:
        ended = run(shop(make_pipeline, revenue="select cast(null as integer) as revenue from {{ ref('orders') }}"))
        assert ended.returncode == 1
        assert "Failure in test not_null_revenue_revenue" in ended.stdout
        assert "PASS=2" in ended.stdout
        assert "\x1b" not in ended.stdout

    def test_project_that_does_not_compile_is_exit_code_2(self, make_pipeline: MakePipeline, run: Run) -> None:
        ended = run(shop(make_pipeline, revenue="select {{ ref('nothing') }}"))
        assert ended.returncode == 2
        assert "nothing" in ended.stdout

    def test_selection_that_matched_nothing_is_no_pass(self, make_pipeline: MakePipeline, run: Run) -> None:
        ended = run(shop(make_pipeline, "--select", "revenue", "--exclude", "revenue"))
        assert ended.returncode == 1
        assert "no node matched the selection" in ended.stderr

    def test_unknown_option_is_explained(self, make_pipeline: MakePipeline, run: Run) -> None:
        ended = run(shop(make_pipeline, "--bogus"))
        assert ended.returncode == 2
        assert "--bogus" in ended.stderr

    @pytest.mark.parametrize(
        ("changed", "args", "built"),
        [
            # A test of two models needs both, whichever of them has changed.
            ("revenue.sql", (), {"orders", "revenue", "count_of_orders", "not_null_revenue_revenue", "as_many"}),
            ("average.sql", (), {"orders", "average"}),
            ("dbt/average.parquet", (), {"orders", "average"}),
            ("dbt/gone.parquet", (), EVERYTHING),
            ("half.sql", (), EVERYTHING),
            ("odd name.sql", (), EVERYTHING),
            ("average.sql", ("--select", "orders"), {"orders"}),
            ("average.sql", ("-sorders",), {"orders"}),
        ],
    )
    def test_only_what_comes_after_changed_files_is_built_with_all_that_it_is_made_of(
        self, make_pipeline: MakePipeline, run: Run, changed: str, args: tuple[str, ...], built: set[str]
    ) -> None:
        for path, content in MORE.items():
            make_pipeline(f"shop/{path}", content)
        pipeline = shop(make_pipeline, *args)
        folder = "macros/" if changed == "half.sql" else "" if changed.startswith("dbt/") else "models/"
        ended = run(pipeline, {CHANGED_FILES: json.dumps([f"{folder}{changed}"])})
        assert ended.returncode == 0, ended.stdout
        results = json.loads((pipeline.file.parent / "target" / "run_results.json").read_text())["results"]
        assert {result["unique_id"].split(".")[2] for result in results} == built
        assert ("the whole project runs: macros/half.sql may change any model" in ended.stdout) == (
            changed == "half.sql"
        )
