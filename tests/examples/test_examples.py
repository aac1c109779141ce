from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pytest_golden.journal.service import Journal
from pytest_golden.manifest.reader import load_manifest

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*/make_data.py"))


def run_in(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.name)
def test_committed_data_is_what_its_script_makes(script: Path, tmp_path: Path) -> None:
    shutil.copy(script, tmp_path)
    assert run_in(tmp_path, sys.executable, "make_data.py").returncode == 0
    made = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()}
    assert made == {path.name: path.read_bytes() for path in (script.parent / "data").iterdir()}


def test_every_example_is_a_golden_project() -> None:
    declared = {Path(project.path).parts[1] for project in load_manifest(REPOSITORY / "golden_projects.yaml").projects}
    assert declared == {script.parent.name for script in SCRIPTS}


def test_weather_etl_runs_without_this_package(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "weather", tmp_path / "weather")
    ended = run_in(tmp_path / "weather", sys.executable, "-S", "etl.py")
    assert (ended.returncode, ended.stderr) == (0, "")
    with closing(sqlite3.connect(tmp_path / "weather" / "weather.db")) as database:
        assert database.execute("SELECT count(*), count(DISTINCT station) FROM reading").fetchone() == (2016, 4)


def test_weather_etl_fails_on_a_hole_in_the_readings(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "weather", tmp_path / "weather")
    readings = tmp_path / "weather" / "data" / "readings_HAM.csv"
    lines = readings.read_text(encoding="utf-8").splitlines(keepends=True)
    readings.write_text("".join(lines[:100] + lines[130:]), encoding="utf-8")
    ended = run_in(tmp_path / "weather", sys.executable, "-S", "etl.py")
    assert ended.returncode == 1
    assert "check failed: at most 2 % of the hours are missing" in ended.stderr


def test_access_log_report_counts_every_request(tmp_path: Path) -> None:
    ended = run_in(tmp_path, str(EXAMPLES / "access_logs" / "report.sh"))
    assert (ended.returncode, ended.stderr) == (0, "")
    rows = [line.split("\t") for line in (tmp_path / "report.tsv").read_text(encoding="utf-8").splitlines()]
    assert f"{sum(int(row[2]) for row in rows[1:])} requests" in ended.stdout


def test_access_log_report_refuses_a_log_of_broken_lines(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "access_logs", tmp_path / "logs")
    with (tmp_path / "logs" / "data" / "access.log").open("a", encoding="utf-8") as log:
        log.write("broken\n" * 50)
    ended = run_in(tmp_path, str(tmp_path / "logs" / "report.sh"))
    assert ended.returncode == 1
    assert "lines are broken, more than 1 %" in ended.stderr


def test_journal_is_kept_without_the_gate(tmp_path: Path) -> None:
    ended = run_in(tmp_path, sys.executable, str(EXAMPLES / "journal" / "follow_up.py"), "journal.db")
    assert (ended.returncode, ended.stderr) == (0, "")
    stood = [line.split(maxsplit=1) for line in ended.stdout.splitlines() if not line.startswith(" ")]
    assert [(word, told.partition(":")[0]) for word, told in stood] == [
        ("success", "email"),
        ("failure", "crm_update"),
        ("success", "deploy"),
        ("67%", "of 3 went well"),
    ]
    with Journal.open(tmp_path / "journal.db") as journal:
        mail = journal.review_journal(intent_type="email")[0]
        assert len(journal.get(mail.id).signals) == 1
        assert (journal.orphans(), journal.open_expectations()) == ((), ())


def test_query_is_improved_until_every_month_passes(tmp_path: Path) -> None:
    pytest.importorskip("gepa")
    shutil.copytree(EXAMPLES / "gepa", tmp_path / "gepa")
    before = (tmp_path / "gepa" / "revenue.sql").read_bytes()
    ended = run_in(tmp_path, sys.executable, "-W", "error", str(tmp_path / "gepa" / "improve.py"))
    assert (ended.returncode, ended.stderr) == (0, "")
    first, *query = ended.stdout.splitlines()
    assert first == "score before 0.56, after 1.00, with 4 candidates"
    assert query[0].startswith("SELECT COALESCE(customers.region, 'unknown') AS region")
    assert all(part in ended.stdout for part in ("LEFT JOIN", "DISTINCT", "<> 'cancelled'"))
    assert (tmp_path / "gepa" / "revenue.sql").read_bytes() == before
    assert sorted(path.name for path in (tmp_path / "gepa").iterdir()) == sorted(
        path.name for path in (EXAMPLES / "gepa").iterdir()
    )
