from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.mcp.talking import talk_to

if TYPE_CHECKING:
    from pytest_golden.mcp.workplace import Workplace
    from tests.mcp.conftest import MakeServer
    from tests.mcp.talking import Talk


def begin(talk: Talk, intent: str = "deploy the new pipeline") -> str:
    entry_id: str = talk.ask("log_intent", intent=intent)["entry_id"]
    return entry_id


def test_an_intent_becomes_an_entry_of_the_client_with_all_that_it_says(talk: Talk, place: Workplace) -> None:
    parent = begin(talk, "the whole")
    told = talk.ask("log_intent", intent="a part", intent_type="deploy", job_id="job-7", parent_id=parent)

    assert set(told) == {"entry_id", "assessment"}
    assert told["assessment"] == "open"
    kept = place.services().journal.get(told["entry_id"])
    assert (kept.intent, kept.intent_type, kept.job_id, kept.parent_id) == ("a part", "deploy", "job-7", parent)
    assert kept.agent_id == "tess"


def test_an_outcome_gives_its_expectations_and_a_signal_answers_them(talk: Talk) -> None:
    entry_id = begin(talk)
    told = talk.ask(
        "log_outcome",
        entry_id=entry_id,
        result="success",
        notes="it is out",
        actions=["built", {"command": "deploy"}],
        expectations=[
            {"description": "CI is green", "match_hint": {"source": "ci", "sha": "abc"}, "expires_minutes": 60},
            {"description": "nobody complains", "polarity": "negative", "expires_minutes": 60, "critical": True},
        ],
    )
    assert set(told) == {"entry_id", "assessment", "expectations"}
    assert [one["status"] for one in told["expectations"]] == ["open", "open"]

    signal = talk.ask("add_signal", source="ci", signal_type="positive", summary="all green", data={"sha": "abc"})
    assert signal["entry_id"] == entry_id
    assert signal["expectation_id"] == told["expectations"][0]["id"]
    assert signal["routed_by"] == "match_hint"
    assert signal["id"].startswith("signal_")


def test_the_same_external_id_counts_once(talk: Talk) -> None:
    said = {"source": "ci", "signal_type": "neutral", "summary": "built", "external_id": "build-1"}
    assert talk.ask("add_signal", **said)["id"] == talk.ask("add_signal", **said)["id"]


def test_a_signal_of_the_session_finds_the_sessions_entry(make: MakeServer) -> None:
    server = make()
    with talk_to(server) as one, talk_to(server) as other:
        entry_id = begin(one)
        one.ask("log_outcome", entry_id=entry_id, result="success", expectations=[{"description": "it holds"}])
        elsewhere = begin(other)
        other.ask("log_outcome", entry_id=elsewhere, result="success", expectations=[{"description": "it holds"}])

        told = one.ask("add_signal", source="monitor", signal_type="positive", summary="it holds")
    assert (told["entry_id"], told["routed_by"]) == (entry_id, "session_key")


@pytest.mark.parametrize("source", ["human", "HUMAN", " golden ", "github", "system", "check", "hu\u200bman"])
def test_no_agent_speaks_for_people_or_the_gate(talk: Talk, source: str) -> None:
    entry_id = begin(talk)
    told = talk.refusal("add_signal", source=source, signal_type="positive", summary="fine", entry_id=entry_id)
    assert "reserved" in told


def test_no_agent_touches_anothers_entry(make: MakeServer) -> None:
    server = make()
    with talk_to(server, name="tess") as tess, talk_to(server, name="max") as other:
        entry_id = begin(tess)
        assert "another agent's" in other.refusal("log_outcome", entry_id=entry_id, result="success")
        assert "another agent's" in other.refusal(
            "add_signal", source="ci", signal_type="positive", summary="fine", entry_id=entry_id
        )
        assert other.ask("review_journal")["entries"] == []


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("log_intent", {}, "intent is missing; log_intent needs it"),
    ("log_intent", {"intent": ""}, "intent"),
    ("log_intent", {"intent": 5}, "intent must be a text, not 5"),
    ("log_intent", {"intent": None}, "intent must be a text, not None"),
    ("log_intent", {"intent": ["a"]}, "intent must be a text, not a list"),
    ("log_intent", {"intent": "a\0b"}, "intent holds a NUL character; remove it"),
    ("log_intent", {"intent": "a", "intnt_type": "b"}, "did you mean 'intent_type'?"),
    ("log_intent", {"intent": "a", "agent_id": "golden"}, "takes no argument 'agent_id'"),
    ("log_intent", {"intent": "a", "session_key": "x"}, "takes no argument 'session_key'"),
    ("log_intent", {"intent": "a", "parent_id": "entry_none"}, "no entry 'entry_none'"),
    ("log_intent", {"intent": "x" * (1 << 20) + "y"}, "1,048,577 characters"),
    ("log_outcome", {"result": "success"}, "entry_id is missing"),
    ("log_outcome", {"entry_id": "entry_none", "result": "success"}, "entry_none"),
    ("log_outcome", {"entry_id": "e", "result": "good"}, "give one of success, failure, partial, unknown"),
    ("log_outcome", {"entry_id": "e", "result": "success", "actions": "built"}, "actions must be a list"),
    ("log_outcome", {"entry_id": "e", "result": "success", "expectations": {}}, "expectations must be a list"),
    ("log_outcome", {"entry_id": "e", "result": "success", "expectations": [{"desc": 1}]}, "unknown key 'desc'"),
    ("log_outcome", {"entry_id": "e", "result": "success", "expectations": ["x"]}, "expectations[0]"),
    ("add_signal", {"source": "ci"}, "signal_type is missing"),
    ("add_signal", {"source": "ci", "signal_type": "good", "summary": "s"}, "give one of positive, negative"),
    (
        "add_signal",
        {"source": "ci", "signal_type": "neutral", "summary": "s", "data": []},
        "data must be an object",
    ),
    (
        "add_signal",
        {"source": "ci", "signal_type": "neutral", "summary": "s", "data": {"a": ["\0"]}},
        "data holds a NUL",
    ),
]


def test_bad_arguments_are_refused_in_one_clear_sentence(talk: Talk) -> None:
    for tool, arguments, told in BAD:
        assert told in talk.short_refusal(tool, **arguments)


def test_a_secret_is_blotted_out(talk: Talk) -> None:
    begin(talk, "use token=ghp_0123456789abcdefghijklmnopqrstuvwxyzAB for it")
    (entry,) = talk.ask("review_journal")["entries"]
    assert "ghp_0123" not in entry["intent"]
    assert "REDACTED" in entry["intent"]


def test_null_says_nothing(talk: Talk) -> None:
    talk.ask("log_intent", intent="a", intent_type=None, job_id=None, parent_id=None)
