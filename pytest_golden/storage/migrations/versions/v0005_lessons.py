"""What lessons are found by and what came of showing them, and what memories mean to a model of embeddings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

# By bytes on PostgreSQL too.
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_IS_UNSETTLED = "settled_at IS NULL"


def upgrade() -> None:
    """Make the tables."""
    _make_vectors()
    _make_signatures()
    _make_recalls()


def _number() -> sa.Column[int]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("number", kind, primary_key=True, autoincrement=True)


def _make_vectors() -> None:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "memory_vectors",
        sa.Column("number", kind, primary_key=True, autoincrement=False),
        sa.Column("model", _TEXT, nullable=False),
        sa.Column("vector", _TEXT, nullable=False),
        sa.Column("stamp", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_memory_vectors"),
        sa.ForeignKeyConstraint(["number"], ["memories.number"], name="fk_memory_vectors_number", ondelete="CASCADE"),
    )
    op.create_index("ix_memory_vectors_model_stamp_number", "memory_vectors", ["model", "stamp", "number"])


def _make_signatures() -> None:
    op.create_table(
        "lesson_signatures",
        _number(),
        sa.Column("digest", _TEXT, nullable=False),
        sa.Column("lesson_id", _TEXT, nullable=False),
        sa.Column("agent", _TEXT, nullable=False),
        sa.Column("project", _TEXT),
        sa.PrimaryKeyConstraint("number", name="pk_lesson_signatures"),
        sa.UniqueConstraint("digest", "lesson_id", name="uq_lesson_signatures_digest_lesson_id"),
    )
    op.create_index("ix_lesson_signatures_lesson_id", "lesson_signatures", ["lesson_id"])


def _make_recalls() -> None:
    op.create_table(
        "lesson_recalls",
        _number(),
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("lesson_id", _TEXT, nullable=False),
        sa.Column("agent", _TEXT, nullable=False),
        sa.Column("project", _TEXT),
        sa.Column("entry_id", _TEXT),
        sa.Column("why", _TEXT, nullable=False),
        sa.Column("score", sa.Float, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("settled_at", sa.BigInteger),
        sa.Column("passed", sa.Boolean),
        sa.PrimaryKeyConstraint("number", name="pk_lesson_recalls"),
        sa.UniqueConstraint("id", name="uq_lesson_recalls_id"),
    )
    op.create_index("ix_lesson_recalls_lesson_id_number", "lesson_recalls", ["lesson_id", "number"])
    op.create_index(
        "ix_lesson_recalls_unsettled",
        "lesson_recalls",
        ["project", "number"],
        sqlite_where=sa.text(_IS_UNSETTLED),
        postgresql_where=sa.text(_IS_UNSETTLED),
    )
