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


@pytest.mark.parametrize(
    ("event", "bad", "good", "other"),
    [
        (
            "check_run",
            github.check_run(conclusion="failure"),
            github.check_run(id=99),
            github.check_run(id=98, name="lint"),
        ),
        (
            "workflow_run",
            github.workflow_run(conclusion="failure"),
            github.workflow_run(run_attempt=2),
            github.workflow_run(id=5, head_sha="e" * 40),
        ),
        ("pull_request", github.closed(merged=False), github.closed(merged=True), None),
        (
            "pull_request_review",
            github.review("changes_requested"),
            github.review(id=2),
            github.review(id=3, user=github.user("bob", 9)),
        ),
        ("status", github.status("failure"), github.status(id=2), github.status(id=3, context="ci/other")),
    ],
)
def test_later_news_about_the_same_corrects_what_was_bad(
    journal: Journal, event: str, bad: dict[str, Any], good: dict[str, Any], other: dict[str, Any] | None
) -> None:
    hint = {"source": "github", "event": event}
    first, second = (expect(journal, **hint) for _ in range(2))
    red = journal.add_signal(**heard(event, bad))
    if other is not None:
        # News about another thing takes nothing back.
        journal.add_signal(**heard(event, other))
    assert {journal.get(one.id).assessment for one in (first, second)} == {"failure"}
    green = journal.add_signal(**heard(event, good))
    for entry in map(journal.get, (first.id, second.id)):
        assert (entry.assessment, entry.expectations[0].status) == ("success", "met")
        assert entry.expectations[0].resolved_by == green.id
        assert entry.history[-1].details["corrects"] == red.id
    assert (green.entry_id, green.data["corrects"]) == (second.id, red.id)
    taken = [one for one in journal.explain_routing(green.id).candidates if one.taken]
    assert [one.reason for one in taken] == [f"it corrects signal {red.id}, which was about the same"] * 2
    assert journal.add_signal(**heard(event, good)).id == green.id
    # Bad news after that is bad news again.
    journal.add_signal(**heard(event, {**bad, **({"id": 77} if event == "status" else {})}) | {"external_id": "again"})
    assert "failure" in {journal.get(one.id).assessment for one in (first, second)}


def test_what_was_critical_or_late_or_said_by_others_is_corrected_as_little_as_it_should(
    journal: Journal, clock: Clock
) -> None:
    begun = journal.log_intent("count", agent_id="builder")
    wish = {
        "description": "tests",
        "match_hint": {"pr": 42, "name": "unit tests"},
        "critical": True,
        "expires_minutes": 5,
    }
    journal.log_outcome(
        begun.id, "success", expectations=[wish, {"description": "read", "match_hint": {"source": "mail"}}]
    )
    journal.add_signal(**heard("check_run", github.check_run(conclusion="failure")))
    # Others than GitHub correct nothing, whatever they call themselves.
    facts = heard("check_run", github.check_run())["data"]
    assert journal.add_signal("ci", "positive", "green", data=facts).routed_by == "orphan"
    assert journal.get(begun.id).assessment == "failure"
    journal.add_signal(**heard("check_run", github.check_run(id=99)))
    # What has closed stays so while something is open, and then follows from all.
    assert journal.get(begun.id).assessment == "failure"
    journal.add_signal("mail", "positive", "read")
    assert journal.get(begun.id).assessment == "success"
    clock.move(seconds=1)
    late = journal.log_intent("count again", agent_id="builder")
    journal.log_outcome(late.id, "success", expectations=[wish])
    journal.add_signal(**heard("check_run", github.check_run(id=5, conclusion="failure")))
    clock.move(minutes=5)
    journal.add_signal(**heard("check_run", github.check_run(id=6)))
    assert journal.get(late.id).assessment == "failure"


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
