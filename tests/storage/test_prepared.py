from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import bindparam, insert, select, text, update

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.inserting import insert_if_absent
from pytest_golden.storage.prepared import Prepared
from pytest_golden.storage.schema import documents, entries, signals

if TYPE_CHECKING:
    from typing import Any

    from pytest_golden.storage.store import Store

ENTRY: dict[str, Any] = {
    "id": "entry_1",
    "agent_id": "builder",
    "intent": "load",
    "actions": [],
    "immediate_result": "unknown",
    "assessment": "open",
    "created_at": 1,
    "updated_at": 1,
}
SIGNAL: dict[str, Any] = {
    "id": "signal_1",
    "source": "golden",
    "signal_type": "positive",
    "summary": "passed",
    "data": None,
    "routed_by": "entry",
    "is_late": True,
    "created_at": 1,
}
JSON = (
    st.none()
    | st.booleans()
    | st.text()
    | st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False) | st.text())
)
INSERT_ENTRY = Prepared(insert(entries), *ENTRY)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(data=JSON, is_late=st.booleans())
def test_row_is_the_same_as_by_sqlalchemy(store: Store, data: object, is_late: bool) -> None:
    values = {**SIGNAL, "data": data, "is_late": is_late}
    statement = insert(signals)
    every_column = text(
        f"SELECT {', '.join(column.name for column in signals.c if column.name != 'number')} FROM signals"
    )
    with store.write() as connection:
        connection.execute(signals.delete())
        Prepared(statement, *values).run(connection, values)
        prepared = connection.execute(every_column).one()
        connection.execute(signals.delete())
        connection.execute(statement, values)
        assert connection.execute(every_column).one() == prepared


def test_first_row_has_the_names_of_its_columns(store: Store) -> None:
    find = Prepared(
        select(entries.c.number, entries.c.id.label("name")).where(entries.c.id == bindparam("wanted")).limit(1)
    )
    with store.write() as connection:
        assert find.first(connection, {"wanted": "entry_1"}) is None
        INSERT_ENTRY.run(connection, ENTRY)
        row = find.first(connection, {"wanted": "entry_1"})
    assert (row.number, row.name) == (1, "entry_1")


def test_insert_tells_what_it_returns(store: Store) -> None:
    insert_new = Prepared(insert_if_absent(documents, documents.c.digest), "digest", "body")
    with store.write() as connection:
        assert insert_new.first(connection, {"digest": "a", "body": 1}).digest == "a"
        assert insert_new.first(connection, {"digest": "a", "body": 2}) is None
    with store.read() as connection:
        assert connection.execute(documents.select()).all() == [("a", 1)]


def test_update_sets_the_columns_that_it_was_made_for(store: Store) -> None:
    statement = Prepared(update(entries).where(entries.c.id == bindparam("wanted")), "assessment")
    with store.write() as connection:
        INSERT_ENTRY.run(connection, ENTRY)
        statement.run(connection, {"wanted": "entry_1", "assessment": "success"})
        assert connection.execute(select(entries.c.assessment, entries.c.intent)).one() == ("success", "load")


def test_value_that_is_not_given_is_refused(store: Store) -> None:
    with store.write() as connection, pytest.raises(KeyError, match="intent"):
        INSERT_ENTRY.run(connection, {key: value for key, value in ENTRY.items() if key != "intent"})


def test_value_without_a_place_is_refused(store: Store) -> None:
    with store.write() as connection, pytest.raises(ValueError, match=r"^job_id has no place in: INSERT INTO entries"):
        INSERT_ENTRY.run(connection, {**ENTRY, "job_id": "job"})


def test_it_is_part_of_the_transaction(store: Store) -> None:
    with suppress(KeyError), store.write() as connection:
        INSERT_ENTRY.run(connection, ENTRY)
        INSERT_ENTRY.run(connection, {})
    with store.read() as connection:
        assert connection.execute(entries.select()).all() == []


def test_what_the_database_refuses_is_explained(store: Store) -> None:
    with store.write() as connection:
        INSERT_ENTRY.run(connection, ENTRY)
    with pytest.raises(StorageError, match=r"(?i)unique") as told, store.write() as connection:
        INSERT_ENTRY.run(connection, ENTRY)
    assert store.where in str(told.value)
    assert told.value.trouble is StorageTrouble.UNREACHABLE
