from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.history.unchanged_paths import PathIndex, find_beginning

PARTS = st.sampled_from(["a", "b", "ab"])
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("", "sales/etl.py"),
        ("sales", "sales/etl.py"),
        ("sales/etl.py", "sales/etl.py"),
        ("sal", None),
        ("sales/etl", None),
    ],
)
def test_place_is_touched_by_what_lies_at_or_below_it(place: str, found: str | None) -> None:
    assert PathIndex(["sales/etl.py"]).find(place) == found


def test_folder_touches_all_that_is_below_it() -> None:
    index = PathIndex(["vendor/"])
    assert index.find("vendor/lib/x.py") == index.find("vendor") == index.find("") == "vendor/"
    assert index.find("vendors") is None


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("lib/**/*.sql", "lib/a/b.sql"),
        ("**/*.sql", "lib/a/b.sql"),
        ("lib", "lib/a/b.sql"),
        ("lib/*.sql", None),
        ("other/**", None),
        ("vendor/deep/*.py", "vendor/"),
        ("*/x.py", "vendor/"),
    ],
)
def test_pattern_finds_what_it_names_and_folders_in_which_it_may(pattern: str, found: str | None) -> None:
    assert PathIndex(["lib/a/b.sql", "vendor/"]).find_named(pattern) == found


def test_pattern_begins_where_no_wildcard_is() -> None:
    assert [find_beginning(one) for one in ("a/b/*.py", "a/b", "*.py", "a/b[0]/c", "a/b/")] == [
        "a/b",
        "a/b",
        "",
        "a",
        "a/b",
    ]


@given(st.lists(PATHS, max_size=8), PATHS)
def test_index_agrees_with_looking_at_each_path(paths: list[str], place: str) -> None:
    index = PathIndex(paths)
    below = [path for path in paths if path == place or path.startswith(f"{place}/")]
    assert (index.find(place) is None) is (not below)
    assert list(index.list_below(place)) == below
    assert list(index.list_below("")) == paths
