"""Parquet files for tests, written by DuckDB."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def write_parquet(place: Path, query: str, options: str = "") -> bytes:
    """Write what a query gives, and give the file's bytes."""
    duckdb: Any = import_module("duckdb")
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = true")
        connection.execute(f"COPY ({query}) TO '{place}' (FORMAT parquet{options})")
    return place.read_bytes()
