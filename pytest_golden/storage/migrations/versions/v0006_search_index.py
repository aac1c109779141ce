"""The full-text index on PostgreSQL takes new memories in at once, instead of a list that every search reads through."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Change the index; SQLite's has no such list."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER INDEX ix_memory_words_words SET (fastupdate = off)")
        op.execute("SELECT gin_clean_pending_list('ix_memory_words_words')")
