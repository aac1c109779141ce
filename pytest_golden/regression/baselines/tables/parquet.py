"""A Parquet file as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.tables.engine import quote_text
from pytest_golden.regression.baselines.tables.model import Column, Format, Table, Values

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.regression.baselines.model import Side
    from pytest_golden.regression.baselines.tables.engine import Engine


def read_parquet(engine: Engine, place: Path, side: Side) -> Table:
    """Read names and types of the columns.

    Raises:
        QueryError: it is no Parquet file.
    """
    # Else a folder called `year=2024` would become a column.
    source = f"read_parquet({quote_text(str(place))}, hive_partitioning = false)"
    described = engine.describe(f"SELECT * FROM {source}")
    columns = tuple(Column(name, name, at, Values.TYPED, kind) for at, (name, kind) in enumerate(described))
    return Table(side, Format.PARQUET, columns, 0, source)
