"""What routes a signal to an expectation, and a tally of entries by day: both are kept with each write, so that no read counts."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from alembic import op

if TYPE_CHECKING:
    from collections.abc import Iterator

revision = "0002"
down_revision = "0001"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_MOST_KEYS, _NEVER = 99, (1 << 48) - 1
_UNROUTED = """
SELECT expectations.number, expectations.match_hint, expectations.expires_at, entries.agent_id, entries.session_key
FROM expectations JOIN entries ON entries.id = expectations.entry_id
WHERE entries.intent_type IS NULL OR entries.intent_type <> 'regression_check'
"""
_ROUTE = """
UPDATE expectations SET agent_id = :agent_id, session_key = :session_key, hint_anchor = :hint_anchor,
    hint_shape = :hint_shape, hint_rank = :hint_rank
WHERE number = :number
"""
_COUNTED = "created_at / 86400000, agent_id, coalesce(intent_type, ''), assessment, count(*)"
_COUNT_ONE = """
INSERT INTO entry_tally (day, agent_id, intent_type, assessment, amount)
VALUES ({row}.created_at / 86400000, {row}.agent_id, coalesce({row}.intent_type, ''), {row}.assessment, {amount})
ON CONFLICT {add}amount + excluded.amount;
"""
_ON_SQLITE = "DO UPDATE SET amount = "
_ON_POSTGRESQL = "(day, agent_id, intent_type, assessment) DO UPDATE SET amount = entry_tally."
_TRIGGERED = """
CREATE FUNCTION entry_tally_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {statements} RETURN NULL; END $$
"""


def upgrade() -> None:
    """Add them, and fill them from what is there."""
    for name, kind in (("agent_id", _TEXT), ("session_key", _TEXT), ("hint_anchor", sa.BigInteger)):
        op.add_column("expectations", sa.Column(name, kind))
    op.add_column("expectations", sa.Column("hint_shape", _TEXT))
    op.add_column("expectations", sa.Column("hint_rank", sa.BigInteger))
    op.add_column("signals", sa.Column("expectation_mark", sa.BigInteger))
    op.execute(
        "UPDATE expectations SET agent_id = "
        "(SELECT entries.agent_id FROM entries WHERE entries.id = expectations.entry_id)"
    )
    connection = op.get_bind()
    routed = list(_route_rows(connection))
    if routed:
        connection.execute(sa.text(_ROUTE), routed)
    _index_expectations()
    _index_entries()
    _index_some("ix_signals_orphans", "signals", ["created_at"], "routed_by = 'orphan'")
    _make_tally(connection.dialect.name)


def _index_some(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _index_expectations() -> None:
    order = ["hint_shape", "hint_rank", "number"]
    _index_some("ix_expectations_asked", "expectations", ["agent_id", "status", *order], "hint_shape IS NOT NULL")
    in_session = ["agent_id", "session_key", "status", *order]
    _index_some("ix_expectations_session", "expectations", in_session, "session_key IS NOT NULL")
    _index_some("ix_expectations_anchor", "expectations", ["hint_anchor", "number"], "hint_shape IS NOT NULL")
    _index_some("ix_expectations_open_agent", "expectations", ["agent_id", "expires_at", "number"], "status = 'open'")
    _index_some(
        "ix_expectations_open_anchor", "expectations", ["hint_anchor", "hint_rank", "number"], "status = 'open'"
    )


def _index_entries() -> None:
    op.create_index("ix_entries_created_at", "entries", ["created_at"])
    _index_some("ix_entries_session", "entries", ["agent_id", "session_key", "number"], "session_key IS NOT NULL")
    # Most entries succeed, and are found without an index of their own.
    rare = "assessment <> 'success'"
    _index_some("ix_entries_agent_assessment", "entries", ["agent_id", "assessment", "number"], rare)
    _index_some("ix_entries_assessment", "entries", ["assessment", "number"], rare)


def _make_tally(database: str) -> None:
    if database == "sqlite":
        _make_tally_on_sqlite()
    else:
        _make_tally_on_postgresql()


def _make_tally_on_sqlite() -> None:
    op.execute(
        "CREATE TABLE entry_tally (day INTEGER NOT NULL, agent_id TEXT NOT NULL, intent_type TEXT NOT NULL, "
        "assessment TEXT NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (day, agent_id, intent_type, assessment)) "
        "WITHOUT ROWID"
    )
    op.execute(f"INSERT INTO entry_tally SELECT {_COUNTED} FROM entries GROUP BY 1, 2, 3, 4")
    counted = _COUNT_ONE.format(row="NEW", amount=1, add=_ON_SQLITE)
    uncounted = _COUNT_ONE.format(row="OLD", amount=-1, add=_ON_SQLITE)
    op.execute(f"CREATE TRIGGER entry_tally_insert AFTER INSERT ON entries BEGIN {counted} END")
    op.execute(f"CREATE TRIGGER entry_tally_delete AFTER DELETE ON entries BEGIN {uncounted} END")
    op.execute(
        "CREATE TRIGGER entry_tally_update AFTER UPDATE OF assessment ON entries "
        f"WHEN OLD.assessment <> NEW.assessment BEGIN {uncounted} {counted} END"
    )


def _make_tally_on_postgresql() -> None:
    # One row of sums is no crowd there: writers of a store go one after another.
    op.create_table(
        "entry_tally",
        sa.Column("day", sa.BigInteger, primary_key=True, autoincrement=False),
        *(sa.Column(name, _TEXT, primary_key=True) for name in ("agent_id", "intent_type", "assessment")),
        sa.Column("amount", sa.BigInteger, nullable=False),
    )
    op.execute(f"INSERT INTO entry_tally SELECT {_COUNTED} FROM entries GROUP BY 1, 2, 3, 4")
    counted = _COUNT_ONE.format(row="NEW", amount=1, add=_ON_POSTGRESQL)
    uncounted = _COUNT_ONE.format(row="OLD", amount=-1, add=_ON_POSTGRESQL)
    for name, when, statements in (
        ("insert", "AFTER INSERT ON entries FOR EACH ROW", counted),
        ("delete", "AFTER DELETE ON entries FOR EACH ROW", uncounted),
        (
            "update",
            "AFTER UPDATE OF assessment ON entries FOR EACH ROW WHEN (OLD.assessment <> NEW.assessment)",
            uncounted + counted,
        ),
    ):
        op.execute(_TRIGGERED.format(name=name, statements=statements))
        op.execute(f"CREATE TRIGGER entry_tally_{name} {when} EXECUTE FUNCTION entry_tally_{name}()")


def _route_rows(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    """Return what the journal would have kept with each expectation that is there."""
    for row in connection.execute(sa.text(_UNROUTED)).all():
        hint = json.loads(row.match_hint) if isinstance(row.match_hint, str) else row.match_hint or {}
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in hint.items()}
        others = sorted(key for key in texts if key != "source")
        expiry = _NEVER if row.expires_at is None else row.expires_at
        yield {
            "number": row.number,
            "agent_id": row.agent_id,
            "session_key": row.session_key,
            "hint_anchor": _anchor(texts) if texts else None,
            "hint_shape": json.dumps([texts.get("source"), *others], separators=(",", ":")) if texts else "",
            "hint_rank": ((_MOST_KEYS - min(len(texts), _MOST_KEYS)) << 48) | expiry,
        }


def _anchor(texts: dict[str, str]) -> int:
    key = min(texts, key=lambda key: (key == "source", -len(texts[key])))
    written = f"{key}\0{texts[key]}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(written, digest_size=8).digest()) >> 1
