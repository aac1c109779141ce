"""A row that a running gate keeps of what it does at this moment, for those who watch it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

# By bytes on PostgreSQL too.
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "gate_live",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("run_id", _TEXT, nullable=False),
        sa.Column("beat_at", sa.BigInteger, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("machine", _TEXT, nullable=False),
        sa.Column("total_count", sa.Integer, nullable=False),
        sa.Column("running", sa.JSON, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["gate_runs.entry_id"], name="fk_gate_live_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("number", name="pk_gate_live"),
        sa.UniqueConstraint("run_id", name="uq_gate_live_run_id"),
    )
