"""What keeps looks into a large journal short: indexes for each thing that is asked for together, and sums over all agents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_IS_OPEN = "status = 'open'"
_HAS_SHAPE = "hint_shape IS NOT NULL"
_IS_NO_SUCCESS = "assessment <> 'success'"
_COUNTED = "created_at / 86400000, coalesce(intent_type, ''), assessment, count(*)"
_COUNT_ONE = """
INSERT INTO entry_tally (agent_id, day, intent_type, assessment, amount)
VALUES
    ({row}.agent_id, {row}.created_at / 86400000, coalesce({row}.intent_type, ''), {row}.assessment, {amount}),
    ('', {row}.created_at / 86400000, coalesce({row}.intent_type, ''), {row}.assessment, {amount})
ON CONFLICT {taken} DO UPDATE SET amount = entry_tally.amount + excluded.amount;
"""


def upgrade() -> None:
    """Add them, and count what is there."""
    op.create_index("ix_entries_agent_intent_type", "entries", ["agent_id", "intent_type", "number"])
    _index_some("ix_entries_type_assessment", "entries", ["intent_type", "assessment", "number"], _IS_NO_SUCCESS)
    exact = ["agent_id", "intent_type", "assessment", "number"]
    _index_some("ix_entries_agent_type_assessment", "entries", exact, _IS_NO_SUCCESS)
    at_anchor = ["hint_anchor", "agent_id"]
    _index_some("ix_expectations_agent_anchor", "expectations", [*at_anchor, "number"], _HAS_SHAPE)
    _index_some("ix_expectations_open_agent_anchor", "expectations", [*at_anchor, "hint_rank", "number"], _IS_OPEN)
    is_file = op.get_bind().dialect.name == "sqlite"
    if is_file:
        # A trigger there cannot be replaced, and one that names a lost table would stop every write.
        for name in ("insert", "delete", "update"):
            op.execute(f"DROP TRIGGER entry_tally_{name}")
    op.drop_table("entry_tally")
    _make_tally()
    if is_file:
        _count_on_sqlite()
    else:
        _count_on_postgresql()


def _index_some(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _make_tally() -> None:
    """Make the sums of each agent, and of all agents under no name; a look reads one range of them."""
    op.create_table(
        "entry_tally",
        sa.Column("agent_id", _TEXT, nullable=False),
        sa.Column("day", sa.BigInteger, nullable=False),
        sa.Column("intent_type", _TEXT, nullable=False),
        sa.Column("assessment", _TEXT, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "day", "intent_type", "assessment", name="pk_entry_tally"),
        sqlite_with_rowid=False,
    )
    op.execute(f"INSERT INTO entry_tally SELECT agent_id, {_COUNTED} FROM entries GROUP BY 1, 2, 3, 4")
    op.execute(
        "INSERT INTO entry_tally SELECT '', day, intent_type, assessment, sum(amount) FROM entry_tally GROUP BY 2, 3, 4"
    )


def _count_on_sqlite() -> None:
    counted, uncounted = (
        _COUNT_ONE.format(row=row, amount=amount, taken="") for row, amount in (("NEW", 1), ("OLD", -1))
    )
    op.execute(f"CREATE TRIGGER entry_tally_insert AFTER INSERT ON entries BEGIN {counted} END")
    op.execute(f"CREATE TRIGGER entry_tally_delete AFTER DELETE ON entries BEGIN {uncounted} END")
    op.execute(
        "CREATE TRIGGER entry_tally_update AFTER UPDATE OF assessment ON entries "
        f"WHEN OLD.assessment <> NEW.assessment BEGIN {uncounted} {counted} END"
    )


def _count_on_postgresql() -> None:
    taken = "(agent_id, day, intent_type, assessment)"
    counted, uncounted = (
        _COUNT_ONE.format(row=row, amount=amount, taken=taken) for row, amount in (("NEW", 1), ("OLD", -1))
    )
    for name, statements in (("insert", counted), ("delete", uncounted), ("update", uncounted + counted)):
        op.execute(
            f"CREATE OR REPLACE FUNCTION entry_tally_{name}() RETURNS trigger LANGUAGE plpgsql "
            f"AS $$ BEGIN {statements} RETURN NULL; END $$"
        )
