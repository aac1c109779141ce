"""What outsiders say arrives in the journal: it answers the expectation that it fits, once."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.clock import iso_utc
from pytest_golden.journal.outside.github_webhooks import github_signal
from pytest_golden.journal.outside.human import human_signal
from pytest_golden.journal.outside.signed import callback_signal
from tests.journal.outside import github_payloads as github
from tests.journal.outside.github_payloads import SECRET, headers, heard, sign

if TYPE_CHECKING:
    from pytest_golden.journal.model import JournalEntry, Signal
    from pytest_golden.journal.service import Journal
    from tests.journal.conftest import Clock


def expect(journal: Journal, session_key: str | None = None, intent: str = "count totals", **hint: Any) -> JournalEntry:
    entry = journal.log_intent(intent, agent_id="builder", session_key=session_key)
    asked = {"description": "it is accepted", "match_hint": hint or None, "expires_minutes": 60}
    return journal.log_outcome(entry.id, "success", expectations=[asked])


def test_merge_meets_what_was_expected_of_the_pull_request(journal: Journal) -> None:
    entry = expect(journal, source="github", pr=42, event="pull_request")
    journal.add_signal(**heard("check_run", github.check_run(conclusion="failure")))
    assert journal.get(entry.id).assessment == "open"
    journal.add_signal(**heard("pull_request", github.closed(merged=True)))
    assert journal.get(entry.id).assessment == "success"


def test_failed_check_of_the_commit_is_a_failure(journal: Journal) -> None:
    entry = expect(journal, source="github", sha=github.SHA, name="CI")
    signal = journal.add_signal(**heard("workflow_run", github.workflow_run(conclusion="failure")))
    assert (signal.entry_id, signal.routed_by) == (entry.id, "match_hint")
    assert journal.get(entry.id).assessment == "failure"


def test_replayed_delivery_has_one_effect(journal: Journal) -> None:
    body = json.dumps(github.check_run()).encode()

    def deliver(delivery: str) -> Signal:
        signal = github_signal({**headers("check_run", body), "X-GitHub-Delivery": delivery}, body, SECRET)
        assert signal is not None
        return journal.add_signal(**signal)

    first, second = (expect(journal, intent=intent, source="github", pr=42) for intent in ("count", "write"))
    assert deliver("a").id == deliver("b").id
    assert [journal.get(entry.id).assessment for entry in (first, second)] == ["success", "open"]


def test_rerun_of_a_check_is_heard_again(journal: Journal) -> None:
    entries = [expect(journal, intent=intent, source="github", pr=42) for intent in ("count", "write")]
    for attempt in (1, 2):
        journal.add_signal(**heard("workflow_run", github.workflow_run(run_attempt=attempt)))
    assert {journal.get(entry.id).assessment for entry in entries} == {"success"}


def test_fork_does_not_answer_for_our_branch(journal: Journal) -> None:
    entry = expect(journal, source="github", branch="main")
    run = github.workflow_run(head_branch="main", head_repository=github.FORK, pull_requests=[])
    assert journal.add_signal(**heard("workflow_run", run)).routed_by == "orphan"
    assert journal.get(entry.id).assessment == "open"


@pytest.mark.parametrize(
    ("text", "assessment"),
    [("good job", "success"), ("that's wrong, refunds are missing", "failure"), ("is this wrong?", "open")],
)
def test_word_of_a_person_stands_above_the_rules(journal: Journal, text: str, assessment: str) -> None:
    entry = expect(journal, session_key="s1", source="github", pr=42)
    word = human_signal(text)
    if word is not None:
        journal.add_signal(**word, agent_id="builder", session_key="s1")
    assert journal.get(entry.id).assessment == assessment


def test_secret_in_a_message_is_not_kept(journal: Journal) -> None:
    entry = expect(journal, session_key="s1")
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    word = human_signal(f"that's wrong, the token is {token}")
    assert word is not None
    kept = journal.add_signal(**word, agent_id="builder", session_key="s1")
    assert token not in kept.summary
    assert token not in str(journal.get(entry.id).to_dict())


def test_callback_answers_once(journal: Journal, clock: Clock) -> None:
    entries = [expect(journal, intent=intent, source="crm", ticket=7) for intent in ("count", "write")]
    news = {"source": "crm", "signal_type": "positive", "summary": "answered", "data": {"ticket": 7}}
    body = json.dumps({**news, "created_at": iso_utc(clock.now - timedelta(minutes=1))}).encode()
    for _ in range(2):
        given = callback_signal({"X-Golden-Signature-256": sign(body)}, body, SECRET, now=clock.now)
        journal.add_signal(**given)
    assert [journal.get(entry.id).assessment for entry in entries] == ["success", "open"]


def test_odd_texts_of_a_delivery_are_kept(journal: Journal) -> None:
    expect(journal, source="github", pr=42)
    signal = journal.add_signal(**heard("check_run", github.check_run(name="<b>\0\ud800'; DROP TABLE")))
    assert signal.data["name"] == "<b>\\x00\\ud800'; DROP TABLE"
