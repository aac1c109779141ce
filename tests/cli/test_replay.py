"""`golden replay` on a real repository: the present floor over past commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.test_bisect import LOAD, commit, git, shop

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden
    from tests.cli.test_bisect import Commit

__all__ = ["commit", "shop"]


def test_what_would_have_been_red_is_shown(shop: Path, commit: Commit, golden: Golden) -> None:
    base = git(shop, "rev-parse", "HEAD")
    bad = commit("Count the tax too", load=LOAD.format(11))
    commit("Still so", note="true\n")
    commit("Take it back", load=LOAD.format(10))
    # A project that only the working tree declares is tried on the past.
    manifest = shop / "golden_projects.yaml"
    manifest.write_text(f"{manifest.read_text()}  - {{name: noted, path: note.sh}}\n")
    ran = golden("replay", f"{base}..HEAD")
    assert ran.code == 0, ran.err
    strips = [line.split() for line in ran.out.splitlines()[:2]]
    assert [strip[:2] for strip in strips] == [["orders", "✗✗✓"], ["noted", "!✓✓"]]
    assert ran.out.splitlines()[0].endswith("red at 2 of 3 commits")
    assert ran.out.count("1 row differs in `total`") == 1
    assert f"{bad[:12]}  " in ran.out
    # Each is asked for alone later, and what is known of the others stays known.
    assert golden("replay", f"{base}..HEAD", "noted", "--json").json["red"] == {"noted": 1}
    found = golden("replay", f"{base}..HEAD", "orders", "--json").json
    assert (found["projects"], found["red"]) == (["orders"], {"orders": 2})
    assert [one["subject"] for one in found["commits"]] == ["Count the tax too", "Still so", "Take it back"]
    assert git(shop, "worktree", "list").count("\n") == 0
    # Another floor asks anew.
    (shop / "golden_baselines" / "orders" / "orders.csv").write_text("id,total\n1,11\n")
    assert golden("replay", f"{base}..HEAD", "orders", "--json").json["red"] == {"orders": 1}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("..", 2, "is no range of commits"),
        ("-x..HEAD", 2, "is no range of commits"),
        ("nowhere..HEAD", 3, "there is no such commit"),
        ("HEAD...HEAD", 2, "is no range of commits"),
    ],
)
def test_what_cannot_be_replayed_is_told(shop: Path, golden: Golden, words: str, code: int, told: str) -> None:
    ran = golden("replay", "--", words)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
