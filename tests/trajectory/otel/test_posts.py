from __future__ import annotations

import gzip
import json
import struct
import sys
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.otel import posts as posts_module
from pytest_golden.trajectory.otel.posts import MAX_BODY_BYTES, Post, read_posts, unpack
from pytest_golden.trajectory.vocabulary import Importance, StepType
from tests.trajectory.otel.bodies import fixed, message, proto_request, proto_span, request, span, varint

if TYPE_CHECKING:
    from pytest_golden.trajectory.readers.model import StepReading


def read_json(*spans: Any) -> StepReading:
    return read_posts([Post(request(*spans), is_json=True)])


def attribute(key: str, **value: Any) -> dict[str, Any]:
    return {"key": key, "value": value}


def test_a_span_becomes_a_step_with_its_name_times_and_attributes() -> None:
    attributes = [
        attribute("rows", intValue="5"),
        attribute("ok", boolValue=True),
        attribute("rate", doubleValue=0.5),
        attribute("names", arrayValue={"values": [{"stringValue": "a"}, {"intValue": 1}]}),
        attribute("more", kvlistValue={"values": [attribute("deep", stringValue="x")]}),
        attribute("raw", bytesValue="AAE="),
        attribute("empty"),
    ]
    (step,) = read_json(span("load", kind="SPAN_KIND_CLIENT", attributes=attributes)).steps
    assert (step.content, step.type, step.importance) == ("load", StepType.ACTION, Importance.MEDIUM)
    assert step.duration_ms == 2.5
    assert step.timestamp is not None
    assert step.timestamp.timestamp() == 1_700_000_000
    assert step.metadata == {
        "rows": 5,
        "ok": True,
        "rate": 0.5,
        "names": ["a", 1],
        "more": {"deep": "x"},
        "raw": b"\0\1",
        "empty": None,
    }
    assert step.context == {"kind": "client", "scope": "lib"}


def test_parents_are_kept_also_of_children_that_come_first_and_in_another_post() -> None:
    child = Post(request(span("child", 2, parent=1, start=1_700_000_001)), is_json=True)
    parent = Post(request(span("parent", 1)), is_json=True)
    reading = read_posts([child, parent])
    assert [step.content for step in reading.steps] == ["parent", "child"]
    assert reading.steps[1].parent_step_id == reading.steps[0].id


def test_a_span_sent_twice_counts_once_whatever_it_was_sent_in() -> None:
    reading = read_posts([Post(request(span("a", 7)), is_json=True), Post(proto_request(proto_span("a", 7)))])
    assert len(reading.steps) == 1
    assert reading.lost_count == 0


def test_two_traces_may_use_one_span_id() -> None:
    other = {**span("b", 1), "traceId": "f" * 32}
    child = {**span("c", 2, parent=1), "traceId": "f" * 32}
    reading = read_json(span("a", 1), other, child)
    assert len({step.id for step in reading.steps}) == 3
    assert reading.steps[2].parent_step_id == reading.steps[1].id


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("chat", StepType.REASONING),
        ("text_completion", StepType.REASONING),
        ("generate_content", StepType.REASONING),
        ("execute_tool", StepType.TOOL_CALL),
        ("embeddings", StepType.ACTION),
        (["chat"], StepType.ACTION),
    ],
)
def test_genai_conventions_tell_what_a_step_is(operation: Any, expected: StepType) -> None:
    given_value: dict[str, Any] = (
        {"stringValue": operation} if isinstance(operation, str) else {"arrayValue": {"values": []}}
    )
    (step,) = read_json(span("x", attributes=[attribute("gen_ai.operation.name", **given_value)])).steps
    assert step.type is expected


@pytest.mark.parametrize("code", [2, "2", "STATUS_CODE_ERROR"])
def test_an_error_is_critical_and_says_why(code: Any) -> None:
    (step,) = read_json(span("x", status={"code": code, "message": "no rows"})).steps
    assert (step.importance, step.metadata["error"]) == (Importance.CRITICAL, "no rows")


def test_an_error_without_a_message_is_told_by_its_exception_and_without_its_stack() -> None:
    raised = [
        attribute("exception.type", stringValue="ValueError"),
        attribute("exception.message", stringValue="boom"),
        attribute("exception.stacktrace", stringValue="secret frame"),
    ]
    events = [{"name": "exception", "attributes": raised}, {"name": "retry", "attributes": []}]
    (step,) = read_json(span("x", status={"code": 2}, events=events)).steps
    assert step.metadata == {"error": "ValueError: boom", "error_type": "ValueError", "events": [{"name": "retry"}]}
    (bare,) = read_json(span("x", status={"code": 2})).steps
    assert bare.metadata["error"] == "the span's status is ERROR"


def test_protobuf_says_the_same_as_json() -> None:
    def pair(key: bytes, value: bytes) -> bytes:
        return message(9, message(1, key) + message(2, value))

    extra = (
        pair(b"rows", varint(3 << 3) + varint((1 << 64) - 5))
        + pair(b"rate", varint(4 << 3 | 1) + struct.pack("<d", 0.5))
        + pair(b"ok", varint(2 << 3) + b"\1")
        + pair(b"names", message(5, message(1, message(1, b"a"))))
        + pair(b"more", message(6, message(1, message(1, b"deep") + message(2, message(7, b"\0")))))
        + message(4, (9).to_bytes(8, "big"))
        + varint(6 << 3) + b"\3"
        + message(11, fixed(1, 5) + message(2, b"retry") + message(3, message(1, b"n") + message(2, b"\x18\2")))
        + message(15, message(2, b"no rows") + varint(3 << 3) + b"\2")
        + varint(16 << 3 | 5) + b"\0\0\0\0"
    )  # fmt: skip
    reading = read_posts([Post(gzip.compress(proto_request(proto_span("load", extra=extra))), is_gzip=True)])
    (step,) = reading.steps
    assert reading.warnings == ()
    assert (step.content, step.duration_ms, step.parent_step_id) == ("load", 2.5, f"{9:016x}")
    assert step.metadata == {
        "events": [{"name": "retry", "n": 2}],
        "rows": -5,
        "rate": 0.5,
        "ok": True,
        "names": ["a"],
        "more": {"deep": b"\0"},
        "error": "no rows",
    }
    assert step.context == {"kind": "client"}


@pytest.mark.parametrize("extra", [message(9, b"\x08\x01\x09"), message(5, b"\xff"), message(9, b"\x0b"), b"\xff" * 12])
def test_a_span_that_cannot_be_read_costs_only_itself(extra: bytes) -> None:
    reading = read_posts([Post(proto_request(proto_span("bad", 1, extra=extra), proto_span("good", 2)))])
    assert [step.content for step in reading.steps] == ["good"]
    assert reading.lost_count == 1
    assert reading.warnings == ("1 OpenTelemetry spans could not be read",)


@pytest.mark.parametrize(
    "bad",
    [
        7,
        {**span("x"), "startTimeUnixNano": "yesterday"},
        {**span("x"), "endTimeUnixNano": -1},
        {**span("x"), "spanId": "f" * 100},
        {**span("x"), "kind": [1]},
        {"attributes": []},
        span("x", attributes=[attribute("n", intValue="9" * 50)]),
    ],
)
def test_a_json_span_that_cannot_be_read_costs_only_itself(bad: Any) -> None:
    reading = read_json(bad, span("good", 2))
    assert [step.content for step in reading.steps] == ["good"]
    assert reading.lost_count == 1


def test_a_value_nested_too_deeply_costs_its_span() -> None:
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(50):
        value = {"arrayValue": {"values": [value]}}
    assert read_json(span("x", attributes=[{"key": "deep", "value": value}])).lost_count == 1
    deep = message(1, b"x")
    for _ in range(50):
        deep = message(5, message(1, deep))
    body = proto_request(proto_span("x", extra=message(9, message(1, b"deep") + message(2, deep))))
    assert read_posts([Post(body)]).lost_count == 1


@pytest.mark.parametrize(
    "post",
    [
        Post(b"not json", is_json=True),
        Post(b"[1]", is_json=True),
        Post(b'{"spans": []}', is_json=True),
        Post(b"[" * 100_000, is_json=True),
        Post(b"\x0a\xff\xff\xff"),
        Post(b"garbage"),
        Post(b"\x0a\0" * 100_001),
        Post(b"not gzip", is_gzip=True),
        Post(gzip.compress(request(span("x")))[:-9], is_json=True, is_gzip=True),
        Post(gzip.compress(b"\0" * (MAX_BODY_BYTES + 1)), is_gzip=True),
        Post(gzip.compress(b"") * 200, is_gzip=True),
    ],
)
def test_garbage_is_counted_and_told(post: Post) -> None:
    reading = read_posts([post, Post(request(span("good")), is_json=True)])
    assert [step.content for step in reading.steps] == ["good"]
    assert reading.lost_count == 1
    assert reading.warnings[0].startswith("1 post of OpenTelemetry spans could not be read: ")


def test_posts_that_are_no_json_have_one_reason_wherever_they_break() -> None:
    posts = [Post(b'{"a": 1' + b" " * size + ending, is_json=True) for size in range(9) for ending in (b"", b",", b"x")]
    posts.append(Post(b'{"a": ' + b"1" * 5000 + b"}", is_json=True))
    assert read_posts(posts).warnings == ("28 posts of OpenTelemetry spans could not be read: it is not JSON",)


def test_one_member_of_gzip_is_read() -> None:
    body = request(span("x"))
    assert unpack(gzip.compress(body)) == body
    with pytest.raises(ValueError, match="several members"):
        unpack(gzip.compress(body[:20]) + gzip.compress(body[20:]))
    with pytest.raises(ValueError, match="not gzip"):
        unpack(zlib.compress(body))


def test_what_goes_beyond_the_limits_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posts_module, "MAX_SPANS", 3)
    spans = [span(f"s{number}", number) for number in range(1, 6)]
    protobuf = proto_request(*(proto_span("p", number) for number in range(10, 14)))
    reading = read_posts([Post(request(*spans), is_json=True), Post(protobuf), Post(request(*spans), is_json=True)])
    assert [step.content for step in reading.steps] == ["s1", "s2", "s3"]
    assert reading.lost_count == 2 + 4 + 5
    assert reading.warnings == (
        "11 OpenTelemetry spans were left out: no more than 3 spans and 64 MiB of them are kept",
    )
    monkeypatch.setattr(posts_module, "_MAX_COUNTED_BYTES", 1)
    assert read_posts([Post(protobuf)] * 2).warnings[-1].endswith("there are too many")


def test_long_names_and_attributes_are_cut_and_marked() -> None:
    long = "x" * (2 << 20)
    (step,) = read_json(span(long, attributes=[attribute("prompt", stringValue=long)])).steps
    assert len(step.content) == len(step.metadata["prompt"]) == 1 << 20
    assert step.metadata["truncated_bytes"] == 2 << 20
    many = [attribute(f"a{number}", intValue=number) for number in range(1_500)]
    (step,) = read_json(span("x", attributes=many, droppedAttributesCount=2)).steps
    assert step.metadata["dropped_attributes"] == 502


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything(body: bytes) -> None:
    for is_json in (False, True):
        for is_gzip in (False, True):
            read_posts([Post(body, is_json, is_gzip)])
    read_posts([Post(message(1, message(2, message(2, body))))])


_KEYS = (
    "resourceSpans scopeSpans spans attributes key value name spanId status events kind startTimeUnixNano intValue"
    " kvlistValue values scope resource doubleValue"
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS.split()), inner, max_size=4),
    max_leaves=20,
)


@given(_JSON)
def test_no_json_raises_anything(document: Any) -> None:
    read_posts([Post(json.dumps(document).encode(), is_json=True)])
    read_json(document)
    read_json({**span("x"), "attributes": document, "events": document, "kind": document})


def test_only_so_many_spans_are_looked_at_whatever_is_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posts_module, "MAX_SPANS", 3)
    unreadable = Post(proto_request(*[b""] * 10))
    reading = read_posts([unreadable, unreadable, Post(request(span("late")), is_json=True)])
    assert (reading.steps, reading.lost_count) == ((), 21)
    assert reading.warnings[1] == "3 OpenTelemetry spans could not be read"


def test_a_span_of_thousands_of_events_shows_the_first_ones_and_why_it_failed() -> None:
    raised = message(2, b"exception") + message(3, message(1, b"exception.message") + message(2, message(1, b"boom")))
    events = message(11, message(2, b"tick")) * 5_000 + message(11, raised)
    body = proto_request(proto_span("x", extra=events + message(15, varint(3 << 3) + b"\2")))
    (step,) = read_posts([Post(body)]).steps
    assert (len(step.metadata["events"]), step.metadata["error"]) == (1_000, "boom")


def test_protobuf_without_its_library_is_counted_and_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytest_golden.trajectory.otel.protobuf_body", None)
    reading = read_posts([Post(proto_request(proto_span("x"))), Post(request(span("y")), is_json=True)])
    assert ([step.content for step in reading.steps], reading.lost_count) == (["y"], 1)
    assert reading.warnings[0].endswith(
        "could not be read: to read protobuf, install the extra otel: pip install 'pytest-golden-projects[otel]'"
    )
