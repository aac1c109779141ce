"""Rules that are added to a manifest's text, and nothing else of it that changes."""

from __future__ import annotations

import pytest

from pytest_golden.manifest.amending import Amendment, NotInTextError, amend, write_value
from pytest_golden.manifest.reader import parse_manifest

BLOCK = """\
# ours
golden_projects:
  - name: first
    path: a.py
  - name: second   # the second
    path: "b.py"
    outputs:
      - path: out/a.csv   # what it makes
        compare: table

      # the others
      - {path: out/b.csv, key: id}   # by id
      - { path: out/c.json }
      - path: out/d.csv
        ignore_columns:
          - one   # this
          - two

    tags: [nightly]
"""


def outputs_of(text: str) -> dict[str, object]:
    manifest = parse_manifest(text, "golden_projects.yaml", "/w")
    return {output.path: output for project in manifest.projects for output in project.outputs}


def test_rules_are_added_and_the_rest_stays() -> None:
    amended = amend(
        BLOCK,
        [
            Amendment(
                1, 0, {"ignore_columns": ("at", "a b"), "relative_tolerance": 3e-16}, ["seen: at moves\nand more"]
            ),
            Amendment(1, 1, {"unordered": True, "key": ("id", "day")}, ["seen"]),
            Amendment(1, 2, {"ignore_paths": ("$.a['b c']",)}),
            Amendment(1, 3, {"ignore_columns": ("one", "two", "three")}),
        ],
    )
    assert (
        amended
        == """\
# ours
golden_projects:
  - name: first
    path: a.py
  - name: second   # the second
    path: "b.py"
    outputs:
      - path: out/a.csv   # what it makes
        # seen: at moves and more
        ignore_columns: [at, 'a b']
        relative_tolerance: 3e-16
        compare: table

      # the others
      # seen
      - {path: out/b.csv, key: [id, day], unordered: true}   # by id
      - { path: out/c.json, ignore_paths: ['$.a[''b c'']'] }
      - path: out/d.csv
        ignore_columns:
          [one, two, three]

    tags: [nightly]
"""
    )
    found = outputs_of(amended)
    assert found["out/a.csv"].ignore_columns == ("at", "a b")  # type: ignore[attr-defined]
    assert found["out/a.csv"].relative_tolerance == 3e-16  # type: ignore[attr-defined]
    assert found["out/c.json"].ignore_paths == ("$.a['b c']",)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "golden_projects: [{name: a, path: a.py, outputs: [{path: x.csv}]}]",
        "golden_projects:\n- name: a\n  path: a.py\n  outputs:\n  - path: x.csv",
        '{"golden_projects": [{"name": "a", "path": "a.py", "outputs": [{"path": "x.csv",}]}]}',
        "golden_projects:\n- name: a\n  path: a.py\n  outputs:\n  - path: >-\n      x.csv\n    compare: table\n",
    ],
)
def test_every_way_of_writing(text: str) -> None:
    amended = amend(text, [Amendment(0, 0, {"ignore_columns": ("at",)}, ["seen"])])
    assert outputs_of(amended)["x.csv"].ignore_columns == ("at",)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "defaults: {outputs: [{path: x.csv}]}\ngolden_projects: [{name: a, path: a.py}]",
        "defaults: {outputs: &o [{path: x.csv}]}\ngolden_projects: [{name: a, path: a.py, outputs: *o}]",
        "defaults: {outputs: [&o {path: x.csv}]}\ngolden_projects: [{name: a, path: a.py, outputs: [*o]}]",
    ],
)
def test_entry_that_stands_elsewhere_is_refused(text: str) -> None:
    with pytest.raises(NotInTextError, match="by hand"):
        amend(text, [Amendment(0, 0, {"ignore_columns": ("at",)})])


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "true"),
        (1e-9, "1e-09"),
        (0.123456789, "0.123456789"),
        (1e6, "1000000"),
        (5, "5"),
        (None, "null"),
        ({"total, gross": (0, None)}, "{'total, gross': [0, null]}"),
        (("a", "no"), "[a, 'no']"),
        (r"^\d+: it's", r"'^\d+: it''s'"),
        ("a\tb", '"a\\tb"'),
        ("x.y/z", "x.y/z"),
    ],
)
def test_values(value: object, written: str) -> None:
    assert write_value(value) == written
