"""Alembic's door: runs migrations on the connection that it is handed, inside that one's transaction.

To change the tables: change `storage/schema.py`, add `versions/v000N_what.py` with the same change as `op.*` statements,
and its number to `storage/version.py`. Tests compare the three.
"""

from __future__ import annotations

from alembic import context

from pytest_golden.storage.schema import metadata
from pytest_golden.storage.version import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, version_table=VERSION_TABLE
)
with context.begin_transaction():
    context.run_migrations()
