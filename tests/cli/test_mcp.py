from __future__ import annotations

import sqlite3
import sys
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from pytest_golden.storage.schema import VERSION_TABLE
from pytest_golden.storage.store import Store

pytest.importorskip("mcp")

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--port", "99999", "--http"), "give a number from 0 to 65535"),
        (("--port", "8000"), "--host and --port work only with --http"),
        (("--host", "127.0.0.1"), "--host and --port work only with --http"),
        (("--host", "", "--http"), "--host is empty"),
        (("--agent", "golden"), "is reserved: "),
        (("--agent", " GOLDEN "), "is reserved: "),
        (("--agent", "gol\u200bden"), "is reserved: "),
        (("--agent", "hum\u0430n"), "is reserved: "),
        (("--agent", ""), "--agent"),
        (("--session", " "), "--session"),
        (("--agent", "x" * 1000), "--agent has 1,000 bytes"),
        (("--store", ""), "--store is empty"),
        (("--store", "none"), "recording is off"),
        (("--nonsense",), "--nonsense"),
        (("--http", "--host", "192.0.2.1", "--port", "0"), "cannot listen on 192.0.2.1 port 0"),
    ],
)
def test_bad_input_is_told_in_one_sentence_before_anything_is_served(
    golden: Golden, words: tuple[str, ...], told: str
) -> None:
    ran = golden("mcp", *words)
    assert ran.code == 2
    assert ran.out == ""
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_the_agent_comes_from_the_environment_too(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLDEN_AGENT", "golden")
    assert "is reserved: " in golden("mcp").err


def test_a_newer_store_is_refused(golden: Golden, folder: Path) -> None:
    with Store.open(folder / "newer.db") as store, store.write() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    ran = golden("mcp", "--store", "newer.db")
    assert ran.code == 2
    assert "newer pytest-golden-projects" in ran.err
    assert ran.err.count("\n") == 1


def test_an_older_store_is_not_changed_by_a_server_that_only_reads(golden: Golden, folder: Path) -> None:
    with Store.open(folder / "older.db") as store, store.write() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0000'"))
    before = (folder / "older.db").read_bytes()
    ran = golden("mcp", "--read-only", "--store", "older.db")
    assert (ran.code, ran.out) == (2, "")
    assert "run `golden store upgrade" in ran.err
    assert ran.err.count("\n") == 1
    assert (folder / "older.db").read_bytes() == before


@pytest.mark.parametrize("words", [(), ("--read-only",)])
def test_a_foreign_store_is_refused(golden: Golden, folder: Path, words: tuple[str, ...]) -> None:
    with sqlite3.connect(folder / "foreign.db") as connection:
        connection.execute("CREATE TABLE cats (name TEXT)")
    connection.close()
    ran = golden("mcp", "--store", "foreign.db", *words)
    assert ran.code == 2
    assert "not a golden store" in ran.err
    assert ran.err.count("\n") == 1


def test_a_missing_extra_is_told_with_the_command_that_installs_it(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    ran = golden("mcp")
    assert ran.code == 2
    assert "pip install 'pytest-golden-projects[mcp]'" in ran.err
