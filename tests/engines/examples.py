"""A small project of each engine, and one honest break of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Example:
    """A project of an engine: its files, its entry in the manifest, and the steps that it leaves.

    `broken` replaces a text in one of the files; then the steps are `steps_when_broken`, and the failure begins with
    `headline`. `module` is what must be installed. `state` are half-written state files, as a kill leaves them.
    """

    engine: str
    module: str
    files: dict[str, str]
    path: str
    writes: tuple[str, ...]
    steps: tuple[str, ...]
    broken: tuple[str, str, str]
    steps_when_broken: tuple[str, ...]
    headline: str
    keys: dict[str, Any] = field(default_factory=dict)
    state: dict[str, str] = field(default_factory=dict)


SNAKEMAKE = Example(
    "snakemake",
    "snakemake",
    {
        "Snakefile": """
rule total:
    input: "out/orders.csv"
    output: "out/total.txt"
    shell: "awk -F, '{{ total += $2 }} END {{ print total }}' {input} > {output}"

rule orders:
    input: "orders.csv"
    output: "out/orders.csv"
    run:
        open(output[0], "w").write(open(input[0]).read())
""",
        "orders.csv": "1,10\n2,20\n",
    },
    "Snakefile",
    ("out/**",),
    ("orders", "total"),
    ("Snakefile", "{input} >", "nowhere.csv >"),
    ("orders", "total"),
    "total: awk: ",
    state={".snakemake/metadata/b3V0L29yZGVycy5jc3Y=": '{"version": 5, "code', "out/orders.csv": "1,1"},
)
LUIGI = Example(
    "luigi",
    "luigi",
    {
        "tasks.py": """
import luigi

class Orders(luigi.Task):
    day = luigi.Parameter(default="monday")
    def output(self):
        return luigi.LocalTarget("out/orders.csv")
    def run(self):
        with self.output().open("w") as file:
            file.write("1,10\\n2,20\\n")

class Total(luigi.Task):
    def requires(self):
        return Orders()
    def output(self):
        return luigi.LocalTarget("out/total.txt")
    def run(self):
        with self.input().open() as file:
            total = sum(int(line.split(",")[1]) for line in file)
        with self.output().open("w") as file:
            file.write(f"{total}\\n")

class All(luigi.WrapperTask):
    def requires(self):
        return Total()
""",
    },
    "tasks.py",
    ("out/**",),
    ("Orders(day=monday)", "Total()", "All()"),
    ("tasks.py", "[1]) for", "[7]) for"),
    ("Orders(day=monday)", "Total()"),
    "Total(): IndexError: list index out of range",
    {"runner": "luigi", "args": ["All"]},
    {"out/orders.csv-luigi-tmp-0123456789": "1,1"},
)
KEDRO = Example(
    "kedro",
    "kedro",
    {
        "pyproject.toml": '[tool.kedro]\npackage_name = "shop"\nproject_name = "shop"\nkedro_init_version = "{version}"\n',
        "src/shop/__init__.py": "",
        "src/shop/settings.py": "",
        "src/shop/pipeline_registry.py": """
from pathlib import Path
from kedro.pipeline import Pipeline, node

def read_orders():
    return [{"amount": 10}, {"amount": 20}]

def write_total(orders):
    Path("total.txt").write_text(str(sum(order["amount"] for order in orders)))
    return True

def register_pipelines():
    nodes = [node(read_orders, None, "orders", name="orders"), node(write_total, "orders", "done", name="total")]
    return {"__default__": Pipeline(nodes)}
""",
        "conf/base/catalog.yml": "",
        "conf/local/.gitkeep": "",
    },
    "pyproject.toml",
    ("total.txt",),
    ("orders", "total"),
    ("src/shop/pipeline_registry.py", 'order["amount"]', 'order["cost"]'),
    ("orders", "total"),
    "total: KeyError: 'cost'",
)
DAGSTER = Example(
    "dagster",
    "dagster",
    {
        "etl/__init__.py": "",
        "etl/definitions.py": """
from dagster import Definitions, load_assets_from_modules

from . import assets

defs = Definitions(assets=load_assets_from_modules([assets]))
""",
        "etl/assets.py": """
from dagster import asset

@asset
def orders():
    return [10, 20]

@asset
def total(orders):
    open("total.txt", "w").write(str(sum(orders)))
    return sum(orders)
""",
    },
    "etl/definitions.py",
    ("total.txt",),
    ("orders", "total"),
    ("etl/assets.py", "return sum(orders)", "return {}['amount']"),
    ("orders", "total"),
    "total: KeyError: 'amount'",
    {"runner": "dagster", "project_dir": "shop"},
)
DVC = Example(
    "dvc",
    "dvc",
    {
        "dvc.yaml": """
stages:
  orders:
    cmd: cp given.csv orders.csv
    deps: [given.csv]
    outs: [orders.csv]
  total:
    cmd: wc -l orders.csv > total.txt
    deps: [orders.csv]
    outs: [total.txt]
""",
        "given.csv": "1,10\n2,20\n",
        ".dvc/config": "[core]\n    no_scm = True\n",
    },
    "dvc.yaml",
    ("orders.csv", "total.txt"),
    ("orders", "total"),
    ("dvc.yaml", "wc -l orders.csv", "wc -l nowhere.csv"),
    ("orders", "total"),
    "total: wc: ",
    state={"dvc.lock": "schema: '2.0'\nstages:\n  orders:\n    cmd: [cp", ".dvc/tmp/rwlock": '{"', "orders.csv": "1,1"},
)
PREFECT = Example(
    "prefect",
    "prefect",
    {
        "shop.py": """
from prefect import flow, task

@task
def orders():
    return [10, 20]

@task
def total(amounts):
    open("total.txt", "w").write(str(sum(amounts)))

@flow
def shop():
    total(orders())

if __name__ == "__main__":
    shop()
""",
    },
    "shop.py",
    ("total.txt",),
    ("orders", "total"),
    ("shop.py", "sum(amounts)", "sum(amounts) / 0"),
    ("orders", "total"),
    "total: ZeroDivisionError('division by zero')",
    {"runner": "prefect"},
)
SQLMESH = Example(
    "sqlmesh",
    "sqlmesh",
    {
        "config.yaml": """
gateways:
  local:
    connection: {type: duckdb, database: shop.duckdb}
default_gateway: local
model_defaults: {dialect: duckdb, start: 2026-01-01}
""",
        "models/orders.sql": "MODEL (name shop.orders, kind FULL);\nSELECT 1 AS id, 10 AS amount UNION ALL SELECT 2, 20\n",
        "models/total.sql": "MODEL (name shop.total, kind FULL, audits (not_null(columns := (amount))));\n"
        "SELECT SUM(amount) AS amount FROM shop.orders\n",
    },
    "config.yaml",
    ("shop.duckdb",),
    ("shop.orders", "shop.total"),
    ("models/total.sql", "SUM(amount)", "SUM(cost)"),
    ("shop.orders", "shop.shop.total"),
    'shop.shop.total: BinderException: Binder Error: Referenced column "cost" not found in FROM clause!',
    state={"shop.duckdb": "torn" * 1000, ".cache/optimized_query/torn.pkl": "torn"},
)
AIRFLOW = Example(
    "airflow",
    "airflow",
    {
        "shop.py": """
from datetime import datetime
from airflow.sdk import dag, task

@dag(schedule=None, start_date=datetime(2026, 1, 1))
def shop():
    @task
    def orders():
        return [10, 20]

    @task
    def total(amounts):
        open("total.txt", "w").write(str(sum(amounts)))

    total(orders())

shop()
""",
    },
    "shop.py",
    ("total.txt",),
    ("orders", "total"),
    ("shop.py", "sum(amounts)", "sum(amounts) / 0"),
    ("orders", "total"),
    "total: ZeroDivisionError: division by zero",
    {"runner": "airflow", "args": ["shop"]},
)
SPARK = Example(
    "spark",
    "pyspark",
    {
        "shop.py": """
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("shop").getOrCreate()
amounts = spark.sparkContext.parallelize([10, 20], 1).collect()
open("total.txt", "w").write(str(sum(amounts)))
""",
    },
    "shop.py",
    ("total.txt",),
    ("collect at {folder}/shop/shop.py:5",),
    ("shop.py", "sum(amounts)", "sum(amounts) / 0"),
    ("collect at {folder}/shop/shop.py:5",),
    "ZeroDivisionError: division by zero",
    {"runner": "spark"},
)
EXAMPLES = (AIRFLOW, DAGSTER, DVC, KEDRO, LUIGI, PREFECT, SNAKEMAKE, SPARK, SQLMESH)
