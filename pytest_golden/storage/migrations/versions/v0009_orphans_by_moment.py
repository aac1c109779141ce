"""An index of orphans that SQLite prefers to that of all signals by rule: else each outcome would read every orphan."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_IS_ORPHAN = sa.text("routed_by = 'orphan'")


def upgrade() -> None:
    """Make it in the place of the one that has the moment alone."""
    op.drop_index("ix_signals_orphans", "signals")
    columns = ["routed_by", "created_at", "number"]
    op.create_index("ix_signals_orphans", "signals", columns, sqlite_where=_IS_ORPHAN, postgresql_where=_IS_ORPHAN)
