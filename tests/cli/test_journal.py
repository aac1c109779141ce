from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from pytest_golden.journal.model import Assessment, Expectation, JournalEntry, RoutedBy, Signal, SignalType
from pytest_golden.journal.service import Journal
from pytest_golden.journal.store import Received, insert_entry, insert_expectations, take_signal
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden, GoldenProcess

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
        f"         regression_check, {gate_run}",
        "         result: unknown",
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
