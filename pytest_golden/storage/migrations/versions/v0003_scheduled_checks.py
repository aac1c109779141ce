"""When an expectation's check is due and how often it was tried, so that a heartbeat finds it and takes it for itself alone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_EXPECTATIONS = sa.table(
    "expectations",
    sa.column("number", sa.BigInteger),
    sa.column("status", sa.Text),
    sa.column("created_at", sa.BigInteger),
    sa.column("check", sa.JSON(none_as_null=True)),
    sa.column("check_due_at", sa.BigInteger),
)
_IS_DUE = "status = 'open' AND check_due_at IS NOT NULL"


def upgrade() -> None:
    """Add them, and let the checks that are there be due; their `after` was a number of seconds."""
    op.add_column("expectations", sa.Column("check_due_at", sa.BigInteger))
    op.add_column("expectations", sa.Column("check_tries", sa.Integer, nullable=False, server_default=sa.text("0")))
    connection, columns = op.get_bind(), _EXPECTATIONS.c
    kept = sa.select(columns.number, columns.created_at, columns.check).where(columns.check.is_not(None))
    scheduled = [
        {
            "the_expectation": row.number,
            "check_due_at": row.created_at + round(row.check["after"] * 1000),
            "check": {**row.check, "after": f"{round(row.check['after'] * 1000)}ms"},
        }
        for row in connection.execute(kept).all()
    ]
    if scheduled:
        values = {name: sa.bindparam(name, type_=columns[name].type) for name in ("check_due_at", "check")}
        connection.execute(
            sa.update(_EXPECTATIONS).where(columns.number == sa.bindparam("the_expectation")).values(values), scheduled
        )
    op.create_index(
        "ix_expectations_check_due",
        "expectations",
        ["check_due_at", "number"],
        sqlite_where=sa.text(_IS_DUE),
        postgresql_where=sa.text(_IS_DUE),
    )
