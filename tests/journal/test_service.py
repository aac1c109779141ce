from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import GoldenError, JournalError, SettingsError, StorageError
from pytest_golden.journal.service import Journal
from tests.journal.conftest import BEGIN, Clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_golden.storage.store import Store


SECRET = "ghp_" + "a1B2" * 9


def test_an_intent_begins_an_open_entry(journal: Journal) -> None:
    entry = journal.log_intent("load the sales", "etl", agent_id="builder", session_key="s", job_id="nightly")
    assert entry.id.startswith("entry_")
    assert (entry.intent, entry.intent_type, entry.agent_id) == ("load the sales", "etl", "builder")
    assert (entry.session_key, entry.job_id, entry.parent_id) == ("s", "nightly", None)
    assert (entry.actions, entry.immediate_result, entry.assessment) == ((), "unknown", "open")
    assert (entry.created_at, entry.updated_at, entry.closed_at) == (BEGIN, BEGIN, None)
    assert journal.get(entry.id) == entry


def test_an_entry_equals_itself_read_back_whatever_the_clock_says(store: Store) -> None:
    journal = Journal(store)
    entry = journal.log_intent("load", agent_id="builder")
    assert journal.get(entry.id) == entry


def test_a_child_names_its_parent(journal: Journal) -> None:
    parent = journal.log_intent("load", agent_id="planner")
    child = journal.log_intent("load one", agent_id="builder", parent_id=parent.id)
    assert journal.get(child.id).parent_id == parent.id
    with pytest.raises(JournalError, match="parent_id: the journal has no entry 'entry_none'"):
        journal.log_intent("load one", agent_id="builder", parent_id="entry_none")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"intent": " "}, "intent must be text that is not blank"),
        ({"intent": 3}, "intent must be text"),
        ({"intent": "a\0b"}, "intent holds a NUL character"),
        ({"agent_id": ""}, "agent_id must be text that is not blank"),
        ({"agent_id": ["builder"]}, "agent_id must be text that is not blank"),
        ({"agent_id": "a\0"}, "agent_id holds a NUL character"),
        ({"agent_id": "\udc80"}, "holds half a character"),
        ({"session_key": ""}, "session_key must be text"),
        ({"intent_type": 3}, "intent_type must be text"),
        ({"job_id": " "}, "job_id must be text"),
    ],
)
def test_a_text_that_cannot_be_used_is_refused_by_its_name(
    journal: Journal, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        journal.log_intent(**{"intent": "load", "agent_id": "builder", **arguments})
    assert journal.review_journal() == ()


LONG = "x" * 2_000_000
SHORT_REFUSALS: dict[str, Callable[[Journal, str], Any]] = {
    "result": lambda journal, entry: journal.log_outcome(entry, LONG),
    "agent": lambda journal, entry: journal.log_outcome(entry, "success", agent_id=LONG),
    "actions": lambda journal, entry: journal.log_outcome(entry, "success", actions=LONG),
    "number": lambda journal, entry: journal.log_outcome(
        entry, "success", expectations=[{"description": "d", "expires_minutes": 10**400}]
    ),
    "check": lambda journal, entry: journal.log_outcome(
        entry, "success", expectations=[{"description": "d", "check": {1: 2}}]
    ),
    "signal type": lambda journal, _: journal.add_signal("ci", LONG, "s"),
    "assessment": lambda journal, entry: journal.assess(entry, LONG, by="p"),
    "filter": lambda journal, _: journal.review_journal(LONG),
    "limit": lambda journal, _: journal.orphans(limit=LONG),  # type: ignore[arg-type]
    "since": lambda journal, _: journal.summary(since=LONG),  # type: ignore[arg-type]
    "import": lambda journal, _: journal.import_(5),  # type: ignore[arg-type]
    "export": lambda journal, _: journal.export(b"x"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("refused", SHORT_REFUSALS.values(), ids=SHORT_REFUSALS)
def test_whatever_is_given_is_refused_in_a_short_sentence(
    journal: Journal, refused: Callable[[Journal, str], Any]
) -> None:
    entry = journal.log_intent("load", agent_id="builder")
    with pytest.raises((ValueError, JournalError)) as caught:
        refused(journal, entry.id)
    assert len(str(caught.value)) < 300
    assert journal.get(entry.id) == entry


def test_nothing_secret_is_kept(journal: Journal, store: Store, tmp_path: Path) -> None:
    entry = journal.log_intent(f"push with {SECRET}", agent_id="builder")
    journal.log_outcome(
        entry.id,
        "success",
        f"used {SECRET}",
        actions=[{"tool": "push", "token": SECRET}],
        expectations=[
            {
                "description": f"{SECRET} works",
                "check": {"after": 1, "command": ["curl", SECRET]},
            }
        ],
    )
    kept = journal.get(entry.id)
    assert "REDACTED" in kept.intent
    store.close()
    assert not [path for path in tmp_path.iterdir() if SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("result", "assessment"),
    [("success", "success"), ("failure", "failure"), ("unknown", "open"), ("partial", "open")],
)
def test_an_outcome_without_expectations_is_assessed_by_its_result(
    journal: Journal, clock: Clock, result: str, assessment: str
) -> None:
    entry = journal.log_intent("load", agent_id="builder")
    clock.move(seconds=5)
    told = journal.log_outcome(entry.id, result, "as seen", actions=["read", {"tool": "write"}])
    assert told == journal.get(entry.id)
    assert (told.immediate_result, told.immediate_notes) == (result, "as seen")
    assert told.actions == ("read", {"tool": "write"})
    assert (told.assessment, told.updated_at) == (assessment, clock.now)
    assert told.closed_at == (None if assessment == "open" else clock.now)


def test_expectations_keep_an_entry_open(journal: Journal) -> None:
    entry = journal.log_intent("deploy", agent_id="builder")
    told = journal.log_outcome(
        entry.id,
        "success",
        expectations=[
            {"description": "CI is green", "match_hint": {"source": "github", "pr": 42}, "expires_minutes": 60},
            {"description": "no incidents", "polarity": "negative", "critical": True, "expires_minutes": 0.5},
        ],
    )
    assert told.assessment == "open"
    green, quiet = told.expectations
    assert (green.description, green.match_hint) == ("CI is green", {"source": "github", "pr": 42})
    assert green.expires_at == BEGIN + timedelta(hours=1)
    assert (quiet.polarity, quiet.critical, quiet.expires_at) == ("negative", True, BEGIN + timedelta(seconds=30))
    assert quiet.id.startswith("expectation_")


def test_a_second_outcome_stands_and_both_are_in_the_history(journal: Journal, clock: Clock) -> None:
    entry = journal.log_intent("load", agent_id="builder")
    journal.log_outcome(entry.id, "success", "all rows", actions=["read"], expectations=[{"description": "read by BI"}])
    clock.move(minutes=1)
    told = journal.log_outcome(entry.id, "failure", expectations=[{"description": "repaired"}])
    assert (told.immediate_result, told.immediate_notes, told.actions) == ("failure", None, ("read",))
    assert [asked.description for asked in told.expectations] == ["read by BI", "repaired"]
    assert [(change.what, change.who, change.details["result"]) for change in told.history] == [
        ("outcome", "builder", "success"),
        ("outcome", "builder", "failure"),
    ]


def test_a_closed_entry_keeps_its_moment_and_never_opens_again(journal: Journal, clock: Clock) -> None:
    entry = journal.log_intent("load", agent_id="builder")
    closed = journal.log_outcome(entry.id, "success")
    clock.move(minutes=1)
    told = journal.log_outcome(entry.id, "partial", expectations=[{"description": "read by BI"}])
    assert (told.assessment, told.closed_at) == ("success", closed.closed_at)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"result": "good"}, "result 'good' is unknown: give one of success, failure, partial, unknown"),
        ({"result": None}, "result is missing"),
        ({"notes": "a\0"}, "notes holds a NUL character"),
        ({"notes": 3}, "notes must be text"),
        ({"actions": "read"}, "actions must be a list, not 'read'"),
        ({"actions": 3}, "actions must be a list"),
        ({"actions": [{"a": ["\0"]}]}, "actions holds a NUL character"),
        ({"actions": [{"\0": 1}]}, "actions holds a NUL character"),
        ({"expectations": [{"description": "fine"}, {}]}, r"expectations\[1\]: the key description is missing"),
    ],
)
def test_an_outcome_is_kept_whole_or_not_at_all(journal: Journal, arguments: dict[str, Any], message: str) -> None:
    entry = journal.log_intent("load", agent_id="builder")
    told = {"result": "success", "notes": "x", "actions": ["read"], "expectations": [{"description": "d"}]}
    with pytest.raises(ValueError, match=message):
        journal.log_outcome(entry.id, **{**told, **arguments})
    assert journal.get(entry.id) == entry


def test_an_unknown_entry_or_another_agents_is_refused(journal: Journal) -> None:
    entry = journal.log_intent("load", agent_id="builder")
    with pytest.raises(GoldenError, match="the journal has no entry 'entry_none'"):
        journal.log_outcome("entry_none", "success")
    with pytest.raises(JournalError, match=f"entry '{entry.id}' is another agent's, not of 'critic'"):
        journal.log_outcome(entry.id, "success", agent_id="critic")
    with pytest.raises(JournalError, match="no entry 'entry_none'"):
        journal.get("entry_none")
    assert journal.get(entry.id) == entry
    assert journal.log_outcome(entry.id, "success", agent_id="builder").assessment == "success"


def test_nothing_given_is_none(journal: Journal) -> None:
    entry = journal.log_intent("load", agent_id="builder")
    told = journal.log_outcome(entry.id, "unknown", "  ", actions=None, expectations=None)
    assert (told.actions, told.expectations, told.immediate_notes) == ((), (), None)


def test_what_was_given_is_kept_as_it_was_then(journal: Journal) -> None:
    entry = journal.log_intent("load", agent_id="builder")
    actions: list[dict[str, Any]] = [{"rows": [1]}]
    told = journal.log_outcome(entry.id, "success", actions=actions)
    actions[0]["rows"].append(2)
    assert told.actions == ({"rows": [1]},)


def test_a_review_gives_the_newest_first_with_their_expectations(journal: Journal) -> None:
    ids = [journal.log_intent(f"load {number}", "etl", agent_id="builder").id for number in range(12)]
    journal.log_outcome(ids[3], "success", expectations=[{"description": "read"}])
    journal.log_outcome(ids[4], "failure")
    other = journal.log_intent("look", "review", agent_id="critic")
    assert [entry.id for entry in journal.review_journal(agent_id="builder")] == ids[:1:-1]
    assert journal.review_journal("open", "etl", 20, agent_id="builder")[-4].expectations[0].description == "read"
    assert [entry.id for entry in journal.review_journal("failure")] == [ids[4]]
    assert [entry.id for entry in journal.review_journal(limit=1)] == [other.id]
    assert [entry.id for entry in journal.review_journal(intent_type="review", limit=2**80)] == [other.id]
    assert journal.review_journal("expired") == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"filter": "closed"}, "filter 'closed' is unknown: give one of all, open, success, failure, partial, expired"),
        ({"filter": None}, "filter None is unknown"),
        ({"limit": 0}, "limit must be a whole number from 1 up, not 0"),
        ({"limit": True}, "limit must be a whole number"),
        ({"limit": 2.0}, "limit must be a whole number"),
    ],
)
def test_an_unknown_filter_or_limit_is_refused(journal: Journal, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        journal.review_journal(**arguments)


def test_a_clock_without_a_time_zone_is_refused(store: Store) -> None:
    journal = Journal(store, clock=lambda: datetime(2026, 3, 1))  # noqa: DTZ001 - what is refused
    with pytest.raises(ValueError, match="the clock's time must be an aware datetime"):
        journal.log_intent("load", agent_id="builder")


def test_a_journal_opens_a_store_and_closes_it(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "new" / "golden.db", clock=lambda: datetime.now(UTC)) as journal:
        entry = journal.log_intent("load", agent_id="builder")
    with pytest.raises(StorageError, match="closed"):
        journal.get(entry.id)
    with Journal.open(f"sqlite:///{tmp_path}/new/golden.db") as again:
        assert again.get(entry.id) == entry


def test_a_shared_store_stays_open(store: Store) -> None:
    with Journal(store) as journal:
        entry = journal.log_intent("load", agent_id="builder")
    assert Journal(store).get(entry.id) == entry


def test_the_default_store_is_the_gates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOLDEN_STORE_URL", "GOLDEN_MANIFEST"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".git").mkdir()
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    with Journal.open() as journal:
        journal.log_intent("load", agent_id="builder")
    assert (inside / ".golden" / "golden.db").is_file()
    (tmp_path / "golden_projects.yaml").write_text("golden_projects: []\n")
    with Journal.open() as journal:
        assert journal.review_journal() == ()
    assert (tmp_path / ".golden" / "golden.db").is_file()
    (tmp_path / "golden_projects.yaml").write_text("workspace_root: inside\ngolden_projects: []\n")
    with Journal.open() as journal:
        assert len(journal.review_journal()) == 1
    monkeypatch.setenv("GOLDEN_STORE_URL", str(tmp_path / ".golden" / "golden.db"))
    with Journal.open() as journal:
        assert journal.review_journal() == ()
    monkeypatch.setenv("GOLDEN_STORE_URL", "none")
    with pytest.raises(SettingsError, match="GOLDEN_STORE_URL is none"):
        Journal.open()


def test_bad_rules_leave_no_store_open(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"rules.builder: unknown key 'x'; the keys here are all_expired, some_expired, unmet"
    ):
        Journal.open(tmp_path / "golden.db", rules={"builder": {"x": 1}})
    with pytest.raises(SettingsError):
        Journal.open("mysql://localhost/golden")


def test_threads_lose_nothing(journal: Journal) -> None:
    def log() -> None:
        for _ in range(20):
            journal.log_outcome(journal.log_intent("load", agent_id="builder").id, "success")

    threads = [threading.Thread(target=log) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(journal.review_journal("success", limit=100)) == 80


def test_names_that_no_index_takes_are_refused(journal: Journal) -> None:
    longest = "\u4e00" * 266
    entry = journal.log_intent("x", longest, agent_id=longest, session_key=longest)
    asked = {"description": "d", "match_hint": {"source": "s" * 480, "k" * 290: 1, "l" * 200: 1}, "expires_minutes": 5}
    journal.log_outcome(entry.id, "success", expectations=[asked])
    journal.add_signal(longest, "neutral", "s", external_id="e" * 1500)
    with pytest.raises(ValueError, match="agent_id has 801 bytes, and at most 800 are looked up"):
        journal.log_intent("x", agent_id=longest + "abc")
    with pytest.raises(ValueError, match="external_id has 1,501 bytes"):
        journal.add_signal("ci", "neutral", "s", external_id="e" * 1501)
    with pytest.raises(ValueError, match="more than 1,000 characters together"):
        journal.log_outcome(entry.id, "success", expectations=[{**asked, "match_hint": {"source": "s" * 1000}}])
