"""The tools that write in the journal. An agent writes for itself alone, and cannot speak for people or the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.journal.sources import check_free_source

if TYPE_CHECKING:
    from pytest_golden.mcp.arguments import AddSignal, LogIntent, LogOutcome
    from pytest_golden.mcp.model import Caller
    from pytest_golden.mcp.workplace import Workplace


def log_intent(place: Workplace, caller: Caller, given: LogIntent) -> dict[str, Any]:
    """Begin an entry."""
    entry = place.services().journal.log_intent(
        given.intent,
        given.intent_type,
        agent_id=caller.agent,
        session_key=caller.session,
        job_id=given.job_id,
        parent_id=given.parent_id,
    )
    return {"entry_id": entry.id, "assessment": entry.assessment.value}


def log_outcome(place: Workplace, caller: Caller, given: LogOutcome) -> dict[str, Any]:
    """Say how an entry ended, and what is expected."""
    entry = place.services().journal.log_outcome(
        given.entry_id,
        given.result,
        given.notes,
        actions=given.actions,
        expectations=given.expectations,
        agent_id=caller.agent,
    )
    told = [asked.to_dict() for asked in entry.expectations]
    return {"entry_id": entry.id, "assessment": entry.assessment.value, "expectations": told}


def add_signal(place: Workplace, caller: Caller, given: AddSignal) -> dict[str, Any]:
    """Take in news."""
    signal = place.services().journal.add_signal(
        check_free_source(given.source),
        given.signal_type,
        given.summary,
        data=given.data,
        external_id=given.external_id,
        agent_id=caller.agent,
        session_key=caller.session,
        entry_id=given.entry_id,
    )
    return signal.to_dict()
