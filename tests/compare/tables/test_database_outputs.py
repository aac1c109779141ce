"""Tables in databases as outputs of a project: judged, accepted and told like files."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.compare.tables.database_files import DatabaseError
from pytest_golden.compare.tables.database_outputs import name_file
from pytest_golden.compare.tables.dbt_models import find_left_out, read_models
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.unexpected import names_output
from tests.compare.conftest import kinds

if TYPE_CHECKING:
    from pathlib import Path

    from tests.compare.conftest import Workspace


def duckdb_script(*statements: str, database: str = "wh.duckdb") -> str:
    code = f"import duckdb; c = duckdb.connect({database!r}); [c.execute(one) for one in {list(statements)!r}]"
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def orders(amount: str = "i * 2", order: str = "hash(i)") -> str:
    select = f"SELECT i AS id, {amount} AS amount FROM range(1, 9) t(i) ORDER BY {order}"
    return duckdb_script(
        "CREATE SCHEMA marts", f"CREATE TABLE marts.orders AS {select}", "CREATE TABLE tmp AS SELECT now() t"
    )


def test_table_is_accepted_and_compared_whatever_the_order_of_its_rows(workspace: Workspace) -> None:
    output = DeclaredOutput("wh.duckdb", table="marts.orders")
    missing = workspace.check(workspace.declare(orders(), output))
    assert kinds(missing) == [("baseline_missing", "wh.duckdb/marts.orders.parquet")]
    assert workspace.accept(workspace.declare(orders(), output)).status is ResultStatus.PASSED
    assert workspace.check(workspace.declare(orders(order="-i"), output)).status is ResultStatus.PASSED
    differing = workspace.check(workspace.declare(orders("i * 2 + (i = 5)::INT"), output))
    assert kinds(differing) == [("output_differs", "wh.duckdb/marts.orders.parquet")]


def test_key_names_the_row_and_the_column(workspace: Workspace) -> None:
    output = DeclaredOutput("wh.duckdb", tables=("marts.*",), key=("id",))
    workspace.accept(workspace.declare(orders(), output))
    differing = workspace.check(workspace.declare(orders("i * 2 + (i = 5)::INT"), output))
    message = differing.reasons[0].message
    assert "`amount`" in message
    assert "5" in message
    assert "11" in message


def test_link_to_a_database_outside_the_view_is_not_read(workspace: Workspace, tmp_path: Path) -> None:
    duckdb: Any = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "theirs.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'nobody may see this' AS told")
    output = DeclaredOutput("wh.duckdb", tables=("*",))
    result = workspace.check(workspace.declare(f"ln -s {tmp_path}/theirs.duckdb wh.duckdb", output))
    assert kinds(result) == [("output_unreadable", "* of wh.duckdb")]
    assert "nobody" not in str(result.to_dict())


def test_tables_that_no_entry_names_or_passes_over_are_told(workspace: Workspace) -> None:
    script = duckdb_script(*(f"CREATE TABLE {name} AS SELECT 1 x" for name in ("a", "b", "scratch")))
    result = workspace.accept(workspace.declare(script, DeclaredOutput("wh.duckdb", table="a")))
    assert result.unwatched == ("wh.duckdb/main.b", "wh.duckdb/main.scratch")
    output = DeclaredOutput("wh.duckdb", tables=("[ab]",), exclude=("scr*",))
    assert workspace.check(workspace.declare(script, output)).unwatched == ()


@pytest.mark.parametrize("suffix", [".wal", "-wal", "-journal"])
def test_log_beside_a_database_that_is_a_link_is_not_read(workspace: Workspace, tmp_path: Path, suffix: str) -> None:
    script = f"{orders()}; ln -s {tmp_path}/theirs wh.duckdb{suffix}"
    result = workspace.check(workspace.declare(script, DeclaredOutput("wh.duckdb", tables=("*",))))
    assert result.reasons[0].message == f"wh.duckdb cannot be read: wh.duckdb{suffix} beside it is a symbolic link"


def test_table_that_is_gone_or_misspelt_says_what_there_is(workspace: Workspace) -> None:
    outputs = (DeclaredOutput("wh.duckdb", table="marts.order"), DeclaredOutput("wh.duckdb", tables=("x.*",)))
    result = workspace.check(workspace.declare(orders(), *outputs, DeclaredOutput("no.duckdb", table="t")))
    assert [reason.message for reason in result.reasons] == [
        "wh.duckdb has not the table `marts.order`; it has main.tmp, marts.orders",
        "wh.duckdb has not a table that matches 'x.*'; it has main.tmp, marts.orders",
        "this run did not write no.duckdb; it wrote wh.duckdb",
    ]
    workspace.accept(workspace.declare(orders(), DeclaredOutput("wh.duckdb", tables=("*",), exclude=("tmp",))))
    gone = workspace.check(
        workspace.declare(duckdb_script("CREATE TABLE t(i INT)"), DeclaredOutput("wh.duckdb", tables=("*",)))
    )
    assert ("output_missing", "wh.duckdb/marts.orders.parquet") in kinds(gone)


def test_excluded_table_is_no_output_and_its_baseline_is_unused(workspace: Workspace) -> None:
    everything = DeclaredOutput("wh.duckdb", tables=("*",))
    workspace.accept(workspace.declare(orders(), everything))
    some = DeclaredOutput("wh.duckdb", tables=("*",), exclude=("tmp",))
    result = workspace.check(workspace.declare(orders(), some))
    assert result.status is ResultStatus.PASSED
    assert "wh.duckdb/main.tmp.parquet" in result.warnings[0]


def test_no_database_is_one_sentence(workspace: Workspace) -> None:
    result = workspace.check(workspace.declare("echo hello > wh.duckdb", DeclaredOutput("wh.duckdb", table="t")))
    assert [reason.message for reason in result.reasons] == [
        "wh.duckdb is not a DuckDB or SQLite database, or is damaged"
    ]


def test_sqlite_tables_are_outputs_too(workspace: Workspace) -> None:
    code = """import sqlite3; c = sqlite3.connect('a.db'); c.execute('CREATE TABLE t(i, s)'); c.execute("INSERT INTO t VALUES (1, {!r})"); c.commit()"""
    output = DeclaredOutput("a.db", table="t", key=("i",))
    script = "{} -c {}"
    accepted = workspace.declare(script.format(sys.executable, shlex.quote(code.format("x"))), output)
    assert workspace.accept(accepted).status is ResultStatus.PASSED
    assert workspace.check(accepted).status is ResultStatus.PASSED
    changed = workspace.check(workspace.declare(script.format(sys.executable, shlex.quote(code.format("y"))), output))
    assert kinds(changed) == [("output_differs", "a.db/main.t.parquet")]


def test_names_that_no_file_may_have(workspace: Workspace) -> None:
    output = DeclaredOutput("wh.duckdb", tables=("*",))
    script = duckdb_script('CREATE TABLE "a/b%2F..\n" AS SELECT 1 AS i')
    assert workspace.accept(workspace.declare(script, output)).status is ResultStatus.PASSED
    (file,) = (workspace.baselines / "wh.duckdb").iterdir()
    assert file.name == name_file("main.a/b%2F..\n") == "main.a%2Fb%252F..%0A.parquet"
    assert workspace.check(workspace.declare(script, output)).status is ResultStatus.PASSED


@pytest.mark.parametrize(
    ("output", "named", "others"),
    [
        (
            DeclaredOutput("a.db", table="orders"),
            ["a.db/main.orders.parquet", "a.db/x.ORDERS.parquet"],
            ["a.db/main.orders2.parquet", "b.db/main.orders.parquet", "a.db"],
        ),
        (DeclaredOutput("*.db", tables=("m.*",)), ["a.db/m.x.parquet"], ["a.db/n.x.parquet", "d/a.db/m.x.parquet"]),
        (DeclaredOutput(dbt=("*",)), ["dbt/orders.parquet"], ["dbt.parquet", "x/orders.parquet"]),
        (
            DeclaredOutput(database="${URL}", tables=("*",), exclude=("tmp*",)),
            ["URL/public.a.parquet"],
            ["URL/public.tmp1.parquet"],
        ),
    ],
)
def test_entry_names_the_paths_of_its_tables(output: DeclaredOutput, named: list[str], others: list[str]) -> None:
    assert [path for path in (*named, *others) if names_output(output, path)] == named


def node(name: str, kind: str = "model", **more: Any) -> dict[str, Any]:
    config = {"materialized": "table", **more.pop("config", {})}
    base = {
        "name": name,
        "resource_type": kind,
        "schema": "main",
        "database": "wh",
        "alias": None,
        "fqn": ["shop", "marts", name],
    }
    return {**base, "config": config, "columns": {}, "constraints": [], **more}


def unique(model: str, column: str, **more: Any) -> dict[str, Any]:
    test = {
        "test_metadata": {"name": "unique", "kwargs": {}},
        "attached_node": f"model.shop.{model}",
        "column_name": column,
    }
    return node(f"unique_{model}_{column}", "test", **{**test, **more})


def write_dbt(folder: Path, *nodes: dict[str, Any], adapter: str = "duckdb") -> Path:
    file = folder / "manifest.json"
    keyed = {f"{one['resource_type']}.shop.{one['name']}": one for one in nodes}
    file.write_text(json.dumps({"metadata": {"adapter_type": adapter, "project_name": "shop"}, "nodes": keyed}))
    return file


def test_keys_come_from_configuration_contract_and_tests(tmp_path: Path) -> None:
    contract: dict[str, Any] = {
        "config": {"contract": {"enforced": True}},
        "constraints": [{"type": "primary_key", "columns": ["k", "l"]}],
    }
    combination = {"name": "unique_combination_of_columns", "kwargs": {"combination_of_columns": ["a", "b"]}}
    file = write_dbt(
        tmp_path,
        node("configured", config={"unique_key": ["x", "y"]}),
        node("contracted", **contract),
        node(
            "of_column",
            config={"contract": {"enforced": True}},
            columns={"c": {"name": "c", "constraints": [{"type": "unique"}]}},
        ),
        node("tested", columns={"first": {}, "second": {}}),
        unique("tested", "second"),
        unique("tested", "first"),
        node("combined"),
        unique("combined", "", test_metadata=combination),
        node("conditional"),
        unique("conditional", "id", config={"where": "id > 3"}),
        node("ephemeral", config={"materialized": "ephemeral"}),
        node("seeded", "seed"),
    )
    adapter, models = read_models(file)
    assert adapter == "duckdb"
    assert {model.name: model.key for model in models} == {
        "configured": ("x", "y"),
        "contracted": ("k", "l"),
        "of_column": ("c",),
        "tested": ("first",),
        "combined": ("a", "b"),
        "conditional": (),
    }


def test_a_narrowed_run_may_leave_out_only_what_no_changed_file_reaches(tmp_path: Path) -> None:
    def made(name: str, *parents: str, kind: str = "model", package: str = "shop") -> dict[str, Any]:
        of_file = {"package_name": package, "original_file_path": f"models/{name}.sql"}
        return node(name, kind, depends_on={"nodes": [f"model.shop.{one}" for one in parents]}, **of_file)

    nodes = (made("raw"), made("clean", "raw"), made("report", "clean"), made("other"), made("done"))
    file = write_dbt(tmp_path, *nodes, made("other_test", "other", kind="test"), made("twin", package="dbt_utils"))
    results = tmp_path / "run_results.json"
    results.write_text(json.dumps({"results": [{"unique_id": f"model.shop.{name}"} for name in ("done", "raw")]}))
    assert find_left_out(file, results, ["models/clean.sql"]) == {"other", "twin"}
    # A file of the same name in another package is another one.
    assert find_left_out(file, results, ["models/twin.sql"]) == {"other", "twin", "clean", "report"}
    assert find_left_out(file, results, ["models/raw.sql", "models/other.sql"]) == {"twin"}
    # A baseline that was accepted anew is compared.
    assert find_left_out(file, results, ["models/clean.sql", "dbt/other.parquet"]) == {"twin"}
    for broken in ("", "[]", '{"results": [3]}', '{"results": null}'):
        results.write_text(broken)
        with pytest.raises(DatabaseError, match=r"run_results\.json of dbt cannot be used"):
            find_left_out(file, results, ["models/clean.sql"])


def leave_out(told: str) -> str:
    return f"printf %s {shlex.quote(told)} > .golden-left-out.json"


def test_a_narrowed_run_leaves_out_the_tables_that_its_engine_names(workspace: Workspace) -> None:
    outputs = (DeclaredOutput("wh.duckdb", tables=("main.*",)), DeclaredOutput("wh.duckdb", table="marts.c"))
    both = ("CREATE TABLE a AS SELECT 1 x", "CREATE TABLE b AS SELECT 2 x")
    whole = duckdb_script("CREATE SCHEMA marts", *both, "CREATE TABLE marts.c AS SELECT 3 x")
    assert workspace.accept(workspace.declare(whole, *outputs)).status is ResultStatus.PASSED
    part = f"{duckdb_script(both[0])}; {leave_out(json.dumps(['main.b', 'marts.c', 'tmp.d', 4]))}"
    result = workspace.check(workspace.declare(part, *outputs), changed=("models/a.sql",))
    assert result.status is ResultStatus.PASSED, result.reasons
    assert sorted(result.left_out) == ["wh.duckdb/main.b.parquet", "wh.duckdb/marts.c.parquet"]
    # A run that is whole may leave out nothing.
    missing = kinds(workspace.check(workspace.declare(part, *outputs)))
    assert sorted(str(path) for _, path in missing) == ["marts.c of wh.duckdb", *sorted(result.left_out)]


def test_what_a_narrowed_run_has_made_is_judged_whatever_it_says(workspace: Workspace) -> None:
    output = DeclaredOutput("wh.duckdb", tables=("*",))
    workspace.accept(workspace.declare(duckdb_script("CREATE TABLE a AS SELECT 1 x"), output))
    wrong = f"{duckdb_script('CREATE TABLE a AS SELECT 2 x')}; {leave_out(json.dumps(['main.A']))}"
    result = workspace.check(workspace.declare(wrong, output), changed=("models/a.sql",))
    assert kinds(result) == [("output_differs", "wh.duckdb/main.a.parquet")]
    assert result.left_out == ()


@pytest.mark.parametrize(
    "script",
    ["true", leave_out("{"), leave_out('"main.b"'), leave_out("[" * 100_000), "ln -s ../told .golden-left-out.json"],
)
def test_a_narrowed_run_that_does_not_say_what_it_left_out_is_judged_whole(workspace: Workspace, script: str) -> None:
    (workspace.path / "told").write_text(json.dumps(["main.b"]))
    output = DeclaredOutput("wh.duckdb", tables=("*",))
    tables = ("CREATE TABLE a AS SELECT 1 x", "CREATE TABLE b AS SELECT 2 x")
    workspace.accept(workspace.declare(duckdb_script(*tables), output))
    result = workspace.check(
        workspace.declare(f"{duckdb_script(tables[0])}; {script}", output), changed=("models/a.sql",)
    )
    assert kinds(result) == [("output_missing", "wh.duckdb/main.b.parquet")]


def test_models_of_dbt_are_outputs_with_their_keys(workspace: Workspace, tmp_path: Path) -> None:
    def script(amount: int) -> str:
        manifest = write_dbt(tmp_path, node("orders", alias="orders_v2"), unique("orders", "id"), node("tmp"))
        table = f"CREATE TABLE orders_v2 AS SELECT i AS id, i * {amount} AS amount FROM range(9) t(i) ORDER BY hash(i)"
        return f"{duckdb_script(table, 'CREATE TABLE tmp AS SELECT 1 i')}; mkdir target; cp {manifest} target/manifest.json"

    output = DeclaredOutput(dbt=("marts.*",), exclude=("tmp",))
    mounts = {"mounts": ({"path": str(tmp_path), "mode": "read"},)}
    assert workspace.accept(workspace.declare(script(2), output, **mounts)).status is ResultStatus.PASSED
    assert [file.name for file in (workspace.baselines / "dbt").iterdir()] == ["orders.parquet"]
    differing = workspace.check(workspace.declare(script(3), output, **mounts))
    assert kinds(differing) == [("output_differs", "dbt/orders.parquet")]
    assert "`amount`" in differing.reasons[0].message


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("true", "the models of dbt cannot be read: this run wrote no target/manifest.json"),
        ("mkdir target; echo 3 > target/manifest.json", "is not a manifest of dbt that can be read: TypeError"),
        (
            "mkdir target; ln -s /dev/zero target/manifest.json",
            "is not a manifest of dbt that can be read: UnreadableError",
        ),
        ("mkdir target; cp {} target/manifest.json", "their database is 'wh', and this run wrote no such DuckDB file"),
    ],
)
def test_dbt_that_cannot_be_read_is_one_sentence(workspace: Workspace, script: str, told: str) -> None:
    manifest = write_dbt(workspace.path, node("orders"))
    result = workspace.check(workspace.declare(script.format(manifest), DeclaredOutput(dbt=("*",))))
    assert told in result.reasons[0].message
    assert len(result.reasons) == 1


def test_other_adapters_and_unknown_models_are_said(workspace: Workspace) -> None:
    for adapter, pattern, told in (
        ("postgres", "*", "they are in postgres, and only DuckDB is read this way; name its tables with `database:`"),
        ("duckdb", "ordres", "no model of dbt matches 'ordres'; there are orders"),
    ):
        manifest = write_dbt(workspace.path, node("orders"), adapter=adapter)
        script = f"rm -rf target; mkdir target; cp {manifest} target/manifest.json"
        result = workspace.check(workspace.declare(script, DeclaredOutput(dbt=(pattern,))))
        assert told in result.reasons[0].message


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"max_rows": 5}, "has 8 rows, more than max_rows: 5"),
        ({"key": ("amount_class",)}, "has no column `amount_class`, which is its key"),
        ({"accepted": {"amount": ("2",)}}, "amount"),
    ],
)
def test_rules_hold_for_a_table_that_is_as_its_baseline(workspace: Workspace, rules: dict[str, Any], told: str) -> None:
    plain = DeclaredOutput("wh.duckdb", table="marts.orders")
    workspace.accept(workspace.declare(orders(), plain))
    assert workspace.check(workspace.declare(orders(), plain)).status is ResultStatus.PASSED
    result = workspace.check(workspace.declare(orders(), replace(plain, **rules)))
    assert told in result.reasons[0].message
