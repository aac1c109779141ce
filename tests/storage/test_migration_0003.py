"""A store of the second version: the checks that it has are due afterwards, by the seconds that they were given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from alembic import command
from sqlalchemy import create_engine, text

from pytest_golden.journal.checks.model import read_check
from pytest_golden.journal.service import Journal
from pytest_golden.storage.store import Store
from pytest_golden.storage.version import make_config

if TYPE_CHECKING:
    from pathlib import Path

_ENTRY = (
    "INSERT INTO entries (id, agent_id, intent, actions, immediate_result, assessment, created_at, updated_at, open_count) "
    "VALUES ('e', 'a', 'x', '[]', 'success', 'open', 1, 1, 3)"
)
_EXPECTATION = (
    'INSERT INTO expectations (id, entry_id, description, polarity, critical, status, "check", created_at, agent_id) '
    "VALUES (:id, 'e', 'd', 'positive', 0, 'open', :check, 1000, 'a')"
)


def test_checks_are_due_by_the_seconds_that_they_were_given(path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        command.upgrade(make_config(connection), "0002")
        connection.execute(text(_ENTRY))
        for name, check in (
            ("plain", None),
            ("soon", {"after": 90.5, "command": ["x"]}),
            ("later", {"after": 600, "command": ["y"]}),
        ):
            connection.execute(text(_EXPECTATION), {"id": name, "check": None if check is None else json.dumps(check)})
    engine.dispose()
    with Store.open(path) as store:
        with store.read() as connection:
            rows = connection.execute(text("SELECT id, check_due_at, check_tries FROM expectations ORDER BY number"))
            assert [tuple(row) for row in rows] == [("plain", None, 0), ("soon", 91_500, 0), ("later", 601_000, 0)]
        kept = [one.check for one in Journal(store).get("e").expectations]
    assert kept[0] is None
    assert [read_check(one).after_ms for one in kept if one is not None] == [90_500, 600_000]
