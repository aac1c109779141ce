"""Each engine for real, as `tox -e engine-NAME` installs it: what its steps are, and the first line of a failure."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.engines.examples import EXAMPLES, SQLMESH, Example
from tests.repository import Repository

if TYPE_CHECKING:
    from pathlib import Path

IN_MEMORY = {
    "config.yaml": "gateways:\n  mine:\n    connection: {type: duckdb}\nmodel_defaults: {dialect: duckdb, start: 2026-01-01}\n",
    "config.py": "from sqlmesh.core.config import Config, DuckDBConnectionConfig, ModelDefaultsConfig\n"
    "config = Config(default_connection=DuckDBConnectionConfig(), model_defaults=ModelDefaultsConfig(dialect='duckdb', start='2026-01-01'))\n",
}
INSTALLED = [example for example in EXAMPLES if find_spec(example.module) is not None]


@pytest.fixture(params=INSTALLED, ids=lambda example: str(example.engine))
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Example:
    """Write a project and its manifest."""
    given: Example = request.param
    for path, text in given.files.items():
        file = tmp_path / "shop" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("{version}", version("kedro")) if given.engine == "kedro" else text)
    entry = {
        "name": "shop",
        "path": f"shop/{given.path}",
        "writes": given.writes,
        "unexpected_files": "fail",
        **given.keys,
    }
    (tmp_path / "golden_projects.yaml").write_text(json.dumps({"version": 1, "golden_projects": [entry]}))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return given


def run(folder: Path, *options: str) -> tuple[list[str], str]:
    """Run the gate; return the names of the steps and the failure."""
    command = [sys.executable, "-m", "pytest", "--golden", "-vv", "--golden-json=report.json", "-p", "no:cacheprovider"]
    command += options
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    (result,) = json.loads((folder / "report.json").read_text())["results"]
    steps = re.findall(r"^ +step: (.*?)(?: \([\d.]+s\))?(?:: .*)?$", done.stdout, re.MULTILINE)
    return [step.replace(str(folder), "{folder}") for step in steps], result["error_message"] or ""


def test_the_engine_passes_and_its_tasks_are_steps(example: Example, tmp_path: Path) -> None:
    assert run(tmp_path) == ([*example.steps], "")


def test_a_break_is_told_by_the_task_that_failed_and_its_own_words(example: Example, tmp_path: Path) -> None:
    path, old, new = example.broken
    file = tmp_path / "shop" / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    steps, message = run(tmp_path)
    assert steps == [*example.steps_when_broken]
    assert re.match(rf"exit code \d+, expected 0: {re.escape(example.headline)}", message), message


def test_an_engine_that_does_not_know_its_own_files_says_so(example: Example, tmp_path: Path) -> None:
    (tmp_path / "shop" / example.path).write_text("{ this is no project")
    _, message = run(tmp_path)
    assert message
    assert "Traceback" not in message


def test_init_declares_the_project_so_that_it_passes(example: Example, tmp_path: Path) -> None:
    if example.engine == "spark":
        pytest.skip("nothing in a Spark application says certainly that it is one")
    (tmp_path / "golden_projects.yaml").unlink()
    command = [sys.executable, "-m", "pytest_golden", "init", "--yes", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (project,) = json.loads(done.stdout)["projects"]
    assert (project["path"], project["runner"]) == (f"shop/{example.path}", example.engine)
    text = (tmp_path / "golden_projects.yaml").read_text()
    assert "did not pass" not in text
    assert text.count("project_dir: shop") == ("project_dir" in example.keys)


@pytest.mark.skipif(SQLMESH not in INSTALLED, reason="only models of SQLMesh are evaluated in part")
def test_sqlmesh_evaluates_only_what_comes_after_a_changed_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    models = {
        "models/other.sql": "MODEL (name shop.other, kind FULL);\nSELECT 7 AS x\n",
        "models/rates.sql": "MODEL (name shop.rates, kind SEED (path '../seeds/rates.csv'));\n",
        "models/last.sql": "MODEL (name shop.last, kind VIEW);\nSELECT amount * rate AS y FROM shop.total, shop.rates\n",
        "seeds/rates.csv": "rate\n2\n",
    }
    for path, text in {**SQLMESH.files, **models}.items():
        file = tmp_path / "shop" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    outputs = [{"path": "shop.duckdb", "tables": "shop.*"}]
    entry = {
        "name": "shop",
        "path": "shop/config.yaml",
        "outputs": outputs,
        "unexpected_files": "fail",
        "writes": ["*.duckdb*"],
    }
    (tmp_path / "golden_projects.yaml").write_text(json.dumps({"version": 1, "golden_projects": [entry]}))
    (tmp_path / ".gitignore").write_text(".golden\nreport.json\n")
    repository = Repository(tmp_path)

    def check(*options: str) -> tuple[str, set[str], list[str]]:
        steps, _ = run(tmp_path, *options)
        (result,) = json.loads((tmp_path / "report.json").read_text())["results"]
        left_out = [path.removeprefix("shop.duckdb/shop.") for path in result["left_out"]]
        return result["status"], {step.partition(".")[2] for step in steps}, left_out

    assert check("--golden-update")[0] == "PASSED"
    repository.commit("base")
    assert check()[0] == "PASSED"
    total = tmp_path / "shop" / "models" / "total.sql"
    total.write_text(f"{total.read_text()}-- no other sum\n")
    told = check("--golden-changed", "HEAD")
    assert told == ("PASSED", {"orders", "total", "rates", "last"}, ["other.parquet"])
    (tmp_path / "shop" / "seeds" / "rates.csv").write_text("rate\n3\n")
    total.write_text(SQLMESH.files["models/total.sql"])
    repository.commit("rates")
    assert check("--golden-changed", "HEAD~1")[0] == "FAILED"
    # After a failure all of it runs.
    assert check("--golden-changed", "HEAD~1")[::2] == ("FAILED", [])


@pytest.mark.skipif(SQLMESH not in INSTALLED, reason="only SQLMesh puts tables into memory by its configuration")
@pytest.mark.parametrize("name", ["config.yaml", "config.py"])
def test_init_puts_tables_that_sqlmesh_keeps_in_memory_into_a_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(IN_MEMORY[name])
    (tmp_path / "models").mkdir()
    for model in ("models/orders.sql", "models/total.sql"):
        (tmp_path / model).write_text(SQLMESH.files[model])
    command = [sys.executable, "-m", "pytest_golden", "init", "--yes", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    (project,) = json.loads(done.stdout)["projects"]
    assert (project["path"], project["outputs"]) == (name, ["golden.duckdb"])
    assert "SQLMESH__DEFAULT_GATEWAY: golden" in (tmp_path / "golden_projects.yaml").read_text()
