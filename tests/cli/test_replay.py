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


def test_what_another_floor_would_have_seen_is_compared(shop: Path, commit: Commit, golden: Golden) -> None:
    base = git(shop, "rev-parse", "HEAD")
    commits = [commit(f"Total {total}", load=LOAD.format(total)) for total in (10.4, 10, 12, 12)]
    manifest = shop / "golden_projects.yaml"
    tolerant = manifest.read_text().replace("orders.csv}", "orders.csv, absolute_tolerance: 0.5}")
    manifest.write_text(f"{tolerant}  - {{name: noted, path: load.sh, expected_outcome: 'exit_code:1'}}\n")
    words = ("replay", f"{base}..HEAD", "--against", "HEAD")
    ran = golden(*words)
    assert ran.code == 0, ran.err
    strips = [line.split(maxsplit=2) for line in ran.out.splitlines()[:3]]
    assert [strip[:2] for strip in strips] == [["orders", "✓✓✗✗"], ["orders", "✗✓✗✗"], ["noted", "✗✗✗✗"]]
    assert strips[1][2] == "by the floor of HEAD: this one misses 1 of its red commits, and adds 0"
    assert "orders passes now, and is FAILED by the floor of HEAD: orders.csv differs" in ran.out
    plain = golden(*words, "--json").json
    assert (plain["missed"], plain["gained"]) == ({"orders": [commits[0]]}, {"orders": []})
    # The other way round, the stricter floor is the new one.
    git(shop, "commit", "-qam", "Tolerate")
    git(shop, "checkout", "-q", "HEAD~1", "--", "golden_projects.yaml")
    plain = golden("replay", f"{base}..HEAD~1", "--against", "HEAD", "--json").json
    assert (plain["missed"], plain["gained"]) == ({"orders": []}, {"orders": [commits[0]]})
    # Where both are the same, nothing is run twice.
    same = golden("replay", f"{base}..HEAD~1", "--against", "HEAD~1")
    assert "the floor of HEAD~1 is the same for orders" in same.err
    assert "by the floor" not in same.out
    manifest.write_text(tolerant.replace("name: orders", "name: renamed"))
    gone = golden("replay", f"{base}..{commits[0]}", "--against", "HEAD~1").err
    assert "only the floor of HEAD~1 has orders: this floor misses everything that it sees" in gone
    assert git(shop, "worktree", "list").count("\n") == 0


def test_a_ref_without_a_floor_is_told(shop: Path, golden: Golden) -> None:
    empty = git(shop, "commit-tree", "-m", "Empty", git(shop, "hash-object", "-t", "tree", "/dev/null"))
    ran = golden("replay", "HEAD", "--against", empty)
    assert ran.code == 3
    assert "has no golden projects" in ran.err


def test_independent_projects_run_at_several_commits_at_once(
    shop: Path, commit: Commit, golden: Golden, tmp_path: Path
) -> None:
    manifest = shop / "golden_projects.yaml"
    met = f"mounts: [{{path: {tmp_path}, mode: write}}], outputs:"
    manifest.write_text(manifest.read_text().replace("outputs:", f"independent: true, {met}"))
    git(shop, "commit", "-qam", "Run beside others")
    # Each of the two ends only if the other runs at the same time.
    meet = (
        "touch {0}/{1}; n=0; until [ -e {0}/{2} ] || [ $n = 400 ]; do sleep 0.05; n=$((n+1)); done; [ $n -lt 400 ] && "
    )
    commit("One", load=meet.format(tmp_path, "a", "b") + LOAD.format(10))
    commit("Other", load=meet.format(tmp_path, "b", "a") + LOAD.format(10))
    ran = golden("replay", "HEAD~2..HEAD", "--jobs", "2")
    assert ran.out.startswith("orders  ✓✓  "), ran.out + ran.err
    manifest.write_text(manifest.read_text().replace("independent: true", "independent: false"))
    told = golden("replay", "HEAD~2..HEAD", "--jobs", "2").err
    assert "--jobs is ignored: orders cannot run in parallel (see `independent`)" in told


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("..", 2, "is not a range of commits"),
        ("-x..HEAD", 2, "is not a range of commits"),
        ("nowhere..HEAD", 3, "there is no such commit"),
        ("HEAD...HEAD", 2, "is not a range of commits"),
        ("--jobs 0 HEAD", 2, "give a number from 1 to"),
        ("--against nowhere HEAD", 3, "there is no such commit"),
        ("--against= HEAD", 2, "is not a git ref"),
    ],
)
def test_what_cannot_be_replayed_is_told(shop: Path, golden: Golden, words: str, code: int, told: str) -> None:
    *options, commits = words.split()
    ran = golden("replay", *options, "--", commits)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
