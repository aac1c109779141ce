"""The tally: how many entries began on each day, for each agent and for all together. Triggers keep it, so no read counts.

Rows are by day (since the epoch, UTC), agent (`ALL_AGENTS` for all together), intent type ('' for none) and assessment.
A row stays when its amount falls to 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from pytest_golden.storage.schema import ALL_AGENTS

if TYPE_CHECKING:
    from sqlalchemy import Connection


_AGENTS = ("agent_id", f"'{ALL_AGENTS}'")
_COUNTED = " UNION ALL ".join(
    f"SELECT created_at / 86400000 AS day, {agent} AS agent_id, coalesce(intent_type, '') AS intent_type, assessment, "
    "count(*) AS amount FROM entries GROUP BY 1, 2, 3, 4"
    for agent in _AGENTS
)
_DIFFERING = text(
    f"SELECT count(*) FROM ({_COUNTED}) AS counted FULL JOIN entry_tally ON counted.day = entry_tally.day "
    "AND counted.agent_id = entry_tally.agent_id AND counted.intent_type = entry_tally.intent_type "
    "AND counted.assessment = entry_tally.assessment "
    "WHERE coalesce(counted.amount, 0) <> coalesce(entry_tally.amount, 0)"
)
_EMPTY = text("DELETE FROM entry_tally")
_FILL = text(f"INSERT INTO entry_tally (day, agent_id, intent_type, assessment, amount) {_COUNTED}")

_MAKE_TABLE = """
CREATE TABLE entry_tally (
    agent_id {text} NOT NULL, day BIGINT NOT NULL, intent_type {text} NOT NULL, assessment {text} NOT NULL,
    amount BIGINT NOT NULL,
    CONSTRAINT pk_entry_tally PRIMARY KEY (agent_id, day, intent_type, assessment)
) {options}
"""
_KEY = "agent_id, day, intent_type, assessment"
# Each trigger counts some rows of an entry up or down.
_TRIGGERS = {
    "insert": ("AFTER INSERT ON entries FOR EACH ROW", {"NEW": 1}),
    "delete": ("AFTER DELETE ON entries FOR EACH ROW", {"OLD": -1}),
    "update": (
        "AFTER UPDATE OF assessment ON entries FOR EACH ROW WHEN (OLD.assessment <> NEW.assessment)",
        {"OLD": -1, "NEW": 1},
    ),
}


def make_tally(connection: Connection) -> None:
    """Make the empty table and its triggers."""
    is_file = connection.dialect.name == "sqlite"
    form = {"text": "TEXT", "options": "WITHOUT ROWID"} if is_file else {"text": 'TEXT COLLATE "C"', "options": ""}
    connection.exec_driver_sql(_MAKE_TABLE.format_map(form))
    for name, (when, amounts) in _TRIGGERS.items():
        if is_file:
            connection.exec_driver_sql(f"CREATE TRIGGER entry_tally_{name} {when} BEGIN {_write_count(amounts)}; END")
        else:
            connection.exec_driver_sql(
                f"CREATE FUNCTION entry_tally_{name}() RETURNS trigger LANGUAGE plpgsql "
                f"AS $$ BEGIN {_write_count(amounts)}; RETURN NULL; END $$"
            )
            connection.exec_driver_sql(
                f"CREATE TRIGGER entry_tally_{name} {when} EXECUTE FUNCTION entry_tally_{name}()"
            )


def find_tally_fault(connection: Connection) -> str | None:
    """Return what is wrong with the tally; None if it is right."""
    differing = connection.execute(_DIFFERING).scalar_one()
    return f"the tally of entries by day differs from the entries in {differing} rows" if differing else None


def recount_tally(connection: Connection) -> None:
    """Count it again from the entries."""
    connection.execute(_EMPTY)
    connection.execute(_FILL)


def _write_count(amounts: dict[str, int]) -> str:
    """Return the statement of a trigger."""
    rows = ", ".join(
        f"({agent}, {row}.created_at / 86400000, coalesce({row}.intent_type, ''), {row}.assessment, {amount})"
        for row, amount in amounts.items()
        for agent in (f"{row}.agent_id", f"'{ALL_AGENTS}'")
    )
    return (
        f"INSERT INTO entry_tally ({_KEY}, amount) VALUES {rows} "
        f"ON CONFLICT ({_KEY}) DO UPDATE SET amount = entry_tally.amount + excluded.amount"
    )
