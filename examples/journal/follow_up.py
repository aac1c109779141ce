"""An agent's morning in the journal: a mail, an update of the CRM and a deploy, and what came of them days later.

Nothing here has to do with pipelines or the gate. The mail, the CRM and the deploy are made up, and so is the time, so
that two days pass at once; an agent of your own leaves the clock out.

Run: python follow_up.py [STORE]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from pytest_golden import Journal

AGENT = "assistant"
DAY_MINUTES = 24 * 60


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **duration: float) -> None:
        self.now += timedelta(**duration)


def send_mail(journal: Journal) -> None:
    """Intent first: if the program dies while it sends, the entry tells that it was about to."""
    entry = journal.log_intent("offer Ms. Adler a new date", "email", agent_id=AGENT, session_key="adler")
    message_id = "<offer-17@example.org>"
    journal.log_outcome(
        entry.id,
        "success",
        "handed over to the mail server",
        actions=[{"tool": "send_mail", "to": "adler@example.org", "message_id": message_id}],
        expectations=[
            {
                "description": "she answers",
                "match_hint": {"source": "mail", "in_reply_to": message_id},
                "expires_minutes": 2 * DAY_MINUTES,
            }
        ],
    )


def update_crm(journal: Journal) -> None:
    """What is seen at once is one thing, what the others in the office find is another."""
    entry = journal.log_intent("move the Adler account to 'negotiation'", "crm_update", agent_id=AGENT)
    journal.log_outcome(
        entry.id,
        "success",
        actions=[{"tool": "crm.update", "record": "A-1042", "stage": "negotiation"}],
        expectations=[
            {
                "description": "sales keeps the stage",
                "match_hint": {"source": "crm", "record": "A-1042", "field": "stage"},
                "expires_minutes": 7 * DAY_MINUTES,
            }
        ],
    )


def deploy(journal: Journal) -> None:
    """That nothing happens is an expectation too: it is met when its time is over and nobody has complained."""
    entry = journal.log_intent("deploy version 12 of the booking page", "deploy", agent_id=AGENT)
    journal.log_outcome(
        entry.id,
        "success",
        "version 12 answers",
        actions=["build", "push", {"tool": "switch", "from": 11, "to": 12}],
        expectations=[
            {
                "description": "the smoke test is green",
                "match_hint": {"source": "ci", "version": 12},
                "expires_minutes": 60,
            },
            {
                "description": "no incidents",
                "match_hint": {"source": "monitor", "service": "booking"},
                "polarity": "negative",
                "critical": True,
                "expires_minutes": DAY_MINUTES,
            },
        ],
    )


def hear(journal: Journal, clock: Clock) -> None:
    """News comes from elsewhere and knows no entries: it finds its place by what the hints ask for."""
    clock.move(minutes=5)
    journal.add_signal("ci", "positive", "smoke test passed", data={"version": 12, "build": 812})
    clock.move(hours=3)
    reply = {"in_reply_to": "<offer-17@example.org>", "from": "adler@example.org"}
    # The mail server may tell twice; with an id of its own the second time is not news.
    for _ in range(2):
        journal.add_signal("mail", "positive", "Tuesday suits me well", data=reply, external_id="<re-17@example.org>")
    clock.move(hours=20)
    undone = {"record": "A-1042", "field": "stage", "value": "lead"}
    journal.add_signal("crm", "negative", "the stage was set back to 'lead' by hand", data=undone)
    clock.move(hours=4)
    journal.sweep()


def main() -> None:
    clock = Clock()
    with Journal.open(sys.argv[1] if len(sys.argv) > 1 else None, clock=clock) as journal:
        send_mail(journal)
        update_crm(journal)
        deploy(journal)
        hear(journal, clock)
        for entry in reversed(journal.review_journal(agent_id=AGENT)):
            print(f"{entry.assessment:8} {entry.intent_type}: {entry.intent}")
            for expectation in entry.expectations:
                print(f"{'':9}{expectation.status:8} {expectation.description}")
        summary = journal.summary(AGENT)
        print(f"{summary.success_rate:.0%} of {summary.n} went well")


if __name__ == "__main__":
    main()
