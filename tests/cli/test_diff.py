from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

MANIFEST = """\
version: 1
golden_projects:
  - {name: sales, path: run.sh, outputs: [{path: "*.csv", ignore_columns: [at]}, {path: r.txt, compare: exists}]}
  - {name: other, path: other.sh, outputs: [{path: o.txt}]}
  - {name: quiet, path: other.sh}
"""
SCRIPT = "printf 'id,n,at\\n1,{0},{0}\\n2,3,4\\n3,1,1\\n' > {1}.csv; echo same > s.csv; echo {0} > r.txt\n"
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


@pytest.fixture
def shop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose working tree writes other data than its commit."""
    monkeypatch.setenv("GOLDEN_SANDBOX", "copy")
    (folder / ".git").rmdir()
    (folder / "golden_projects.yaml").write_text(MANIFEST)
    (folder / "run.sh").write_text(SCRIPT.format(2, "old") + "echo x > t.csv; echo 1 > u.csv\n")
    (folder / "other.sh").write_text("echo 1 > o.txt\n")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "one")):
        subprocess.run([*GIT, *words], check=True, cwd=folder)
    (folder / "run.sh").write_text(SCRIPT.format(5, "new") + "echo y > t.csv; echo 1 > u.csv\n")
    return folder


def test_each_output_is_compared_with_the_base(shop: Path, golden: Golden) -> None:
    ran = golden("diff", "main")
    assert ran.code == 0, ran.err
    assert "with uncommitted edits" in ran.out.splitlines()[0]
    for told in (
        "sales: 4 outputs changed, 2 as before",
        "  new.csv is new (",
        "  old.csv is removed (",
        "  r.txt differs from the base",
        "  t.csv differs from the base: column `x` is missing, column `y` is new",
        "other: no output changed, 1 as before",
    ):
        assert told in ran.out, ran.out
    assert "quiet" not in ran.out
    assert not (shop / "golden_baselines").exists()
    assert (
        subprocess.run(["git", "worktree", "list"], cwd=shop, capture_output=True, check=True).stdout.count(b"\n") == 1
    )


def test_a_table_is_explained_and_rules_for_what_moves_count(shop: Path, golden: Golden) -> None:
    (shop / "run.sh").write_text(SCRIPT.format(5, "old"))
    facts = json.loads(golden("diff", "main", "sales", "--json").out)
    (project,) = facts["projects"]
    outputs = {output["path"]: output for output in project["outputs"]}
    assert outputs["old.csv"]["kind"] == "changed"
    assert [column["name"] for column in outputs["old.csv"]["table"]["columns"]] == ["n"]
    assert "1 row differs in `n`" in outputs["old.csv"]["message"]
    assert "baseline" not in outputs["old.csv"]["message"]
    assert outputs["s.csv"] == {"path": "s.csv", "kind": "same", "message": ""}
    assert (facts["dirty"], len(facts["base"])) == (True, 40)


def test_a_side_that_fails_is_said_and_is_no_error(shop: Path, golden: Golden) -> None:
    (shop / "run.sh").write_text("exit 3\n")
    ran = golden("diff", "main", "sales")
    assert ran.code == 0
    assert "sales: nothing to compare, since it failed on the head: exit code 3, expected 0" in ran.out


def test_what_a_project_must_hold_besides_is_not_judged(shop: Path, golden: Golden) -> None:
    text = MANIFEST.replace("name: sales,", "name: sales, unexpected_files: fail, stdout: {contains: [never]},")
    (shop / "golden_projects.yaml").write_text(text)
    (shop / "run.sh").write_text((shop / "run.sh").read_text() + "echo > stray\n")
    assert "sales: 4 outputs changed, 2 as before" in golden("diff", "main", "sales").out


def test_a_project_that_one_side_alone_declares(shop: Path, golden: Golden) -> None:
    text = MANIFEST.replace("name: other", "name: renamed")
    (shop / "golden_projects.yaml").write_text(text)
    ran = golden("diff", "main")
    assert "renamed: 1 output changed, 0 as before\n  o.txt is new" in ran.out
    assert "other: 1 output changed, 0 as before\n  o.txt is removed" in ran.out


def test_a_base_without_a_manifest_is_run_as_the_head_declares(shop: Path, golden: Golden) -> None:
    text = (shop / "golden_projects.yaml").read_text()
    subprocess.run([*GIT, "rm", "-q", "--cached", "golden_projects.yaml"], check=True, cwd=shop)
    subprocess.run([*GIT, "commit", "-qm", "two"], check=True, cwd=shop)
    assert (shop / "golden_projects.yaml").read_text() == text
    # What a change declares never runs outside the seal.
    (shop / "golden_projects.yaml").write_text(f"setup: touch {shop}/ran\n{text}")
    ran = golden("diff", "main", "sales")
    assert "the base has no golden_projects.yaml" in ran.err
    assert not (shop / "ran").exists()
    assert "sales: 4 outputs changed, 2 as before" in ran.out


def test_what_cannot_be_compared_is_one_sentence(shop: Path, golden: Golden) -> None:
    ran = golden("diff", "nowhere")
    assert (ran.code, ran.out) == (3, "")
    assert "there is no such commit here" in ran.err
    assert golden("diff", "main", "sale").code == 2
    assert golden("diff", "--json").code == 2
    ran = golden("diff", "nowhere", "--json")
    assert "there is no such commit here" in json.loads(ran.out)["error"]


def test_the_page_and_the_summary_on_github_tell_the_same(
    shop: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop / "run.sh").write_text(SCRIPT.format(5, "old") + "echo x > t.csv; echo 1 > u.csv; echo '<b>' > a.csv\n")
    summary = shop / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    ran = golden("diff", "main", "sales", "other", "--html", "out/data.html")
    assert ran.code == 0, ran.err
    assert "old.csv differs from the base: 1 row differs in `n`" in ran.out
    folded = summary.read_text()
    assert folded.startswith("\n<details><summary>What this change does to the data: 3 outputs changed</summary>")
    assert "old.csv differs from the base: 1 row differs in `n`" in folded
    page = (shop / "out/data.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<h3>old.csv differs from the base: 1 row differs in `n`</h3>" in page
    assert "<summary>Columns, and 1 of 1 changed rows</summary>" in page
    assert ">Base and now</th>" in page
    assert "<h3>a.csv is new (" in page
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(shop))
    failing = golden("diff", "main", "other")
    assert failing.code == 0
    assert "nothing can be appended (Is a directory)" in failing.err


def test_a_side_that_fails_is_told_on_the_page_and_in_the_summary(
    shop: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop / "other.sh").write_text("echo '<i>broken' >&2; exit 3\n")
    summary = shop / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert golden("diff", "main", "other", "--html", "data.html").code == 0
    assert "no output changed, 1 project failed on a side</summary>" in summary.read_text()
    assert "nothing to compare, since it failed on the head: " in (shop / "data.html").read_text()


def write_wheel(folder: Path, version: str, rounded: int) -> str:
    """Write a wheel of a library whose rounding depends on its version; return a lock file of it."""
    name = f"shoplib-{version}-py3-none-any.whl"
    with ZipFile(folder / name, "w") as wheel:
        wheel.writestr("shoplib.py", f"def tax(price): return round(price * 0.19, {rounded})\n")
        wheel.writestr(
            f"shoplib-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: shoplib\nVersion: {version}\n"
        )
        wheel.writestr(f"shoplib-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"shoplib-{version}.dist-info/RECORD", "")
    lock = folder / f"{version}.lock"
    lock.write_text(f"--no-index\n{folder / name}\n")
    return lock.name


def test_one_commit_is_run_in_two_environments(shop: Path, golden: Golden) -> None:
    old, new = write_wheel(shop, "1.0", 2), write_wheel(shop, "2.0", 1)
    (shop / "etl.py").write_text(
        "import shoplib\nopen('o.csv', 'w').write(f'id,tax\\n1,{shoplib.tax(3.49)}\\n2,{shoplib.tax(10)}\\n')\n"
    )
    manifest = (
        "golden_projects:\n  - {name: etl, path: etl.py, outputs: [{path: o.csv}]}\n  - {name: b, path: etl.py}\n"
    )
    (shop / "golden_projects.yaml").write_text(manifest)
    ran = golden("diff", "--env-a", old, "--env-b", new, "etl")
    assert ran.code == 0, ran.err
    assert ran.out.startswith(f"base {old}, head {new}, both at ")
    assert "o.csv differs from the base: 1 row differs in `tax`" in ran.out
    told = json.loads(golden("diff", "--env-a", old, "--env-b", old, "--json").out)
    assert (told["env_a"], told["env_b"]) == (old, old)
    assert [output["kind"] for output in told["projects"][0]["outputs"]] == ["same"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "give the REF to compare with"),
        (("--env-a", "a.lock"), "--env-a and --env-b go together"),
        (("--env-a", "a.lock", "--env-b", "none.lock"), "none.lock is not a file"),
        (("--env-a", "bad.lock", "--env-b", "a.lock"), "bad.lock cannot be installed: ERROR: "),
        (("--env-a", "a.lock", "--env-b", "a.lock", "nobody"), "nobody"),
    ],
)
def test_environments_that_cannot_be_made_are_one_sentence(
    shop: Path, golden: Golden, words: tuple[str, ...], told: str
) -> None:
    (shop / "a.lock").write_text("--no-index\n")
    (shop / "bad.lock").write_text("--no-index\nno-such-package==1.0\n")
    ran = golden("diff", *words)
    assert ran.code == 2
    assert told in ran.err


def test_what_a_changed_model_is_made_of_comes_first(shop: Path, golden: Golden) -> None:
    (shop / "etl.py").write_text(
        "import sys\nsys.path.insert(0, '.')\nfrom shop_models import write\nwrite('wh.duckdb', 2)\n"
    )
    (shop / "shop_models.py").write_text(
        "import duckdb, json\n"
        "def write(path, factor):\n"
        "    with duckdb.connect(path) as c:\n"
        "        c.execute('CREATE SCHEMA sqlmesh; CREATE SCHEMA shop')\n"
        "        c.execute('CREATE TABLE sqlmesh._snapshots (name VARCHAR, snapshot VARCHAR, updated_ts BIGINT)')\n"
        "        c.execute(\"CREATE TABLE sqlmesh._environments AS SELECT 'prod' AS name, 'schema' AS suffix_target\")\n"
        "        for name, parents in (('a', ['z']), ('z', [])):\n"
        "            told = {'node': {}, 'parents': [{'name': f'\"wh\".\"shop\".\"{one}\"'} for one in parents]}\n"
        '            row = [f\'"wh"."shop"."{name}"\', json.dumps(told)]\n'
        "            c.execute('INSERT INTO sqlmesh._snapshots VALUES (?, ?, 1)', row)\n"
        "            c.execute(f'CREATE TABLE shop.{name} AS SELECT i, i * {factor} AS n FROM range(3) t(i)')\n"
    )
    manifest = "golden_projects:\n  - {name: etl, path: etl.py, outputs: [{path: wh.duckdb, tables: ['*']}]}\n"
    (shop / "golden_projects.yaml").write_text(manifest)
    for words in (("add", "."), ("commit", "-qm", "two")):
        subprocess.run([*GIT, *words], check=True, cwd=shop)
    (shop / "etl.py").write_text((shop / "etl.py").read_text().replace("2)", "5)"))
    told = json.loads(golden("diff", "main", "--json").out)
    paths = [output["path"] for output in told["projects"][0]["outputs"]]
    assert paths == ["wh.duckdb/shop.z.parquet", "wh.duckdb/shop.a.parquet"]


def test_the_head_runs_by_the_interpreter_that_is_given(shop: Path, golden: Golden) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", shop.parent / "own"], check=True)
    (shop / "etl.py").write_text("import sys\nopen('o.txt', 'w').write(sys.prefix)\n")
    (shop / "golden_projects.yaml").write_text(
        "golden_projects:\n  - {name: etl, path: etl.py, outputs: [{path: o.txt}]}\n"
    )
    for words in (("add", "."), ("commit", "-qm", "two")):
        subprocess.run([*GIT, *words], check=True, cwd=shop)
    ran = golden("diff", "main", "--python", str(shop.parent / "own/bin/python"))
    assert "o.txt differs from the base" in ran.out
    assert f"+ {shop.parent}/own" in ran.out


def test_setup_gives_the_base_its_own_packages(shop: Path, golden: Golden) -> None:
    link = (
        "import os, pathlib, sysconfig; pathlib.Path(sysconfig.get_paths()['purelib'], 'z.pth').write_text(os.getcwd())"
    )
    project = "{name: sales, path: jobs/run.py, outputs: [{path: n.txt}]}"
    setup = json.dumps(["python", "-c", link])
    (shop / "golden_projects.yaml").write_text(f"version: 1\nsetup: {setup}\ngolden_projects:\n  - {project}\n")
    (shop / "jobs").mkdir()
    (shop / "jobs/run.py").write_text("import shop_rates\nopen('n.txt', 'w').write(f'{shop_rates.RATE}\\n')\n")
    (shop / "shop_rates.py").write_text("RATE = 1\n")
    for words in (("add", "."), ("commit", "-qm", "two")):
        subprocess.run([*GIT, *words], check=True, cwd=shop)
    (shop / "shop_rates.py").write_text("RATE = 2\n")
    ran = golden("diff", "main")
    assert "base: running its `setup:`" in ran.err
    assert "failed on the head" in ran.out, "only the base has the setup's link"
    assert "failed on the base" not in ran.out
    (shop / "jobs/run.py").write_text("open('n.txt', 'w').write('2\\n')\n")
    told = golden("diff", "main").out
    assert "n.txt differs from the base" in told
    text = (shop / "golden_projects.yaml").read_text()
    (shop / "golden_projects.yaml").write_text(text.replace(setup, '["false"]'))
    subprocess.run([*GIT, "commit", "-qam", "three"], check=True, cwd=shop)
    failed = golden("diff", "main")
    assert failed.code == 3
    assert "`setup:` ended with exit code 1" in failed.err
