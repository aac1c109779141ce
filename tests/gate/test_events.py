"""Events go through a line of a spool and back unharmed."""

from __future__ import annotations

import json

import pytest

from pytest_golden.gate.events import FailureExplained, GateEvent, read_event, write_event
from pytest_golden.regression.model import ResultStatus
from tests.gate.gate_events import begin, end, judge

BEGUN = begin("one", "two")
NEWS = {"id": "signal_1", "signal_type": "negative", "summary": "weakened floor", "data": {}}


@pytest.mark.parametrize(
    "event",
    [
        BEGUN,
        judge(BEGUN, "one"),
        judge(BEGUN, "two", ResultStatus.ERROR),
        FailureExplained(BEGUN.run_id, "entry_1", ({"kind": "seen_before", "lines": ["seen"]},)),
        end(BEGUN, news=(NEWS,)),
    ],
)
def test_event_comes_back_from_its_json_line_equal(event: GateEvent) -> None:
    assert read_event(json.loads(json.dumps(write_event(event)))) == event


@pytest.mark.parametrize(
    ("plain", "told"),
    [
        ({"event": "paused"}, "'paused' is no event of a gate run"),
        ({}, "None is no event of a gate run"),
        ({"event": "ended", "run_id": "x"}, "cannot be read"),
        ({"event": "judged", "run_id": "x"}, "cannot be read"),
    ],
)
def test_what_is_no_event_is_refused_with_a_reason(plain: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_event(plain)
