"""Tables compared by DuckDB: CSV, TSV, Parquet and JSON Lines, larger than memory, by key, by position or as a multiset.

`compare_tables.py` checks what can differ, in order: the number of rows, the columns, the rows. `formats.py` reads each format
into a `Table`: its columns, and what DuckDB is asked for. Whether two values are equal is SQL, written by `equality.py`.

A difference is then explained, which never changes the verdict: `matching.py` finds renamed columns, `row_causes.py` pairs the rows in
the way that needs the fewest cells, `explaining.py` joins them once and finds what rows of one side share, `column_figures.py`
computes figures of each column that differs, and `telling.py` writes it down.
"""
