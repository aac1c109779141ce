from __future__ import annotations

import json
import os
import shlex
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.cli.journal_review import show_rate
from pytest_golden.journal.review import SuccessRate
from pytest_golden.journal.service import Journal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Golden

GREEN = json.dumps({"description": "CI is green", "match_hint": {"source": "ci", "pr": 42}, "expires_minutes": 60})


def begin(golden: Golden, *words: str) -> str:
    ran = golden("journal", "log-intent", "deploy", "--type", "deploy", "--agent", "builder", *words)
    assert (ran.code, ran.err) == (0, "")
    return ran.out.strip()


def test_an_entry_goes_from_intent_to_assessment(golden: Golden, person: Golden, folder: Path) -> None:
    entry = begin(golden, "--session", "s", "--job", "nightly")
    told = golden("journal", "log-outcome", entry, "success", "--notes", "version 12", "--expect", GREEN)
    assert told.out == f"{entry}: open; 1 open expectation\n"
    ran = golden(
        "journal", "signal", "ci", "positive", "build 7 is green", "--data", '{"pr": "42"}', "--external-id", "7"
    )
    assert ran.out.endswith(f": by match hint to {entry}, now success; met: CI is green\n")
    assert (
        person("journal", "assess", entry, "failure", "--notes", "wrong file", "--by", "ada").out
        == f"{entry}: failure\n"
    )
    with Journal.open(folder / ".golden" / "golden.db") as journal:
        kept = journal.get(entry)
    assert (kept.session_key, kept.job_id, kept.intent_type) == ("s", "nightly", "deploy")
    assert (kept.immediate_notes, kept.assessment_notes, kept.history[-1].who) == ("version 12", "wrong file", "ada")


def test_json_gives_what_was_made(golden: Golden, person: Golden, folder: Path) -> None:
    entry = golden("journal", "log-intent", "deploy", "--json").json
    assert (entry["agent_id"], entry["assessment"], entry["actions"]) == ("golden", "open", [])
    words = [
        "--expect",
        f"[{GREEN}, {GREEN}]",
        "--expect",
        GREEN,
        "--actions",
        '["build"]',
        "--agent",
        "golden",
        "--json",
    ]
    told = golden("journal", "log-outcome", entry["id"], "partial", *words).json
    assert (len(told["expectations"]), told["actions"]) == (3, ["build"])
    signal = golden("journal", "signal", "chat", "neutral", "x", "--entry", entry["id"], "--json").json
    assert (signal["entry_id"], signal["routed_by"]) == (entry["id"], "entry")
    assert person("journal", "assess", entry["id"], "success", "--json").json["assessment"] == "success"
    assert golden("journal", "sweep", "--json").json == {"resolved": 0}


def test_what_is_open_is_a_table(golden: Golden, folder: Path) -> None:
    assert golden("journal", "open").code == 2
    entry = begin(golden)
    assert golden("journal", "open").out == "nothing is expected\n"
    quiet = json.dumps({"description": "incidents", "polarity": "negative", "critical": True, "expires_minutes": 5})
    golden("journal", "log-outcome", entry, "success", "--expect", GREEN, "--expect", quiet)
    lines = golden("journal", "open", "--agent", "builder").out.splitlines()
    assert lines[0].split() == ["until", "expected", "hint", "entry"]
    assert ["no news of: incidents (critical)" in lines[1], "source=ci, pr=42" in lines[2]] == [True, True]
    [first] = golden("journal", "open", "--limit", "1", "--json").json["expectations"]
    assert first["description"] == "incidents"


@pytest.mark.parametrize("width", [80, 120])
def test_ids_are_shown_in_one_piece(golden: Golden, folder: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    entry = begin(golden)
    golden("journal", "log-outcome", entry, "success", "--expect", GREEN)
    told = golden("journal", "signal", "ci", "positive", "a green build " * 9, "--data", '{"pr": 43}', "--json")
    [asked] = golden("journal", "open", "--json").json["expectations"]
    shown = {
        entry: golden("journal", "open").out,
        told.json["id"]: golden("journal", "orphans").out,
        asked["id"]: golden("journal", "explain", told.json["id"]).out,
    }
    for name, out in shown.items():
        assert name in out
        assert max(map(len, out.splitlines())) <= width


def test_nothing_is_left_out_where_there_is_no_room(
    golden: Golden, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "45")
    golden("journal", "log-outcome", begin(golden), "success", "--expect", GREEN)
    assert {"CI", "is", "green", "pr=42"} <= set(golden("journal", "open").out.split())


def test_an_outcome_makes_no_store(golden: Golden, folder: Path) -> None:
    ran = golden("journal", "log-outcome", "entry_x", "success", "--store", "wrong.db")
    assert (ran.code, "nothing is recorded yet in" in ran.err, Path("wrong.db").exists()) == (2, True, False)


def test_a_rate_is_not_rounded_to_all_or_nothing() -> None:
    rates = [0.0, 0.001, 0.5, 0.999, 1.0, None]
    told = [show_rate(SuccessRate(n=1000, success_rate=rate, open=0, expired=0)) for rate in rates]
    assert told == ["0%", "<1%", "50%", ">99%", "100%", "-"]


def test_orphans_are_listed_and_explained(golden: Golden, folder: Path) -> None:
    entry = begin(golden)
    assert golden("journal", "orphans").out == "no signal is an orphan\n"
    golden("journal", "log-outcome", entry, "success", "--expect", GREEN)
    told = golden("journal", "signal", "ci", "positive", "green <b>", "--data", '{"pr": 43}').out
    signal = told.partition(":")[0]
    assert told == f"{signal}: no entry matches; it waits as an orphan\n"
    lines = golden("journal", "orphans").out.splitlines()
    assert lines[0].split() == ["when", "source", "type", "summary", "id"]
    assert "green <b>" in lines[1]
    assert golden("journal", "orphans", "--json").json["signals"][0]["id"] == signal
    explained = golden("journal", "explain", signal)
    assert explained.out.splitlines()[0] == f"{signal}: orphan"
    assert "pr is '43' in the signal, not '42'" in explained.out
    told = golden("journal", "explain", signal, "--json").json
    assert (told["rule"], told["candidates"][0]["taken"], told["others"]) == ("orphan", False, 0)


def test_an_explanation_marks_what_was_taken_and_counts_the_rest(golden: Golden, folder: Path) -> None:
    entry = begin(golden)
    alone = golden("journal", "signal", "ci", "neutral", "x", "--entry", entry).out.partition(":")[0]
    assert "no expectation was a candidate" in golden("journal", "explain", alone).out
    for first, count, told in ((0, 30, "and 20 more that were open\n"), (30, 120, "and 90 or more that were open\n")):
        wishes = json.dumps([{"description": "d", "match_hint": {"pr": first + number}} for number in range(count)])
        golden("journal", "log-outcome", entry, "success", "--expect", wishes)
        signal = golden("journal", "signal", "ci", "neutral", "x", "--data", f'{{"pr": {first + 3}}}').out
        out = golden("journal", "explain", signal.partition(":")[0]).out
        assert [line.split()[0] for line in out.splitlines()].count("taken") == 1
        assert out.endswith(told)


def test_a_summary_counts_by_type_and_day(golden: Golden, folder: Path) -> None:
    for result in ("success", "failure", "unknown"):
        golden("journal", "log-outcome", begin(golden), result)
    golden("journal", "log-intent", "look", "--agent", "critic")
    told = golden("journal", "summary", "--json").json
    assert {name: told[name] for name in ("n", "success_rate", "open", "expired")} == {
        "n": 2,
        "success_rate": 0.5,
        "open": 2,
        "expired": 0,
    }
    assert told["by_intent_type"]["deploy"]["n"] == 2
    assert len(told["by_time"]) == 1
    lines = golden("journal", "summary", "--since", "1d").out.splitlines()
    assert lines[0].split() == ["succeeded", "of", "open", "expired"]
    assert lines[1].split() == ["all", "50%", "2", "2", "0"]
    assert golden("journal", "summary", "--agent", "critic").out.splitlines()[2].split() == [
        "(no",
        "type)",
        "-",
        "0",
        "1",
        "0",
    ]
    assert golden("journal", "summary", "--since", "2999-01-01", "--json").json["n"] == 0


def test_a_sweep_counts_what_it_resolves(golden: Golden, folder: Path) -> None:
    entry = begin(golden)
    golden("journal", "log-outcome", entry, "success", "--expect", '{"description": "d", "expires_minutes": 0.00001}')
    assert golden("journal", "sweep").out == "1 expectation resolved as expired\n"
    assert golden("journal", "sweep").out == "nothing was due\n"


def test_times_are_shown_in_the_local_zone(golden: Golden, folder: Path) -> None:
    entry = golden("journal", "log-intent", "deploy").out.strip()
    golden("journal", "log-outcome", entry, "success", "--expect", GREEN)
    shown = {}
    for zone in ("UTC", "Asia/Kolkata"):
        with in_zone(zone):
            [asked] = golden("journal", "open", "--json").json["expectations"]
            shown[zone] = golden("journal", "open").out.splitlines()[1]
            assert asked["expires_at"].endswith("Z")
    assert shown["UTC"].startswith(asked["expires_at"][:16].replace("T", " "))
    assert shown["UTC"][:16] != shown["Asia/Kolkata"][:16]


@contextmanager
def in_zone(name: str) -> Iterator[None]:
    """Let this process be in a time zone for a while."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


def test_rules_come_from_a_file(golden: Golden, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = folder / "rules.yaml"
    rules.write_text("builder:\n  intent_types: [etl]\n  all_expired: success\n")
    refused = golden("journal", "log-intent", "x", "--agent", "builder", "--type", "deploy", "--rules", "rules.yaml")
    assert (refused.code, "give one of etl" in refused.err) == (2, True)
    monkeypatch.setenv("GOLDEN_JOURNAL_RULES", str(rules))
    assert golden("journal", "log-intent", "x", "--agent", "builder", "--type", "deploy").code == 2
    assert golden("journal", "log-intent", "x", "--agent", "builder", "--type", "etl").code == 0
    with Journal.open() as journal, pytest.raises(ValueError, match="give one of etl"):
        journal.log_intent("x", "deploy", agent_id="builder")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("builder: {all_expird: success}", "rules.builder: unknown key 'all_expird'; did you mean 'all_expired'?"),
        ("builder: [", "line 1 are not YAML"),
        ("- builder", "must be a mapping of agents"),
        (None, "cannot be read: No such file"),
    ],
)
def test_rules_that_cannot_be_used_are_refused(golden: Golden, folder: Path, content: str | None, told: str) -> None:
    if content is not None:
        (folder / "rules.yaml").write_text(content)
    ran = golden("journal", "log-intent", "x", "--rules", "rules.yaml")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert told in ran.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("log-intent ' '", "intent must be text that is not blank"),
        ("log-intent x --parent entry_none", "the journal has no entry 'entry_none'"),
        ("log-outcome entry_none success", "the journal has no entry 'entry_none'"),
        ("log-outcome {entry} good", "result 'good' is unknown: give one of success, failure, partial, unknown"),
        ("log-outcome {entry} success --agent critic", "is another agent's, not of 'critic'"),
        ("log-outcome {entry} success --expect '{{'", "--expect is not JSON"),
        ("log-outcome {entry} success --expect 3", "this must be a mapping, not 3"),
        (
            'log-outcome {entry} success --expect \'{{"description": "d", "expires_minutes": 0}}\'',
            "not a number of minutes",
        ),
        ("log-outcome {entry} success --actions 3", "actions must be a list"),
        ("signal ci good x", "signal_type 'good' is unknown"),
        ("signal ci positive x --data '[]'", "data must be a mapping"),
        ("signal ci positive x --data '{deep}'", "--data is nested too deeply"),
        ("signal ci positive x --entry entry_none", "the journal has no entry"),
        ("assess {entry} open --as-person", "assessment 'open' is refused"),
        ("assess entry_none success --as-person", "the journal has no entry"),
        ("signal human positive x --entry {entry}", "is for people, and nobody is at a terminal here"),
        ("signal 'hum\u0430n' positive x", "give your own name as the source: `golden journal signal NAME"),
        ("assess {entry} success", "assessing an entry is for people"),
        ("import", "importing a journal is for people"),
        ("explain signal_none", "the journal has no signal 'signal_none'"),
        ("summary --since yesterday", "--since yesterday is not a time"),
        ("summary --since 99999999999999d", "is not a time"),
        ("open --limit 0", "--limit 0 cannot be used"),
        ("orphans --limit x", "--limit x cannot be used"),
        ("opn", "invalid choice: 'opn'"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(golden: Golden, folder: Path, words: str, told: str) -> None:
    entry = begin(golden)
    typed: list[Any] = [word.format(entry=entry, deep="[" * 100_000) for word in shlex.split(words)]
    before = (folder / ".golden" / "golden.db").read_bytes()
    ran = golden("journal", *typed)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert told in ran.err
    assert (folder / ".golden" / "golden.db").read_bytes() == before


def test_a_script_needs_no_gate_to_journal_its_work(golden: Golden, folder: Path) -> None:
    mail = golden("journal", "log-intent", "mail the invoice", "--type", "email", "--agent", "clerk").out.strip()
    crm = golden("journal", "log-intent", "update the customer", "--type", "crm", "--agent", "clerk").out.strip()
    bounce = '{"description": "a bounce", "polarity": "negative", "expires_minutes": 60, "match_hint": {"mail": "m1"}}'
    golden("journal", "log-outcome", mail, "success", "--expect", bounce)
    golden("journal", "log-outcome", crm, "success")
    golden("journal", "signal", "smtp", "negative", "550 no such user", "--data", '{"mail": "m1"}')
    told = golden("journal", "review", "--agent", "clerk", "--json").json["entries"]
    assert [(one["id"], one["assessment"]) for one in told] == [(crm, "success"), (mail, "failure")]
