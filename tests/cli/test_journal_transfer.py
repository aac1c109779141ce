from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from pytest_golden.cli.screen import show_progress

if TYPE_CHECKING:
    from tests.cli.conftest import Golden


def begin(golden: Golden, result: str = "success") -> str:
    entry = golden("journal", "log-intent", "ship it", "--agent", "a").out.strip()
    golden("journal", "log-outcome", entry, result)
    return entry


def test_a_journal_is_exported_and_imported(golden: Golden, folder: Path) -> None:
    entry = begin(golden)
    golden("journal", "signal", "ci", "positive", "alone", "--data", '{"pr": 1}')
    told = golden("journal", "export", "j.jsonl")
    assert (told.code, told.out) == (0, "1 entry and 1 orphan written to j.jsonl\n")
    told = golden("journal", "import", "j.jsonl", "--store", "other.db")
    assert told.out == "1 entry new; 0 merged with what was here; 0 known already; 1 orphan new\n"
    told = golden("journal", "import", "j.jsonl", "--store", "other.db")
    assert told.out == "nothing new: 1 entry known already\n"
    golden("journal", "assess", entry, "failure", "--by", "ada")
    assert golden("journal", "export", "j.jsonl", "--json").json == {"file": "j.jsonl", "entries": 1, "orphans": 1}
    told = golden("journal", "import", "j.jsonl", "--store", "other.db", "--json")
    assert told.json == {"added": 0, "merged": 1, "unchanged": 0, "orphans": 0}


def test_a_journal_goes_through_a_pipe(golden: Golden, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(golden)
    exported = golden("journal", "export").out
    assert json.loads(exported.splitlines()[0])["format"] == "golden-journal"
    assert golden("journal", "export", "-").out == exported
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(exported.encode())))
    assert golden("journal", "import", "-", "--store", "other.db", "--json").json["added"] == 1
    assert golden("journal", "export", "--store", "other.db").out == exported


def test_a_bad_import_is_refused_with_its_line(golden: Golden, folder: Path) -> None:
    Path("bad.jsonl").write_text('{"format": "golden-journal", "version": 1}\n{"kind": "entry"}\n')
    told = golden("journal", "import", "bad.jsonl")
    assert told.code == 2
    assert told.err == "golden: bad.jsonl: line 2: entry: id is missing; nothing was imported\n"
    told = golden("journal", "import", "nowhere.jsonl")
    assert (told.code, told.err) == (2, "golden: there is no file nowhere.jsonl; give an export, or - for stdin\n")
    assert golden("journal", "export", "bad.db").code == 0
    Path("mine.txt").write_text("mine")
    assert golden("journal", "export", "mine.txt").code == 2


def test_old_entries_are_pruned(golden: Golden, folder: Path) -> None:
    for _ in range(3):
        begin(golden)
    told = golden("journal", "prune", "--keep", "1", "--dry-run")
    assert told.out == "2 entries and 0 trajectories would be removed; nothing was changed\n"
    told = golden("journal", "prune", "--keep", "2", "--vacuum")
    assert told.out.startswith("1 entry and 0 trajectories removed; the file is ")
    told = golden("journal", "prune", "--older-than", "2999-01-01", "--agent", "a", "--json")
    assert told.json == {"dry_run": False, "entries": 2, "trajectories": 0, "documents": 0, "freed_bytes": None}
    assert golden("journal", "prune", "--older-than", "1d").out == "0 entries and 0 trajectories removed\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "say how much to keep"),
        (["--keep", "0"], "--keep 0 cannot be used; give a number from 1"),
        (["--older-than", "soon"], "--older-than soon is no time"),
        (["--rules", "rules.json"], "rules.a.retention.days: 0 is not"),
    ],
)
def test_a_pruning_without_a_limit_is_refused(golden: Golden, folder: Path, words: list[str], told: str) -> None:
    begin(golden)
    Path("rules.json").write_text('{"a": {"retention": {"days": 0}}}')
    ran = golden("journal", "prune", *words)
    assert ran.code == 2
    assert told in ran.err


def test_retention_comes_from_the_rules(golden: Golden, folder: Path) -> None:
    begin(golden)
    begin(golden)
    Path("rules.json").write_text('{"a": {"retention": {"entries": 1}}}')
    assert golden("journal", "prune", "--rules", "rules.json", "--json").json["entries"] == 1


def test_stores_are_merged(golden: Golden, folder: Path) -> None:
    golden("journal", "log-intent", "one", "--store", "one.db")
    golden("journal", "log-intent", "two", "--store", "two.db")
    told = golden("merge", "one.db", "two.db", "--store", "all.db")
    assert told.code == 0
    assert told.out.splitlines()[0] == f"2 stores merged into {Path('all.db').resolve()}"
    assert "2 new, 0 merged with what was here, 0 known already" in told.out
    told = golden("merge", "one.db", "--store", "all.db", "--json")
    assert (told.json["sources"], told.json["added"], told.json["unchanged"]) == (["one.db"], 0, 1)


@pytest.mark.parametrize("sources", [["nowhere.db"], ["one.db", "nowhere.db"], ["all.db"], ["text.db"], []])
def test_a_bad_source_is_refused(golden: Golden, folder: Path, sources: list[str]) -> None:
    golden("journal", "log-intent", "one", "--store", "one.db")
    golden("journal", "log-intent", "all", "--store", "all.db")
    Path("text.db").write_text("no database at all")
    before = golden("journal", "export", "--store", "all.db").out
    told = golden("merge", *sources, "--store", "all.db")
    assert (told.code, told.out) == (2, "")
    assert len(told.err.splitlines()) == 1
    assert golden("journal", "export", "--store", "all.db").out == before


def test_progress_is_shown_on_a_terminal_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with show_progress("read:") as progress:
        progress(1000)
        progress(2000)
    assert terminal.getvalue() == f"\rread: 1,000\rread: 2,000\r{' ' * 11}\r"
    quiet = Terminal()
    monkeypatch.setattr(sys, "stderr", quiet)
    with show_progress("read:"):
        pass
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with show_progress("read:") as progress:
        progress(1)
    assert quiet.getvalue() == ""
