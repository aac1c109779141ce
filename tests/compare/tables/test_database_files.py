"""Tables read out of DuckDB and SQLite files: every value survives, and equal tables give equal bytes."""

from __future__ import annotations

import base64
import math
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.compare.tables.database_files import DatabaseError, export_tables, find_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

duckdb: Any = import_module("duckdb")

# Each type with two values, one of which is an edge.
TYPES = {
    "BOOLEAN": "true",
    "TINYINT": "-128",
    "UBIGINT": "18446744073709551615",
    "HUGEINT": "-170141183460469231731687303715884105727",
    "UHUGEINT": "340282366920938463463374607431768211455",
    "FLOAT": "'nan'::FLOAT",
    "DOUBLE": "-0.0::DOUBLE",
    "DECIMAL(38, 10)": "12345678901234567890.0123456789",
    "VARCHAR": "'a,\"b\"' || chr(10) || 'ü'",
    "BLOB": "'\\x00\\xFF'::BLOB",
    "BIT": "'10101'::BIT",
    "DATE": "DATE '0001-01-01'",
    "TIME": "TIME '23:59:59.999999'",
    "TIMETZ": "'12:00:00+05:30'::TIMETZ",
    "TIMESTAMP": "TIMESTAMP '1969-07-20 20:17:40.5'",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2026-03-29 01:30:00+01'",
    "TIMESTAMP_NS": "'2026-01-01 00:00:00.123456789'::TIMESTAMP_NS",
    "INTERVAL": "INTERVAL '1 month 2 days'",
    "UUID": "'907645a0-36ba-42f6-b33b-92abe577642b'::UUID",
    "INTEGER[]": "[1, NULL, 3]",
    "INTEGER[3]": "[1, 2, 3]::INTEGER[3]",
    "HUGEINT[]": "[170141183460469231731687303715884105727]",
    "STRUCT(a INTEGER, b VARCHAR[])": "{'a': 1, 'b': ['x', NULL]}",
    "MAP(VARCHAR, DOUBLE)": "MAP {'k': 1.5}",
    "UNION(n INTEGER, s VARCHAR)": "union_value(s := 'x')",
}


def export(
    database: Path, folder: Path, wanted: Callable[[str], Sequence[str] | None] = lambda _: ()
) -> dict[str, Path]:
    folder.mkdir()
    tables, _ = export_tables(database, wanted, folder)
    assert not [table.trouble for table in tables if table.trouble]
    return {table.name: table.file for table in tables}


def read(file: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows: list[tuple[Any, ...]] = connection.execute(f"SELECT * FROM '{file}'").fetchall()
        return rows


def make(database: Path, *statements: str) -> Path:
    with duckdb.connect(str(database)) as connection:
        for statement in statements:
            connection.execute(statement)
    return database


@pytest.mark.parametrize("kind", TYPES)
def test_values_of_every_type_survive(tmp_path: Path, kind: str) -> None:
    database = make(tmp_path / "a.duckdb", f"CREATE TABLE t AS SELECT {TYPES[kind]} AS v UNION ALL SELECT NULL")
    (file,) = export(database, tmp_path / "out").values()
    with duckdb.connect(str(database)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        kept, written = (
            connection.execute(f"SELECT v::VARCHAR FROM {source} ORDER BY v IS NULL").fetchall()
            for source in ("t", f"'{file}'")
        )
    assert written == kept
    assert written[1] == (None,)


def test_equal_tables_give_equal_bytes_whatever_their_order_and_the_threads(tmp_path: Path) -> None:
    contents = set()
    for number, order in enumerate(("i", "hash(i)", "-i")):
        select = f"SELECT i AS id, 'n' || i % 100 AS name, i / 3 AS x FROM range(300_000) t(i) ORDER BY {order}"
        database = make(tmp_path / f"{number}.duckdb", f"SET threads = {number + 1}", f"CREATE TABLE t AS {select}")
        (file,) = export(database, tmp_path / f"out{number}").values()
        contents.add(file.read_bytes())
    assert len(contents) == 1


def test_rows_are_sorted_by_the_key_first(tmp_path: Path) -> None:
    database = make(tmp_path / "a.duckdb", 'CREATE TABLE t AS SELECT 3 - i AS a, i AS "B" FROM range(3) t(i)')
    (file,) = export(database, tmp_path / "out", lambda _: ["b"]).values()
    assert read(file) == [(3, 0), (2, 1), (1, 2)]


def test_only_wanted_tables_are_read_and_views_count(tmp_path: Path) -> None:
    database = make(
        tmp_path / "we ird.duckdb",
        'CREATE SCHEMA "Ma.rts"',
        'CREATE TABLE "Ma.rts"."or""ders" AS SELECT 1 AS "a.b", 2 AS "c""d"',
        'CREATE VIEW "Ma.rts".v AS SELECT "a.b" + 1 AS n FROM "Ma.rts"."or""ders"',
        "CREATE TABLE other AS SELECT 1",
        "CREATE VIEW broken AS SELECT * FROM other",
        "DROP TABLE other",
        "CREATE TABLE empty(id INTEGER, name VARCHAR)",
    )
    files = export(database, tmp_path / "out", lambda name: () if "Ma.rts" in name or "empty" in name else None)
    assert {name: read(file) for name, file in files.items()} == {
        'Ma.rts.or"ders': [(1, 2)],
        "Ma.rts.v": [(2,)],
        "main.empty": [],
    }
    tables, names = export_tables(database, lambda name: () if name == "main.broken" else None, tmp_path / "out")
    assert "other does not exist" in tables[0].trouble
    assert names == ['Ma.rts.or"ders', "Ma.rts.v", "main.broken", "main.empty"]


def test_view_reaches_nothing_outside_its_database(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("password\nhunter22\n")
    database = make(tmp_path / "a.duckdb", f"CREATE VIEW v AS SELECT * FROM read_csv('{secret}')")
    (tmp_path / "out").mkdir()
    tables, _ = export_tables(database, lambda _: (), tmp_path / "out")
    assert "disabled" in tables[0].trouble
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_what_is_only_in_the_write_ahead_log_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    script = (
        "import duckdb, os\nc = duckdb.connect('a.duckdb')\nc.execute('CREATE TABLE t(i INT)')\nc.execute('CHECKPOINT')\n"
        "c.execute('PRAGMA disable_checkpoint_on_shutdown')\nc.execute('INSERT INTO t VALUES (1)')\nos._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert set(before) == {"a.duckdb", "a.duckdb.wal"}
    (file,) = export(tmp_path / "a.duckdb", tmp_path / "out").values()
    assert read(file) == [(1,)]
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda raw: b"\0" * len(raw), "is not a DuckDB or SQLite database"),
        (lambda raw: raw[: 8192 + 4096], "cannot be read|damaged"),
        (lambda _: b"", "is not a DuckDB or SQLite database"),
        (lambda raw: raw[:100] + b"\0" * (len(raw) - 100), "damaged|cannot be read"),
    ],
)
def test_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, spoil: Callable[[bytes], bytes], told: str) -> None:
    database = make(tmp_path / "a.duckdb", "CREATE TABLE t AS SELECT i FROM range(100_000) t(i)")
    database.write_bytes(spoil(database.read_bytes()))
    (tmp_path / "out").mkdir()
    with pytest.raises(DatabaseError, match=told) as raised:
        export_tables(database, lambda _: (), tmp_path / "out")
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(duckdb.__version__ >= "2", reason="this DuckDB reads it")
def test_file_of_a_newer_duckdb_is_said(tmp_path: Path) -> None:
    # The first block of a file that DuckDB 2.0.1 wrote.
    head = "c-qTl_NZMwaSgjmsI&KTW(J}_nUS7>o*`~|ixhJULqn5PO9TAoTw}}#+Vf(=32ynOoAo<hGBJ#TQ7{Td!6+C7qhJ(_f>AIEM!_f;1*3o_003lH5nc"
    (tmp_path / "n.duckdb").write_bytes(zlib.decompress(base64.b85decode(head)) + bytes(8192))
    told = r"was written by a newer DuckDB than the one installed here \(1.*\): pip install --upgrade duckdb"
    with pytest.raises(DatabaseError, match=told):
        export_tables(tmp_path / "n.duckdb", lambda _: (), tmp_path)


def test_locked_file_is_said(tmp_path: Path) -> None:
    database = make(tmp_path / "a.duckdb", "CREATE TABLE t AS SELECT 1")
    script = "import duckdb, sys\nc = duckdb.connect(sys.argv[1])\nprint(flush=True)\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        (tmp_path / "out").mkdir()
        with pytest.raises(DatabaseError, match="is held open by another process"):
            export_tables(database, lambda _: (), tmp_path / "out")
        holder.communicate(b"")


def test_missing_and_closed_files(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="cannot be read: No such file"):
        export_tables(tmp_path / "none.db", lambda _: (), tmp_path)


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
    st.binary(max_size=10),
)


@given(rows=st.lists(st.tuples(VALUES, VALUES), max_size=8), kind=st.sampled_from([int, float, str, bytes, None]))
def test_values_of_sqlite_survive(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, Any]], kind: type | None
) -> None:
    folder = tmp_path_factory.mktemp("sqlite")
    if kind is not None:
        rows = [row for row in rows if row[0] is None or type(row[0]) is kind]
    with closing(sqlite3.connect(folder / "a.db")) as connection:
        connection.execute('CREATE TABLE "t""x"("a b", b)')
        connection.executemany('INSERT INTO "t""x" VALUES (?, ?)', rows)
        connection.commit()
    (file,) = export(folder / "a.db", folder / "out").values()
    if kind is not None:
        assert sorted(map(repr, (row[0] for row in read(file)))) == sorted(repr(_plain(row[0])) for row in rows)
    assert len(read(file)) == len(rows)


def _plain(value: Any) -> Any:
    # SQLite has no negative zero.
    return 0.0 if isinstance(value, float) and value == 0 and math.copysign(1, value) < 0 else value


def test_sqlite_in_wal_mode_views_and_mixed_columns(tmp_path: Path) -> None:
    script = (
        "import os, sqlite3\nc = sqlite3.connect('a.db')\nc.execute('PRAGMA journal_mode = wal')\nc.execute('CREATE TABLE t(v)')\n"
        "c.executemany('INSERT INTO t VALUES (?)', [(1,), ('x',), (2.5,), (b'y',), (None,)])\n"
        "c.execute('CREATE VIEW w AS SELECT count(*) AS n FROM t')\nc.commit()\nos._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert (tmp_path / "a.db-wal").stat().st_size > 0
    files = export(tmp_path / "a.db", tmp_path / "out")
    assert read(files["main.w"]) == [(5,)]
    assert {row[0] for row in read(files["main.t"])} == {"1", "x", "2.5", "\\x79", None}


def test_damaged_sqlite_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"SQLite format 3\0" + b"\1" * 5000)
    assert find_kind(tmp_path / "a.db") == "sqlite"
    with pytest.raises(DatabaseError, match="is damaged"):
        export_tables(tmp_path / "a.db", lambda _: (), tmp_path)
