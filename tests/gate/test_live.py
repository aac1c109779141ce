from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.clock import new_id
from pytest_golden.gate.live import (
    FinishedProject,
    LiveGate,
    LiveLook,
    RunningProject,
    Told,
    describe_machine,
    find_events,
    has_process,
)
from pytest_golden.regression.model import ResultStatus

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
NUMBERS = st.integers(0, 10**17)


def gate(number: int = 1, *, running: tuple[RunningProject, ...] = (), finished: int = 0, **more: Any) -> LiveGate:
    """Return a gate of which so many projects have finished, `p1` and so on."""
    return LiveGate(
        number=number,
        run_id=f"entry_{number}",
        manifest="golden_projects.yaml",
        workspace_root="/work",
        commit=None,
        branch="main",
        host="here",
        pid=1,
        is_own=True,
        started_at=START,
        total_count=9,
        running=running,
        finished=tuple(
            FinishedProject(place, f"entry_p{place}", f"p{place}", ResultStatus.PASSED, 1.5, START)
            for place in range(1, finished + 1)
        ),
        **more,
    )


def run(name: str, step: str | None = None, *, minute: int = 0) -> RunningProject:
    return RunningProject(name, START + timedelta(minutes=minute), step)


def look(*gates: LiveGate, ended: tuple[LiveGate, ...] = (), newest: int = 1) -> LiveLook:
    return LiveLook(gates, ended, newest)


def tell(before: LiveLook, after: LiveLook) -> list[tuple[str, ...]]:
    """Return kind, and project and step where there are such."""
    events = find_events(before, after)
    for event in events:
        json.dumps(event.data)
        assert event.data["run_id"].startswith("entry_")
    return [(event.kind, *(event.data[key] for key in ("project", "step") if key in event.data)) for event in events]


def test_whoever_knows_nothing_gets_a_picture_of_what_runs() -> None:
    over = gate(1, final_status="passed", finished_at=START)
    now = look(gate(2, running=(run("p2", "load"),), finished=1), ended=(over,), newest=2)
    assert tell(LiveLook(), now) == [
        ("gate_started",),
        ("project_started", "p1"),
        ("project_finished", "p1"),
        ("project_started", "p2"),
        ("step", "p2", "load"),
    ]


def test_nothing_is_told_twice() -> None:
    now = look(gate(running=(run("p2", "load"),), finished=1), ended=(gate(0, final_status="passed"),))
    assert tell(now, now) == []


def test_steps_and_ends_are_told_as_they_come() -> None:
    first = look(gate(running=(run("p1", "load"), run("other"))))
    second = look(gate(running=(run("p1", "save"), run("other"))))
    third = look(gate(running=(run("other"), run("p2")), finished=1))
    assert tell(first, second) == [("step", "p1", "save")]
    assert tell(second, third) == [("project_finished", "p1"), ("project_started", "p2")]


def test_project_that_runs_anew_has_started_again() -> None:
    assert tell(look(gate(running=(run("a", "x"),))), look(gate(running=(run("a", "x", minute=1),)))) == [
        ("project_started", "a"),
        ("step", "a", "x"),
    ]


def test_counts_are_those_of_each_moment() -> None:
    (*_, first, _, second) = find_events(look(gate()), look(gate(finished=2)))
    assert [event.data["counts"]["PASSED"] for event in (first, second)] == [1, 2]
    assert second.data["total_count"] == 9
    assert (second.data["status"], second.data["execution_time_seconds"]) == ("PASSED", 1.5)


def test_end_brings_what_finished_last_and_how_it_ended() -> None:
    over = gate(finished=1, final_status="passed", finished_at=START)
    events = find_events(look(gate(running=(run("p1"),))), look(ended=(over,)))
    assert [event.kind for event in events] == ["project_finished", "gate_finished"]
    assert events[-1].data["final_status"] == "passed"
    assert events[-1].data["counts"] == {"PASSED": 1, "FAILED": 0, "ERROR": 0, "SKIPPED": 0}
    assert Told.parse(events[-1].id) == Told(1, {})


def test_gate_that_came_and_went_between_two_looks_is_told_whole() -> None:
    over = gate(2, finished=1, final_status="passed", finished_at=START)
    assert tell(look(), look(ended=(over,), newest=2)) == [
        ("gate_started",),
        ("project_started", "p1"),
        ("project_finished", "p1"),
        ("gate_finished",),
    ]


def test_gate_of_whose_end_nobody_knows_is_over_all_the_same() -> None:
    (event,) = find_events(look(gate(running=(run("a"),))), look())
    assert event.kind == "gate_finished"
    assert (event.data["final_status"], event.data["interrupted"], event.data["running"]) == (None, True, [])


def test_two_gates_at_once_are_told_apart() -> None:
    both = look(gate(1, running=(run("a", "x"),)), gate(2, running=(run("a"),)), newest=2)
    one_further = look(gate(1, running=(run("a", "x"),)), gate(2, running=(run("a", "y"),)), newest=2)
    assert {event.data["run_id"] for event in find_events(LiveLook(), both)} == {"entry_1", "entry_2"}
    assert [(event.kind, event.data["run_id"]) for event in find_events(both, one_further)] == [("step", "entry_2")]


@given(st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_whoever_comes_back_misses_nothing_wherever_the_connection_broke(first: int, more: int, ends: bool) -> None:
    before = look(gate(finished=first))
    over = gate(finished=first + more, final_status="passed", finished_at=START)
    after = look(ended=(over,)) if ends else look(gate(finished=first + more))
    events = find_events(before, after)
    for place, heard in enumerate(events):
        told = Told.parse(heard.id)
        assert told is not None
        known = look(
            *(
                replace(over, finished=tuple(one for one in over.finished if one.number <= last), final_status=None)
                for last in told.results.values()
            ),
            newest=told.newest,
        )
        rest = [(event.kind, event.data.get("project")) for event in find_events(known, after)]
        # A start may be told again: that of what was running when the connection broke.
        missed = [(event.kind, event.data.get("project")) for event in events[place + 1 :]]
        assert rest[-len(missed) :] == missed if missed else rest == []


@given(NUMBERS, st.lists(NUMBERS, max_size=20))
def test_what_was_told_is_read_back(newest: int, numbers: list[int]) -> None:
    told = Told(newest, {new_id("entry"): number for number in numbers})
    assert Told.parse(told.to_id()) == told


@given(st.text() | st.from_regex(r"\A[0-9._-]*\Z"))
def test_what_anybody_sends_is_read_or_nothing(text: str) -> None:
    told = Told.parse(text)
    assert told is None or told.newest >= 0


@pytest.mark.parametrize(
    "text",
    [None, "", "x", "-1", "1-", "1-entry", "1-entry.x", "1 ", "\u0661", "1-a.1\n", "9" * 19, "1" + "-run.1" * 21],
)
def test_id_of_somebody_else_tells_nothing(text: str | None) -> None:
    assert Told.parse(text) is None


def test_id_that_is_too_long_tells_nothing() -> None:
    assert Told.parse("1" + f"-{'a' * 64}.{'1' * 18}" * 20) is not None
    assert Told.parse("1" + f"-{'a' * 64}.{'1' * 18}" * 200) is None


def test_machine_is_the_same_for_all_its_processes() -> None:
    code = "from pytest_golden.gate.live import describe_machine; print(describe_machine())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == describe_machine()


@pytest.mark.skipif(sys.platform == "win32", reason="nothing asks there")
def test_process_is_there_until_it_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    assert has_process(child.pid)
    assert has_process(os.getpid())
    child.wait()
    assert not has_process(child.pid)


def test_pid_that_none_can_be_is_of_no_process_or_says_nothing() -> None:
    assert has_process(0)
    assert sys.platform == "win32" or not has_process(2**63)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="may signal every process")
def test_process_of_another_user_is_there() -> None:
    assert has_process(1)
