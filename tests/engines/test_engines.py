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

from pytest_golden.gateway.runners.choice import list_runners
from tests.engines.examples import DAGSTER, EXAMPLES, KEDRO, SNAKEMAKE, SQLMESH, Example
from tests.repository import Repository

if TYPE_CHECKING:
    from pathlib import Path

IN_MEMORY = {
    "config.yaml": "gateways:\n  mine:\n    connection: {type: duckdb}\nmodel_defaults: {dialect: duckdb, start: 2026-01-01}\n",
    "config.py": "from sqlmesh.core.config import Config, DuckDBConnectionConfig, ModelDefaultsConfig\n"
    "config = Config(default_connection=DuckDBConnectionConfig(), model_defaults=ModelDefaultsConfig(dialect='duckdb', start='2026-01-01'))\n",
}
INCREMENTAL = {runner.name: runner.is_incremental for runner in list_runners()}
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
    (tmp_path / "shop" / example.path).write_text("{ this is not a project")
    _, message = run(tmp_path)
    assert message
    assert "Traceback" not in message


def test_half_written_state_is_not_seen_or_told_in_one_sentence(example: Example, tmp_path: Path) -> None:
    if not example.state:
        pytest.skip("it keeps no state in the project's folder")
    (tmp_path / ".gitignore").write_text(
        "".join(f"/shop/{path}\n" for path in example.state) + ".golden\nreport.json\n"
    )
    Repository(tmp_path).commit("base")
    for path, text in example.state.items():
        file = tmp_path / "shop" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    # The engines that skip what is done see only what git tracks.
    if INCREMENTAL[example.engine]:
        assert run(tmp_path) == ([*example.steps], "")
    manifest = json.loads((tmp_path / "golden_projects.yaml").read_text())
    manifest["golden_projects"][0]["view"] = "all"
    (tmp_path / "golden_projects.yaml").write_text(json.dumps(manifest))
    _, message = run(tmp_path)
    assert "Traceback" not in message
    assert len(message.splitlines()) <= 1
    assert all((tmp_path / "shop" / path).read_text() == text for path, text in example.state.items())


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


class Part:
    """A project that passed as a whole and is committed; `check` runs it again, with what was left out."""

    def __init__(self, root: Path, files: dict[str, str], **entry: object) -> None:
        self.root, self.folder = root, root / "shop"
        for path, text in files.items():
            self.write(path, text)
        entry = {"name": "shop", "unexpected_files": "fail", **entry}
        (root / "golden_projects.yaml").write_text(json.dumps({"version": 1, "golden_projects": [entry]}))
        (root / ".gitignore").write_text(".golden\nreport.json\n")
        self.repository = Repository(root)
        assert self.check("--golden-update")[0] == "PASSED"
        self.repository.commit("base")

    def write(self, path: str, text: str) -> None:
        """Write one of its files."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def check(self, *options: str) -> tuple[str, set[str], list[str]]:
        """Return the status, the steps, and the outputs that were left out."""
        steps, _ = run(self.root, *options)
        (result,) = json.loads((self.root / "report.json").read_text())["results"]
        return result["status"], set(steps), sorted(result["left_out"])

    def change(self, path: str, text: str) -> tuple[str, set[str], list[str]]:
        """Check with one file changed since a pass of all of it, and put it back."""
        assert self.check()[0] == "PASSED"
        before = (self.folder / path).read_text()
        self.write(path, text)
        told = self.check("--golden-changed", "HEAD")
        self.write(path, before)
        return told


@pytest.fixture(autouse=True)
def _accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    # In CI nothing is accepted.
    monkeypatch.delenv("CI", raising=False)


@pytest.mark.skipif(KEDRO not in INSTALLED, reason="only nodes of Kedro are run in part")
def test_kedro_runs_only_what_comes_after_changed_files(tmp_path: Path) -> None:
    registry = """
from kedro.pipeline import node, pipeline
from . import cleaning
from .other import Reader
from .rates import double as twice

def register_pipelines():
    nodes = [
        node(cleaning.clean, "orders", "cleaned", name="clean"),
        node(twice, "cleaned", "doubled", name="double"),
        node(Reader().read, ["rates", "params:factor"], "read", name="read"),
    ]
    return {"__default__": pipeline(nodes)}
"""
    files = {
        "pyproject.toml": KEDRO.files["pyproject.toml"].replace("{version}", version("kedro")),
        "src/shop/__init__.py": "",
        "src/shop/settings.py": "",
        "src/shop/pipeline_registry.py": registry,
        "src/shop/words.py": "def strip(text):\n    return text.strip()\n",
        "src/shop/cleaning.py": "from functools import wraps\n\nfrom .words import strip\n\ndef loud(function):\n    @wraps(function)\n"
        "    def inner(text):\n        return function(text)\n    return inner\n\n@loud\ndef clean(text):\n    return strip(text)\n",
        "src/shop/rates.py": "def double(text):\n    return text + text\n",
        "src/shop/other.py": "class Reader:\n    def read(self, rates, factor):\n        return rates * factor\n",
        "src/shop/kept.py": "from pathlib import Path\nfrom kedro.io import AbstractDataset\n\nclass Text(AbstractDataset):\n"
        "    def __init__(self, filepath):\n        self._filepath = Path(filepath)\n"
        "    def _load(self):\n        return self._filepath.read_text()\n"
        "    def _save(self, data):\n        self._filepath.write_text(data)\n"
        "    def _describe(self):\n        return {}\n",
        "conf/base/parameters.yml": "factor: 2\n",
        "conf/base/catalog.yml": "".join(
            f"{name}: {{type: shop.kept.Text, filepath: data/{name}.txt}}\n"
            for name in ("orders", "cleaned", "doubled", "rates", "read")
        ),
        "conf/local/.gitkeep": "",
        "data/orders.txt": " 1 \n",
        "data/rates.txt": "7",
    }
    outputs = [{"path": f"data/{name}.txt"} for name in ("cleaned", "doubled", "read")]
    shop = Part(tmp_path, files, path="shop/pyproject.toml", outputs=outputs)
    cleaning = ("PASSED", {"clean", "double"}, ["data/read.txt"])
    assert shop.change("src/shop/words.py", f"{files['src/shop/words.py']}# as before\n") == cleaning
    assert shop.change("src/shop/cleaning.py", f"{files['src/shop/cleaning.py']}# as before\n") == cleaning
    assert shop.change("data/orders.txt", "1\n") == cleaning
    reading = ("PASSED", {"read"}, ["data/cleaned.txt", "data/doubled.txt"])
    assert shop.change("src/shop/other.py", f"{files['src/shop/other.py']}# as before\n") == reading
    # What comes before it is made anew, and what its module makes else is judged.
    assert shop.change("src/shop/rates.py", "def double(text):\n    return text\n") == (
        "FAILED",
        {"clean", "double"},
        ["data/read.txt"],
    )
    whole: tuple[str, set[str], list[str]] = ("PASSED", {"clean", "double", "read"}, [])
    for path in ("src/shop/kept.py", "src/shop/pipeline_registry.py"):
        assert shop.change(path, f"{files[path]}# as before\n") == whole, path
    assert shop.change("conf/base/parameters.yml", "factor: 2 # as before\n") == whole
    # A module of a function that gives more than that, and what it imports, may change which nodes there are.
    shop.write("src/shop/names.py", "NAME = 'double'\n")
    shop.write("src/shop/rates.py", f"from .names import NAME\n\n{files['src/shop/rates.py']}")
    named = registry.replace("double as twice", "NAME, double as twice").replace('name="double"', "name=NAME")
    shop.write("src/shop/pipeline_registry.py", named)
    shop.repository.commit("names")
    assert shop.change("src/shop/names.py", "NAME = 'double'  # as before\n") == whole
    # What another node may write besides the catalog would be missing.
    shop.write("src/shop/other.py", f"{files['src/shop/other.py']}        open('note.txt', 'w')\n")
    shop.repository.commit("note")
    assert shop.change("data/orders.txt", "1\n") == whole


@pytest.mark.skipif(DAGSTER not in INSTALLED, reason="only assets of Dagster are materialized in part")
def test_dagster_materializes_only_what_comes_after_changed_files_and_what_writes_files(tmp_path: Path) -> None:
    definitions = """
from dagster import Definitions, load_assets_from_modules
from dagster_duckdb_pandas import DuckDBPandasIOManager

from . import orders, report
from .prices import rates

manager = DuckDBPandasIOManager(database="shop.duckdb", schema="main")
defs = Definitions(assets=[*load_assets_from_modules([orders, report]), rates], resources={"io_manager": manager})
"""
    head = "import pandas\nfrom dagster import asset\n"
    files = {
        "etl/__init__.py": "",
        "etl/definitions.py": definitions,
        "etl/words.py": "def strip(text):\n    return text.strip()\n",
        "etl/orders.py": f"{head}from .words import strip\n\n"
        "@asset\ndef raw() -> pandas.DataFrame:\n    return pandas.DataFrame({'x': ['1 ', ' 2']})\n\n"
        "@asset\ndef clean(raw: pandas.DataFrame) -> pandas.DataFrame:\n    return raw.assign(x=raw['x'].map(strip))\n",
        "etl/prices.py": f"{head}\n@asset\ndef rates() -> pandas.DataFrame:\n    return pandas.DataFrame({{'rate': [2]}})\n",
        "etl/report.py": f"{head}\n@asset\ndef days() -> pandas.DataFrame:\n    return pandas.DataFrame({{'day': [1]}})\n\n"
        "@asset\ndef note(days: pandas.DataFrame) -> pandas.DataFrame:\n"
        "    open('note.txt', 'w').write(str(len(days)))\n    return days\n",
    }
    outputs = [{"path": "shop.duckdb", "tables": "main.*"}, {"path": "note.txt"}]
    keys = {"runner": "dagster", "project_dir": "shop", "outputs": outputs, "writes": ["shop.duckdb*"]}
    shop = Part(tmp_path, files, path="shop/etl/definitions.py", **keys)
    tables = {name: f"shop.duckdb/main.{name}.parquet" for name in ("raw", "clean", "rates", "days", "note")}
    writing, cleaned = {"days", "note"}, [tables["clean"], tables["raw"]]
    for path in ("etl/words.py", "etl/orders.py"):
        told = shop.change(path, f"{files[path]}# as before\n")
        assert told == ("PASSED", {"raw", "clean"} | writing, [tables["rates"]]), path
    told = shop.change("etl/prices.py", f"{files['etl/prices.py']}# as before\n")
    assert told == ("PASSED", {"rates"} | writing, cleaned)
    told = shop.change("etl/prices.py", files["etl/prices.py"].replace("[2]", "[3]"))
    assert told == ("FAILED", {"rates"} | writing, cleaned)
    whole: tuple[str, set[str], list[str]] = ("PASSED", {"raw", "clean", "rates"} | writing, [])
    assert shop.change("etl/definitions.py", f"{definitions}# as before\n") == whole
    # What the definitions use besides assets may change any of them, and so may what another I/O manager does.
    shop.write("etl/prices.py", f"SCHEMA = 'main'\n{files['etl/prices.py']}")
    shop.write(
        "etl/definitions.py", definitions.replace("import rates", "import SCHEMA, rates").replace('"main"', "SCHEMA")
    )
    shop.repository.commit("schema")
    assert shop.change("etl/prices.py", f"SCHEMA = 'main'\n{files['etl/prices.py']}# as before\n") == whole
    shop.write(
        "etl/definitions.py",
        definitions.replace("DuckDBPandasIOManager(", "Own(").replace(
            "\nmanager", "\nclass Own(DuckDBPandasIOManager):\n    pass\n\nmanager"
        ),
    )
    shop.write("etl/prices.py", files["etl/prices.py"])
    shop.repository.commit("own")
    assert shop.change("etl/prices.py", f"{files['etl/prices.py']}# as before\n") == whole


@pytest.mark.skipif(SNAKEMAKE not in INSTALLED, reason="only jobs of Snakemake are run in part")
def test_snakemake_makes_only_what_comes_after_changed_files(tmp_path: Path) -> None:
    snakefile = """
NAMES = open("names.txt").read().split()

rule all:
    input: "out/all.txt", "out/note.txt"

rule clean:
    input: "data/{name}.txt"
    output: "out/{name}.clean.txt"
    script: "scripts/clean.py"

rule join:
    input: expand("out/{name}.clean.txt", name=NAMES)
    output: "out/all.txt"
    shell: "cat {input} > {output}"

rule note:
    input: "data/note.txt"
    output: "out/note.txt"
    shell: "python scripts/note.py {input} {output}"
"""
    files = {
        "Snakefile": snakefile,
        "names.txt": "a b\n",
        "scripts/clean.py": "open(snakemake.output[0], 'w').write(open(snakemake.input[0]).read().strip())\n",
        "scripts/note.py": "import sys\nimport words\nopen(sys.argv[2], 'w').write(words.echo(open(sys.argv[1]).read()))\n",
        "scripts/words.py": "def echo(text):\n    return text + text\n",
        "data/a.txt": "1\n",
        "data/b.txt": "2\n",
        "data/note.txt": "3",
    }
    keys = {"outputs": [{"path": "out/*.txt"}], "writes": ["**/__pycache__/**"]}
    shop = Part(tmp_path, files, path="shop/Snakefile", **keys)
    joined = ["out/a.clean.txt", "out/all.txt", "out/b.clean.txt"]
    assert shop.change("data/a.txt", "1\n\n") == ("PASSED", {"clean", "join"}, ["out/note.txt"])
    script = files["scripts/clean.py"]
    assert shop.change("scripts/clean.py", f"{script}# as before\n") == ("PASSED", {"clean", "join"}, ["out/note.txt"])
    assert shop.change("scripts/note.py", f"{files['scripts/note.py']}# as before\n") == ("PASSED", {"note"}, joined)
    assert shop.change("data/note.txt", "4") == ("FAILED", {"note"}, joined)
    steps = {"all", "clean", "join", "note"}
    for path in ("names.txt", "scripts/words.py"):
        assert shop.change(path, f"{files[path]}\n") == ("PASSED", steps, []), path


@pytest.mark.skipif(SQLMESH not in INSTALLED, reason="only models of SQLMesh are evaluated in part")
def test_sqlmesh_evaluates_only_what_comes_after_a_changed_model(tmp_path: Path) -> None:
    models = {
        "models/other.sql": "MODEL (name shop.other, kind FULL);\nSELECT 7 AS x\n",
        "models/rates.sql": "MODEL (name shop.rates, kind SEED (path '../seeds/rates.csv'));\n",
        "models/last.sql": "MODEL (name shop.last, kind VIEW);\nSELECT amount * rate AS y FROM shop.total, shop.rates\n",
        "seeds/rates.csv": "rate\n2\n",
    }
    outputs = [{"path": "shop.duckdb", "tables": "shop.*"}]
    files = {**SQLMESH.files, **models}
    shop = Part(tmp_path, files, path="shop/config.yaml", outputs=outputs, writes=["*.duckdb*"])
    told = shop.change("models/total.sql", f"{files['models/total.sql']}-- no other sum\n")
    needed = {f"shop.{name}" for name in ("orders", "total", "rates", "last")}
    assert told == ("PASSED", needed, ["shop.duckdb/shop.other.parquet"])
    assert shop.change("seeds/rates.csv", "rate\n3\n")[0] == "FAILED"
    # After a failure all of it runs.
    shop.write("seeds/rates.csv", "rate\n3\n")
    assert shop.check("--golden-changed", "HEAD")[::2] == ("FAILED", [])


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
