"""What SQLMesh's state tells of the tables in the same DuckDB file. The forms are those that SQLMesh 0.236 wrote for its example `sushi`."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.compare.tables.duckdb_engine import open_engine
from pytest_golden.compare.tables.sqlmesh_models import read_models
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.regression.model import ResultStatus
from tests.compare.conftest import kinds
from tests.compare.tables.test_database_outputs import duckdb_script

if TYPE_CHECKING:
    from tests.compare.conftest import Workspace

duckdb: Any = import_module("duckdb")

STATE = (
    "CREATE SCHEMA sqlmesh",
    "CREATE TABLE sqlmesh._snapshots (name VARCHAR, snapshot VARCHAR, updated_ts BIGINT)",
    "CREATE TABLE sqlmesh._environments (name VARCHAR, suffix_target VARCHAR)",
)


def snapshot(name: str, *parents: str, updated: int = 1, **node: Any) -> str:
    told = {"node": node, "parents": [{"name": f'"wh"."shop"."{parent}"'} for parent in parents]}
    written = json.dumps(told).replace("'", "''")
    return f"""INSERT INTO sqlmesh._snapshots VALUES ('"wh"."shop"."{name}"', '{written}', {updated})"""


def environment(name: str, suffix_target: str = "schema") -> str:
    return f"INSERT INTO sqlmesh._environments VALUES ('{name}', '{suffix_target}')"


def read(*statements: str) -> dict[str, Any]:
    with open_engine() as engine:
        for statement in statements:
            engine.query(statement)
        return read_models(engine, "sqlmesh")


@pytest.mark.parametrize(
    ("node", "key"),
    [
        ({"kind": {"unique_key": ['"a"', "`b`"]}}, ("a", "b")),
        ({"kind": {"unique_key": ["COALESCE(a, 0)"]}, "grains": ["(c)"]}, ("c",)),
        ({"kind": {"unique_key": ['"a"'], "valid_from_name": '"valid_from"'}, "grains": ["a"]}, ("a", "valid_from")),
        ({"kind": {}, "grains": ["(customer_id, event_date)"]}, ("customer_id", "event_date")),
        ({"kind": {}, "grains": ["id AS order_id", "other"]}, ("id",)),
        ({"kind": {}, "grains": ["lower(name)"]}, ()),
        ({"audits": [["not_null", {"columns": "x"}], ["unique_values", {"columns": "(a, b)"}]]}, ("a",)),
        ({"audits": [["unique_combination_of_columns", {"columns": "[a, b]"}]]}, ("a", "b")),
        ({}, ()),
    ],
)
def test_key_comes_from_the_kind_a_grain_or_an_audit(node: dict[str, Any], key: tuple[str, ...]) -> None:
    assert read(*STATE, snapshot("orders", **node), environment("prod"))["shop.orders"].key == key


def test_models_are_found_by_the_views_of_each_environment() -> None:
    statements = (snapshot("raw"), snapshot("orders", "raw"), snapshot("sums", "orders", "other"))
    models = read(*STATE, *statements, environment("prod"), environment("dev"), environment("ci", "TABLE"))
    assert {name: model.upstream for name, model in models.items() if "sums" in name} == {
        "shop.sums": ("shop.orders", "shop.other", "shop.raw"),
        "shop__dev.sums": ("shop__dev.orders", "shop__dev.other", "shop__dev.raw"),
        "shop.sums__ci": ("shop.orders__ci", "shop.other__ci", "shop.raw__ci"),
    }


def test_the_newest_snapshot_counts_and_an_unknown_form_tells_nothing() -> None:
    old, new = snapshot("orders", updated=1, grains=["old"]), snapshot("orders", updated=2, grains=["new"])
    assert read(*STATE, new, old, environment("prod"))["shop.orders"].key == ("new",)
    assert read("CREATE SCHEMA sqlmesh", "CREATE TABLE sqlmesh._snapshots (name VARCHAR)") == {}
    assert read(*STATE, """INSERT INTO sqlmesh._snapshots VALUES ('a', '[]', 1)""", environment("prod")) == {}


def shop(*, hash_of_model: str = "123", amount: str = "i * 2", customer: str = "i") -> str:
    orders = f"sqlmesh__shop.shop__orders__{hash_of_model}"
    return duckdb_script(
        *STATE,
        snapshot("orders", grains=["id"]),
        snapshot("sums", "orders", grains=["customer"]),
        environment("prod"),
        "CREATE SCHEMA sqlmesh__shop",
        "CREATE SCHEMA shop",
        f"CREATE TABLE {orders} AS SELECT i AS id, {amount} AS amount FROM range(1, 9) t(i) ORDER BY hash(i)",
        f"CREATE VIEW shop.orders AS SELECT * FROM wh.{orders}",
        f"CREATE VIEW shop.sums AS SELECT {customer} AS customer, amount FROM shop.orders, range(1, 3) t(i)",
    )


def test_models_are_compared_by_their_keys_and_told_by_their_graph(workspace: Workspace) -> None:
    output = DeclaredOutput("wh.duckdb", tables=("*",))
    assert workspace.accept(workspace.declare(shop(), output)).status is ResultStatus.PASSED
    assert sorted(file.name for file in (workspace.baselines / "wh.duckdb").iterdir()) == [
        "shop.orders.parquet",
        "shop.sums.parquet",
    ]
    assert workspace.check(workspace.declare(shop(hash_of_model="456"), output)).status is ResultStatus.PASSED
    differing = workspace.check(workspace.declare(shop(amount="i * 2 + (i = 5)::INT"), output))
    assert kinds(differing) == [
        ("output_differs", "wh.duckdb/shop.orders.parquet"),
        ("output_differs", "wh.duckdb/shop.sums.parquet"),
    ]
    first, second = (reason.message for reason in differing.reasons)
    assert "5   amount  10        11" in first
    assert "this follows from wh.duckdb/shop.orders.parquet" in second


def test_a_key_that_the_engine_only_claims_is_not_used(workspace: Workspace) -> None:
    output = DeclaredOutput("wh.duckdb", table="shop.sums")
    assert workspace.accept(workspace.declare(shop(customer="1"), output)).status is ResultStatus.PASSED
    assert workspace.check(workspace.declare(shop(customer="1"), output)).status is ResultStatus.PASSED
    differing = workspace.check(workspace.declare(shop(customer="1", amount="i * 3"), output))
    assert "`amount`" in differing.reasons[0].message
    assert "not unique" not in differing.reasons[0].message


def test_a_known_key_with_a_column_that_is_ignored_is_not_used(workspace: Workspace) -> None:
    def moving(at: int) -> str:
        return duckdb_script(
            *STATE,
            snapshot("history", kind={"unique_key": ["id"], "valid_from_name": "valid_from"}),
            environment("prod"),
            "CREATE SCHEMA shop",
            f"CREATE TABLE shop.history AS SELECT i AS id, {at} + i AS valid_from FROM range(5) t(i)",
        )

    output = DeclaredOutput("wh.duckdb", tables=("*",), ignore_columns=("valid_from",))
    assert workspace.accept(workspace.declare(moving(1), output)).status is ResultStatus.PASSED
    assert workspace.check(workspace.declare(moving(900), output)).status is ResultStatus.PASSED
