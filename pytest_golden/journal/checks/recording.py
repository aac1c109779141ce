"""Record what a check found out: as a signal on its own expectation, which no routing takes elsewhere, and once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.clock import new_id
from pytest_golden.journal.checks.rules import find_next, name_signal
from pytest_golden.journal.checks.store import end_claim
from pytest_golden.journal.given import clean_data, clean_text
from pytest_golden.journal.hearing.store import find_by_external_id
from pytest_golden.journal.model import RoutedBy, Signal
from pytest_golden.journal.rules import DEFAULT_RULES
from pytest_golden.journal.sources import CHECK
from pytest_golden.journal.store import Heard, take_signal
from pytest_golden.storage.moments import from_ms, to_ms

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from pytest_golden.journal.checks.rules import Answer
    from pytest_golden.journal.checks.store import Claim
    from pytest_golden.journal.swept_store import SweptStore

_REASON = "the check belongs to this expectation"


class Recorded(NamedTuple):
    """What was kept of an answer: its signal, None where the claim was lost, and when the check is tried again."""

    signal: Signal | None
    next_at: datetime | None = None


def record_answer(swept: SweptStore, claim: Claim, answer: Answer) -> Recorded:
    """Keep an answer with all that follows from it, and say when the check is due again.

    Raises:
        StorageError: it cannot be written.
    """
    moment = swept.now()
    next_at = find_next(answer, claim.tries, to_ms(moment), claim.expires_at)
    signal = Signal(
        id=new_id("signal"),
        entry_id=claim.entry_id,
        source=CHECK,
        signal_type=answer.signal_type,
        summary=clean_text("summary", answer.summary.replace("\0", " ")),
        data=clean_data("data", {**answer.data, "try": claim.tries}),
        external_id=name_signal(claim.expectation_id, answer, claim.tries),
        created_at=moment,
    )

    def keep(connection: Connection) -> Recorded:
        if not end_claim(connection, claim, next_at):
            return Recorded(None)
        known = find_by_external_id(connection, signal.source, signal.external_id or "")
        return Recorded(known or _take(connection, swept, claim, signal), None if next_at is None else from_ms(next_at))

    return swept.after_sweep(moment, keep)


def _take(connection: Connection, swept: SweptStore, claim: Claim, signal: Signal) -> Signal:
    verdict = {"expectation_id": claim.expectation_id, "rule": RoutedBy.ENTRY.value, "taken": True, "reason": _REASON}
    heard = Heard(RoutedBy.ENTRY, {"candidates": [verdict], "others": 0}, claim.agent_id)
    rules = swept.rules.get(claim.agent_id, DEFAULT_RULES)
    return take_signal(connection, signal, claim.expectation_id, heard, rules=rules)
