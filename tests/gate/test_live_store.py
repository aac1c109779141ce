from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, update

from pytest_golden.gate.live import LiveLook, RunningProject, describe_machine, find_events
from pytest_golden.gate.live_store import LiveGates
from pytest_golden.gate.store import close_interrupted, finish_run, record_event, write_beat
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import judge_run
from pytest_golden.storage.columns import from_ms
from pytest_golden.storage.copying import copy_store
from pytest_golden.storage.folder import PRIVATE_PREFIX
from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.schema import gate_live, gate_runs
from pytest_golden.storage.store import Store
from pytest_golden.verify.merging_store import merge_stores
from tests.gate.gate_events import begin, end, judge, moment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from pytest_golden.gate.events import GateEvent, RunBegun

ELSEWHERE = "another machine"


class Watched:
    """A store, a clock that is turned by hand, and looks at the store by that clock."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.seconds = 0.0
        self.gates = self.watch()

    def watch(self, least_seconds: float = 0.0) -> LiveGates:
        return LiveGates(self.store, clock=self.now, monotonic=lambda: self.seconds, least_seconds=least_seconds)

    def now(self) -> datetime:
        return from_ms(moment(0)) + timedelta(seconds=self.seconds)

    def tell(self, *events: GateEvent) -> None:
        with self.store.write() as connection:
            for event in events:
                record_event(connection, event)

    def beat(
        self,
        begun: RunBegun,
        *names: str,
        step: str | None = None,
        late: float = 0,
        pid: int = 1,
        machine: str = ELSEWHERE,
    ) -> None:
        running = tuple(RunningProject(name, from_ms(begun.moment), step) for name in names)
        told = self.now() - timedelta(seconds=late)
        with self.store.write_aside() as connection:
            count = len(begun.expectations)
            write_beat(connection, begun.run_id, told, running, pid=pid, machine=machine, total_count=count)

    def running(self) -> list[str]:
        return [gate.run_id for gate in self.gates.look().gates]

    def rows(self) -> list[str]:
        with self.store.read() as connection:
            return list(connection.scalars(select(gate_live.c.run_id)))


@pytest.fixture
def watched(location: str | Path) -> Iterator[Watched]:
    with Store.open(location) as store:
        yield Watched(store)


@pytest.fixture
def on_file(tmp_path: Path) -> Iterator[Watched]:
    with Store.open(tmp_path / "golden.db") as store:
        yield Watched(store)


def kinds(before: LiveLook, after: LiveLook) -> list[str]:
    return [event.kind for event in find_events(before, after)]


def test_gate_is_seen_with_what_it_does_and_what_is_done(watched: Watched) -> None:
    begun = begin("a", "b", "c")
    watched.tell(begun)
    (gate,) = watched.gates.look().gates
    assert (gate.run_id, gate.total_count, gate.running, gate.is_own) == (begun.run_id, 3, (), True)

    watched.tell(judge(begun, "a", ResultStatus.FAILED))
    watched.beat(begun, "a", "b", step="load")
    (gate,) = watched.gates.look().gates
    assert gate.running == (RunningProject("b", from_ms(begun.moment), "load"),)
    assert gate.counts == {"PASSED": 0, "FAILED": 1, "ERROR": 0, "SKIPPED": 0}
    assert watched.gates.list_waiting(gate) == ("c",)

    watched.tell(judge(begun, "b"), judge(begun, "c"), end(begun))
    look = watched.gates.look()
    assert look.gates == ()
    assert [(one.final_status, one.is_interrupted, len(one.finished)) for one in look.ended] == [("passed", False, 3)]
    assert watched.rows() == []


def test_two_gates_on_other_machines_are_both_seen(watched: Watched) -> None:
    first, second = begin("a", host="one"), begin("a", host="two", workspace_root=f"/tmp/{PRIVATE_PREFIX}x/w")
    watched.tell(first, second)
    watched.beat(first, "a", step="x")
    watched.beat(second, "a", step="y")
    gates = watched.gates.look().gates
    assert [(gate.host, gate.is_own, gate.running[0].step) for gate in gates] == [
        ("one", True, "x"),
        ("two", False, "y"),
    ]


def test_beat_of_a_run_that_is_over_or_nowhere_leaves_no_row(watched: Watched) -> None:
    begun = begin("a")
    watched.beat(begun, "a")
    watched.tell(begun, end(begun))
    watched.beat(begun, "a")
    assert watched.rows() == []


def test_row_of_an_interrupted_run_goes_when_the_next_gate_finds_it(watched: Watched) -> None:
    killed, following = begin("a"), begin("a", minute=1)
    watched.tell(killed)
    watched.beat(killed, "a")
    with watched.store.write() as connection:
        close_interrupted(connection, following, is_own_store=True)
    assert watched.rows() == []


def test_gate_without_a_sign_of_life_does_not_run(on_file: Watched) -> None:
    begun = begin("a")
    on_file.tell(begun)
    on_file.beat(begun, "a")
    before = on_file.gates.look()
    on_file.seconds = 30
    assert on_file.running() == [begun.run_id]
    on_file.seconds = 31
    (event,) = find_events(before, on_file.gates.look())
    assert (event.kind, event.data["final_status"], event.data["interrupted"]) == ("gate_finished", None, True)
    assert LiveLook().gates == on_file.watch().look().gates

    before = on_file.gates.look()
    on_file.beat(begun, "a")
    assert kinds(before, on_file.gates.look()) == ["gate_started", "project_started"]
    on_file.seconds += 31
    on_file.gates.look()
    on_file.seconds += 61
    assert on_file.gates.look().ended == ()


def test_gate_that_never_told_of_itself_is_believed_for_a_while(on_file: Watched) -> None:
    on_file.tell(begin("a"))
    assert len(on_file.running()) == 1
    on_file.seconds = 31
    assert on_file.running() == []


@pytest.mark.parametrize("late", [3600.0, -3600.0])
def test_clock_of_another_machine_may_be_wrong(on_file: Watched, late: float) -> None:
    begun = begin("a")
    on_file.tell(begun)
    on_file.beat(begun, "a", late=late)
    assert on_file.running() == ([] if late > 0 else [begun.run_id])
    on_file.seconds = 10
    on_file.beat(begun, "a", late=late)
    assert on_file.running() == [begun.run_id]
    on_file.seconds = 41
    assert on_file.running() == []


@pytest.mark.skipif(sys.platform == "win32", reason="nothing asks there")
def test_gate_whose_process_is_gone_does_not_run(on_file: Watched) -> None:
    begun, other = begin("a"), begin("a")
    on_file.tell(begun, other)
    on_file.beat(begun, "a", pid=os.getpid(), machine=describe_machine())
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    on_file.beat(other, "a", pid=gone.pid, machine=describe_machine())
    assert on_file.running() == [begun.run_id]
    # The same pid elsewhere is another process.
    on_file.beat(other, "a", pid=gone.pid)
    assert on_file.running() == [begun.run_id, other.run_id]


def test_gate_that_came_and_went_between_two_looks_is_news(on_file: Watched) -> None:
    before = on_file.gates.look()
    begun = begin("a")
    on_file.tell(begun, judge(begun, "a"), end(begun))
    after = on_file.gates.look()
    assert kinds(before, after) == ["gate_started", "project_started", "project_finished", "gate_finished"]
    assert kinds(after, on_file.gates.look()) == []
    assert kinds(LiveLook(), on_file.watch().look()) == []


def test_runs_of_long_ago_that_were_merged_in_are_no_news(on_file: Watched) -> None:
    before = on_file.gates.look()
    on_file.seconds = 7200
    begun = begin("a")
    on_file.tell(begun, end(begun))
    assert kinds(before, on_file.gates.look()) == []


def test_results_with_new_numbers_are_the_same_results(on_file: Watched) -> None:
    begun = begin("a", "b")
    on_file.tell(begun, judge(begun, "a"))
    before = on_file.gates.look()
    with on_file.store.write() as connection:
        connection.exec_driver_sql("UPDATE gate_results SET number = number + 100")
    on_file.tell(judge(begun, "b"))
    assert kinds(before, on_file.gates.look()) == ["project_started", "project_finished"]


@pytest.mark.parametrize("is_new_server", [False, True])
def test_whoever_comes_back_hears_what_was_missed(on_file: Watched, is_new_server: bool) -> None:
    begun, quick = begin("a", "b", "c"), begin("a")
    on_file.tell(begun, judge(begun, "a"))
    on_file.beat(begun, "b")
    heard = find_events(LiveLook(), on_file.gates.look())[-1].id
    on_file.tell(judge(begun, "b"), end(begun), quick, end(quick))
    gates = on_file.watch() if is_new_server else on_file.gates
    events = find_events(gates.resume(heard), gates.look())
    assert [(event.kind, event.data["run_id"]) for event in events] == [
        ("project_started", begun.run_id),
        ("project_finished", begun.run_id),
        ("gate_finished", begun.run_id),
        ("gate_started", quick.run_id),
        ("gate_finished", quick.run_id),
    ]
    assert events[1].data["project"] == "b"
    assert find_events(gates.resume(events[-1].id), gates.look()) == ()


def test_whoever_comes_back_to_a_gate_that_goes_on_hears_where_it_is(on_file: Watched) -> None:
    begun = begin("a", "b")
    on_file.tell(begun, judge(begun, "a"))
    on_file.beat(begun, "b", step="x")
    heard = find_events(LiveLook(), on_file.gates.look())[-1].id
    on_file.beat(begun, "b", step="y")
    events = find_events(on_file.gates.resume(heard), on_file.gates.look())
    assert [(event.kind, event.data.get("step")) for event in events] == [("project_started", None), ("step", "y")]


@pytest.mark.parametrize("heard", [None, "what?", "99", "99-entry_x.5"])
def test_whoever_brings_what_is_not_of_this_store_gets_a_picture(on_file: Watched, heard: str | None) -> None:
    on_file.tell(begin("a"))
    assert on_file.gates.resume(heard) == LiveLook()
    assert kinds(on_file.gates.resume(heard), on_file.gates.look()) == ["gate_started"]


def test_runs_that_are_not_there_any_more_are_left_out(on_file: Watched) -> None:
    assert on_file.gates.resume("0-entry_x.5") == LiveLook((), (), 0)


def test_store_is_looked_at_no_more_often_than_is_said(on_file: Watched) -> None:
    gates = on_file.watch(least_seconds=0.5)
    first = gates.look()
    on_file.tell(begin("a"))
    assert gates.look() is first
    on_file.seconds = 0.5
    assert len(gates.look().gates) == 1


def test_what_another_version_says_is_running_does_no_harm(on_file: Watched) -> None:
    begun = begin("a")
    on_file.tell(begun)
    on_file.beat(begun, "a")
    strange = [1, {}, {"project": "a", "since": "x", "step": 1}, {"project": "b", "since": 10**30, "step": 1}]
    for told in (strange, {"project": "a"}):
        with on_file.store.write() as connection:
            connection.execute(update(gate_live).values(running=told))
        assert on_file.gates.look().gates[0].running == ()


def test_whoever_comes_back_hears_that_a_gate_was_cut_off(on_file: Watched) -> None:
    begun = begin("a")
    on_file.tell(begun)
    with on_file.store.write() as connection:
        finish_run(connection, begun.run_id, begun.moment, judge_run((), is_interrupted=True).to_dict(), {})
    (event,) = find_events(on_file.gates.resume(f"1-{begun.run_id}.0"), on_file.gates.look())
    assert (event.kind, event.data["final_status"], event.data["interrupted"]) == ("gate_finished", "interrupted", True)


def test_copy_of_a_store_takes_the_row_along_and_a_merge_does_not(on_file: Watched, tmp_path: Path) -> None:
    begun = begin("a")
    on_file.tell(begun)
    on_file.beat(begun, "a")
    assert copy_store(tmp_path / "golden.db", tmp_path / "copy.db").tables["gate_live"].rows == 1
    assert check_store(tmp_path / "copy.db").problems == ()
    merge_stores(tmp_path / "merged.db", [tmp_path / "copy.db"], rules={}, progress=lambda _: None)
    with Store.open(tmp_path / "merged.db") as store, store.read() as connection:
        assert connection.scalars(select(gate_runs.c.entry_id)).all() == [begun.run_id]
        assert connection.execute(select(gate_live)).all() == []
