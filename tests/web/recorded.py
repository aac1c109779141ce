"""Gate runs in a store, for the tests of what is shown of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.gate.store import record_event
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import judge_run
from tests.gate.gate_events import begin, end, judge

if TYPE_CHECKING:
    from pytest_golden.gate.events import GateEvent
    from pytest_golden.storage.store import Store


class Recorded(NamedTuple):
    """The entries of a run and of its results by the names of their projects."""

    run: str
    results: dict[str, str]


def record_run(store: Store, minute: int, **projects: dict[str, Any]) -> Recorded:
    """Record a run; what is given by a project's name are fields of its result."""
    begun = begin(*projects, minute=minute)
    judged = {}
    for name, fields in projects.items():
        one = judge(begun, name, fields.get("status", ResultStatus.PASSED))
        told = {"error_message": fields["reasons"][0].message} if fields.get("reasons") else {}
        judged[name] = replace(one, result=replace(one.result, **told, **fields))
    verdict = judge_run(one.result for one in judged.values()).to_dict()
    events: list[GateEvent] = [begun, *judged.values(), end(begun, verdict=verdict)]
    with store.write() as connection:
        for event in events:
            record_event(connection, event)
    return Recorded(begun.run_id, {name: one.entry_id for name, one in judged.items()})
