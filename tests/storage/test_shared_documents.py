from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from pytest_golden.storage.schema import documents
from pytest_golden.storage.shared_documents import keep_document, read_document

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(body=JSON)
def test_document_comes_back(store: Store, body: object) -> None:
    with store.write() as connection:
        digest = keep_document(connection, body)
    with store.read() as connection:
        assert read_document(connection, digest) == body
    assert len(digest) == 32


def test_same_content_is_kept_once_whatever_the_order_of_its_keys(store: Store) -> None:
    with store.write() as connection:
        first = keep_document(connection, {"a": 1, "b": [1, 2]})
        assert keep_document(connection, {"b": [1, 2], "a": 1}) == first
        assert keep_document(connection, {"b": [2, 1], "a": 1}) != first
        assert connection.execute(select(func.count()).select_from(documents)).scalar_one() == 2


def test_what_no_database_takes_comes_back_as_an_escape(store: Store) -> None:
    with store.write() as connection:
        digest = keep_document(connection, {"\ud83d": ["\udc80\0"]})
        kept = read_document(connection, digest)
        assert kept == {"\\ud83d": ["\\udc80\\x00"]}
        assert keep_document(connection, kept) == digest


def test_what_is_no_json_is_refused_and_an_unknown_digest_is_none(store: Store) -> None:
    with store.write() as connection:
        with pytest.raises(ValueError, match="JSON compliant"):
            keep_document(connection, {"a": float("nan")})
        with pytest.raises(TypeError):
            keep_document(connection, {"a": object()})
        assert read_document(connection, "0" * 32) is None
