from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_golden.history.unchanged_paths import PlaceFinder, leads_through, list_links
from pytest_golden.manifest.reader import parse_manifest

if TYPE_CHECKING:
    from pathlib import Path


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
