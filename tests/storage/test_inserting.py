from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.storage.schema import documents
from pytest_golden.storage.statements import insert_if_absent

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store


def test_row_that_is_there_stays_as_it_is(store: Store) -> None:
    statement = insert_if_absent(documents, documents.c.digest)
    with store.write() as connection:
        assert connection.scalar(statement, {"digest": "a", "body": 1}) == "a"
        assert connection.scalar(statement, {"digest": "a", "body": 2}) is None
        assert connection.execute(documents.select()).all() == [("a", 1)]
