"""`golden init --from great-expectations`, with the files of a file context as GX Core 1.24 writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.manifest.reader import load_manifest
from tests.repository import MANIFEST

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

CONFIGURATION = """\
config_version: 4.0
fluent_datasources:
  files:
    type: pandas_filesystem
    assets:
      orders:
        type: csv
        batch_definitions:
          all:
            partitioner: {regex: orders.csv$, param_names: []}
          daily:
            partitioner: {regex: 'orders_(?P<day>.*).csv', param_names: [day]}
    base_directory: data
  warehouse:
    type: sqlite
    assets: {orders: {type: table, batch_definitions: {all: {partitioner: null}}}}
"""


def expect(kind: str, **keywords: Any) -> dict[str, Any]:
    return {"type": f"expect_{kind}", "kwargs": keywords, "meta": {}, "severity": "critical"}


SUITE = [
    expect("column_values_to_not_be_null", column="id"),
    expect("column_values_to_not_be_null", column="total, gross"),
    expect("column_values_to_be_unique", column="id", mostly=1.0),
    expect("column_values_to_be_between", column="total, gross", min_value=0.0, max_value=1234567.125),
    expect("column_values_to_be_between", column="share", max_value=1e-7),
    expect("column_values_to_be_in_set", column="country", value_set=["NO", "SE"]),
    expect("table_row_count_to_be_between", min_value=1, max_value=1000),
    # These have no equal.
    expect("column_mean_to_be_between", column="share", min_value=0),
    expect("column_values_to_not_be_null", column="note", mostly=0.9),
    expect("column_values_to_be_between", column="note", min_value=0, strict_min=True),
    expect("column_values_to_be_unique"),
]


@pytest.fixture
def context(folder: Path) -> Path:
    home = folder / "gx"
    for name in ("expectations", "validation_definitions"):
        (home / name).mkdir(parents=True)
    (home / "great_expectations.yml").write_text(CONFIGURATION)
    (home / "expectations" / "orders suite.json").write_text(
        json.dumps({"name": "orders suite", "expectations": SUITE})
    )
    (folder / "data").mkdir()
    (folder / "data" / "orders.csv").write_text("id\n1\n")
    return home


def define(context: Path, name: str, source: str = "files", batch: str = "all", suite: str = "orders suite") -> None:
    data = {"datasource": {"name": source}, "asset": {"name": "orders"}, "batch_definition": {"name": batch}}
    told = {"name": name, "data": data, "suite": {"name": suite}}
    (context / "validation_definitions" / f"{name}.json").write_text(json.dumps(told))


def test_a_suite_of_a_file_becomes_the_rules_of_an_output(golden: Golden, folder: Path, context: Path) -> None:
    define(context, "check orders")
    ran = golden("init", "--from", "great-expectations")
    assert ran.code == 0, ran.err
    (project,) = load_manifest(folder / MANIFEST).projects
    assert (project.name, project.path) == ("check_orders", "gx/validation_definitions/check orders.json")
    (output,) = project.outputs
    assert (output.path, output.compare, output.schema_only) == ("data/orders.csv", "table", True)
    assert (output.min_rows, output.max_rows) == (1, 1000)
    assert (output.not_null, output.unique) == (("id", "total, gross"), ("id",))
    assert output.between == {"total, gross": (0, 1234567.125), "share": (None, 1e-7)}
    assert output.accepted == {"country": ("NO", "SE")}
    said = " ".join(ran.out.split())
    assert "name the pipeline that writes data/orders.csv in `path` and `command`" in said
    for kind in ("column_mean_to_be_between of share", "column_values_to_not_be_null of note"):
        assert f"expect_{kind}: has no equal" in said
    assert said.count("has no equal") == 4


def test_what_is_no_single_file_is_left_out(golden: Golden, folder: Path, context: Path) -> None:
    define(context, "warehouse", "warehouse")
    define(context, "daily", batch="daily")
    define(context, "other suite", suite="gone")
    define(context, "other source", "gone")
    for name, text in (("broken", "{"), ("deep", "[" * 100_000), ("odd", '{"data": 5, "suite": []}'), ("list", "[1]")):
        (context / "validation_definitions" / f"{name}.json").write_text(text)
        (context / "expectations" / f"{name}.json").write_text(text)
    ran = golden("init", "--from", "great-expectations")
    assert ran.code == 2
    assert "no validation definition of Great Expectations below" in ran.err
    define(context, "fine")
    ran = golden("init", "--from", "great-expectations")
    assert ran.code == 0, ran.err
    assert [project.name for project in load_manifest(folder / MANIFEST).projects] == ["fine"]


@pytest.mark.parametrize(
    "configuration", ["", "[", "fluent_datasources: 5\n", "fluent_datasources: {files: {assets: 5}}\n"]
)
def test_a_damaged_context_is_a_sentence(golden: Golden, context: Path, configuration: str) -> None:
    define(context, "orders")
    (context / "great_expectations.yml").write_text(configuration)
    ran = golden("init", "--from", "great-expectations")
    assert ran.code == 2
    assert "no validation definition of Great Expectations below" in ran.err
