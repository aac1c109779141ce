from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway import runners
from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.runners.choice import find_narrowing, find_runner, find_runner_command, list_runners
from pytest_golden.gateway.runners.runner import RunnerError
from pytest_golden.manifest.model import DeclaredOutput

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.runners.conftest import MakePipeline


def refusal(make_pipeline: MakePipeline, path: str, content: str = "", **keys: object) -> RunnerError:
    with pytest.raises(RunnerError) as caught:
        find_runner_command(make_pipeline(path, content, **keys))
    assert str(caught.value).startswith("sales: ")
    return caught.value


def test_python_script_is_run_by_the_projects_interpreter(make_pipeline: MakePipeline) -> None:
    command = find_runner_command(make_pipeline("etl.py", python="/venv/bin/python"))
    assert command.argv == ("/venv/bin/python", "{path}")
    assert command.environment["PYTHONUNBUFFERED"] == "1"
    assert command.step_readers == ()


def test_args_come_after_the_runners_command(make_pipeline: MakePipeline) -> None:
    command = find_runner_command(make_pipeline("etl.py", args=("--day", "2025-03-01")))
    assert command.argv == (sys.executable, "{path}", "--day", "2025-03-01")


def test_args_come_after_a_given_command_too(make_pipeline: MakePipeline) -> None:
    command = find_runner_command(make_pipeline("job.toml", command=("sh", "{path}"), args=("-x",)))
    assert command.argv == (shutil.which("sh", path="/usr/bin:/bin") or "", "{path}", "-x")
    assert (dict(command.environment), command.step_readers) == ({}, ())


def test_a_named_runner_beside_a_command_keeps_its_environment_and_readers(make_pipeline: MakePipeline) -> None:
    command = find_runner_command(make_pipeline("job.toml", runner="odibi", command=("sh", "-c", "odibi run x")))
    assert command.argv[1:] == ("-c", "odibi run x")
    assert command.step_readers == ("odibi",)
    assert int(command.environment["COLUMNS"]) >= 200


def test_a_named_runner_decides_against_the_file(make_pipeline: MakePipeline) -> None:
    assert find_runner_command(make_pipeline("etl.txt", runner="python")).argv == (sys.executable, "{path}")


def test_a_file_in_the_folder_is_all_that_a_new_engine_needs(
    make_pipeline: MakePipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sparkle.py").write_text(
        "from pytest_golden.gateway.runners.runner import Runner\n"
        "RUNNERS = (Runner('sparkle', '.spk', ('.spk',), lambda pipeline: ('sparkle', 'run'), step_readers=('spk',)),)\n"
    )
    monkeypatch.setattr(runners, "__path__", [*runners.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "pytest_golden.gateway.runners.sparkle", raising=False)
    command = find_runner_command(make_pipeline("sales.spk"))
    assert (command.argv, command.step_readers) == (("sparkle", "run", "{path}"), ("spk",))
    assert find_runner_command(make_pipeline("sales.txt", runner="sparkle")).argv == command.argv
    assert "known: " in str(refusal(make_pipeline, "job.ini"))


def test_a_command_loads_the_engine_of_its_program_and_no_other(make_pipeline: MakePipeline) -> None:
    engines = [runner for runner in list_runners() if runner.program]
    assert {runner.name for runner in engines} >= {"snakemake", "spark", "r"}
    folder = "pytest_golden.gateway.runners"
    for runner in engines:
        pipeline = make_pipeline("job.toml", command=(str(runner.program), "run"))
        assert find_runner(pipeline) is runner
    script = f"import sys; from {folder}.choice import find_runner; from {folder}.runner import PipelineFile\n"
    script += "from pathlib import Path; from pytest_golden.manifest.model import GoldenProjectConfig\n"
    script += "config = GoldenProjectConfig('a', 'a.sh', command=(sys.argv[1],)); here = Path('.')\n"
    script += "find_runner(PipelineFile(config, here, here, '', '')); print(*sorted(name for name in sys.modules if '.runners.' in name))"
    for program, engine in (("true", ()), ("spark-submit", (f"{folder}.spark",)), ("./dbt", ())):
        told = subprocess.run(
            [sys.executable, "-c", script, program], capture_output=True, text=True, check=True
        ).stdout
        assert told.split() == sorted([f"{folder}.choice", f"{folder}.runner", *engine])


def test_unknown_runner_is_refused_with_the_nearest_one(make_pipeline: MakePipeline) -> None:
    error = refusal(make_pipeline, "etl.py", runner="pyhton")
    assert error.problem is Problem.RUNNER_UNKNOWN
    assert "did you mean python?" in str(error)


def test_runner_like_none_is_refused_with_all_of_them(make_pipeline: MakePipeline) -> None:
    message = str(refusal(make_pipeline, "etl.py", runner="zzz"))
    assert all(name in message for name in ("auto", "odibi", "dbt", "python", "shell", "notebook", "command"))


def test_unknown_kind_of_file_wants_a_command(make_pipeline: MakePipeline) -> None:
    error = refusal(make_pipeline, "job.toml")
    assert error.problem is Problem.RUNNER_UNKNOWN
    assert "job.toml" in str(error)
    assert "give `command:`" in str(error)


def test_yaml_of_nobody_names_the_odibi_runner(make_pipeline: MakePipeline) -> None:
    assert "or `runner: odibi`" in str(refusal(make_pipeline, "compose.yaml", "services: {}\n"))


def test_folder_is_refused_with_a_hint_to_name_a_file(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("shop/dbt_project.yml")
    folder = type(pipeline)(pipeline.config, pipeline.file.parent, pipeline.project_dir, "", sys.executable)
    with pytest.raises(RunnerError, match="is a folder: name the pipeline's file"):
        find_runner_command(folder)


def test_command_runner_runs_the_command(make_pipeline: MakePipeline) -> None:
    command = find_runner_command(make_pipeline("etl.py", runner="command", command=("/bin/sh", "-c", "true")))
    assert (command.argv, dict(command.environment)) == (("/bin/sh", "-c", "true"), {})


def test_program_that_is_not_on_path_is_named_with_the_path(make_pipeline: MakePipeline) -> None:
    error = refusal(make_pipeline, "job.toml", command=("no-such-tool", "{path}"), path_variable="/nowhere/bin")
    assert error.problem is Problem.COMMAND_NOT_FOUND
    assert "`no-such-tool` is not on PATH (/nowhere/bin)" in str(error)


@pytest.mark.parametrize("program", ["./missing.sh", "{path}", "sub"])
def test_program_that_cannot_be_executed_is_named(make_pipeline: MakePipeline, program: str) -> None:
    make_pipeline("sub/file.txt")
    error = refusal(make_pipeline, "job.toml", command=(f"./{program}" if program == "sub" else program,))
    assert error.problem is Problem.COMMAND_NOT_FOUND
    assert "not an executable file" in str(error)


def test_program_that_a_before_command_may_make_is_not_looked_for(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("job.toml", command=("./built", "{path}"), before=(("make", "built"),))
    assert find_runner_command(pipeline).argv == ("./built", "{path}")


def test_executable_beside_the_pipeline_is_taken_as_declared(make_pipeline: MakePipeline) -> None:
    make_pipeline("tool", "#!/bin/sh\n").file.chmod(0o755)
    assert find_runner_command(make_pipeline("job.toml", command=("./tool",))).argv == ("./tool",)


ENGINES = [
    (
        "airflow",
        "dags/shop.py",
        "",
        {"runner": "airflow", "args": ("shop",)},
        ("airflow_child.py", "dags", "dags", "test", "shop"),
    ),
    ("airflow", "shop.py", "", {"command": ("airflow", "dags", "list")}, ("airflow_child.py", ".", "dags", "list")),
    (
        "dagster",
        "defs.py",
        "",
        {"runner": "dagster"},
        ("dagster_child.py", "asset", "materialize", "--select", "*", "-f", "{path}"),
    ),
    ("dvc", "dvc.yaml", "", {}, ("-m", "dvc", "repro", "{path}")),
    ("kedro", "pyproject.toml", "[tool.kedro]\n", {"args": ("--tags", "a")}, ("kedro_child.py", "run", "--tags", "a")),
    (
        "luigi",
        "tasks.py",
        "",
        {"runner": "luigi", "args": ("All",)},
        ("luigi_child.py", "--local-scheduler", "--module", "tasks", "All"),
    ),
    ("make", "Makefile", "", {"args": ("all",)}, ("-f", "{path}", "all")),
    ("make", "rules.mk", "", {}, ("-f", "{path}")),
    ("make", "Makefile", "", {"command": ("make", "-j2")}, ("-j2",)),
    ("nextflow", "main.nf", "", {}, ("run", "{path}", "-ansi-log", "false", "-with-trace", ".golden-trace.txt")),
    ("Rscript", "report.R", "", {}, ("{path}",)),
    (
        "snakemake",
        "Snakefile",
        "",
        {},
        ("snakemake_child.py", "--snakefile", "{path}", "--cores", "2", "--show-failed-logs"),
    ),
    ("spark-submit", "app.jar", "", {}, ("--master", "local[2]", "--conf", "spark.ui.enabled=false", "{path}")),
]


@pytest.mark.parametrize(("program", "path", "content", "keys", "expected"), ENGINES)
def test_an_engines_project_is_started_by_its_own_program(
    make_pipeline: MakePipeline,
    tmp_path: Path,
    program: str,
    path: str,
    content: str,
    keys: dict[str, object],
    expected: tuple[str, ...],
) -> None:
    tool = tmp_path / "bin" / program
    tool.parent.mkdir()
    tool.write_text(f"#!{sys.executable}\n")
    tool.chmod(0o755)
    command = find_runner_command(make_pipeline(path, content, path_variable=str(tool.parent), **keys))
    first, *rest = command.argv
    assert first in {sys.executable, str(tool)}
    assert tuple(word.rpartition("/")[2] if word.endswith("_child.py") else word for word in rest) == expected
    assert command.environment


@pytest.mark.parametrize(
    ("path", "content", "told"),
    [
        ("Makefile", "", "`make` is not on PATH (/nowhere): install it, or give `command:`"),
        ("report.R", "", "`Rscript` is not on PATH (/nowhere): install R"),
        ("_targets.R", "", "`Rscript` is not on PATH (/nowhere): install R"),
        ("app.jar", "", "`spark-submit` is not on PATH (/nowhere): install Spark"),
        ("Snakefile", "", "install snakemake, name its environment with `venv:`, or give `command:`"),
        ("config.yaml", "model_defaults: {}\n", "install sqlmesh, name its environment"),
        ("pyproject.toml", "[tool.kedro]\n", "install kedro, name its environment"),
        ("pyproject.toml", "[project]\n", "does not look like pyproject.toml with [tool.kedro]"),
        ("config.yaml", "port: 80\n", "does not look like"),
    ],
)
def test_an_engine_that_is_missing_is_told_with_what_to_install(
    make_pipeline: MakePipeline, path: str, content: str, told: str
) -> None:
    assert told in str(refusal(make_pipeline, path, content, path_variable="/nowhere"))


@pytest.mark.parametrize(
    ("path", "keys", "is_narrowed"),
    [
        ("dbt_project.yml", {}, True),
        ("dbt_project.yml", {"args": ("--target", "ci"), "outputs": (DeclaredOutput(dbt=("*",)),)}, True),
        # What is judged beside the models would be incomplete.
        ("dbt_project.yml", {"outputs": (DeclaredOutput(dbt=("*",)), DeclaredOutput("report.csv"))}, False),
        ("dbt_project.yml", {"expected_outcome": "exit_code:1"}, False),
        ("dbt_project.yml", {"needs": ("raw",)}, False),
        ("dbt_project.yml", {"command": ("dbt", "run")}, False),
        ("dbt_project.yml", {"runner": "nobody"}, False),
        ("etl.py", {}, False),
        ("config.yaml", {}, True),
        ("config.yaml", {"outputs": (DeclaredOutput("shop.duckdb", tables=("*",)),)}, True),
        ("config.yaml", {"outputs": (DeclaredOutput("report.csv"),)}, False),
        ("config.yaml", {"args": ("--start", "2026-01-01")}, False),
        ("config.yaml", {"project_dir": ".."}, False),
        ("pyproject.toml", {"args": ("--pipeline", "all"), "outputs": (DeclaredOutput("data/**"),)}, True),
        ("pyproject.toml", {"outputs": (DeclaredOutput("data/shop.db", table="orders"),)}, False),
        ("pyproject.toml", {"project_dir": ".."}, False),
        ("Snakefile", {"project_dir": "..", "outputs": (DeclaredOutput("out/**"),)}, True),
        ("Snakefile", {"outputs": (DeclaredOutput("out/shop.db", table="orders"),)}, False),
        ("Snakefile", {"args": ("--config", "a=1")}, False),
        ("definitions.py", {"runner": "dagster", "outputs": (DeclaredOutput("out/**"),)}, True),
        ("definitions.py", {"runner": "dagster", "args": ("--partition", "monday")}, False),
    ],
)
def test_only_engines_that_know_what_follows_from_a_file_run_in_part(
    make_pipeline: MakePipeline, path: str, keys: dict[str, Any], is_narrowed: bool
) -> None:
    heads = {"config.yaml": "model_defaults: {}\n", "pyproject.toml": "[tool.kedro]\n"}
    pipeline = make_pipeline(path, heads.get(path, ""), **keys)
    assert (find_narrowing(pipeline.config, pipeline.project_dir) is not None) == is_narrowed
    pipeline.file.unlink()
    assert find_narrowing(pipeline.config, pipeline.project_dir) is None


NODES = {
    # A model in Python may be imported by others.
    "config.yaml": (
        ("models/orders.sql", "models/marts/total.sql", "seeds/orders.csv", "models/raw.csv"),
        (
            "models/orders.py",
            "macros/tax.py",
            "audits/a.sql",
            "tests/t.yaml",
            "config.yaml",
            "models/odd name.sql",
            "../models/a.sql",
        ),
    ),
    "pyproject.toml": (
        ("src/shop/nodes.py", "src/shop/orders/clean.py", "data/raw/a b.csv", "data/out.csv/{run}/out.csv"),
        (
            "src/shop/__init__.py",
            "src/shop/pipeline.py",
            "src/shop/pipeline_registry.py",
            "conf/base/catalog.yml",
            "README.md",
        ),
    ),
    "Snakefile": (
        ("scripts/clean.py", "../data/a.csv", "out/report.html", "names.txt"),
        ("Snakefile", "rules/one.smk", "config/config.yaml", "envs/r.yml", "README.md", "data/.hidden", ".gitignore"),
    ),
}


@pytest.mark.parametrize("path", NODES)
def test_only_files_that_can_be_those_of_nodes_narrow_a_run(make_pipeline: MakePipeline, path: str) -> None:
    heads = {"config.yaml": "model_defaults: {}\n", "pyproject.toml": "[tool.kedro]\n"}
    pipeline = make_pipeline(path, heads.get(path, ""))
    is_node = find_narrowing(pipeline.config, pipeline.project_dir)
    assert is_node is not None
    nodes, others = NODES[path]
    assert tuple(name for name in (*nodes, *others) if is_node(name)) == nodes
