"""`golden bisect` on real repositories: each commit is checked out, run and judged."""

from __future__ import annotations

import json
import subprocess
import zipfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Golden, GoldenProcess

    Commit = Callable[..., str]

GIT = ("git", "-c", "user.name=Ann", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
MANIFEST = """\
version: 1
golden_projects:
  - {name: orders, path: load.sh, outputs: [{path: orders.csv}]}
"""
LOAD = "printf 'id,total\\n1,{}\\n' > orders.csv\n"


def git(folder: Path, *words: str) -> str:
    return subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def commit(folder: Path) -> Commit:
    """Return what writes files and commits them; the commit's id."""

    def write(subject: str, **files: str) -> str:
        for name, text in files.items():
            (folder / f"{name}.sh").write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", subject, "--allow-empty")
        return git(folder, "rev-parse", "HEAD")

    return write


@pytest.fixture
def shop(folder: Path, commit: Commit, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose baseline is committed, and that passes."""
    monkeypatch.setenv("GOLDEN_SANDBOX", "copy")
    (folder / ".git").rmdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitignore").write_text(".golden\n")
    (folder / "golden_projects.yaml").write_text(MANIFEST)
    baselines = folder / "golden_baselines" / "orders"
    baselines.mkdir(parents=True)
    (baselines / "orders.csv").write_text("id,total\n1,10\n")
    commit("Begin", load=LOAD.format(10))
    return folder


def test_the_commit_is_found_inside_a_merge(shop: Path, commit: Commit, golden: Golden) -> None:
    git(shop, "checkout", "-qb", "side")
    commit("Side", side="1")
    culprit = commit("Count the tax too", load=LOAD.format(11))
    commit("More", side="2")
    git(shop, "checkout", "-q", "main")
    git(shop, "merge", "-q", "--no-ff", "--no-edit", "side")
    commit("Note", note="1")
    ran = golden("bisect", "orders", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    (blamed,) = found["culprits"]
    assert (blamed["commit"], blamed["author"], blamed["files"]) == (culprit, "Ann", ["load.sh"])
    assert found["is_found"]
    assert not found["is_chance"]
    assert "1 row differs in `total`" in found["reason"]
    assert (found["good_failed"], found["bad_passed"]) == (0, 0)
    assert git(shop, "worktree", "list").count("\n") == 0
    assert git(shop, "status", "--porcelain") == ""
    # What is known is used: with one lie in it another commit is blamed, and --fresh asks anew.
    kept = shop / ".golden" / "bisect.json"
    told = json.loads(kept.read_text())
    for look in told["orders"]["found"]:
        look["standing"] = "good" if look["commit"] == culprit else look["standing"]
    kept.write_text(json.dumps(told))
    assert json.loads(golden("bisect", "orders", "--json").out)["culprits"][0]["commit"] != culprit
    shown = golden("bisect", "orders", "--fresh")
    assert f"orders broke with {culprit[:12]}" in shown.out
    assert "Count the tax too" in shown.out


def test_each_red_project_gets_its_own_commit(shop: Path, commit: Commit, golden: Golden) -> None:
    manifest = MANIFEST + "  - {name: green, path: fine.sh}\n  - {name: stock, path: stock.sh}\n"
    (shop / "golden_projects.yaml").write_text(manifest)
    good = commit("More projects", fine="true\n", stock="true\n")
    first = commit("Break the stock", stock="exit 4\n")
    second = commit("Count the tax too", load=LOAD.format(11))
    ran = golden("bisect", "--all", "--good", good, "--json")
    assert ran.code == 0, ran.err
    plain = ran.json
    blamed = {one["project"]: [culprit["commit"] for culprit in one["culprits"]] for one in plain["projects"]}
    assert blamed == {"orders": [second], "stock": [first]}
    assert plain["not_searched"] == {}
    commit("Take both back", load=LOAD.format(10), stock="true\n")
    assert "no golden project fails at" in golden("bisect", "--all").out


def test_commits_that_tell_nothing_are_skipped_and_named(shop: Path, commit: Commit, golden: Golden) -> None:
    good = git(shop, "rev-parse", "HEAD")
    commit("Break it otherwise", load="echo boom >&2; exit 3\n")
    commit("Count the tax too", load=LOAD.format(11))
    # The same output, red in another way.
    commit("Count it twice", load=LOAD.format(12))
    ran = golden("bisect", "orders", "--good", good)
    assert ran.code == 1
    assert "orders broke with one of 2 commits; those between tell nothing" in ran.out
    assert "it fails for another reason: exit code 3" in ran.out


def test_a_failure_by_chance_accuses_nobody(shop: Path, commit: Commit, golden: Golden, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    manifest = MANIFEST.replace("outputs:", f"mounts: [{{path: {runs}, mode: write}}], outputs:")
    (shop / "golden_projects.yaml").write_text(manifest)
    count = f"n=$(ls {runs} | wc -l); touch {runs}/$n; "
    commit("Every third run fails", load=f"{count} printf 'id,total\\n1,1%s\\n' $(( n % 3 == 0 )) > orders.csv\n")
    good = git(shop, "rev-parse", "HEAD")
    commit("Innocent", note="1")
    ran = golden("bisect", "orders", "--good", good, "--repeat", "4")
    assert ran.code == 1, ran.err
    assert "orders fails by chance: no commit is to blame" in ran.out


@pytest.fixture
def recorded(shop: Path, commit: Commit, golden_process: GoldenProcess) -> tuple[str, list[str]]:
    """A good commit and three later ones, each of which a gate has run; the second breaks the project."""
    good = git(shop, "rev-parse", "HEAD")
    later = []
    for number, total in enumerate([10, 11, 11]):
        later.append(commit(f"Commit {number}", load=f"{LOAD.format(total)}# {number}\n"))
        assert golden_process("gate", "--", "-q").code == (total != 10)
    return good, later


def test_recorded_runs_are_not_run_again_but_at_the_ends(
    shop: Path, recorded: tuple[str, list[str]], golden: Golden
) -> None:
    good, later = recorded
    ran = golden("bisect", "orders", "--good", good)
    assert ran.code == 0, ran.err
    assert f"orders broke with {later[1][:12]}" in ran.out
    assert f"{later[0][:12]} is good, as recorded" in ran.err
    # The given good end, which no gate has run, and the two ends that were found.
    assert [line.split()[1] for line in ran.err.splitlines() if "recorded" not in line] == [
        one[:12] for one in (later[2], good, later[0], later[1])
    ]
    (shop / ".golden" / "bisect.json").unlink()
    assert "as recorded" not in golden("bisect", "orders", "--good", good, "--fresh").err
    # Another floor has asked something else of them.
    (shop / "golden_baselines" / "orders" / "orders.csv").write_text("id,total\n1,12\n")
    assert "as recorded" not in golden("bisect", "orders", "--good", good).err


def test_a_recorded_run_that_stands_otherwise_here_is_not_believed(
    shop: Path, recorded: tuple[str, list[str]], commit: Commit, golden: Golden, golden_process: GoldenProcess
) -> None:
    # What git ignores was there when the gate ran, and is in no worktree.
    (shop / ".gitignore").write_text(".golden\ntotal.txt\n")
    (shop / "total.txt").write_text("10")
    reads = "printf 'id,total\\n1,%s\\n' $(cat total.txt || echo 11) > orders.csv\n"
    first = commit("Read the total", load=reads)
    second = commit("Note", load=f"{reads}# 1\n")
    assert golden_process("gate", "--", "-q").code == 0
    commit("Another note", load=f"{reads}# 2\n")
    ran = golden("bisect", "orders")
    assert ran.code == 0, ran.err
    assert f"{second[:12]} was recorded as good: recorded runs tell nothing here" in ran.err
    # There it was red already, for the same output.
    assert f"orders broke with {recorded[1][1][:12]}" in ran.out
    assert first[:12] not in ran.out


def test_a_recorded_failure_at_the_good_end_is_run_again(
    shop: Path, commit: Commit, golden: Golden, golden_process: GoldenProcess
) -> None:
    (shop / ".gitignore").write_text(".golden\ntotal.txt\n")
    good = commit("Read the total", load="printf 'id,total\\n1,%s\\n' $(cat total.txt || echo 10) > orders.csv\n")
    (shop / "total.txt").write_text("11")
    assert golden_process("gate", "--", "-q").code == 1
    culprit = commit("Count the tax too", load=LOAD.format(11))
    ran = golden("bisect", "orders", "--good", good)
    assert ran.code == 0, ran.err
    assert f"{good[:12]} is bad, as recorded" in ran.err
    assert f"orders broke with {culprit[:12]}" in ran.out


def test_each_commit_gets_the_environment_of_its_lock_file(
    shop: Path, commit: Commit, golden: Golden, tmp_path: Path
) -> None:
    for version in (1, 2):
        write_wheel(tmp_path, version)
    (shop / "load.sh").unlink()
    (shop / "golden_projects.yaml").write_text(MANIFEST.replace("load.sh", "load.py"))
    load = "import rates\nopen('orders.csv', 'w').write(f'id,total\\n1,{9 + rates.RATE}\\n')\n"
    (shop / "load.py").write_text(load)
    lock = shop / "pinned.txt"

    def pin(version: int, subject: str) -> str:
        lock.write_text(f"--no-index\n--find-links {tmp_path}\nrates=={version}.0\n")
        return commit(subject)

    none = git(shop, "rev-parse", "HEAD")
    good = pin(1, "Use the rates")
    commit("Note", note="1")
    culprit = pin(2, "Raise the rates")
    commit("Another note", note="2")
    ran = golden("bisect", "orders", "--good", good, "--env", "pinned.txt", "--json")
    assert ran.code == 0, ran.err
    assert [one["commit"] for one in ran.json["culprits"]] == [culprit]
    assert (
        f"there is no pinned.txt at {none[:12]}" in golden("bisect", "orders", "--good", none, "--env", lock.name).err
    )
    pin(3, "Raise them again")
    ran = golden("bisect", "orders", "--good", good, "--env", "pinned.txt")
    assert ran.code == 3
    assert "`--env pinned.txt` ended with exit code 1: ERROR: No matching distribution found for rates==3.0" in ran.err


def write_wheel(folder: Path, version: int) -> None:
    told = f"Metadata-Version: 2.1\nName: rates\nVersion: {version}.0\n"
    parts = {
        "rates.py": f"RATE = {version}\n",
        f"rates-{version}.0.dist-info/METADATA": told,
        f"rates-{version}.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"rates-{version}.0.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(folder / f"rates-{version}.0-py3-none-any.whl", "w") as wheel:
        for name, text in parts.items():
            wheel.writestr(name, text)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("orders",), 3, "orders passes at"),
        (("nobody",), 2, "no golden project is called 'nobody'"),
        (("orders", "--good", "nowhere"), 3, "there is no such commit"),
        (("orders", "--good", "--x"), 2, "expected one argument"),
        (("orders", "--good", "HEAD", "--since", "1.day"), 2, "both say how far to look back"),
        (("orders", "--repeat", "0"), 2, "give a number from 1 to"),
        ((), 2, "name one golden project, or give --all"),
        (("orders", "--all"), 2, "name one golden project, or give --all"),
        (("orders", "--since", " "), 2, "is not a date"),
        (("orders", "--env", "uv.lock"), 2, "--env 'uv.lock' is not a file here"),
        (("orders", "--env", "/etc/passwd"), 2, "lies outside the repository"),
    ],
)
def test_what_cannot_be_searched_is_told(
    shop: Path, golden: Golden, words: tuple[str, ...], code: int, told: str
) -> None:
    ran = golden("bisect", *words)
    assert (ran.code, ran.out) == (code, ""), ran.out
    assert told in ran.err


def test_a_good_end_that_fails_and_one_that_is_no_ancestor_are_told(shop: Path, commit: Commit, golden: Golden) -> None:
    commit("Count the tax too", load=LOAD.format(11))
    commit("Note", note="1")
    assert "orders does not pass at" in golden("bisect", "orders", "--good", "HEAD~1").err
    assert "is not an ancestor of" in golden("bisect", "orders", "--good", "HEAD").err
    (shop / "golden_baselines" / "orders" / "orders.csv").write_text("id,total\n1,12\n")
    ran = golden("bisect", "orders")
    assert ran.code == 3
    assert "passes at none of the commits that were tried" in ran.err
