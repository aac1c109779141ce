from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.storage.columns import namespace_range, read_namespace, storable, write_namespace

# Surrogates too: a name may come from a file's. Those and NUL come back as the store keeps them.
NAMESPACES = st.lists(st.text(st.characters()), max_size=4).map(tuple)


@given(NAMESPACES)
def test_namespace_comes_back(namespace: tuple[str, ...]) -> None:
    assert read_namespace(write_namespace(namespace)) == tuple(map(storable, namespace))


@given(NAMESPACES, NAMESPACES)
def test_range_holds_exactly_what_begins_with_the_prefix(prefix: tuple[str, ...], namespace: tuple[str, ...]) -> None:
    limits = namespace_range(prefix)
    assert (limits is None) == (prefix == ())
    if limits is not None:
        is_below = tuple(map(storable, namespace[: len(prefix)])) == tuple(map(storable, prefix))
        assert (limits[0] <= write_namespace(namespace) < limits[1]) == is_below
        assert limits[0] <= write_namespace((*prefix, *namespace)) < limits[1]


def test_an_element_is_whole() -> None:
    low, high = namespace_range(("plans", "etl")) or ("", "")
    assert not low <= write_namespace(("plans", "etl2")) < high
    assert not low <= write_namespace(("plans", "etl/daily")) < high
    assert write_namespace(("plans", "etl/daily")) == "plans/etl%2Fdaily/"
