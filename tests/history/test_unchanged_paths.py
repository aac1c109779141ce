from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.history.unchanged_paths import (
    Claims,
    InputPlaces,
    OwnReads,
    PathIndex,
    PlaceFinder,
    find_beginning,
    leads_through,
    list_links,
)
from pytest_golden.manifest.reader import parse_manifest

if TYPE_CHECKING:
    from pathlib import Path

PARTS = st.sampled_from(["a", "b", "ab"])
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
CLAIMS = Claims(
    [
        InputPlaces(("sales",), ("sql/**/*.sql", "*.cfg"), folder="sales"),
        InputPlaces(("all",), folder="all"),
        InputPlaces(("all/of/it",), folder="all/of/it"),
        InputPlaces((), doubt="/elsewhere"),
    ],
    ("golden_projects.yaml", "golden_baselines"),
)


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


def test_path_leads_over_each_link_of_a_chain(tmp_path: Path) -> None:
    (tmp_path / "v1" / "in").mkdir(parents=True)
    (tmp_path / "newest").symlink_to("v1")
    (tmp_path / "cur").symlink_to(tmp_path / "newest")
    (tmp_path / "v1" / "file").symlink_to("in")
    root = os.path.realpath(tmp_path)
    assert list_links(f"{root}/v1/in") == ()
    assert list_links(f"{root}/cur/../v1/file") == (f"{root}/cur", f"{root}/newest", f"{root}/v1/file")


@pytest.mark.parametrize(
    ("pattern", "link", "target", "leads"),
    [
        ("d*/a.sql", "data", "v1", True),
        ("d*/a.sql", "lib/data", "v1", False),
        ("lib/**/*.sql", "lib/sub", "other", True),
        ("lib/**/*.sql", "lib/sub", "lib/own", False),
        ("**/*.sql", "lib/sub", "other", False),
        ("data/*.sql", "data", "v1", False),
        ("lib/*.sql", "lib/sub", "other", False),
    ],
)
def test_wildcard_leads_over_a_link_to_what_it_does_not_name(pattern: str, link: str, target: str, leads: bool) -> None:
    assert leads_through(pattern, link, lambda _: f"/work/{target}", "/work") is leads


def test_files_behind_links_and_the_links_themselves_are_inputs(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for folder in ("v1", "own"):
        (root / folder).mkdir()
    (root / "cur").symlink_to("v1")
    (root / "away").symlink_to(root.parent)
    manifest = parse_manifest(
        "{version: 1, golden_projects: [{name: a, path: cur/run.sh, depends_on: ['cur/*.sql']},"
        " {name: b, path: own/run.sh, args: [../cur/x.csv, ../cur], depends_on: ['away/*']}]}",
        "golden_projects.yaml",
        root,
    )
    first, second = map(PlaceFinder(manifest, root).find, manifest.projects)
    assert first.folder == "v1"
    assert first.patterns == ("cur/*.sql", "v1/*.sql")
    assert first.links == ("cur",)
    assert "v1" in second.places
    assert set(second.links) == {"cur", "away"}
    assert second.doubt == f"{root.parent}/*"


@pytest.mark.parametrize(
    "path",
    [
        "sales/etl.py",
        "sql/deep/a.sql",
        "some.cfg",
        "all/of/it/x.py",
        "golden_projects.yaml",
        "golden_baselines/gone/x.csv",
        "README",
        "lib/notes.md",
        "docs/conf.py",
        ".github/workflows/x.yml",
    ],
)
def test_what_is_of_someone_or_for_people_is_no_doubt(path: str) -> None:
    assert CLAIMS.find_unclaimed(PathIndex([path])) is None


@pytest.mark.parametrize(
    "path",
    ["lib/shared.py", "sql/deep/a.txt", "all/shared.py", "all/of/x.py", "salesman/x.py", "lib/docs/x.py", "sub/"],
)
def test_what_nobody_claims_is_found(path: str) -> None:
    index = PathIndex(["README.md", path])
    assert CLAIMS.find_unclaimed(index) == CLAIMS.find_unclaimed(index) == path


def test_project_at_the_root_claims_nothing_that_others_may_read() -> None:
    places = [InputPlaces(("",), folder=""), InputPlaces(("a",), folder="a")]
    assert Claims(places).find_unclaimed(PathIndex(["lib.py"])) == "lib.py"
    assert Claims(places[:1]).find_unclaimed(PathIndex(["lib.py"])) is None


HELD = frozenset(
    {
        "app/main.py",
        "app/unused.py",
        "app/README.md",
        "sql/a.sql",
        "tests/test_a.py",
        "link",
        "own/base.txt",
        "edited.py",
    }
)


@pytest.mark.parametrize(
    ("path", "is_unread"),
    [
        ("app/main.py", False),
        ("app/unused.py", True),
        ("tests/test_a.py", True),
        ("tests/test_new.py", True),
        ("app/new.py", False),
        ("sql/new.sql", False),
        ("sql/new.txt", False),
        ("new/new.py", False),
        ("docs/new.md", True),
        ("link", False),
        ("own/base.txt", False),
        ("own/new.txt", False),
        ("edited.py", False),
        ("named/x.csv", False),
        ("folder/", False),
    ],
)
def test_what_a_project_did_not_open_is_no_input_of_it(path: str, is_unread: bool) -> None:
    others = PathIndex(["link", "own", "edited.py"])
    own = OwnReads("", ("app/main.py", "sql/a.sql"), HELD, others, ("named/*.csv",))
    assert own.is_unread(path) is is_unread


def test_what_lies_outside_of_the_own_folder_is_not_judged_by_its_reads() -> None:
    own = OwnReads("app", (), HELD, PathIndex([]))
    assert own.is_unread("app/unused.py")
    assert not own.is_unread("sql/a.sql")
    assert not own.is_unread("application/x.py")


def test_a_project_that_reads_texts_for_people_reads_new_ones_too() -> None:
    assert not OwnReads("", ("README.md",), HELD, PathIndex([])).is_unread("docs/new.md")


UNRECORDED = frozenset({"node_modules/a.js", "app/env/lib/a.py", "app/__pycache__/a.pyc", ".tox/a.py"})


@pytest.mark.parametrize("path", sorted(UNRECORDED))
def test_where_no_reads_are_recorded_every_file_is_an_input(path: str) -> None:
    assert not OwnReads("", ("app/main.py",), HELD | UNRECORDED | {"app/env/pyvenv.cfg"}, PathIndex([])).is_unread(path)
