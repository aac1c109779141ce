from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import bindparam, func, insert, literal_column, select, text, update

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.storage.schema import documents, entries, signals
from pytest_golden.storage.statements import Prepared, Question, ask, insert_if_absent, list_numbers
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


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


def test_what_is_left_is_there_for_whoever_asks_next_and_at_the_end(store: Store) -> None:
    count = select(func.count()).select_from(entries)
    with store.write() as connection:
        INSERT_ENTRY.leave(connection, ENTRY)
        assert Prepared(count).first(connection, {}) == (1,)
        INSERT_ENTRY.leave(connection, {**ENTRY, "id": "entry_2"})
        assert connection.execute(count).scalar_one() == 2
        INSERT_ENTRY.leave(connection, {**ENTRY, "id": "entry_3"})
        assert [list(rows) for rows in ask(connection, Question(Prepared(count), {}))] == [[(3,)]]
        INSERT_ENTRY.leave(connection, {**ENTRY, "id": "entry_4"})
    with store.read() as connection:
        assert connection.execute(count).scalar_one() == 4


def test_what_is_left_is_gone_with_its_transaction(store: Store) -> None:
    def write(*, fails: bool) -> None:
        with store.write() as connection:
            INSERT_ENTRY.leave(connection, ENTRY)
            if fails:
                raise ZeroDivisionError

    with suppress(ZeroDivisionError):
        write(fails=True)
    with store.read() as connection:
        assert connection.execute(entries.select()).all() == []
    write(fails=False)
    with store.read() as connection:
        assert len(connection.execute(entries.select()).all()) == 1


@pytest.mark.parametrize("more", [0, 3])
def test_what_is_left_and_refused_is_explained_and_nothing_is_kept(
    store: Store, more: int, caplog: pytest.LogCaptureFixture
) -> None:
    def write() -> None:
        with store.write() as connection:
            for number in (1, 1, *range(2, more + 2)):
                INSERT_ENTRY.leave(connection, {**ENTRY, "id": f"entry_{number}"})

    with pytest.raises(StorageError, match=r"(?i)unique"):
        write()
    with store.read() as connection:
        assert connection.execute(entries.select()).all() == []
    with store.write() as connection:
        INSERT_ENTRY.leave(connection, ENTRY)
    assert caplog.records == []


@pytest.mark.parametrize("count", [0, 3, 4, 5, 99, 100, 101, 900])
def test_each_question_is_answered_whole_and_in_its_order(store: Store, count: int) -> None:
    listed = Prepared(select(entries.c.id).order_by(entries.c.number))
    one = Prepared(select(entries.c.intent).where(entries.c.id == bindparam("wanted")))
    with store.write() as connection:
        for number in range(count):
            INSERT_ENTRY.leave(connection, {**ENTRY, "id": f"entry_{number}", "intent": str(number)})
        questions = (Question(listed, {}, is_paged=True), Question(one, {"wanted": "entry_2"}), Question(listed, {}))
        paged, found, whole = ask(connection, *questions)
        assert list(found) == [("2",)] * (count > 2)
        assert [row[0] for row in paged] == [row[0] for row in whole] == [f"entry_{number}" for number in range(count)]


def test_what_is_asked_with_the_begin_of_a_write_is_what_others_have_left(store: Store, location: str | Path) -> None:
    listed = Question(Prepared(select(entries.c.id).order_by(entries.c.number)), {}, is_paged=True)
    one = Question(Prepared(select(entries.c.intent).where(entries.c.id == bindparam("wanted"))), {"wanted": "entry_1"})
    with Store.open(location) as other:
        for number in range(6):
            with other.write() as connection:
                INSERT_ENTRY.leave(connection, {**ENTRY, "id": f"entry_{number}"})
            with store.write_asking(listed, one) as (connection, (paged, found)):
                assert [row[0] for row in paged] == [f"entry_{place}" for place in range(number + 1)]
                assert list(found) == [("load",)] * (number > 0)
                connection.execute(update(entries).values(updated_at=number))
    with store.read() as connection:
        assert set(connection.scalars(select(entries.c.updated_at))) == {5}


def test_rows_that_nobody_takes_outlive_their_store_in_peace(store: Store) -> None:
    with store.write() as connection:
        for number in range(3):
            INSERT_ENTRY.run(connection, {**ENTRY, "id": f"entry_{number}"})
    with store.read() as connection:
        (rows,) = ask(connection, Question(Prepared(select(entries.c.id)), {}, is_paged=True))
        next(rows)
    store.close()
    # What would go wrong here goes wrong later and elsewhere, when the garbage collector finds the rows.
    if isinstance(rows, Generator):
        rows.close()


def test_nothing_asked_gives_no_answers(store: Store) -> None:
    with store.read() as connection:
        assert ask(connection) == []


def test_decoded_rows_are_those_that_sqlalchemy_gives(store: Store) -> None:
    values = {**SIGNAL, "data": {"a": [1, None, "ä"]}, "is_late": True}
    every = select(signals).order_by(signals.c.number)
    prepared = Prepared(every)
    with store.write() as connection:
        Prepared(insert(signals), *values).leave(connection, values)
        Prepared(insert(signals), *values).leave(connection, {**values, "id": "signal_2", "data": None})
        decoded = prepared.decode(prepared.run(connection, {}))
        found = connection.execute(every).all()
    assert decoded == [tuple(row) for row in found]
    assert [(row.id, row.data, row.is_late) for row in decoded] == [
        ("signal_1", values["data"], True),
        ("signal_2", None, True),
    ]


@pytest.mark.parametrize("numbers", [[], [0], [-(2**63), 2**63 - 1, 7, 7], list(range(2_000))])
def test_numbers_are_given_as_rows(store: Store, numbers: list[int]) -> None:
    listed = Prepared(select(list_numbers("given").label("number")))
    with store.read() as connection:
        rows = listed.run(connection, {"given": json.dumps(numbers)}).fetchall()
    assert [row[0] for row in rows] == numbers


def test_statement_without_values_keeps_its_percent_signs(store: Store) -> None:
    half = Prepared(select(literal_column("'50%'").label("share")))
    with store.read() as connection:
        assert half.first(connection, {}).share == "50%"
        assert [list(rows) for rows in ask(connection, Question(half, {}), Question(half, {}))] == [[("50%",)]] * 2


def test_row_that_is_there_stays_as_it_is(store: Store) -> None:
    statement = insert_if_absent(documents, documents.c.digest)
    with store.write() as connection:
        assert connection.scalar(statement, {"digest": "a", "body": 1}) == "a"
        assert connection.scalar(statement, {"digest": "a", "body": 2}) is None
        assert connection.execute(documents.select()).all() == [("a", 1)]
