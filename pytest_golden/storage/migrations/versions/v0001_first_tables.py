"""The first version of the tables: the base that later migrations build on.

It has no statements. A new store is made from `storage/schema.py` and gets the newest version at once
(`storage/upgrading.py`), so the tables are written down in one place. Only a store that is already there runs migrations,
and such a store has at least these tables.

To add the second version, once this one is released:

1. Keep a store of this version for the tests (`sqlite3 golden.db .dump > tests/storage/store_0001.sql`).
2. Change `storage/schema.py`, and write the same change as `op.*` statements in `v0002_what.py`.
3. Set `HEAD` in `storage/schema.py` to `0002`.
4. Test that the kept store, brought up to date, has the tables of the schema (`tests/storage/test_upgrading.py`).
"""

from __future__ import annotations

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing: see above."""
