"""Tables of PostgreSQL as outputs, in a real server."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.compare.tables.database_files import DatabaseError
from pytest_golden.compare.tables.postgresql_tables import export_postgresql
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.regression.model import ResultStatus
from tests.compare.conftest import kinds

if TYPE_CHECKING:
    from pathlib import Path

    from tests.compare.conftest import Workspace

psycopg: Any = pytest.importorskip("psycopg")
duckdb: Any = import_module("duckdb")

# The values as PostgreSQL writes them, and as they are kept.
TYPES = {
    "boolean": ("true", "true"),
    "bigint": ("9223372036854775807", "9223372036854775807"),
    "numeric": ("12345678901234567890.000000000000000000001", "12345678901234567890.000000000000000000001"),
    "double precision": ("'NaN'", "nan"),
    "real": ("1.1", "1.1"),
    "text": ("E'a,\"b\"\\n\\\\x'", 'a,"b"\n\\x'),
    "bytea": ("'\\x00ff'", "\\x00ff"),
    "date": ("'0001-01-01'", "0001-01-01"),
    "timestamptz": ("'2026-03-29 01:30:00+01'", "2026-03-29 00:30:00+00"),
    "interval": ("'1 month 2 days'", "1 mon 2 days"),
    "uuid": ("'907645a0-36ba-42f6-b33b-92abe577642b'", "907645a0-36ba-42f6-b33b-92abe577642b"),
    "integer[]": ("'{1,NULL,3}'", "{1,NULL,3}"),
    "jsonb": ('\'{"b": 1, "a": [2]}\'', '{"a": [2], "b": 1}'),
}


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("kind", TYPES)
def test_values_survive(postgres_url: str, tmp_path: Path, kind: str) -> None:
    written, kept = TYPES[kind]
    execute(
        postgres_url,
        "CREATE SCHEMA marts",
        f'CREATE TABLE marts."or.ders"(v {kind}, "w x" text)',
        f"INSERT INTO marts.\"or.ders\" VALUES ({written}, ''), (NULL, NULL)",
    )
    tables, names = export_postgresql(postgres_url, lambda name: () if name.startswith("marts.") else None, tmp_path)
    assert "marts.or.ders" in names
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.execute(f"SELECT v::VARCHAR, \"w x\" FROM '{tables[0].file}' ORDER BY v IS NULL").fetchall()
    assert rows == [(kept, ""), (None, None)]


def test_table_is_compared_and_only_looked_at(
    workspace: Workspace, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE", postgres_url)
    execute(
        postgres_url,
        "CREATE TABLE orders AS SELECT i AS id, i * 2 AS amount FROM generate_series(1, 9) i",
        "CREATE VIEW v AS SELECT count(*) AS n FROM orders",
    )
    output = DeclaredOutput(database="${WAREHOUSE}", tables=("public.orders", "public.v"), key=("id",))
    project = workspace.declare(
        "true", output, DeclaredOutput(database="${WAREHOUSE}", table="nope"), pass_env=("WAREHOUSE",)
    )
    result = workspace.check(project)
    assert ("baseline_missing", "WAREHOUSE/public.orders.parquet") in kinds(result)
    assert any("the database of WAREHOUSE has not the table `nope`" in reason.message for reason in result.reasons)
    project = workspace.declare(
        "true", DeclaredOutput(database="${WAREHOUSE}", table="orders", key=("id",)), pass_env=("WAREHOUSE",)
    )
    assert workspace.accept(project).status is ResultStatus.PASSED
    assert workspace.check(project).status is ResultStatus.PASSED
    execute(postgres_url, "UPDATE orders SET amount = 0 WHERE id = 5")
    differing = workspace.check(project)
    assert kinds(differing) == [("output_differs", "WAREHOUSE/public.orders.parquet")]
    assert "`amount`" in differing.reasons[0].message


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", "the variable is not set"),
        ("postgresql://nobody:hunter22@127.0.0.1:9/none", "cannot be read: "),
        ("nonsense", "cannot be read: "),
    ],
)
def test_database_that_cannot_be_reached_is_one_sentence_without_the_password(
    tmp_path: Path, url: str, told: str
) -> None:
    with pytest.raises(DatabaseError, match=told) as raised:
        export_postgresql(url, lambda _: (), tmp_path)
    assert "hunter22" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_view_that_would_write_cannot(postgres_url: str, tmp_path: Path) -> None:
    execute(
        postgres_url,
        "CREATE TABLE t(i int)",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO t VALUES (1) RETURNING i'",
        "CREATE VIEW w AS SELECT f() AS i",
    )
    with pytest.raises(DatabaseError, match="read-only transaction"):
        export_postgresql(postgres_url, lambda name: () if name == "public.w" else None, tmp_path)
