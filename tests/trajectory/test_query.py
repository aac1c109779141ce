from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.jsonlines import iter_steps
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.query import MAX_DEPTH, MAX_TEXT, StepQuery, parse_query, where
from pytest_golden.trajectory.recorder import TrajectoryRecorder
from pytest_golden.trajectory.vocabulary import Importance, StepType
from tests.patience import without_hanging

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_trajectory() -> Trajectory:
    """Five steps, by content: plan, call (a failed child of plan), row (child of call), note, end."""
    grown = Trajectory.new(started_at=NOON).add_step("reasoning", "plan", timestamp=NOON, importance="low")
    grown = grown.add_step(
        "tool_call",
        "call",
        importance="high",
        duration_ms=1500,
        parent_step_id=grown.steps[0].id,
        timestamp=NOON.replace(minute=1),
        metadata={"error": "Timeout after 5 s", "gen_ai.model": "gpt", "rows": 0, "ok": True, "none": None},
    )
    grown = grown.add_step(
        "observation",
        {"row": ["Äpfel", 1.5]},
        parent_step_id=grown.steps[1].id,
        timestamp=NOON.replace(minute=2),
        metadata={"deep": {"list": [{"x": 1}, {"x.y": 2}]}, "rows": 1204, "name": "b"},
    )
    grown = grown.add_step("action", "note", timestamp=NOON.replace(minute=3), duration_ms=20, context="quiet")
    return grown.add_step("action", "end", timestamp=NOON.replace(minute=4), metadata={"failed": True})


WHOLE = a_trajectory()
NAMES = dict(zip((step.id for step in WHOLE.steps), ("plan", "call", "row", "note", "end"), strict=True))
PLAN, CALL = (step.id for step in WHOLE.steps[:2])


def ask(query: StepQuery | str) -> str:
    return " ".join(NAMES[step.id] for step in WHOLE.query(query))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, "plan call row note end"),
        ({"type": "action"}, "note end"),
        ({"type": StepType.TOOL_CALL}, "call"),
        ({"importance": "low"}, "plan"),
        ({"min_importance": Importance.MEDIUM}, "call row note end"),
        ({"text": "TIMEOUT"}, "call"),
        ({"text": "äpf"}, "row"),
        ({"text": "quiet"}, "note"),
        ({"text": "1.5"}, "row"),
        ({"metadata": {"rows": 0}}, "call"),
        ({"metadata": {"rows": False}}, ""),
        ({"metadata": {"ok": True}}, "call"),
        ({"metadata": {"ok": 1}}, ""),
        ({"metadata": {"none": None}}, "call"),
        ({"metadata": {"gen_ai.model": "gpt", "rows": 0.0}}, "call"),
        ({"metadata": {"deep.list.0.x": 1}}, "row"),
        ({"metadata": {"deep.list.1.x.y": 2}}, "row"),
        ({"metadata": {"deep.list.9.x": 1}}, ""),
        ({"metadata": {"deep.list.x": 1}}, ""),
        ({"metadata": {"name.x": 1}}, ""),
        ({"min_duration_ms": 20}, "call note"),
        ({"max_duration_ms": 20}, "note"),
        ({"min_duration_ms": 20, "max_duration_ms": 1499}, "note"),
        ({"after": NOON.replace(minute=3)}, "note end"),
        ({"before": NOON}, "plan"),
        ({"has_error": True}, "call end"),
        ({"has_error": False}, "plan row note"),
        ({"under": PLAN}, "call row"),
        ({"under": CALL, "type": "observation"}, "row"),
        ({"under": "step_nowhere"}, ""),
    ],
)
def test_where_asks_and_its_text_asks_the_same(asked: dict[str, Any], found: str) -> None:
    query = where(**asked)
    assert ask(query) == ask(str(query)) == found
    assert parse_query(str(query)) == query


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "plan call row note end"),
        ('type=tool_call importance>=high error~"timeout"', "call"),
        ("importance<medium or importance>high", "plan"),
        ("importance<=low", "plan"),
        ("type!=action and not type=reasoning", "call row"),
        ("NOT (type=action OR type=reasoning)", "call row"),
        ("type=action type=reasoning or content=note", "note"),
        ("type=action (content=note or content=plan)", "note"),
        ("()", "plan call row note end"),
        ("not ()", ""),
        ("error=true", "call end"),
        ("error=false", "plan row note"),
        ("error!=true", "plan row note"),
        ('error="true"', "end"),
        ("error='Timeout after 5 s'", "call"),
        ('content="{\\"row\\": [\\"Äpfel\\", 1.5]}"', "row"),
        ("content~PL", "plan"),
        ("not content~l", "note end"),
        ("text=quiet", "note"),
        ("text!=quiet", "plan call row end"),
        ("duration_ms=20", "note"),
        ("duration_ms!=20", "plan call row end"),
        ("duration_ms>20 or duration_ms<20", "call"),
        ("timestamp=2026-01-01T13:00:00+01:00", "plan"),
        ("timestamp>2026-01-01T12:00:00Z timestamp<2026-01-01T12:03:00Z", "call row"),
        ("under!=PLAN", "plan note end"),
        ("not under=PLAN or under=CALL", "plan row note end"),
        ("metadata.rows<1204", "call"),
        ("metadata.rows>=0", "call row"),
        ("metadata.rows!=0", "plan row note end"),
        ("metadata.none=null", "call"),
        ('metadata.name>"a"', "row"),
        ("metadata.name>5", ""),
        ("metadata.error~after", "call"),
        ("metadata.rows~120", "row"),
        ("metadata.nothing~x", ""),
        ('metadata."gen_ai.model"=gpt', "call"),
        ("metadata.rows=+1.204e3", "row"),
    ],
)
def test_text_asks(text: str, found: str) -> None:
    text = text.replace("PLAN", PLAN).replace("CALL", CALL)
    assert ask(text) == found
    assert parse_query(str(parse_query(text))) == parse_query(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("type", "column 5: after type comes one of = !=, not the end"),
        ("type<action", "column 5: after type comes one of = !=, not '<'"),
        ("type=", "column 6: after = comes a type of steps, not the end"),
        ("type=act", "column 6: type 'act' is unknown: give one of reasoning, action"),
        ("error~x  tyep=action", "column 10: a field comes here, one of type, importance"),
        ("importance>=hi", "column 13: importance 'hi' is unknown: give one of low, medium"),
        ("duration_ms>soon", "column 13: duration_ms is compared with a number of milliseconds, not 'soon'"),
        ("duration_ms>-1", "column 13: duration_ms must be a finite number"),
        ("duration_ms>1e999", "column 13: duration_ms must be a finite number"),
        ("timestamp>=2026", "column 12: timestamp must be ISO-8601"),
        ("timestamp>=2026-01-01", "column 12: timestamp must be an aware datetime"),
        ("(type=action", r"column 1: this \( is not closed"),
        ("type=action)", r"column 12: this \) has no matching \("),
        ('error~"abc', "column 7: this quote is not closed"),
        ("a!b", "column 2: '!' is not an operator"),
        ("or type=action", "column 1: a field comes here"),
        ("type=action or", "column 15: a field comes here.*not the end"),
        ("not", "column 4: a field comes here"),
        ("metadata=1", "column 1: a field comes here.*metadata.PATH"),
        ("metadata.=1", "column 1: a field comes here"),
        ('metadata." "=1', "column 1: the path after metadata. is blank"),
        ("type.x=action", "'type.x'|not 'type.x'|after type"),
        (f"content={'(' * 50}", "column 9: after = comes text"),
        (f"type={'x' * 50}!", "column 56"),
        ("(" * 51, "column 51: a query may be nested 50 deep"),
        ("not " * 51 + "error=true", "column 201: a query may be nested 50 deep"),
        ("x" * (MAX_TEXT + 1), "column 10001: a query may have 10000 characters"),
        ("under=''", "column 7: under must be text that is not blank"),
        ("metadata.x=" + "9" * 301, None),
        ("metadata.x=1e301", "column 12: metadata can be compared with"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_column(text: str, said: str | None) -> None:
    if said is None:
        assert ask(text) == ""
        return
    with pytest.raises(ValueError, match=said):
        parse_query(text)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"type": "act"}, "type 'act' is unknown"),
        ({"min_importance": "much"}, "min_importance 'much' is unknown"),
        ({"text": 5}, "text must be text, not 5"),
        ({"metadata": {"x": [1]}}, "metadata can be compared with text"),
        ({"metadata": {"x": float("nan")}}, "metadata can be compared with"),
        ({"metadata": {"x": 10**301}}, "metadata can be compared with"),
        ({"metadata": {"": 1}}, "metadata path must be text"),
        ({"min_duration_ms": -1}, "min_duration_ms must be"),
        ({"after": datetime(2026, 1, 1)}, "after must be an aware datetime"),  # noqa: DTZ001
        ({"has_error": "yes"}, "has_error must be True or False"),
        ({"under": " "}, "under must be text"),
    ],
)
def test_where_refuses_what_is_not_allowed(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        where(**asked)


def test_query_that_is_no_text_is_refused() -> None:
    with pytest.raises(ValueError, match="a query must be text"):
        parse_query(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _ = where() & "type=action"  # type: ignore[operator]
    with pytest.raises(TypeError):
        _ = where() | 5  # type: ignore[operator]


def test_joints_mean_what_they_say() -> None:
    action, failed = where(type="action"), where(has_error=True)
    assert ask(action & failed) == "end"
    assert ask(action | failed) == "call note end"
    assert ask(~action) == "plan call row"
    assert ~~action == action
    assert action & failed & action == action & (failed & action)
    assert ask(~(action | failed)) == "plan row"
    assert str((action | failed) & ~(action & failed)) == "(type=action or error=true) not (type=action error=true)"
    assert where() & action == action
    assert str(where() | action) == "() or type=action"
    assert len({action, where(type="action")}) == 1


def test_step_alone_knows_its_parent() -> None:
    query = where(under=PLAN)
    assert [query.matches(step) for step in WHOLE.steps] == [False, True, False, False, False]
    assert where(type="action").matches(WHOLE.steps[3])


def test_queries_nested_too_deep_are_refused() -> None:
    query = where(type="action")
    for _ in range(MAX_DEPTH // 2 - 2):
        query = (query | where(has_error=True)) & where(text="x")
    assert parse_query(str(query)) == query
    query = query | where()
    deepest = ~(query & where(text="y"))
    with pytest.raises(ValueError, match="50 deep"):
        _ = deepest | where()


def test_text_that_would_be_a_costly_pattern_is_found_at_once() -> None:
    step = Trajectory.new().add_step("action", "a" * 100_000).steps[0]
    with without_hanging():
        assert not parse_query('content~"(a+)+$" or error~"(a|a)*b"').matches(step)
        with pytest.raises(ValueError, match="column 9"):
            parse_query('content~"' + "\\\\" * 4900 + "\\")


def test_cycles_in_content_have_texts_too() -> None:
    cycle: dict[str, Any] = {"word": "needle"}
    cycle["self"] = cycle
    step = Trajectory.new().add_step("action", cycle, metadata=cycle).steps[0]
    assert where(text="NEEDLE").matches(step)
    assert not where(metadata={"self.self.self.word": "x"}).matches(step)
    assert where(metadata={"self.self.self.word": "needle"}).matches(step)
    assert not where(metadata={"self." * 30 + "word": "needle"}).matches(step)


def test_file_is_asked_step_by_step(tmp_path: Path) -> None:
    recorder = TrajectoryRecorder(tmp_path / "t.jsonl")
    with recorder.span("action", "all") as span:
        for number in range(100):
            recorder.step("action", number, metadata={"row": number})
    recorder.step("action", "after", metadata={"row": 99})
    query = parse_query(f"metadata.row>97 under={span.id}")
    selected = query.select(iter_steps(tmp_path / "t.jsonl"))
    assert [step.content for step in selected] == [98, 99]
    placed = query.select_placed(iter_steps(tmp_path / "t.jsonl"))
    assert [place for place, _ in placed] == [99, 100]


FREE = st.none() | st.booleans() | st.integers() | st.floats(-1e299, 1e299) | st.text()
TERMS = st.one_of(
    st.sampled_from(StepType).map(lambda word: where(type=word)),
    st.sampled_from(Importance).map(lambda word: where(min_importance=word)),
    st.text().map(lambda text: where(text=text)),
    st.tuples(st.text(min_size=1).filter(str.strip), FREE).map(lambda pair: where(metadata=dict([pair]))),
    st.floats(0, 1e300).map(lambda number: where(max_duration_ms=number)),
    st.datetimes(timezones=st.just(UTC)).map(lambda moment: where(after=moment)),
    st.booleans().map(lambda flag: where(has_error=flag)),
    st.text(min_size=1).filter(str.strip).map(lambda step_id: where(under=step_id)),
    st.just(where()),
)
QUERIES = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
        inner.map(lambda query: ~query),
    ),
    max_leaves=12,
)


@given(QUERIES)
def test_text_of_a_query_reads_back_as_the_query(query: StepQuery) -> None:
    assert parse_query(str(query)) == query
    assert str(parse_query(str(query))) == str(query)


@given(QUERIES)
def test_a_step_is_asked_for_or_not(query: StepQuery) -> None:
    found, others = WHOLE.query(query), WHOLE.query(~query)
    assert sorted(found + others, key=lambda step: step.timestamp) == list(WHOLE.steps)


@given(st.text(alphabet="()=!<>~\"'\\ .aornt5metadata", max_size=40))
def test_any_text_is_a_query_or_refused_with_a_column(text: str) -> None:
    said = ""
    try:
        query = parse_query(text)
    except ValueError as error:
        said = str(error)
    assert said.startswith("column ") or parse_query(str(query)) == query
