"""Tables compared by DuckDB: CSV, TSV, Parquet and JSON Lines, larger than memory, by key, by position or as a multiset.

`comparing.py` goes through what can differ, in order: rows counted, columns, rows. Each format is read by a module of its own
into a `Table`: what DuckDB is asked for, and the columns. Whether two values are equal is SQL, written by `equality.py`.
"""

from pytest_golden.regression.baselines.tables.comparing import compare_tables

__all__ = ["compare_tables"]
