from __future__ import annotations

import importlib.util
import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from pytest_golden.cli.coverage import FloorCoverage
from tests.repository import Repository
from tests.requirement import require

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden, GoldenProcess

PROJECTS = [{"name": "sales", "path": "sales/run.sh"}, {"name": "copied", "path": "copied/run.sh", "view": "tracked"}]


@pytest.fixture
def repository(folder: Path) -> Repository:
    repository = Repository(folder)
    files = {
        "sales/run.sh": "cat data.csv ../sql/used.sql > out.txt\n",
        "sales/data.csv": "1\n",
        "sales/old.py": "",
        "sql/used.sql": "",
        "sql/unused.sql": "",
        "copied/run.sh": "true\n",
        "docs/page.md": "",
        "tests/test_it.py": "",
        "golden_baselines/sales/out.txt": "",
        ".github/workflows/a.yml": "",
        "golden_projects.yaml": json.dumps({"version": 1, "golden_projects": PROJECTS}),
        ".gitignore": ".golden/\n",
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "sales" / "link.csv").symlink_to("data.csv")
    (folder / "sql" / "link.sql").symlink_to("unused.sql")
    repository.commit("base")
    return repository


def measure(golden: Golden, *words: str) -> dict[str, Any]:
    ran = golden("coverage", "--json", *words)
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def test_files_that_no_project_reads_are_named(
    repository: Repository, golden: Golden, golden_process: GoldenProcess
) -> None:
    assert golden("coverage").code == 2
    assert golden_process("gate", "--", "-q").code == 0
    before = measure(golden)
    assert (before["files"], before["share"], before["unknown"]) == (8, 0, ["sales", "copied"])
    ran = golden_process("gate", "--", "-q", "--golden-reads")
    require("overlay view" in golden_process("gate", "--", "-k", "sales").out, "an overlay")
    assert golden_process("gate", "--", "-q", "--golden-reads").code == 0, ran.out
    found = measure(golden)
    assert found["unread"] == ["sales/old.py", "sql/link.sql", "sql/unused.sql"], repository.folder
    assert (found["share"], found["unknown"]) == (62, [])
    told = golden("coverage").out
    assert "5 of 8 files (62 %) are read by a golden project" in told
    assert golden_process("gate", "--", "-k", "copied", "--golden-sandbox=copy", "--golden-reads").code == 0
    assert "not known: the reads of copied;" in golden("coverage").out


def test_what_no_output_looks_at_is_named(
    repository: Repository, golden: Golden, golden_process: GoldenProcess
) -> None:
    require(importlib.util.find_spec("duckdb") is not None, "DuckDB")
    writes = "mkdir -p out logs .cache; for name in out/seen.csv out/other.csv.gz out/model.pkl logs/a.txt .cache/b.csv; do echo 1 > $name; done\n"
    make = "import sqlite3; c = sqlite3.connect('{}'); [c.execute(f'create table {{t}} as select 1 as id') for t in ('orders', 'rates', 'old')]; c.commit()"
    databases = "".join(f'python -c "{make.format(name)}"\n' for name in ("a.db", "b.db", "c.db"))
    (repository.folder / "sales" / "run.sh").write_text(writes + databases)
    outputs = [{"path": "out/*.csv"}, {"path": "a.db", "tables": ["*"]}, {"path": "b.db", "table": "orders"}]
    entry = {"name": "sales", "path": "sales/run.sh", "outputs": outputs}
    (repository.folder / "golden_projects.yaml").write_text(json.dumps({"version": 1, "golden_projects": [entry]}))
    ran = golden_process("gate", "--", "-q", "--golden-update", "--golden-no-calibrate", environment={"CI": ""})
    assert ran.code == 0, ran.out + ran.err
    others = ["sales: c.db", "sales: out/other.csv.gz"]
    assert measure(golden)["unwatched"] == [*others, "sales: b.db/main.old", "sales: b.db/main.rates"]
    told = golden("coverage", "--html", "c.html").out
    assert "no output looks at:\n  sales: c.db\n" in told
    assert "No output looks at" in (repository.folder / "c.html").read_text()


def test_it_is_written_as_a_page_and_as_a_badge(
    repository: Repository, golden: Golden, golden_process: GoldenProcess
) -> None:
    assert golden_process("gate", "--", "-q").code == 0
    low = golden("coverage", "--html", "c.html", "--badge", "b.svg", "--fail-under", "1")
    assert low.code == 1
    badge = ElementTree.parse(repository.folder / "b.svg").getroot()
    assert badge.get("aria-label") == "golden coverage: 0 %"
    page = (repository.folder / "c.html").read_text()
    assert "sql/unused.sql" in page
    assert "Golden coverage: 0 %" in page
    refused = golden("coverage", "--badge", "nowhere/b.svg")
    assert refused.code == 2
    assert "nowhere/b.svg cannot be written" in refused.err


@pytest.mark.parametrize(("files", "unread", "share"), [(0, 0, 100), (3, 1, 66), (3, 3, 0), (200, 1, 99)])
def test_the_share_is_rounded_down(files: int, unread: int, share: int) -> None:
    assert FloorCoverage(files, tuple(map(str, range(unread))), ()).share == share
