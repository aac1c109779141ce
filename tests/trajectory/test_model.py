from __future__ import annotations

import copy
import json
import pickle
import re
import threading
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.model import Trajectory, grow_tree
from pytest_golden.trajectory.recorder import TrajectoryRecorder
from pytest_golden.trajectory.step import FrozenSequence, StateSnapshot, Step
from pytest_golden.trajectory.vocabulary import Importance, StepType
from tests.patience import count_calls, without_hanging

if TYPE_CHECKING:
    from collections.abc import Callable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _three_levels() -> Trajectory:
    trajectory = Trajectory.new(id="t").add_step("reasoning", "plan", importance="low")
    root = trajectory.steps[0].id
    trajectory = trajectory.add_step("action", "load", importance="medium", parent_step_id=root, duration_ms=5)
    return trajectory.add_step("tool_call", "query", parent_step_id=trajectory.steps[1].id, metadata={"error": "boom"})


def test_adding_gives_a_new_value_and_keeps_the_old_one() -> None:
    empty = Trajectory.new()
    one = empty.add_step("action", "a")
    two, other = one.add_step("action", "b"), one.add_step("action", "c")
    assert [len(t.steps) for t in (empty, one, two, other)] == [0, 1, 2, 2]
    assert [step.content for step in two.steps] == ["a", "b"]
    assert [step.content for step in other.steps] == ["a", "c"]
    assert two.steps[1].id not in {step.id for step in other.steps}


def test_fields_cannot_be_assigned() -> None:
    trajectory = Trajectory.new().add_step("action", "a")
    with pytest.raises(AttributeError):
        trajectory.id = "x"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        trajectory.steps[0].content = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t.add_step(content="x"), ["type is missing", "reasoning", "state_change"]),
        (lambda t: t.add_step(None, "x"), ["type is missing"]),
        (lambda t: t.add_step("action"), ["content is missing"]),
        (lambda t: t.add_step("act", "x"), ["type 'act' is unknown", "tool_call"]),
        (lambda t: t.add_step([], "x"), ["type [] is unknown"]),
        (
            lambda t: t.add_step("action", "x", importance="urgent"),
            ["importance 'urgent'", "low, medium, high, critical"],
        ),
        (lambda t: t.add_step("action", "x", importance=None), ["importance is missing"]),
        (lambda t: t.add_step("action", "x", duration_ms=-1), ["duration_ms"]),
        (lambda t: t.add_step("action", "x", duration_ms=float("nan")), ["duration_ms"]),
        (lambda t: t.add_step("action", "x", duration_ms=10**400), ["duration_ms"]),
        (lambda t: t.add_step("action", "x", duration_ms=True), ["duration_ms"]),
        (lambda t: t.add_step("action", "x", duration_ms="5"), ["duration_ms"]),
        (lambda t: t.add_step("action", "x", metadata=[1]), ["metadata must be a mapping"]),
        (lambda t: t.add_step("action", "x", parent_step_id="step_x"), ["parent_step_id 'step_x'"]),
        (lambda t: t.add_step("action", "x", parent_step_id=" "), ["parent_step_id must be text"]),
        (lambda t: t.add_step("action", "x", timestamp=datetime(2026, 1, 1)), ["timestamp", "aware"]),  # noqa: DTZ001
        (lambda t: t.add_step("action", "x", timestamp="2026-01-01"), ["timestamp", "aware"]),
        (
            lambda t: t.add_step("action", "x", timestamp=datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))),
            ["timestamp", "years"],
        ),
        (lambda t: t.add_snapshot(), ["state is missing"]),
        (lambda t: t.add_snapshot(None), ["state is missing"]),
        (lambda t: t.add_snapshot({}, step_id="step_x"), ["step_id 'step_x'"]),
        (lambda t: t.add_snapshot({}, step_id=""), ["step_id must be text"]),
        (lambda t: t.add_snapshot({}, reason=""), ["reason must be text"]),
        (lambda t: t.complete("won"), ["outcome 'won'", "success, failure, timeout, error, partial"]),
        (lambda t: t.complete(completed_at=t.started_at - timedelta(seconds=1)), ["completed_at", "before the start"]),
        (lambda t: t.filter("urgent"), ["min_importance 'urgent'"]),
        (lambda t: Trajectory.new(id=""), ["id must be text"]),
        (lambda t: Trajectory.new(metadata="x"), ["metadata must be a mapping"]),  # type: ignore[arg-type]
        (lambda t: t.complete().complete(), ["is completed", "reopen()"]),
        (lambda t: t.complete().add_step("action", "x"), ["is completed"]),
        (lambda t: t.complete().add_snapshot({}), ["is completed"]),
    ],
)
def test_wrong_input_is_refused_at_the_call_with_the_field_named(
    call: Callable[[Any], object], words: list[str]
) -> None:
    with pytest.raises(ValueError, match=r".") as refusal:
        call(Trajectory.new())
    for word in words:
        assert word in str(refusal.value)


class Sour:
    """Refuses to be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


class SourError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def nest(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def hold_twice(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (5, "5"),
        ({"code": 7, "why": ["a"]}, '{"code": 7, "why": ["a"]}'),
        (ValueError("no rows"), "ValueError: no rows"),
        (SourError(), "SourError"),
        (Sour(), "<Sour that cannot be shown>"),
        ([Sour()], '["<Sour that cannot be shown>"]'),
        (nest(5_000), "[[[["),
        (hold_twice(40), "[[[["),
        ("x" * 200_000, "xxxx"),
        ("boom \ud83d", "boom \ud83d"),
    ],
)
@pytest.mark.parametrize("made", [Trajectory.new, TrajectoryRecorder])
def test_any_error_is_kept_as_a_bounded_text(made: Callable[[], Any], error: Any, kept: str) -> None:
    ended = made()
    ended = ended.complete("error", error) or ended.trajectory
    assert ended.error.startswith(kept)
    assert len(ended.error) < 100_100


@pytest.mark.parametrize("value", [Sour(), [Sour()], nest(5_000), hold_twice(40)], ids=lambda _: "odd")
def test_no_value_is_too_odd_to_be_kept_or_refused(value: Any) -> None:
    recorder = TrajectoryRecorder()
    recorder.step("action", value)
    kept = Trajectory.new().add_step("action", "x", metadata={"a": value}).add_snapshot(value)
    for trajectory in (recorder.trajectory, kept):
        assert json.loads(json.dumps(trajectory.to_dict()))["steps"]
    for refused in ({"type": value}, {"importance": value}, {"duration_ms": value}, {"timestamp": value}):
        with pytest.raises(ValueError, match=next(iter(refused))):
            kept.add_step(**{"type": "action", "content": "x", **refused})
    with pytest.raises(ValueError, match=r"steps\[0\]: a step must be a mapping"):
        Trajectory.from_dict({**PLAIN, "steps": [value]})


PLAIN = Trajectory.new().add_step("action", "a").add_step("action", "b").add_snapshot({"n": 1}).to_dict()
SECOND = {**PLAIN["steps"][1]}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ([1], "a trajectory must be a mapping (a dict), not [1]"),
        (None, "a trajectory must be a mapping (a dict), not None"),
        ("{}", "a trajectory must be a mapping (a dict), not '{}'"),
        ({**PLAIN, "steps": None}, "steps must be a list, not None"),
        ({**PLAIN, "steps": "abc"}, "steps must be a list, not 'abc'"),
        ({**PLAIN, "steps": {"a": 1}}, "steps must be a list, not {'a': 1}"),
        ({**PLAIN, "steps": 5}, "steps must be a list, not 5"),
        ({**PLAIN, "steps": [PLAIN["steps"][0], 5]}, "steps[1]: a step must be a mapping (a dict), not 5"),
        ({**PLAIN, "steps": [{**SECOND, "type": "odd"}]}, "steps[0]: type 'odd' is unknown"),
        ({**PLAIN, "steps": [{**SECOND, "type": {}}]}, "steps[0]: type {} is unknown"),
        ({**PLAIN, "steps": [{**SECOND, "timestamp": "2026-13-45"}]}, "steps[0]: timestamp must be ISO-8601 text"),
        ({**PLAIN, "steps": [{**SECOND, "metadata": [1]}]}, "steps[0]: metadata must be a mapping"),
        ({**PLAIN, "steps": [SECOND, SECOND]}, "steps[1]: "),
        ({**PLAIN, "steps": [{**SECOND, "parent_step_id": "x"}]}, "steps[0]: parent_step_id 'x' is not a step"),
        ({**PLAIN, "state_snapshots": 7}, "state_snapshots must be a list, not 7"),
        ({**PLAIN, "state_snapshots": [[]]}, "state_snapshots[0]: a state snapshot must be a mapping (a dict), not []"),
        ({**PLAIN, "metadata": "x"}, "metadata must be a mapping"),
        ({**PLAIN, "error": ["x"]}, "error must be text or None, not ['x']"),
        ({**PLAIN, "schema_version": [2]}, "schema_version [2] is not known here"),
        ({}, "id must be text"),
    ],
)
def test_wrong_dict_form_is_refused_with_the_place_named(body: Any, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        Trajectory.from_dict(body)


def test_given_containers_are_frozen_and_equal_what_was_given() -> None:
    content: dict[str, Any] = {"rows": [1, {"deep": [2]}], "pair": ({"a": [1]},), "set": {1}, "bytes": bytearray(b"x")}
    given = copy.deepcopy(content)
    step = Trajectory.new(metadata=content).add_step("action", content, metadata=content, context=content).steps[0]
    content["rows"].append(3)
    content["new"] = {0}
    assert step.content == step.metadata == step.context == given
    assert isinstance(step.content["rows"], list)
    assert isinstance(step.content, dict)
    writes: tuple[Callable[[], Any], ...] = (
        lambda: step.content.update(a=1),
        lambda: step.content["rows"].append(1),
        step.content["rows"][1]["deep"].sort,
        step.content["pair"][0].clear,
        lambda: step.content["rows"].__iadd__([1]),
        lambda: step.content.__ior__({}),
        lambda: step.content.__setstate__({"a": 1}),
        lambda: step.content["rows"].__setstate__([1]),
    )
    for write in writes:
        with pytest.raises(TypeError, match="cannot be written"):
            write()
    assert step.content == given


def test_none_is_content_and_state_may_be_anything_else() -> None:
    trajectory = Trajectory.new().add_step("observation", None).add_snapshot(0)
    assert trajectory.steps[0].content is None
    assert trajectory.state_snapshots[0].state == 0


def test_words_equal_their_plain_text() -> None:
    trajectory = _three_levels().complete("partial")
    assert trajectory.steps[0].type == "reasoning"
    assert trajectory.steps[0].importance == "low"
    assert trajectory.outcome == "partial"
    assert Importance.LOW.rank < Importance.MEDIUM.rank < Importance.HIGH.rank < Importance.CRITICAL.rank


def test_times_never_go_back() -> None:
    trajectory = Trajectory.new().add_step("action", "a", timestamp=NOON)
    with pytest.raises(ValueError, match=r"timestamp .* is before the last step's"):
        trajectory.add_step("action", "b", timestamp=NOON - timedelta(microseconds=1))
    assert trajectory.add_step("action", "b", timestamp=NOON).steps[1].timestamp == NOON
    future = datetime(2200, 1, 1, tzinfo=UTC)
    ahead = Trajectory.new().add_step("action", "a", timestamp=future).add_step("action", "b")
    assert ahead.steps[1].timestamp == future
    assert ahead.complete().completed_at == future
    with pytest.raises(ValueError, match=r"completed_at .* is before the last step"):
        ahead.complete(completed_at=future - timedelta(days=1))
    snapped = Trajectory.new().add_snapshot(1, timestamp=future).add_snapshot(2)
    with pytest.raises(ValueError, match="before the last snapshot's"):
        snapped.add_snapshot(3, timestamp=NOON)


def test_other_time_zones_are_kept_as_utc() -> None:
    moment = datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))
    step = Trajectory.new().add_step("action", "a", timestamp=moment).steps[0]
    assert step.timestamp == moment == NOON
    assert step.timestamp.tzinfo is UTC


def test_completion_now_is_measured_and_completion_given_is_exact() -> None:
    trajectory = Trajectory.new(started_at=NOON)
    done = trajectory.complete("failure", ValueError("boom"), NOON + timedelta(milliseconds=1500))
    assert (done.duration_ms, done.completed_at) == (1500.0, NOON + timedelta(seconds=1.5))
    assert (done.outcome, done.error, done.is_completed) == ("failure", "ValueError: boom", True)
    measured = Trajectory.new().complete()
    assert measured.duration_ms is not None
    assert 0 <= measured.duration_ms < 60_000
    assert trajectory.complete().duration_ms == pytest.approx(
        (datetime.now(UTC) - NOON).total_seconds() * 1000, abs=60_000
    )


def test_reopening_clears_the_completion_and_keeps_the_rest() -> None:
    done = _three_levels().filter("low").complete("error", "boom")
    again = done.reopen()
    assert (again.completed_at, again.duration_ms, again.outcome, again.error) == (None, None, None, None)
    assert again.steps == done.steps
    assert again.filtered
    assert len(again.add_step("action", "more").complete().steps) == 4
    assert again.reopen() == again


def test_an_id_cannot_be_taken_twice() -> None:
    step = Step("s", StepType.ACTION, "x", NOON)
    trajectory = Trajectory.new().with_step(step)
    with pytest.raises(ValueError, match="'s' is already taken"):
        trajectory.with_step(step)
    with pytest.raises(ValueError, match="some id is given twice"):
        FrozenSequence([step, step])
    snapshot = StateSnapshot("p", NOON, {"a": 1}, step_id="s")
    assert hash(trajectory.with_snapshot(snapshot)) == hash(trajectory)
    assert len({step, trajectory.steps[0], snapshot}) == 2


def test_filter_keeps_levels_and_reparents_to_the_nearest_kept_ancestor() -> None:
    trajectory = Trajectory.new().add_step("action", "root", importance="high")
    root = trajectory.steps[0].id
    trajectory = trajectory.add_step("action", "middle", importance="low", parent_step_id=root)
    middle = trajectory.steps[1].id
    trajectory = trajectory.add_step("action", "leaf", importance="critical", parent_step_id=middle)
    trajectory = trajectory.add_snapshot({"n": 1}, step_id=middle).add_snapshot({"n": 2})
    trajectory = trajectory.add_step("action", "end", importance="low")
    filtered = trajectory.filter("medium")
    assert [step.content for step in filtered.steps] == ["root", "leaf", "end"]
    assert filtered.steps[1].parent_step_id == root
    assert [snapshot.step_id for snapshot in filtered.state_snapshots] == [root, None]
    assert filtered.filtered
    assert not trajectory.filtered
    strict = filtered.filter(Importance.CRITICAL, preserve_first_last=False, keep_snapshots=False)
    assert [(step.content, step.parent_step_id) for step in strict.steps] == [("leaf", None)]
    assert strict.state_snapshots == ()
    assert strict.metadata["filter_settings"] == {
        "min_importance": "critical",
        "preserve_first_last": False,
        "keep_snapshots": False,
    }
    history = strict.metadata["filter_history"]
    assert [entry["settings"]["min_importance"] for entry in history] == ["medium", "critical"]
    assert [(entry["removed_steps"], entry["removed_snapshots"]) for entry in history] == [(1, 0), (2, 2)]


def test_filter_moves_a_snapshot_without_kept_ancestor_to_the_last_kept_step() -> None:
    trajectory = Trajectory.new().add_step("action", "first").add_step("action", "gone", importance="low")
    trajectory = trajectory.add_snapshot({}, step_id=trajectory.steps[1].id).add_step("action", "last")
    assert trajectory.filter().state_snapshots[0].step_id == trajectory.steps[0].id
    assert Trajectory.new().filter().filtered
    assert Trajectory.new({"filter_history": "mine"}).filter().metadata["filter_history"][0]["removed_steps"] == 0


def test_statistics_count_what_is_there() -> None:
    statistics = _three_levels().add_snapshot({}).complete("failure").statistics()
    assert statistics.total_steps == 3
    assert statistics.step_types == {"reasoning": 1, "action": 1, "tool_call": 1}
    assert statistics.importance_distribution == {"low": 1, "medium": 2}
    assert (statistics.total_snapshots, statistics.outcome, statistics.filtered) == (1, "failure", False)
    assert statistics.duration_ms_by_type == {"action": 5.0}
    assert (statistics.max_depth, statistics.error_count) == (3, 1)
    assert json.loads(json.dumps(statistics.to_dict()))["step_types"]["action"] == 1
    nothing = Trajectory.new().statistics()
    assert (nothing.max_depth, nothing.duration_ms, nothing.to_dict()["outcome"]) == (0, None, None)
    assert Trajectory.new().add_step("action", "flat").statistics().max_depth == 1


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(
    contents=st.lists(
        st.tuples(st.sampled_from(StepType), _JSON, st.sampled_from(Importance), st.floats(0, 1e9)), max_size=5
    ),
    metadata=st.dictionaries(st.text(), _JSON, max_size=3),
    completed=st.booleans(),
)
def test_dict_form_reads_back_as_an_equal_value(
    contents: list[tuple[StepType, Any, Importance, float]], metadata: dict[str, Any], completed: bool
) -> None:
    trajectory = Trajectory.new(metadata)
    for kind, content, importance, duration_ms in contents:
        parent = trajectory.steps[-1].id if trajectory.steps else None
        trajectory = trajectory.add_step(
            kind, content, importance=importance, duration_ms=duration_ms, parent_step_id=parent, context=content
        ).add_snapshot([content], step_id=parent)
    trajectory = trajectory.complete("partial", "x") if completed else trajectory
    text = json.dumps(trajectory.to_dict(), allow_nan=False)
    assert Trajectory.from_dict(json.loads(text)) == trajectory


def test_dict_form_tolerates_unknown_keys_and_names_wrong_ones() -> None:
    plain = _three_levels().add_snapshot({"a": 1}).complete().to_dict()
    plain["later"] = plain["steps"][0]["later"] = plain["state_snapshots"][0]["later"] = 1
    assert Trajectory.from_dict(plain).to_dict()["steps"][0]["content"] == "plan"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({**plain, "schema_version": 99}, "schema_version 99"),
        ({**plain, "id": None}, "id must be text"),
        ({**plain, "started_at": "yesterday"}, "started_at must be ISO-8601"),
        ({**plain, "outcome": "won"}, "outcome 'won'"),
        ({**plain, "steps": [{"id": "s"}]}, "type is missing"),
        (
            {**plain, "steps": [{"id": "s", "type": "action", "timestamp": "2026-01-01T00:00:00Z"}]},
            "content is missing",
        ),
        ({**plain, "steps": [plain["steps"][1]]}, "parent_step_id"),
        ({**plain, "steps": [plain["steps"][0]] * 2}, "already taken"),
        ({**plain, "state_snapshots": [{"id": "s"}]}, "timestamp is missing"),
    ]
    for mapping, words in wrong:
        with pytest.raises(ValueError, match=words):
            Trajectory.from_dict(mapping)


def test_steps_are_added_with_work_proportional_to_their_number() -> None:
    def add(count: int) -> None:
        trajectory = Trajectory.new()
        for number in range(count):
            parent = trajectory.steps[-1].id if trajectory.steps else None
            trajectory = trajectory.add_step("action", number, parent_step_id=parent)

    assert count_calls(lambda: add(4_000)) < 5 * count_calls(lambda: add(1_000))


class Numbered(NamedTuple):
    id: str


def test_a_sequence_grows_without_being_copied() -> None:
    sequence: FrozenSequence[Numbered] = FrozenSequence()
    # Copying a tuple makes no call that could be counted, but this many copies would take minutes.
    with without_hanging():
        for number in range(300_000):
            sequence = sequence.appended(Numbered(str(number)))
    assert len(sequence) == 300_000


def test_threads_that_add_to_one_value_do_not_see_each_other() -> None:
    base = Trajectory.new().add_step("action", "base")
    ends: list[Trajectory] = []

    def grow(name: int) -> None:
        mine = base
        for number in range(50):
            mine = mine.add_step("action", (name, number))
        ends.append(mine)

    threads = [threading.Thread(target=grow, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for end in ends:
        assert len({step.content[0] for step in end.steps[1:]}) == 1
        assert [step.content[1] for step in end.steps[1:]] == list(range(50))


def test_steps_behave_like_a_tuple() -> None:
    steps = _three_levels().steps
    assert steps == tuple(steps)
    assert tuple(steps) == steps
    assert steps != tuple(steps)[:2]
    assert steps != 5
    assert steps[-1] is steps[2]
    assert steps[1:] == tuple(steps)[1:]
    assert isinstance(steps[1:], tuple)
    assert repr(steps) == repr(tuple(steps))
    assert hash(steps) == hash(tuple(steps))
    assert Trajectory.new().steps == ()
    with pytest.raises(IndexError):
        steps[3]


def test_values_survive_pickle_and_deepcopy_with_cycles_in_their_content() -> None:
    ring: list[Any] = [1]
    ring.append({"ring": ring})
    trajectory = _three_levels().complete()
    assert pickle.loads(pickle.dumps(trajectory)) == copy.deepcopy(trajectory) == trajectory
    again = pickle.loads(pickle.dumps(Trajectory.new().add_step("action", ring))).steps[0].content
    assert again[1]["ring"] is again


def test_steps_stand_below_their_parents_in_order() -> None:
    grown = Trajectory.new().add_step("action", "a").add_step("action", "b")
    first, second = (step.id for step in grown.steps)
    grown = grown.add_step("action", "a1", parent_step_id=first).add_step("action", "b1", parent_step_id=second)
    grown = grown.add_step("action", "a2", parent_step_id=first)
    drawn = [[(depth, node.step.content) for depth, node in root.walk()] for root in grown.tree()]
    assert drawn == [[(0, "a"), (1, "a1"), (1, "a2")], [(0, "b"), (1, "b1")]]
    assert Trajectory.new().tree() == ()


def test_very_deep_trees_are_grown_and_walked() -> None:
    grown = Trajectory.new().add_step("action", 0)
    for number in range(1, 5000):
        grown = grown.add_step("action", number, parent_step_id=grown.steps[-1].id)
    (root,) = grown.tree()
    assert [(depth, node.step.content) for depth, node in root.walk()] == [(one, one) for one in range(5000)]


def test_child_whose_parent_is_not_there_is_a_root() -> None:
    grown = Trajectory.new().add_step("action", "a")
    grown = grown.add_step("action", "b", parent_step_id=grown.steps[0].id)
    assert [root.step.content for root in grow_tree(grown.steps[1:])] == ["b"]


@given(st.lists(st.integers(-1, 30), max_size=30))
def test_every_step_is_in_the_tree_once(parents: list[int]) -> None:
    grown = Trajectory.new()
    for number, parent in enumerate(parents):
        above = grown.steps[parent % number].id if number and parent >= 0 else None
        grown = grown.add_step("action", number, parent_step_id=above)
    nodes = [node for root in grown.tree() for _, node in root.walk()]
    assert sorted(node.step.content for node in nodes) == list(range(len(parents)))
    assert all(child.step.parent_step_id == node.step.id for node in nodes for child in node.children)
