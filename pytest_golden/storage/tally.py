"""The tally of entries by day, which triggers keep: whether it is right, and how it is counted again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from pytest_golden.storage.schema import ALL_AGENTS

if TYPE_CHECKING:
    from sqlalchemy import Connection

_ONE_AGENT, _ALL = "agent_id", f"'{ALL_AGENTS}'"
_COUNTED = " UNION ALL ".join(
    f"SELECT created_at / 86400000 AS day, {agent} AS agent_id, coalesce(intent_type, '') AS intent_type, assessment, "
    "count(*) AS amount FROM entries GROUP BY 1, 2, 3, 4"
    for agent in (_ONE_AGENT, _ALL)
)
# What has come down to nothing stays as a row.
_DIFFERING = text(
    f"SELECT count(*) FROM ({_COUNTED}) AS counted FULL JOIN entry_tally ON counted.day = entry_tally.day "
    "AND counted.agent_id = entry_tally.agent_id AND counted.intent_type = entry_tally.intent_type "
    "AND counted.assessment = entry_tally.assessment "
    "WHERE coalesce(counted.amount, 0) <> coalesce(entry_tally.amount, 0)"
)
_EMPTY = text("DELETE FROM entry_tally")
_FILL = text(f"INSERT INTO entry_tally (day, agent_id, intent_type, assessment, amount) {_COUNTED}")


def find_tally_fault(connection: Connection) -> str | None:
    """Tell what is wrong with the tally, if anything."""
    differing = connection.execute(_DIFFERING).scalar_one()
    return f"the tally of entries by day differs from the entries in {differing} rows" if differing else None


def recount_tally(connection: Connection) -> None:
    """Count it again from the entries."""
    connection.execute(_EMPTY)
    connection.execute(_FILL)
