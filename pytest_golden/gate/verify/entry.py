"""The journal's entry of a verification. Loaded while pipelines run: nobody waits for what only its end needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.gate.events import GATE_AGENT
from pytest_golden.gate.verify.recording import VERIFY_TYPE
from pytest_golden.journal.model import ImmediateResult
from pytest_golden.journal.service import Journal
from pytest_golden.redaction import redact
from pytest_golden.regression.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.gate.verify.model import Verification
    from pytest_golden.gate.verify.recording import BaseKey, RunIds
    from pytest_golden.storage.store import Store


def leave_entry(store: Store, verification: Verification, key: BaseKey, runs: RunIds) -> None:
    """Leave an entry with what was found, and with the runs that were made for it.

    Raises:
        GoldenError: the store does not take it.
    """
    journal = Journal(store)
    base, head = verification.base, verification.head
    shown = (head.commit or "no commit")[:12] + (" with edits" if head.dirty else "")
    entry = journal.log_intent(
        f"verify {shown} against {base.ref} ({key.commit[:12]})",
        VERIFY_TYPE,
        agent_id=GATE_AGENT,
        session_key=runs.head[0] if runs.head else None,
    )
    note: Mapping[str, Any] = {
        "base": key.to_dict(),
        "base_runs": list(runs.base),
        "head_runs": list(runs.head),
        "verdicts": {one.runs.name: str(one.verdict) for one in verification.comparisons},
        "weakened_floor": [dict(one) for one in verification.weakened_floor],
        "exit_code": verification.exit_code,
    }
    result = ImmediateResult.FAILURE if verification.exit_code else ImmediateResult.SUCCESS
    told = _summarize(verification)
    journal.log_outcome(entry.id, result, redact(told), actions=[redact(note)], agent_id=GATE_AGENT)


def _summarize(verification: Verification) -> str:
    if not verification.base.available:
        return f"base unavailable: {verification.base.reason}"
    counts = {verdict: sum(one.verdict is verdict for one in verification.comparisons) for verdict in Verdict}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "no project"
    return f"{told}, floor weakened" if verification.weakened_floor else told
