from __future__ import annotations

import io
import json
import os
import threading
from typing import IO, TYPE_CHECKING, Any, cast

import pytest

from pytest_golden.errors import JournalError
from pytest_golden.journal.service import Journal
from pytest_golden.journal.transfer import lines as files
from pytest_golden.storage.store import Store
from tests.journal.outside import github_payloads as github

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.journal.conftest import Clock

HEADER = {"format": "golden-journal", "version": 1}
ENTRY = {
    "kind": "entry",
    "id": "entry_1",
    "agent_id": "a",
    "intent": "x",
    "immediate_result": "unknown",
    "assessment": "open",
    "created_at": "2026-03-01T12:00:00Z",
    "updated_at": "2026-03-01T12:00:00Z",
}
ASKED = {"id": "e1", "description": "d", "status": "open", "created_at": "2026-03-01T12:00:00Z"}
SIGNAL = {
    "id": "s1",
    "source": "ci",
    "signal_type": "positive",
    "summary": "fine",
    "routed_by": "entry",
    "created_at": "2026-03-01T12:00:00Z",
}
CLOSED = {"closed_at": "2026-03-01T12:00:00Z"}


@pytest.fixture
def other(tmp_path: Path, clock: Clock) -> Iterator[Journal]:
    with Store.open(tmp_path / "other.db") as store:
        yield Journal(store, clock=clock)


def write(*lines: Any) -> io.BytesIO:
    return io.BytesIO("".join(f"{json.dumps(line)}\n" for line in lines).encode())


def copy_into(journal: Journal, source: Journal) -> None:
    buffer = io.BytesIO()
    source.export(buffer)
    buffer.seek(0)
    journal.import_(buffer)


def fill(journal: Journal) -> str:
    entry = journal.log_intent(
        "ship \0\udc80 <b>é</b>".replace("\0", ""), "deploy", agent_id="a", session_key="s", job_id="j"
    )
    journal.log_outcome(
        entry.id,
        "unknown",
        actions=[{"z": 1.5, "a": None, "n": 10**30}, "half \ud800"],
        expectations=[
            {"description": "d", "match_hint": {"pr": 1, "repo": "r"}, "expires_minutes": 5, "critical": True},
            {"description": "n", "polarity": "negative", "expires_minutes": 5},
        ],
    )
    journal.add_signal("ci", "positive", "ok", data={"pr": 1, "repo": "r", "b": [1.0, 1]}, external_id="7")
    journal.add_signal("ci", "neutral", "alone", data={"pr": 2})
    child = journal.log_intent("below", agent_id="b", parent_id=entry.id)
    journal.assess(child.id, "failure", "no", by="ada")
    return entry.id


@pytest.mark.parametrize("kind", ["path", "text path", "bytes", "text"])
def test_a_journal_goes_by_a_path_or_an_open_file(journal: Journal, other: Journal, tmp_path: Path, kind: str) -> None:
    entry = fill(journal)
    file: Any = {
        "path": tmp_path / "j.jsonl",
        "text path": str(tmp_path / "j.jsonl"),
        "bytes": io.BytesIO(),
        "text": io.StringIO(),
    }[kind]
    assert journal.export(file).to_dict() == {"entries": 2, "orphans": 1}
    if hasattr(file, "seek"):
        file.seek(0)
    assert other.import_(file).to_dict() == {"added": 2, "merged": 0, "unchanged": 0, "orphans": 1}
    assert other.get(entry) == journal.get(entry)
    assert other.orphans() == journal.orphans()
    assert [one.id for one in other.review_journal()] == [one.id for one in journal.review_journal()]


def test_the_first_line_tells_the_format_and_how_much_follows(journal: Journal) -> None:
    fill(journal)
    file = io.StringIO()
    journal.export(file)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert lines[0] == {**HEADER, "entries": 2, "orphans": 1}
    assert [line["kind"] for line in lines[1:]] == ["entry", "entry", "signal"]


def test_an_import_said_twice_is_one(journal: Journal, other: Journal, tmp_path: Path) -> None:
    fill(journal)
    journal.export(tmp_path / "one.jsonl")
    other.import_(tmp_path / "one.jsonl")
    report = other.import_(tmp_path / "one.jsonl")
    assert report.to_dict() == {"added": 0, "merged": 0, "unchanged": 2, "orphans": 0}
    assert not report.is_change
    other.export(tmp_path / "two.jsonl")
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_an_imported_expectation_is_found_by_news(journal: Journal, other: Journal) -> None:
    entry = fill(journal)
    file = io.BytesIO()
    journal.log_outcome(
        entry, "success", expectations=[{"description": "later", "match_hint": {"pr": 8, "x": "long one"}}]
    )
    journal.export(file)
    file.seek(0)
    other.import_(file)
    assert other.add_signal("ci", "positive", "ok", data={"pr": 8, "x": "long one"}).entry_id == entry
    assert (
        other.add_signal("ci", "positive", "in the session", agent_id="a", session_key="s").routed_by == "session_key"
    )


def test_an_imported_orphan_waits_until_it_is_routed_again(journal: Journal, other: Journal) -> None:
    orphan = journal.add_signal("ci", "positive", "early", data={"pr": 5})
    entry = other.log_intent("x", agent_id="a")
    other.log_outcome(entry.id, "unknown", expectations=[{"description": "d", "match_hint": {"pr": 5}}])
    file = io.BytesIO()
    journal.export(file)
    file.seek(0)
    other.import_(file)
    assert other.orphans()[0].id == orphan.id
    assert other.reroute_orphans() == 1
    assert other.get(entry.id).assessment == "success"


def test_a_negative_of_one_copy_makes_failure_of_what_the_other_has_met(
    journal: Journal, other: Journal, clock: Clock
) -> None:
    entry = journal.log_intent("x", agent_id="a")
    journal.log_outcome(entry.id, "unknown", expectations=[{"description": "d", "match_hint": {"pr": 1}}])
    file = io.BytesIO()
    journal.export(file)
    file.seek(0)
    other.import_(file)
    clock.move(minutes=1)
    journal.add_signal("ci", "positive", "green", data={"pr": 1})
    clock.move(minutes=1)
    other.add_signal("ci", "negative", "red", data={"pr": 1})
    copies = {}
    for one, another in ((journal, other), (other, journal)):
        file = io.BytesIO()
        one.export(file)
        file.seek(0)
        copies[one] = (another, file)
    for another, file in copies.values():
        assert another.import_(file).merged == 1
    merged = journal.get(entry.id)
    assert merged == other.get(entry.id)
    assert (merged.assessment, merged.expectations[0].status) == ("failure", "met")
    assert merged.closed_at == journal.get(entry.id).history[1].when
    assert [one.signal_type for one in merged.signals] == ["positive", "negative"]


def test_a_merge_that_changes_an_assessment_is_in_the_history(journal: Journal, other: Journal, clock: Clock) -> None:
    entry = journal.log_intent("x", agent_id="a")
    asked = [{"description": str(number), "match_hint": {"pr": number}} for number in (1, 2)]
    journal.log_outcome(entry.id, "unknown", expectations=asked)
    file = io.BytesIO()
    journal.export(file)
    file.seek(0)
    other.import_(file)
    clock.move(minutes=1)
    journal.add_signal("ci", "positive", "one", data={"pr": 1})
    other.add_signal("ci", "positive", "two", data={"pr": 2})
    file = io.BytesIO()
    other.export(file)
    file.seek(0)
    journal.import_(file)
    merged = journal.get(entry.id)
    assert merged.assessment == "success"
    assert merged.closed_at == merged.updated_at
    notes = "2 met; the last: copies of the journal were merged"
    told = {"from": "open", "to": "success", "notes": notes}
    assert (merged.history[-1].who, merged.history[-1].details, merged.assessment_notes) == ("merge", told, notes)
    # And what the journal makes of it stays.
    journal.assess(entry.id, "partial", by="ada")
    file.seek(0)
    assert not journal.import_(file).is_change
    assert [one.who for one in journal.get(entry.id).history] == ["a", "merge", "ada"]


def test_a_correction_counts_in_every_copy(journal: Journal, other: Journal, clock: Clock) -> None:
    wish = {"description": "it is green", "match_hint": {"source": "github", "pr": 42}, "critical": True}
    # The signals are with the newer attempt alone.
    attempts = [journal.log_intent("x", agent_id="a") for _ in range(2)]
    for attempt in attempts:
        journal.log_outcome(attempt.id, "success", expectations=[wish])
    journal.add_signal(**github.heard("check_run", github.check_run(conclusion="failure")))
    copy_into(other, journal)
    assert {other.get(one.id).assessment for one in attempts} == {"failure"}
    clock.move(seconds=1)
    green = journal.add_signal(**github.heard("check_run", github.check_run(id=99)))
    for target, source in ((other, journal), (journal, other), (other, journal)):
        copy_into(target, source)
        for kept in (target.get(one.id) for one in attempts):
            assert (kept.assessment, kept.expectations[0].status) == ("success", "met")
            assert kept.expectations[0].resolved_by == green.id
    assert not other.import_(exported(journal)).is_change


def test_a_failure_by_a_merge_says_why(journal: Journal, other: Journal, clock: Clock) -> None:
    asked = {"description": "CI green", "match_hint": {"source": "ci"}}
    entry, bare = (journal.log_intent("x", agent_id="a") for _ in range(2))
    journal.log_outcome(entry.id, "unknown", expectations=[asked])
    copy_into(other, journal)
    # One has heard it is wrong, and the other one later that it is right.
    for copy, sort, words in (
        (other, "negative", ("7 tests fail", "it rings")),
        (journal, "positive", ("green", "quiet")),
    ):
        clock.move(minutes=1)
        copy.add_signal("ci", sort, words[0], agent_id="a")
        copy.add_signal("pager", sort, words[1], entry_id=bare.id)
    assert {journal.get(one.id).assessment for one in (entry, bare)} == {"success"}
    copy_into(journal, other)
    for one, told in ((entry, "unmet: CI green: 7 tests fail"), (bare, "pager: it rings")):
        merged = journal.get(one.id)
        assert (merged.assessment, merged.history[-1].who, merged.assessment_notes) == ("failure", "merge", told)


def exported(journal: Journal) -> io.BytesIO:
    file = io.BytesIO()
    journal.export(file)
    file.seek(0)
    return file


def exchange(one: Journal, other: Journal) -> bytes:
    """Let both take in what the other has, and give what both have then."""
    first, second = exported(one), exported(other)
    other.import_(first)
    one.import_(second)
    assert exported(one).getvalue() == exported(other).getvalue()
    return exported(one).getvalue()


def test_one_external_id_keeps_one_effect(journal: Journal, other: Journal, clock: Clock) -> None:
    mine = journal.log_intent("x", agent_id="a")
    yours = other.log_intent("y", agent_id="a")
    other.add_signal("ci", "negative", "later", external_id="7", entry_id=yours.id)
    clock.move(minutes=-1)
    journal.add_signal("ci", "positive", "earlier", external_id="7", entry_id=mine.id)
    exchange(journal, other)
    assert [one.summary for one in other.get(mine.id).signals] == ["earlier"]
    assert other.get(yours.id).signals == ()
    assert other.get(yours.id).assessment == "failure"


def test_news_that_found_its_entry_elsewhere_is_no_orphan(journal: Journal, other: Journal, clock: Clock) -> None:
    journal.add_signal("ci", "positive", "nobody asked", data={"pr": 1}, external_id="7")
    clock.move(minutes=1)
    entry = other.log_intent("x", agent_id="a")
    other.log_outcome(entry.id, "unknown", expectations=[{"description": "d", "match_hint": {"pr": 1}}])
    other.add_signal("ci", "positive", "asked", data={"pr": 1}, external_id="7")
    exchange(journal, other)
    assert journal.orphans() == other.orphans() == ()
    assert journal.get(entry.id).assessment == "success"


def test_of_two_orphans_with_one_external_id_the_earlier_stays(journal: Journal, other: Journal, clock: Clock) -> None:
    journal.add_signal("ci", "positive", "later", external_id="7")
    clock.move(minutes=-1)
    earlier = other.add_signal("ci", "positive", "earlier", external_id="7")
    exchange(journal, other)
    assert [one.id for one in journal.orphans()] == [earlier.id]


def test_the_last_word_and_the_later_outcome_count(journal: Journal, other: Journal, clock: Clock) -> None:
    entry = journal.log_intent("x", agent_id="a")
    other.import_(exported(journal))
    for one, word, result in ((journal, "success", "failure"), (other, "partial", "success")):
        clock.move(minutes=1)
        one.log_outcome(entry.id, result, f"{result} it was", actions=[result])
        one.assess(entry.id, word, f"{word} it is", by="ada")
    exchange(journal, other)
    merged = journal.get(entry.id)
    assert (merged.assessment, merged.assessment_notes) == ("partial", "partial it is")
    assert (merged.immediate_result, merged.immediate_notes, merged.actions) == (
        "success",
        "success it was",
        ("success",),
    )
    assert merged.closed_at == journal.get(entry.id).history[1].when


def test_one_event_heard_in_two_copies_of_an_entry_counts_once(journal: Journal, other: Journal, clock: Clock) -> None:
    entry = journal.log_intent("x", agent_id="a")
    journal.log_outcome(entry.id, "unknown", expectations=[{"description": "d", "match_hint": {"pr": 1}}])
    other.import_(exported(journal))
    first = journal.add_signal("ci", "positive", "heard", data={"pr": 1}, external_id="7")
    clock.move(minutes=1)
    other.add_signal("ci", "positive", "heard again", data={"pr": 1}, external_id="7")
    exchange(journal, other)
    assert [one.id for one in journal.get(entry.id).signals] == [first.id]
    assert journal.get(entry.id).expectations[0].resolved_by == first.id


def test_what_only_a_merge_has_closed_opens_with_what_else_is_expected(
    journal: Journal, other: Journal, clock: Clock, tmp_path: Path
) -> None:
    entry = journal.log_intent("x", agent_id="a")
    asked = [{"description": "d", "match_hint": {"pr": number}} for number in (1, 2)]
    journal.log_outcome(entry.id, "unknown", expectations=asked)
    with Store.open(tmp_path / "third.db") as store:
        third = Journal(store, clock=clock)
        for one in (other, third):
            one.import_(exported(journal))
        clock.move(minutes=1)
        journal.add_signal("ci", "positive", "one", data={"pr": 1})
        other.add_signal("ci", "positive", "two", data={"pr": 2})
        third.log_outcome(entry.id, "unknown", expectations=[{"description": "more", "match_hint": {"pr": 3}}])
        exchange(journal, other)
        assert journal.get(entry.id).assessment == "success"
        exchange(journal, third)
        reopened = journal.get(entry.id)
        assert (reopened.assessment, reopened.closed_at) == ("open", None)
        assert all(record.who != "merge" for record in reopened.history)
        other.import_(exported(third))
        assert exported(other).getvalue() == exported(journal).getvalue()


def test_entries_that_come_late_are_listed_by_time(journal: Journal, other: Journal, clock: Clock) -> None:
    old = journal.log_intent("old", agent_id="a")
    clock.move(minutes=1)
    young = other.log_intent("young", agent_id="a")
    file = io.BytesIO()
    journal.export(file)
    file.seek(0)
    other.import_(file)
    assert [one.id for one in other.review_journal()] == [young.id, old.id]


def test_progress_is_told(journal: Journal, other: Journal) -> None:
    lines = [{**ENTRY, "id": f"entry_{number}"} for number in range(2100)]
    told: list[int] = []
    other.import_(write(HEADER, *lines), progress=told.append)
    other.export(io.BytesIO(), progress=told.append)
    assert told == [1000, 2000, 1000, 2000]


def change(**changed: Any) -> dict[str, Any]:
    return {**ENTRY, **changed}


BAD = {
    "empty": ([], "it is empty"),
    "no header": ([ENTRY], "line 1: the first line must be"),
    "another format": ([{"format": "x"}], "line 1: the first line must be"),
    "newer": ([{**HEADER, "version": 2}], "line 1: a newer pytest-golden-projects wrote it"),
    "no version": ([{**HEADER, "version": "1"}], "line 1: version must be 1"),
    "no object": ([HEADER, 7], "line 2: a line must be an object whose kind is entry or signal"),
    "kind no text": ([HEADER, {"kind": []}], "line 2: a line must be an object whose kind is entry or signal"),
    "wide hint": (
        [HEADER, {**ENTRY, "expectations": [{**ASKED, "match_hint": {"k" * 280 + str(n): 1 for n in range(4)}}]}],
        "line 2: expectations[0]: match_hint: its keys, and its source, have more than 1,000 characters together",
    ),
    "wide name": ([HEADER, {**ENTRY, "agent_id": "\u4e00" * 300}], "line 2: entry: agent_id has 900 bytes"),
    "unknown kind": ([HEADER, {"kind": "x"}], "line 2: a line must be an object whose kind is"),
    "unknown key": ([HEADER, change(foo=1)], "line 2: entry: the key 'foo' is unknown"),
    "missing": ([HEADER, {"kind": "entry", "id": "x"}], "line 2: entry: agent_id is missing"),
    "blank": ([HEADER, change(intent=" ")], "line 2: entry: intent must be text that is not blank"),
    "long name": ([HEADER, change(id="x" * 3000)], "line 2: entry: id has 3,000 bytes"),
    "word": ([HEADER, change(assessment="good")], "give one of open, success, failure, partial, expired"),
    "time": ([HEADER, change(created_at="today")], "line 2: entry: created_at must be ISO-8601 text"),
    "no zone": ([HEADER, change(created_at="2026-03-01T12:00:00")], "line 2: entry: created_at must be an aware"),
    "actions": ([HEADER, change(actions={})], "line 2: entry: actions must be a list"),
    "open and closed": ([HEADER, change(**CLOSED)], "closed_at is set when the assessment is no longer open"),
    "word differs": ([HEADER, change(assessment="failure", human_word="success", **CLOSED)], "a person's word"),
    "parts": ([HEADER, change(signals={})], "line 2: signals must be a list"),
    "part": ([HEADER, change(signals=[1])], "line 2: signals[0] must be a mapping"),
    "twice": ([HEADER, change(expectations=[ASKED, ASKED])], "expectations: 'e1' is there twice"),
    "half resolved": (
        [HEADER, change(expectations=[{**ASKED, "status": "met"}])],
        "resolved_at and resolved_by are set",
    ),
    "no expiry": (
        [HEADER, change(expectations=[{**ASKED, "polarity": "negative"}])],
        "polarity negative needs expires_at",
    ),
    "flag": ([HEADER, change(expectations=[{**ASKED, "critical": 1}])], "critical must be true or false, not 1"),
    "empty hint": (
        [HEADER, change(expectations=[{**ASKED, "match_hint": {}}])],
        "has 0 keys, and 1 to 99 are compared",
    ),
    "deep hint": ([HEADER, change(expectations=[{**ASKED, "match_hint": {"a": [1]}}])], "a must be a text, a number"),
    "check": ([HEADER, change(expectations=[{**ASKED, "check": "rm"}])], "check must be a mapping"),
    "orphan inside": ([HEADER, change(signals=[{**SIGNAL, "routed_by": "orphan"}])], "has a line of its own"),
    "no orphan": ([HEADER, {"kind": "signal", **SIGNAL}], "has routed_by orphan and no expectation_id"),
    "answers nothing": (
        [HEADER, change(signals=[{**SIGNAL, "expectation_id": "e9"}])],
        "the entry has no expectation 'e9'",
    ),
    "routing": ([HEADER, change(signals=[{**SIGNAL, "routing": {"candidates": [1], "others": 0}}])], "routing must be"),
    "history": (
        [HEADER, change(history=[{"what": "assessment", "who": "merge", "changed_at": ENTRY["created_at"]}])],
        "details must tell from and to",
    ),
    "too few": ([{**HEADER, "entries": 2}, ENTRY], "the first line announces 2 entries, and the file has 1"),
    "another": ([HEADER, ENTRY, change(agent_id="b")], "line 3: entry entry_1: its agent_id differs from the one here"),
    "stolen": (
        [HEADER, change(expectations=[ASKED]), change(id="entry_2", expectations=[ASKED])],
        "line 3: expectation e1 is one of the entry entry_1 here",
    ),
    "NUL": ([HEADER, change(intent="a\0b")], "intent holds a NUL character"),
}


@pytest.mark.parametrize(("lines", "told"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_named_and_nothing_is_imported(journal: Journal, lines: list[Any], told: str) -> None:
    with pytest.raises(JournalError) as caught:
        journal.import_(write(*lines))
    assert told in str(caught.value)
    assert str(caught.value).endswith("nothing was imported")
    assert journal.review_journal() == ()


TORN = {
    "cut off": (b'{"kind": "entry", "id": "en', "line 2: it is cut off: the file ends in the middle of it"),
    "not JSON": (b"{]\n", "line 2: it is not JSON"),
    "no UTF-8": (b'{"kind": "\xff"}\n', "line 2: it is not UTF-8 text"),
    "deep": (b"[" * 100_000 + b"\n", "line 2: it is nested too deeply"),
    "NaN": (b'{"kind": NaN}\n', "line 2: it holds NaN"),
    "infinite": (b'{"kind": 1e999}\n', "line 2: it holds the number"),
    "digits": (b'{"kind": ' + b"1" * 5000 + b"}\n", "line 2: it holds a number of 5,000 digits"),
}


@pytest.mark.parametrize(("line", "told"), TORN.values(), ids=TORN)
def test_a_line_that_is_no_json_is_named(journal: Journal, line: bytes, told: str) -> None:
    with pytest.raises(JournalError) as caught:
        journal.import_(io.BytesIO(json.dumps(HEADER).encode() + b"\n" + line))
    assert told in str(caught.value)


def test_a_last_line_without_its_end_is_whole_when_it_can_be_read(journal: Journal) -> None:
    journal.import_(io.StringIO(f"{json.dumps(HEADER)}\n\n{json.dumps(ENTRY)}"))
    assert [one.id for one in journal.review_journal()] == ["entry_1"]


def test_a_line_has_an_end(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    with pytest.raises(JournalError, match="line 2: it is longer than 1 MiB"):
        journal.import_(write(HEADER, change(intent="x" * (1 << 20))))


def test_an_assessment_that_nothing_supports_is_folded_again(journal: Journal) -> None:
    failed = {**SIGNAL, "signal_type": "negative"}
    journal.import_(write(HEADER, change(assessment="success", signals=[failed], **CLOSED)))
    entry = journal.get("entry_1")
    assert (entry.assessment, entry.history[-1].who) == ("failure", "merge")


def test_what_the_rules_made_of_expired_expectations_stays(journal: Journal) -> None:
    expired = {**ASKED, "status": "expired", "resolved_by": "sweep", "resolved_at": ASKED["created_at"]}
    journal.import_(write(HEADER, change(assessment="success", expectations=[expired], **CLOSED)))
    assert journal.get("entry_1").assessment == "success"


def test_a_parent_that_is_nowhere_is_kept_as_a_name(journal: Journal) -> None:
    journal.import_(write(HEADER, change(parent_id="entry_gone")))
    assert journal.get("entry_1").parent_id == "entry_gone"


def test_secrets_do_not_come_in(journal: Journal) -> None:
    journal.import_(write(HEADER, change(intent="use ghp_0123456789abcdefghijABCDEFGHIJ012345")))
    assert "REDACTED" in journal.get("entry_1").intent


def test_an_imported_check_is_not_due(journal: Journal, store: Store) -> None:
    journal.import_(write(HEADER, change(expectations=[{**ASKED, "check": {"after": 1, "command": ["true"]}}])))
    assert journal.get("entry_1").expectations[0].check == {"after": 1, "command": ["true"]}
    with store.read() as connection:
        assert connection.exec_driver_sql("SELECT check_due_at FROM expectations").scalar() is None


REFUSED: dict[str, Callable[[Path], Path]] = {
    "not an export of a journal": lambda folder: folder / "notes.txt",
    "is a folder": lambda folder: folder,
    "is not a folder": lambda folder: folder / "nowhere" / "x",
}


@pytest.mark.parametrize("told", REFUSED)
def test_an_export_replaces_only_an_export(journal: Journal, tmp_path: Path, told: str) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(JournalError, match=told):
        journal.export(REFUSED[told](tmp_path))


def test_an_export_replaces_an_export(journal: Journal, tmp_path: Path) -> None:
    journal.export(tmp_path / "j.jsonl")
    fill(journal)
    assert journal.export(tmp_path / "j.jsonl").entries == 2
    assert len((tmp_path / "j.jsonl").read_bytes().splitlines()) == 4
    assert sorted(path.name for path in tmp_path.glob("*.jsonl*")) == ["j.jsonl"]


def test_pipes_are_written_and_read(journal: Journal, other: Journal, tmp_path: Path) -> None:
    entry = fill(journal)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=journal.export, args=[pipe])
    writer.start()
    other.import_(pipe)
    writer.join()
    assert other.get(entry) == journal.get(entry)


def test_the_older_expectation_is_asked_first_after_an_import_too(
    journal: Journal, other: Journal, clock: Clock
) -> None:
    early, later = (journal.log_intent(intent, agent_id="a") for intent in ("x", "y"))
    wish = {"description": "it is green", "match_hint": {"pr": 1}}
    clock.move(seconds=1)
    journal.log_outcome(later.id, "success", expectations=[wish, wish])
    clock.move(seconds=1)
    journal.log_outcome(early.id, "success", expectations=[wish])
    copy_into(other, journal)
    clock.move(seconds=1)
    asked = [other.add_signal("ci", "positive", f"build {number}", data={"pr": 1}).entry_id for number in range(3)]
    assert asked == [later.id, later.id, early.id]
    copy_into(journal, other)
    assert [one.entry_id for one in journal.open_expectations()] == []


def test_the_same_content_is_new_to_a_younger_expectation_after_an_import_too(
    journal: Journal, other: Journal, clock: Clock
) -> None:
    early, later = (journal.log_intent("x", agent_id="a") for _ in range(2))
    wish = {"description": "it is green", "match_hint": {"pr": 1}}
    journal.log_outcome(later.id, "success", expectations=[wish])
    clock.move(seconds=1)
    first = journal.add_signal("ci", "positive", "green", data={"pr": 1})
    clock.move(seconds=1)
    journal.log_outcome(early.id, "success", expectations=[wish])
    copy_into(other, journal)
    again, once_more = (other.add_signal("ci", "positive", "green", data={"pr": 1}) for _ in range(2))
    assert (again.entry_id, once_more.id) == (early.id, again.id)
    assert first.id != again.id


def test_what_was_heard_here_is_not_new_to_older_expectations_that_come_in(
    journal: Journal, other: Journal, clock: Clock
) -> None:
    wish = {"description": "it is green", "match_hint": {"pr": 1}}
    elsewhere = other.log_intent("x", agent_id="a")
    other.log_outcome(elsewhere.id, "success", expectations=[wish])
    clock.move(seconds=1)
    here = journal.log_intent("x", agent_id="a")
    journal.log_outcome(here.id, "success", expectations=[wish])
    clock.move(seconds=1)
    heard = journal.add_signal("ci", "positive", "green", data={"pr": 1})
    copy_into(journal, other)
    assert journal.add_signal("ci", "positive", "green", data={"pr": 1}).id == heard.id
    assert journal.get(elsewhere.id).assessment == "open"


def test_long_external_ids_travel(journal: Journal, other: Journal) -> None:
    journal.add_signal("mail", "neutral", "x", external_id="m" * 1500)
    copy_into(other, journal)
    assert [one.external_id for one in other.orphans()] == ["m" * 1500]


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="a device of Unix")  # noqa: PTH110 - no path is at hand yet
def test_what_has_no_end_and_is_no_export_is_refused_at_once(journal: Journal) -> None:
    with pytest.raises(JournalError, match=r"line 1: it is (cut off|no JSON|longer)"):
        journal.import_("/dev/zero")


def test_a_line_that_never_ends_is_not_gathered(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 4 << 20)

    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            assert self.given < 16 << 20
            begins = f"{json.dumps(HEADER)}\n" if self.given == size else ""
            return begins.encode().ljust(size, b"[")

    with pytest.raises(JournalError, match="line 2: it is longer than 4 MiB"):
        journal.import_(cast("IO[bytes]", Endless()))
