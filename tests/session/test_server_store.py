"""Sessions whose store is a PostgreSQL database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.storage.store import Store
from tests.patience import wait_until
from tests.postgres import name_database
from tests.repository import git
from tests.session.recorded import Recorded
from tests.session.workspace import FAILS, OPTIONS

if TYPE_CHECKING:
    from tests.postgres import PostgresServer
    from tests.session.workspace import Workspace


@pytest.fixture
def recorded(workspace: Workspace, postgres_url: str) -> Recorded:
    return Recorded(workspace.path / ".golden" / "golden.db", postgres_url)


def test_gate_records_on_a_server_and_remembers(workspace: Workspace, recorded: Recorded, postgres_url: str) -> None:
    workspace.declare({"name": "one"}, {"name": "two"})
    assert workspace.run("--golden-store", postgres_url).ret == 0
    workspace.declare({"name": "one"}, {"name": "two", "script": FAILS})
    run = workspace.run("--golden-store", postgres_url)
    assert run.ret == 1
    assert recorded.results() == {"one": "PASSED", "two": "FAILED"}
    assert [entry.assessment for entry in recorded.runs()] == ["success", "failure"]
    assert [past.status for past in recorded.past("two")] == ["FAILED", "PASSED"]
    assert recorded.count_memories() > 0
    assert not recorded.path.exists()


def test_results_wait_while_the_server_is_away(
    workspace: Workspace, recorded: Recorded, postgres: PostgresServer, postgres_url: str
) -> None:
    url = postgres_url.replace("postgres@", "postgres:hunter2@")
    workspace.declare({"name": "one"})
    assert workspace.run("--golden-store", url).ret == 0
    postgres.stop()
    try:
        run = workspace.run("--golden-store", url)
    finally:
        postgres.start()
    assert run.ret == 0
    told = run.stdout.str() + run.stderr.str()
    assert "its server cannot be used" in told
    assert "the next gate imports it" in told
    run = workspace.run("--golden-store", url)
    assert run.ret == 0
    assert "1 earlier run is in the history now" in run.stdout.str()
    assert [past.pass_streak for past in recorded.past("one")] == [3, 2, 1]
    assert "hunter2" not in told + run.stdout.str()
    kept = [file for file in (workspace.path / ".golden").rglob("*") if file.is_file()]
    assert not [file for file in kept if b"hunter2" in file.read_bytes()]


RESTORES = """
import psycopg
def pytest_golden_result_recorded(result, entry):
    if result.name == "one":
        with psycopg.connect({url!r}, autocommit=True) as connection:
            connection.execute("DROP DATABASE {name} WITH (FORCE)")
            connection.execute("CREATE DATABASE {name} TEMPLATE {backup}")
"""


def back_up(postgres: PostgresServer, url: str) -> str:
    backup = f"{name_database(url)}_backup"
    postgres.execute(f"CREATE DATABASE {backup} TEMPLATE {name_database(url)}")
    return backup


def test_gate_whose_database_is_restored_meanwhile_judges_and_is_in_it_whole(
    workspace: Workspace, recorded: Recorded, postgres: PostgresServer, postgres_url: str
) -> None:
    workspace.declare({"name": "one"}, {"name": "two", "script": FAILS}, {"name": "three"})
    assert workspace.run("--golden-store", postgres_url).ret == 1
    backup = back_up(postgres, postgres_url)
    assert workspace.run("--golden-store", postgres_url).ret == 1
    text = RESTORES.format(url=postgres.url(), name=name_database(postgres_url), backup=backup)
    workspace.pytester.makeconftest(text)
    run = workspace.run("--golden-store", postgres_url)
    postgres.execute(f"DROP DATABASE {backup}")
    assert run.ret == 1
    run.stdout.fnmatch_lines(
        ["golden: WARNING: the store * has lost its record of this run, as after restoring a backup*"]
    )
    assert run.stdout.str().count("has lost its record") == 1
    assert "Traceback" not in run.stdout.str() + run.stderr.str()
    assert recorded.results() == {"one": "PASSED", "two": "FAILED", "three": "PASSED"}
    assert [len(recorded.past(name)) for name in ("one", "two", "three")] == [2, 2, 2]
    assert not list((workspace.path / ".golden").rglob("*.jsonl"))


def test_database_that_is_restored_without_tables_meanwhile_has_the_whole_run_once_they_are_made(
    workspace: Workspace, recorded: Recorded, postgres: PostgresServer, postgres_url: str
) -> None:
    workspace.declare({"name": "one"}, {"name": "two", "script": FAILS})
    text = RESTORES.format(url=postgres.url(), name=name_database(postgres_url), backup="template0")
    workspace.pytester.makeconftest(text)
    run = workspace.run("--golden-store", postgres_url)
    assert run.ret == 1
    run.stdout.fnmatch_lines(["*it has no tables any more; restore them, or run `golden store upgrade --store URL`*"])
    workspace.pytester.makeconftest("")
    Store.open(postgres_url, upgrades=True).close()
    run = workspace.run("--golden-store", postgres_url)
    run.stdout.fnmatch_lines(["golden: 1 earlier run is in the history now"])
    assert [past.status for past in recorded.past("two")] == ["FAILED", "FAILED"]
    assert [past.status for past in recorded.past("one")] == ["PASSED", "PASSED"]


def test_server_without_tables_is_said_and_the_verdict_stands(workspace: Workspace, postgres: PostgresServer) -> None:
    url = postgres.make_empty_database()
    workspace.declare({"name": "one", "script": FAILS})
    run = workspace.run("--golden-store", url)
    assert run.ret == 1
    assert "run `golden store upgrade --store URL`" in run.stdout.str()
    postgres.drop(url)


def test_gate_that_was_killed_is_closed_by_the_next(
    workspace: Workspace, recorded: Recorded, postgres_url: str
) -> None:
    workspace.declare({"name": "one"}, {"name": "two", "script": "sleep 600"})
    command = [sys.executable, "-m", "pytest", "--golden", *OPTIONS, "--golden-store", postgres_url]
    gate = subprocess.Popen(
        command, cwd=workspace.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    wait_until(lambda: recorded.past("one"))
    os.killpg(gate.pid, signal.SIGKILL)
    gate.wait(60)
    workspace.declare({"name": "one"}, {"name": "two"})
    run = workspace.run("--golden-store", postgres_url)
    assert run.ret == 0
    assert "was cut off after 1 of 2 projects" in run.stdout.str()
    assert recorded.results() == {"one": "PASSED", "two": "PASSED"}
    assert [entry.immediate_result for entry in recorded.runs()] == ["partial", "success"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports which files are opened")
def test_what_was_read_comes_from_a_server_too(workspace: Workspace, postgres_url: str) -> None:
    workspace.declare({"name": "one", "script": "cat ../data.csv > out.txt", "depends_on": ["one/**"]})
    (workspace.path / "data.csv").write_text("1\n")
    git(workspace.path, "init", "-q", "-b", "main")
    git(workspace.path, "add", "-A")
    git(workspace.path, "commit", "-q", "-m", "a pipeline")
    options = ("--golden-store", postgres_url, "--golden-reads")
    assert workspace.run(*options).ret == 0
    workspace.run(*options, "--golden-changed=main").stdout.fnmatch_lines(["golden: PASSED (partial: 1 unchanged)"])
    (workspace.path / "data.csv").write_text("2\n")
    workspace.run(*options, "--golden-changed=main").stdout.fnmatch_lines(
        ["*: it reads data.csv, which changed", "golden: PASSED: 1 passed"]
    )


FREEZES = """
import os, signal
import psycopg
from pytest_golden.storage import postgresql
postgresql.LONGEST_SILENCE_SECONDS = 1.0
def pytest_golden_result_recorded(result, entry):
    if result.name == "one":
        with psycopg.connect({url!r}, autocommit=True) as connection:
            own = "SELECT pid FROM pg_stat_activity WHERE datname = '{name}' AND application_name = 'pytest-golden'"
            for (process,) in connection.execute(own).fetchall():
                os.kill(process, signal.SIGSTOP)
                with open({stopped!r}, "a") as file:
                    file.write(f"{{process}}\\n")
"""


def test_gate_whose_server_freezes_meanwhile_judges_and_its_results_come_later(
    workspace: Workspace, recorded: Recorded, postgres: PostgresServer, postgres_url: str
) -> None:
    workspace.declare({"name": "one"}, {"name": "two", "script": FAILS})
    stopped = workspace.path / "stopped.txt"
    text = FREEZES.format(url=postgres.url(), name=name_database(postgres_url), stopped=str(stopped))
    workspace.pytester.makeconftest(text)
    url = f"{postgres_url}&connect_timeout=2"
    try:
        run = workspace.run("--golden-store", url)
    finally:
        for process in stopped.read_text().split():
            os.kill(int(process), signal.SIGCONT)
    assert run.ret == 1
    assert "Traceback" not in run.stdout.str() + run.stderr.str()
    workspace.pytester.makeconftest("")
    run = workspace.run("--golden-store", url)
    assert run.ret == 1
    assert [past.status for past in recorded.past("two")] == ["FAILED", "FAILED"]
    assert [past.status for past in recorded.past("one")] == ["PASSED", "PASSED"]
