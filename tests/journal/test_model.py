from __future__ import annotations

import dataclasses
import json
import pickle

import pytest

from pytest_golden.journal.model import (
    Assessment,
    Expectation,
    HistoryRecord,
    JournalEntry,
    Polarity,
    RoutedBy,
    Signal,
    SignalType,
)
from pytest_golden.values.json_form import FrozenDict, FrozenList
from tests.journal.conftest import BEGIN

EXPECTATION = Expectation(
    id="expectation_1", entry_id="entry_1", description="no incidents", polarity=Polarity.NEGATIVE, created_at=BEGIN
)
SIGNAL = Signal(
    id="signal_1",
    entry_id="entry_1",
    source="ci",
    signal_type=SignalType.POSITIVE,
    summary="green",
    data=FrozenDict({"files": FrozenList(["a"])}),
    routed_by=RoutedBy.ENTRY,
    created_at=BEGIN,
)
ENTRY = JournalEntry(
    id="entry_1",
    agent_id="builder",
    intent="load",
    actions=("read", FrozenDict({"tool": "write"})),
    created_at=BEGIN,
    updated_at=BEGIN,
    closed_at=BEGIN,
    assessment=Assessment.SUCCESS,
    expectations=(EXPECTATION,),
    signals=(SIGNAL,),
    history=(HistoryRecord(what="assessment", who="ci", when=BEGIN, details=FrozenDict({"to": "success"})),),
)


def test_values_are_json_safe_under_the_names_of_their_fields() -> None:
    plain = ENTRY.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert set(plain) == {
        "id",
        "job_id",
        "agent_id",
        "session_key",
        "intent",
        "intent_type",
        "actions",
        "immediate_result",
        "immediate_notes",
        "assessment",
        "assessment_notes",
        "closed_at",
        "created_at",
        "updated_at",
        "parent_id",
        "expectations",
        "signals",
        "history",
    }
    assert plain["created_at"] == "2026-03-01T12:00:00.000000Z"
    assert plain["actions"] == ["read", {"tool": "write"}]
    assert plain["expectations"] == [EXPECTATION.to_dict()]
    assert plain["expectations"][0]["polarity"] == "negative"
    assert plain["signals"][0]["data"] == {"files": ["a"]}
    assert plain["history"] == [ENTRY.history[0].to_dict()]
    assert plain["history"][0]["when"] == plain["created_at"]


def test_what_to_dict_gives_can_be_written_without_changing_the_value() -> None:
    plain = SIGNAL.to_dict()
    plain["data"]["files"].append("b")
    assert SIGNAL.to_dict()["data"] == {"files": ["a"]}


@pytest.mark.parametrize("value", [ENTRY, EXPECTATION, SIGNAL, *ENTRY.history])
def test_values_are_frozen_and_hashable_and_can_be_sent_to_another_process(
    value: JournalEntry | Expectation | Signal | HistoryRecord,
) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, dataclasses.fields(value)[0].name, "other")
    again = pickle.loads(pickle.dumps(value))
    assert again == value
    assert {value: 1}[again] == 1
