from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any

import pytest

from pytest_golden.cli import journal as journal_command
from pytest_golden.cli.screen import show_progress
from pytest_golden.journal.model import Assessment, Expectation, JournalEntry, RoutedBy, Signal, SignalType
from pytest_golden.journal.service import Journal
from pytest_golden.journal.store import Received, insert_entry, insert_expectations, take_signal
from pytest_golden.storage.store import Store
from tests.journal.outside.fake_github import FakeGitHub, put
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Golden, GoldenProcess


_SYNC = ("journal", "sync", "github", "--repo", "octo/shop", "--as-person")
MOMENT = datetime(2026, 3, 1, 12, 30, 59, tzinfo=UTC)


@pytest.fixture
def gate_run(folder: Path) -> str:
    """The entry of a gate run with seven projects, of which one passed and one failed, in the default store."""
    with Store.open(folder / ".golden" / "golden.db") as store:
        entry = Journal(store, clock=lambda: MOMENT).log_intent(
            "check 7 golden projects", "regression_check", agent_id="golden"
        )
        asked = [
            Expectation(
                id=f"expectation_{number}", entry_id=entry.id, description=f"p{number} passes", created_at=MOMENT
            )
            for number in range(7)
        ]
        with store.write() as connection:
            insert_expectations(connection, asked)
            for number, kind in enumerate([SignalType.POSITIVE, SignalType.NEGATIVE]):
                news = Signal(
                    id=f"signal_{number}",
                    entry_id=entry.id,
                    source="golden",
                    signal_type=kind,
                    summary="x",
                    created_at=MOMENT,
                )
                take_signal(connection, news, asked[number].id, Received(RoutedBy.MATCH_HINT))
    return entry.id


def log(folder: Path, agent: str, intent: str, result: str, **outcome: object) -> str:
    with Journal.open(folder / ".golden" / "golden.db", clock=lambda: MOMENT) as journal:
        entry = journal.log_intent(intent, agent_id=agent)
        journal.log_outcome(entry.id, result, **outcome)  # type: ignore[arg-type]
        return entry.id


def test_a_review_shows_where_each_entry_stands_and_what_it_waits_for(golden: Golden, gate_run: str) -> None:
    ran = golden("journal", "review")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "failure  2026-03-01 12:30  check 7 golden projects",
        f"         golden, regression_check, {gate_run}",
        "         result: unknown",
        "         assessed: unmet: p1 passes: x",
        "         expectations: 5 open, 1 met, 1 unmet",
        "           unmet: p1 passes",
        "           open: p2 passes",
        "           open: p3 passes",
        "           open: p4 passes",
        "           open: p5 passes",
        "           and 1 more",
    ]


def test_the_newest_entry_stands_first_and_other_agents_are_asked_for_by_name(
    golden: Golden, folder: Path, gate_run: str
) -> None:
    log(folder, "builder", "load", "success", notes="all rows\nread")
    log(
        folder,
        "builder",
        "deploy",
        "success",
        expectations=[{"description": "no incidents", "polarity": "negative", "critical": True, "expires_minutes": 60}],
    )
    ran = golden("journal", "review", "--agent", "builder")
    lines = ran.out.splitlines()
    assert lines[0] == "open     2026-03-01 12:30  deploy"
    assert "           open until 2026-03-01 13:30: no incidents (critical)" in lines
    assert lines.index("success  2026-03-01 12:30  load") > 4
    assert "         result: success: all rows" in lines
    assert gate_run not in ran.out


def test_entries_are_chosen_by_filter_type_and_number(golden: Golden, folder: Path, gate_run: str) -> None:
    newer = log(folder, "golden", "look", "success")

    def chosen(*words: str) -> list[str]:
        return [entry["id"] for entry in golden("journal", "review", "--json", *words).json["entries"]]

    assert chosen() == [newer, gate_run]
    assert chosen("--limit", "1") == [newer]
    assert chosen("--filter", "failure") == [gate_run]
    assert chosen("--type", "regression_check") == [gate_run]
    assert chosen("--filter", "expired") == []
    told = golden("journal", "review", "--filter", "open", "--type", "etl", "--agent", "builder").out
    assert told == "no open entry of type etl of agent builder\n"
    assert golden("journal", "review", "--agent", "builder").out == "no entry of agent builder\n"


def test_all_agents_are_reviewed_and_the_gates_results_only_if_asked(golden: Golden, folder: Path) -> None:
    with Journal.open(folder / ".golden" / "golden.db", clock=lambda: MOMENT) as journal:
        begun = journal.log_intent("check", "regression_check", agent_id="golden")
        result = journal.log_intent("run sales", "golden_run", agent_id="golden", parent_id=begun.id)
        deploy = journal.log_intent("deploy", agent_id="builder")

    def chosen(*words: str) -> list[str]:
        return [entry["id"] for entry in golden("journal", "review", "--json", *words).json["entries"]]

    assert chosen() == [deploy.id, begun.id]
    assert chosen("--agent", "golden") == [result.id, begun.id]
    assert chosen("--type", "golden_run") == [result.id]
    assert golden("journal", "review", "--filter", "failure").out == "no failure entry\n"


def test_an_entry_is_shown_with_why_it_stands_as_it_does(golden: Golden, folder: Path) -> None:
    with Journal.open(folder / ".golden" / "golden.db", clock=lambda: MOMENT) as journal:
        entry = journal.log_intent("Deploy version 12", "deploy", agent_id="builder", session_key="s1", job_id="J-7")
        asked: list[dict[str, Any]] = [
            {"description": "CI green", "match_hint": {"source": "ci"}},
            {"description": "no incidents", "polarity": "negative", "critical": True, "expires_minutes": 60},
        ]
        journal.log_outcome(entry.id, "success", "pushed", actions=["git push", {"tag": 12}], expectations=asked)
        url = "https://ci.example/7"
        signal = journal.add_signal(
            "ci", "negative", "check 'unit tests' failed", data={"url": url}, agent_id="builder"
        )
    ran = golden("journal", "show", entry.id)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "failure Deploy version 12",
        f"  because: unmet: CI green: check 'unit tests' failed, {url}",
        f"  builder, deploy, {entry.id}",
        "  result: success: pushed",
        "  began 2026-03-01 12:30, closed 2026-03-01 12:30",
        "  session: s1",
        "  job: J-7",
        "  did: git push",
        '  did: {"tag": 12}',
        "expected",
        "  unmet: CI green, by ci: check 'unit tests' failed",
        "  open: no incidents (critical, must not happen), until 2026-03-01 13:30",
        "heard",
        f"  2026-03-01 12:30  negative from ci: check 'unit tests' failed ({signal.id}, found by match_hint)",
        "history",
        "  2026-03-01 12:30  outcome by builder: pushed",
        "  2026-03-01 12:30  assessment by ci (open -> failure): check 'unit tests' failed",
    ]
    assert golden("journal", "show", entry.id, "--json").json["assessment_notes"].startswith("unmet: CI green: check")
    ran = golden("journal", "show", "entry_none")
    assert (ran.code, ran.out, ran.err) == (2, "", "golden: the journal has no entry 'entry_none'\n")


def test_json_holds_the_entries_with_their_expectations(golden_process: GoldenProcess, gate_run: str) -> None:
    ran = golden_process("journal", "review", "--json")
    [entry] = json.loads(ran.out)["entries"]
    assert (entry["id"], entry["assessment"], entry["created_at"]) == (
        gate_run,
        "failure",
        "2026-03-01T12:30:59.000000Z",
    )
    assert [asked["status"] for asked in entry["expectations"]] == ["met", "unmet", *["open"] * 5]


def test_another_store_is_read_when_it_is_named(golden: Golden, folder: Path, gate_run: str) -> None:
    (folder / ".golden").rename(folder / "elsewhere")
    assert golden("journal", "review", "--store", "elsewhere/golden.db").out.startswith("failure")
    assert golden("journal", "review").code == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["review"], "nothing is recorded yet in"),
        (["review", "--filter", "closed"], "argument --filter: invalid choice: 'closed'"),
        (["review", "--limit", "0"], "--limit 0 cannot be used; give a number from 1 to 100000"),
        (["review", "--limit", "many"], "--limit many cannot be used"),
        (["reviev"], "invalid choice: 'reviev'"),
        ([], "the following arguments are required: ACTION"),
    ],
)
def test_what_cannot_be_told_is_refused_in_one_sentence(golden: Golden, words: list[str], told: str) -> None:
    ran = golden("journal", *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_a_blank_agent_is_refused(golden: Golden, gate_run: str) -> None:
    ran = golden("journal", "review", "--agent", " ")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "agent_id must be text that is not blank" in ran.err


def test_what_a_person_said_of_an_entry_is_shown(golden: Golden, folder: Path) -> None:
    entry = JournalEntry(
        id="entry_1",
        agent_id="golden",
        intent="load",
        assessment=Assessment.SUCCESS,
        assessment_notes="the report is right",
        created_at=MOMENT,
        updated_at=MOMENT,
        closed_at=MOMENT,
    )
    with Store.open(folder / ".golden" / "golden.db") as store, store.write() as connection:
        insert_entry(connection, entry)
    assert "         assessed: the report is right\n" in golden("journal", "review").out


def test_control_characters_are_shown_and_not_obeyed(golden: Golden, folder: Path) -> None:
    log(folder, "golden", "clear \x1b[2J the screen", "failure")
    out = golden("journal", "review").out
    assert "\x1b" not in out
    assert "the screen" in out


LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  \d+ resolved; \d+ checked.*; \d+ rerouted.*\n")


def expect(folder: Path, *checks: Any) -> str:
    with Journal.open(folder / ".golden" / "golden.db") as journal:
        entry = journal.log_intent("deploy", agent_id="builder")
        wanted = [{"description": f"d{number}", "check": {"after": "1ms", **one}} for number, one in enumerate(checks)]
        journal.log_outcome(entry.id, "success", expectations=wanted)
    time.sleep(0.01)
    return entry.id


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest_golden", "journal", "heartbeat", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def read_line(stream: IO[str] | None) -> str:
    assert stream is not None
    assert select.select([stream], [], [], PATIENCE_SECONDS)[0]
    return stream.readline()


def test_a_beat_tells_what_it_did(golden: Golden, folder: Path) -> None:
    (folder / "golden_projects.yaml").write_text("workspace_root: inner\ngolden_projects: []\n")
    (folder / "inner").mkdir()
    (folder / "inner" / "data.txt").write_text("42\n")
    (folder / "inner" / ".golden").mkdir()
    with Journal.open(folder / "inner" / ".golden" / "golden.db") as journal:
        entry = journal.log_intent("deploy", agent_id="builder")
        checks = [{"command": "nosuchprogram"}, {"url": "http://127.0.0.1:1/"}]
        wanted = [{"description": "d", "check": {"after": "1ms", **one}} for one in checks]
        journal.log_outcome(entry.id, "success", expectations=wanted)
    time.sleep(0.01)
    ran = golden("journal", "heartbeat", "--timeout", "20s")
    assert (ran.code, ran.err) == (0, "")
    first, header, *rows = ran.out.splitlines()
    assert first == "0 resolved; 2 checked (2 neutral); 0 rerouted"
    assert header.split()[:2] == ["answer", "expected"]
    assert [row.split()[0] for row in rows] == ["neutral", "neutral"]
    assert any("Connection refused" in row for row in rows)
    assert golden("journal", "heartbeat").out == "0 resolved; 0 checked; 0 rerouted\n"
    assert golden("journal", "heartbeat", "--json").json == {"resolved": 0, "checks": [], "rerouted": 0, "left": 0}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--every", "soon"), "--every: 'soon' is not a duration"),
        (("--every", "0"), "--every: '0' is not above 0"),
        (("--every", "10ms"), "--every 10ms is too often; give one second or more"),
        (("--timeout", "-1"), "--timeout: '-1' is not above 0"),
        ((), "nothing is recorded yet in"),
    ],
)
def test_what_cannot_be_meant_is_refused(golden: Golden, words: tuple[str, ...], message: str) -> None:
    ran = golden("journal", "heartbeat", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_a_sigterm_is_heard_as_before_afterwards(golden: Golden, folder: Path) -> None:
    expect(folder)
    before = signal.getsignal(signal.SIGTERM)
    assert golden("journal", "heartbeat").code == 0
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_beats_until_it_is_stopped(folder: Path, golden: Golden, number: signal.Signals) -> None:
    expect(folder, {"url": "http://127.0.0.1:1/"})
    process = start(folder, "--every", "1s")
    lines = [read_line(process.stdout) for _ in range(3)]
    assert all(LINE.fullmatch(line) for line in lines)
    assert "1 checked (1 neutral)" in lines[0]
    assert "0 checked;" in lines[1]
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, err) == (0, "")
    assert out.count("\n") <= 1


def test_rounds_are_told_as_lines_of_json_and_do_not_drift(
    folder: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect(folder)
    moments, waits = iter([100.0, 100.7, 101.9, 104.4]), []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(journal_command, "monotonic_seconds", lambda: next(moments))
    monkeypatch.setattr(journal_command, "time", SimpleNamespace(sleep=wait))
    ran = golden("journal", "heartbeat", "--every", "1s", "--json")
    assert ran.code == 0
    assert [json.loads(line)["checks"] for line in ran.out.splitlines()] == [[]] * 3
    # Until the next whole second after the first, however long the rounds took.
    assert waits == pytest.approx([0.3, 0.1, 0.6])


def test_a_store_that_is_not_there_costs_a_round(folder: Path, golden: Golden) -> None:
    process = start(folder, "--every", "1s", "--json")
    first = json.loads(read_line(process.stdout))
    assert "nothing is recorded yet in" in first["error"]
    assert "nothing is recorded yet in" in read_line(process.stderr)
    expect(folder)
    told: dict[str, Any] = first
    while "error" in told:
        told = json.loads(read_line(process.stdout))
    assert told["resolved"] == 0
    process.terminate()
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0


def test_a_command_that_is_being_run_is_stopped_with_it(folder: Path, golden: Golden) -> None:
    entry = expect(folder, {"command": "sleep 600"})
    process = start(folder, "--every", "1s")
    with Store.open(folder / ".golden" / "golden.db") as store:
        tries = 0
        while not tries:
            time.sleep(0.05)
            with store.read() as connection:
                tries = connection.exec_driver_sql("SELECT check_tries FROM expectations").scalar_one()
        # It may be in the midst of making its view, or of running the command.
        time.sleep(1)
        os.kill(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, err) == (0, "")
        with store.read() as connection:
            assert connection.exec_driver_sql("SELECT check_tries FROM expectations").scalar_one() == 0
        assert Journal(store).get(entry).signals == ()


def begin(golden: Golden, result: str = "success") -> str:
    entry = golden("journal", "log-intent", "ship it", "--agent", "a").out.strip()
    golden("journal", "log-outcome", entry, result)
    return entry


def test_a_journal_is_exported_and_imported(golden: Golden, person: Golden, folder: Path) -> None:
    entry = begin(golden)
    golden("journal", "signal", "ci", "positive", "alone", "--data", '{"pr": 1}')
    told = golden("journal", "export", "j.jsonl")
    assert (told.code, told.out) == (0, "1 entry and 1 orphan written to j.jsonl\n")
    told = person("journal", "import", "j.jsonl", "--store", "other.db")
    assert told.out == "1 entry new; 0 merged with what was here; 0 known already; 1 orphan new\n"
    told = person("journal", "import", "j.jsonl", "--store", "other.db")
    assert told.out == "nothing new: 1 entry known already\n"
    person("journal", "assess", entry, "failure", "--by", "ada")
    assert golden("journal", "export", "j.jsonl", "--json").json == {"file": "j.jsonl", "entries": 1, "orphans": 1}
    told = person("journal", "import", "j.jsonl", "--store", "other.db", "--json")
    assert told.json == {"added": 0, "merged": 1, "unchanged": 0, "orphans": 0}


def test_a_journal_goes_through_a_pipe(
    golden: Golden, person: Golden, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(golden)
    exported = golden("journal", "export").out
    assert json.loads(exported.splitlines()[0])["format"] == "golden-journal"
    assert golden("journal", "export", "-").out == exported
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(exported.encode())))
    assert person("journal", "import", "-", "--store", "other.db", "--json").json["added"] == 1
    assert golden("journal", "export", "--store", "other.db").out == exported


def test_a_bad_import_is_refused_with_its_line(golden: Golden, person: Golden, folder: Path) -> None:
    Path("bad.jsonl").write_text('{"format": "golden-journal", "version": 1}\n{"kind": "entry"}\n')
    told = person("journal", "import", "bad.jsonl")
    assert told.code == 2
    assert told.err == "golden: bad.jsonl: line 2: entry: id is missing; nothing was imported\n"
    told = person("journal", "import", "nowhere.jsonl")
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
        (["--older-than", "soon"], "--older-than soon is not a time"),
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


@pytest.fixture
def fake_github() -> Iterator[FakeGitHub]:
    with FakeGitHub.answering() as fake:
        yield fake


def test_github_is_asked_for_what_is_expected(golden: Golden, fake_github: FakeGitHub, folder: Path) -> None:
    put(fake_github)
    assert "nothing was asked; --pr N asks about one" in golden(*_SYNC).out
    entry = golden("journal", "log-intent", "open #42", "--agent", "builder").out.strip()
    wish = {"description": "tests pass", "match_hint": {"source": "github", "pr": 42, "name": "unit tests"}}
    golden("journal", "log-outcome", entry, "success", "--expect", json.dumps(wish))
    shown = golden(*_SYNC)
    assert "check unit tests: failure" in shown.out
    assert f"by match hint to {entry}, now failure; unmet: tests pass" in shown.out
    assert "5 new signals; 6 pages asked for, 0 unchanged; 4,990 requests are left of GitHub's limit" in shown.out
    assert (folder / ".golden" / "github.json").is_file()
    again = golden(*_SYNC, "--pr", "42", "--json").json
    assert (again["asked"], again["unchanged"], again["signals"]) == (6, 5, [])
    # Another store knows nothing yet.
    other = golden(*_SYNC, "--pr", "42", "--store", str(folder / "other.db"), "--json").json
    assert len(other["signals"]) == 5


def test_github_is_asked_about_the_repository_of_the_remote(
    golden: Golden, fake_github: FakeGitHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(fake_github)
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    sync = ("journal", "sync", "github", "--pr", "42", "--as-person", "--json")
    assert "no repository is known; give --repo OWNER/NAME" in golden(*sync).err
    for command in (["init", "-q"], ["remote", "add", "origin", "git@github.com:octo/shop.git"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    assert len(golden(*sync).json["signals"]) == 5


def test_an_agent_may_not_bring_in_what_counts_as_the_word_of_others(golden: Golden, fake_github: FakeGitHub) -> None:
    put(fake_github)
    refused = golden("journal", "sync", "github", "--repo", "octo/shop", "--pr", "42")
    assert (refused.code, "bringing in GitHub's news" in refused.err) == (2, True)
    assert not fake_github.asked
    told = golden("journal", "sync", "github", "--repo", "octo", "--as-person")
    assert (told.code, "write it as OWNER/NAME" in told.err) == (2, True)
