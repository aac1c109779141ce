"""`golden strength` as a person uses it: real runs of pipelines that are changed, and what that says of the floor."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.service import ExecutionGateway
from tests.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

MANIFEST = """\
golden_projects:
  - name: orders
    path: load.py
    project_dir: .
    min_strength: 50
    outputs: [{path: total.txt, compare: text}]
"""
SCRIPT = """\
import csv
rows = list(csv.DictReader(open("orders.csv")))
kept = [row for row in rows if int(row["total"]) > 10]
open("total.txt", "w").write(str(len(kept)))
open("kept.txt", "w").write(",".join(row["id"] for row in kept))
flag = True
"""


def accept(folder: Path) -> None:
    """Accept what the projects write now, as a person does."""
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    words = [sys.executable, "-m", "pytest", "--golden", "--golden-update", "-q"]
    subprocess.run(words, cwd=folder, env=environment, check=True)


@pytest.fixture
def orders(folder: Path) -> Path:
    (folder / "load.py").write_text(SCRIPT)
    (folder / "orders.csv").write_text("id,total\n1,50\n2,10\n3,99\n4,70\n")
    (folder / "unread.py").write_text("x = 1 < 2\n")
    (folder / "golden_projects.yaml").write_text(MANIFEST)
    accept(folder)
    return folder


def test_survivors_are_shown_with_what_would_catch_them(golden: Golden, orders: Path) -> None:
    before = {path.name: path.read_bytes() for path in orders.iterdir() if path.is_file()}
    ran = golden("strength", "--json")
    assert ran.code == 0, ran.err
    (found,) = ran.json["projects"]
    assert found["files"] == ["load.py", "orders.csv"]
    assert len(found["tried"]) == found["total"]
    of_code = {(one["line"], one["kind"]): one["found"] for one in found["tried"] if one["path"] == "load.py"}
    assert (of_code[3, "comparison"], of_code[6, "constant"]) == ("caught", "same")
    survived = [one for one in found["tried"] if one["found"] == "survived"]
    assert {one["why"] for one in survived} == {"no output looks at kept.txt: declare it in `outputs:`"}
    caught = sum(one["found"] == "caught" for one in found["tried"])
    assert found["score"] == 100 * caught // (caught + len(survived))
    low, high = found["interval"]
    assert 0 < low <= found["score"] <= high <= 100
    assert {path.name: path.read_bytes() for path in orders.iterdir() if path.is_file()} == before
    shown = golden("strength").out
    assert shown.startswith(f"orders: {found['score']} % ({low} to {high}): {caught} caught")
    assert "declare it in `outputs:`" in shown


def test_page_badge_and_what_is_asked_for(golden: Golden, orders: Path, tmp_path: Path) -> None:
    page, badge = tmp_path / "page.html", tmp_path / "badge.svg"
    ran = golden("strength", "orders", "--fail-under", "99", "--html", str(page), "--badge", str(badge))
    assert ran.code == 1
    assert "% is less than the 99 % that is asked for" in ran.err
    assert "golden strength" in badge.read_text()
    assert "kept.txt" in page.read_text()
    text = (orders / "golden_projects.yaml").read_text()
    (orders / "golden_projects.yaml").write_text(text.replace("min_strength: 50", "min_strength: 100"))
    weak = golden("strength")
    assert (weak.code, "less than the 100 % that is asked for" in weak.err) == (1, True)


def test_declaring_what_is_named_raises_the_score(golden: Golden, orders: Path) -> None:
    first = golden("strength", "--json").json["projects"][0]
    declared = (
        (orders / "golden_projects.yaml")
        .read_text()
        .replace("compare: text}]", "compare: text}, {path: kept.txt, compare: text}]")
    )
    (orders / "golden_projects.yaml").write_text(declared)
    accept(orders)
    second = golden("strength", "--json").json["projects"][0]
    assert first["score"] < second["score"] == 100


def test_the_same_command_goes_on_until_something_else_is_asked(golden: Golden, orders: Path) -> None:
    part = golden("strength", "--minutes", "0.0001", "--json").json["projects"][0]
    assert part["tried"] == []
    assert part["score"] is None
    whole = golden("strength", "--json").json["projects"][0]
    kept = orders / ".golden" / "strength.json"
    told = json.loads(kept.read_text())
    assert len(told["orders"]["found"]) == whole["total"]
    told["orders"]["found"][0]["why"] = "kept"
    kept.write_text(json.dumps(told))
    assert any(one["why"] == "kept" for one in golden("strength", "--json").json["projects"][0]["tried"])
    fresh = golden("strength", "--fresh", "--json").json["projects"][0]
    assert not any(one["why"] == "kept" for one in fresh["tried"])
    (orders / "load.py").write_text(SCRIPT + "y = 2\n")
    assert golden("strength", "--minutes", "0.0001", "--json").json["projects"][0]["tried"] == []


def test_a_project_that_is_not_green_cannot_be_measured(golden: Golden, orders: Path) -> None:
    (orders / "orders.csv").write_text("id,total\n1,500\n2,600\n")
    ran = golden("strength")
    assert ran.code == 3
    assert "orders is not green as it is: " in ran.err


def test_a_red_project_does_not_keep_the_others_from_being_measured(golden: Golden, folder: Path) -> None:
    (folder / "red.sh").write_text("exit 1\n")
    (folder / "run.py").write_text("open('out.txt', 'w').write(str(1 < 2))\n")
    outputs = "outputs: [{path: out.txt, compare: exists}]"
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n  - {name: red, path: red.sh}\n"
        f"  - {{name: weak, path: run.py, project_dir: ., {outputs}}}\n"
    )
    ran = golden("strength", "--json")
    assert (ran.code, [one["name"] for one in ran.json["projects"]]) == (3, ["weak"])
    assert "red is not green as it is" in ran.err


def test_an_unknown_score_is_no_sufficient_one(golden: Golden, folder: Path) -> None:
    (folder / "run.sh").write_text("true\n")
    (folder / "golden_projects.yaml").write_text("golden_projects:\n  - {name: shell, path: run.sh}\n")
    assert golden("strength").code == 0
    ran = golden("strength", "--fail-under", "1")
    assert (ran.code, "shell: no score is known, where 1 % is asked for" in ran.err) == (1, True)


def test_baselines_lie_beside_the_manifest_whatever_the_workspace_root_is(golden: Golden, folder: Path) -> None:
    (folder / "gates").mkdir()
    (folder / "run.py").write_text("limit = 3\nopen('out.txt', 'w').write(str(limit))\n")
    (folder / "gates" / "golden_projects.yaml").write_text(
        "workspace_root: ..\ngolden_projects:\n  - {name: below, path: run.py, outputs: [{path: out.txt, compare: text}]}\n"
    )
    accept(folder / "gates")
    ran = golden("strength", "--manifest", "gates/golden_projects.yaml", "--json")
    assert (ran.code, ran.json["projects"][0]["score"]) == (0, 100), ran.err


def test_what_two_equal_runs_write_differently_is_unclear(golden: Golden, folder: Path) -> None:
    (folder / "run.py").write_text(
        "import os\nlimit = 3\nopen(f'part-{os.urandom(8).hex()}.txt', 'w').write(os.urandom(3).hex())\nprint(limit < 4)\n"
    )
    (folder / "golden_projects.yaml").write_text("golden_projects:\n  - {name: noisy, path: run.py, project_dir: .}\n")
    (found,) = golden("strength", "--json").json["projects"]
    why = {one["why"] for one in found["tried"] if one["found"] == "unclear"}
    assert why
    assert all(one.startswith("part-") and one.endswith("differs between equal runs, too") for one in why)
    assert "changes: part-*.txt differs between equal runs, too" in golden("strength").out
    survived = [one["why"] for one in found["tried"] if one["found"] == "survived"]
    assert "only what it prints is different: `stdout:` with `contains` would catch it" in survived


def test_a_file_that_each_run_calls_otherwise_is_compared_by_what_it_holds(golden: Golden, folder: Path) -> None:
    (folder / "run.py").write_text(
        "import os, time\nunused = 3\nlimit = 4\nfolder = f'models/{time.time_ns()}'\nos.makedirs(folder)\n"
        "open(f'{folder}/model.txt', 'w').write(str(limit))\n"
    )
    (folder / "golden_projects.yaml").write_text("golden_projects:\n  - {name: kept, path: run.py, project_dir: .}\n")
    (measured,) = golden("strength", "--json").json["projects"]
    found = {(one["before"].split()[0], one["found"], one["why"]) for one in measured["tried"]}
    told = "no output looks at models/*/model.txt: declare it in `outputs:`"
    assert {("unused", "same", ""), ("limit", "survived", told)} <= found, found


@pytest.mark.parametrize(("named", "found"), [("*", "same"), ("[ab]", "unclear")])
def test_a_database_of_which_all_tables_are_named_says_what_it_holds_whatever_its_bytes(
    golden: Golden, folder: Path, named: str, found: str
) -> None:
    (folder / "run.py").write_text(
        "import duckdb\nunused = 3\nc = duckdb.connect('wh.duckdb')\n"
        # Its schema is passed over, as SQLMesh's own.
        "c.execute('CREATE SCHEMA sqlmesh; CREATE TABLE sqlmesh.state AS SELECT now() AS t')\n"
        "[c.execute(f'CREATE TABLE {name} AS SELECT 1 AS x') for name in 'abc']\n"
    )
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n  - {name: wh, path: run.py, project_dir: ., outputs: [{path: wh.duckdb, tables: '"
        + named
        + "'}]}\n"
    )
    accept(folder)
    (measured,) = golden("strength", "--json").json["projects"]
    assert {one["found"] for one in measured["tried"] if one["before"].startswith("unused")} == {found}


def test_an_endless_change_is_caught_and_an_interrupt_keeps_what_was_tried(folder: Path, golden: Golden) -> None:
    (folder / "run.sh").write_text("python3 slow.py\n")
    (folder / "slow.py").write_text("import time\ntime.sleep(0.3)\na = 1 < 2\nb = 2 < 3\nc = 3 < 4\nd = not a\n")
    (folder / "golden_projects.yaml").write_text("golden_projects:\n  - {name: slow, path: run.sh, project_dir: .}\n")
    kept = folder / ".golden" / "strength.json"
    with subprocess.Popen(
        [sys.executable, "-m", "pytest_golden", "strength"], cwd=folder, stderr=subprocess.PIPE
    ) as process:
        wait_until(kept.exists)
        os.kill(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert b"the same command continues" in told
    assert json.loads(kept.read_text())["slow"]["found"]
    (found,) = golden("strength", "--json").json["projects"]
    assert len(found["tried"]) == found["total"]


def test_bad_input_is_one_sentence(golden: Golden, orders: Path) -> None:
    for words, told in (
        (("nobody",), "nobody"),
        (("--minutes", "0"), "--minutes 0: give a number above 0"),
        (("--minutes", "nan"), "--minutes nan"),
        (("--fail-under", "101"), "--fail-under 101: give a number from 0 to 100"),
        (("--html", str(orders / "none" / "page.html"), "--minutes", "0.0001"), "cannot be written"),
    ):
        ran = golden("strength", *words)
        assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
        assert told in ran.err


def test_sql_is_left_alone_without_sqlglot(golden: Golden, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "run.sh").write_text("cat query.sql\n")
    (folder / "query.sql").write_text("select a from t where b > 1\n")
    (folder / "golden_projects.yaml").write_text("golden_projects:\n  - {name: sql, path: run.sh, project_dir: .}\n")
    assert golden("strength", "--json").json["projects"][0]["total"] == 3
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    monkeypatch.setattr("pytest_golden.cli.strength.find_spec", lambda _: None)
    ran = golden("strength", "--json")
    assert ran.json["projects"][0]["total"] == 0
    assert "SQL is left alone without sqlglot" in ran.err


def test_a_changed_pipeline_reaches_nothing_outside_unless_that_is_allowed(golden: Golden, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (folder / "run.py").write_text(
            f"import socket, pathlib\nlimit = 1 < 2\npathlib.Path('/{folder}/out/told').write_text('x')\n"
            f"socket.create_connection(('127.0.0.1', {port}), 5).close()\n"
        )
        (folder / "out").mkdir()
        mounts = "mounts: [{path: out, mode: write}]"
        (folder / "golden_projects.yaml").write_text(
            f"golden_projects:\n  - {{name: outside, path: run.py, network: host, {mounts}}}\n"
        )
        ran = golden("strength")
        told = "it ran without a network, and with copies of its mounts; --allow-outside"
        assert (ran.code, told in ran.err) == (3, True)
        assert not (folder / "out" / "told").exists()
        assert golden("strength", "--allow-outside").code == 0
        assert (folder / "out" / "told").exists()


def test_without_a_seal_nothing_is_changed(golden: Golden, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "run.sh").write_text("true\n")
    (folder / "golden_projects.yaml").write_text("golden_projects:\n  - {name: sql, path: run.sh}\n")
    describe = ExecutionGateway.describe
    monkeypatch.setattr(ExecutionGateway, "describe", lambda gateway: replace(describe(gateway), seal="none"))
    ran = golden("strength")
    assert (ran.code, "pipelines cannot be sealed on this machine" in ran.err) == (2, True)


@pytest.mark.parametrize(("rule", "found"), [("", "same"), (", relative_tolerance: 0.1", "unclear")])
def test_tables_that_are_equal_whatever_their_bytes_are_the_same(
    golden: Golden, folder: Path, rule: str, found: str
) -> None:
    (folder / "run.py").write_text(
        "import os, time\nlimit = 1\nprint(time.time())\nrows = ['2,b', '1,a']\nrows.sort(key=lambda _: os.urandom(4))\n"
        "open('out.csv', 'w').write('\\n'.join(['id,name', *rows, *['3,c'] * 40 * (limit > 2)]) + '\\n' * (1 + int.from_bytes(os.urandom(2), 'big')))\n"
    )
    output = f"{{path: out.csv, key: [id]{rule}}}"
    (folder / "golden_projects.yaml").write_text(
        f"golden_projects:\n  - {{name: table, path: run.py, project_dir: ., outputs: [{output}]}}\n"
    )
    accept(folder)
    (tried,) = golden("strength", "--json").json["projects"]
    assert {one["found"] for one in tried["tried"] if one["line"] == 2} == {found}
