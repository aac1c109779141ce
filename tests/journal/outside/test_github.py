from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.errors import PayloadError, SignatureError
from pytest_golden.journal.outside.github_webhooks import EVENTS, github_signal
from tests.journal.outside import github_payloads as github
from tests.journal.outside.github_payloads import SECRET, SHA, deliver, headers, heard


def test_a_delivery_becomes_the_arguments_of_a_signal() -> None:
    signal = heard("check_run", github.check_run())
    assert signal.pop("external_id").startswith("sha256:")
    assert signal == {
        "source": "github",
        "signal_type": "positive",
        "summary": "check unit tests: success (octo/shop#42, 5a3b9c1)",
        "data": {
            "event": "check_run",
            "action": "completed",
            "repository": "octo/shop",
            "pr": 42,
            "sha": SHA,
            "branch": "totals",
            "name": "unit tests",
            "app": "github-actions",
            "author": "ada",
            "conclusion": "success",
            "url": "https://github.com/octo/shop/runs/128620228",
        },
    }


@pytest.mark.parametrize("event", ["push", "ping", "issues", "workflow_job", "deployment_status", "", "Check_Run"])
def test_other_events_decide_nothing(event: str) -> None:
    assert deliver(event, {"zen": "Design for failure.", **github.check_run()}) is None


def test_signature_is_looked_at_before_anything_else() -> None:
    body = b"{not even JSON"
    unsigned = {key: value for key, value in headers("push", body).items() if key != "X-Hub-Signature-256"}
    with pytest.raises(SignatureError, match="X-Hub-Signature-256 is missing"):
        github_signal(unsigned, body, SECRET)
    with pytest.raises(SignatureError, match="another secret, or a changed body"):
        github_signal(headers("check_run", body), body + b" ", SECRET)
    with pytest.raises(SignatureError):
        github_signal(headers("check_run", body), body, "not the secret")


def test_old_sha1_signature_is_none() -> None:
    body = b"{}"
    old = {"X-GitHub-Event": "push", "X-Hub-Signature": "sha1=" + "0" * 40}
    with pytest.raises(SignatureError):
        github_signal(old, body, SECRET)


def test_header_names_have_any_case() -> None:
    body = json.dumps(github.check_run()).encode()
    given = headers("check_run", body)
    for case in (str.lower, str.upper):
        assert github_signal({case(key): value for key, value in given.items()}, body, SECRET) is not None


def test_event_must_be_named() -> None:
    body = json.dumps(github.check_run()).encode()
    nameless = {key: value for key, value in headers("", body).items() if key != "X-GitHub-Event"}
    with pytest.raises(PayloadError, match="X-GitHub-Event is missing"):
        github_signal(nameless, body, SECRET)


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("wrong", [{}, {"action": "completed"}])
def test_body_without_what_its_event_has_is_refused(event: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(
        PayloadError, match=f"the event is said to be {event}, but the body has no {EVENTS[event][0][0]}"
    ):
        deliver(event, wrong)
    with pytest.raises(PayloadError):
        deliver(event, {**wrong, **{name: [1] for name in EVENTS[event][0]}})


def test_replay_under_the_name_of_another_event_says_nothing_new() -> None:
    bodies = {
        "check_run": github.check_run(),
        "check_suite": github.check_suite(),
        "workflow_run": github.workflow_run(),
        "pull_request": github.closed(merged=True),
        "pull_request_review": github.review(),
        "issue_comment": github.comment(),
    }
    for event, payload in bodies.items():
        for other in bodies.keys() - {event}:
            with suppress(PayloadError):
                assert deliver(other, payload) is None


# --- replays and re-runs


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("check_run", github.check_run()),
        ("check_suite", github.check_suite()),
        ("workflow_run", github.workflow_run()),
        ("pull_request", github.closed(merged=True)),
        ("pull_request_review", github.review()),
        ("issue_comment", github.comment()),
    ],
)
def test_replay_is_known_whatever_its_unsigned_headers_say(event: str, payload: dict[str, Any]) -> None:
    body = json.dumps(payload).encode()
    given = {**headers(event, body), "X-GitHub-Delivery": "another", "X-GitHub-Hook-ID": "2"}
    assert github_signal(given, body, SECRET) == deliver(event, payload)


def test_two_hooks_that_tell_of_the_same_run_are_one() -> None:
    once = heard("workflow_run", github.workflow_run())
    again = heard("workflow_run", {**github.workflow_run(), "installation": {"id": 5}})
    assert again["external_id"] == once["external_id"]


@pytest.mark.parametrize(
    ("event", "first", "second"),
    [
        ("check_run", github.check_run(), github.check_run(id=128620229)),
        ("check_run", github.check_run(), github.check_run(completed_at="2026-03-01T12:09:00Z")),
        ("check_run", github.check_run(), github.check_run(conclusion="failure")),
        ("check_suite", github.check_suite(), github.check_suite(updated_at="2026-03-01T12:09:00Z")),
        ("workflow_run", github.workflow_run(), github.workflow_run(run_attempt=2)),
        ("workflow_run", github.workflow_run(), github.workflow_run(id=1)),
        ("pull_request", github.closed(merged=False), github.closed(merged=False, closed_at="2026-03-02T13:00:00Z")),
        ("pull_request", github.closed(merged=False), github.closed(merged=True)),
        ("pull_request_review", github.review(), github.review("dismissed", "dismissed")),
        ("pull_request_review", github.review(), github.review(id=1)),
        ("issue_comment", github.comment(), github.comment(id=1)),
    ],
)
def test_rerun_is_other_news(event: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    assert heard(event, first)["external_id"] != heard(event, second)["external_id"]


def test_same_id_in_another_repository_is_other_news() -> None:
    other = {**github.check_run(), "repository": github.FORK}
    assert heard("check_run", other)["external_id"] != heard("check_run", github.check_run())["external_id"]


def test_attempt_that_an_old_server_does_not_count_is_told_by_its_time() -> None:
    first, second = (
        heard("workflow_run", github.workflow_run(run_attempt=None, updated_at=at)) for at in ("12:04", "12:09")
    )
    assert first["external_id"] != second["external_id"]


def test_what_has_no_id_is_known_by_its_whole_body() -> None:
    first, second = (heard("check_run", github.check_run(id=None, name=name)) for name in ("a", "b"))
    assert first["external_id"] != second["external_id"]
    assert heard("check_run", github.check_run(id=None, name="a")) == first


# --- forms


def form(payload: Any, **more: str) -> bytes:
    return urlencode({"payload": json.dumps(payload), **more}).encode()


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "Application/X-WWW-Form-Urlencoded; charset=utf-8"]
)
def test_form_is_read_like_json(kind: str) -> None:
    payload = github.check_run(name="tests “ü” 🎉 & more=%41+")
    assert deliver("check_run", form(payload), **{"Content-Type": kind}) == deliver("check_run", payload)


def test_form_is_known_by_its_beginning_where_no_type_is_given() -> None:
    body = form(github.check_run())
    given = {key: value for key, value in headers("check_run", body).items() if key != "Content-Type"}
    assert github_signal(given, body, SECRET) == deliver("check_run", github.check_run())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "must have the field payload, once"),
        (b"paiload={}", "must have the field payload, once"),
        (b"payload={}&payload={}", "must have the field payload, once"),
        (b"payload=%5B%5D", "must be a JSON object"),
        (b"payload=", "not JSON"),
        (b"payload=%ff", "not a form"),
        (b"payload=\xff", "not a form"),
        (b"&".join([b"a=1"] * 11), "not a form"),
    ],
)
def test_form_of_another_shape_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(PayloadError, match=message):
        deliver("check_run", body, **{"Content-Type": "application/x-www-form-urlencoded"})


# --- hostile content, rightly signed


def test_nothing_of_the_payload_is_kept_but_short_facts() -> None:
    long = "x" * 100_000
    payload = github.check_run(name=long, output={"title": long, "summary": long, "text": long})
    signal = heard("check_run", payload)
    assert len(json.dumps(signal)) < 3_000
    assert signal["data"]["name"].endswith("…")


def test_secret_is_not_cut_in_half() -> None:
    name = "x" * 270 + " ghp_" + "a1B2c3D4e5F6" * 3
    assert "ghp_" not in json.dumps(heard("check_run", github.check_run(name=name)))


def test_text_is_made_fit_to_be_kept() -> None:
    signal = heard("check_run", github.check_run(name="a\0b\n\t c \ud800 ü"))
    assert signal["data"]["name"] == "a\\x00b c \\ud800 ü"


def test_missing_and_null_fields_are_left_out() -> None:
    bare = {"action": "completed", "check_run": {"conclusion": "failure"}}
    signal = heard("check_run", bare)
    assert signal["summary"] == "check without a name: failure (a repository)"
    assert signal["data"] == {
        "event": "check_run",
        "action": "completed",
        "repository": None,
        "pr": None,
        "sha": None,
        "conclusion": "failure",
    }


@pytest.mark.parametrize("number", [10**400, -1, 0, True, 1.5, "42", None, [], {}, 2**63])
def test_number_that_is_none_is_left_out(number: Any) -> None:
    assert heard("check_run", github.check_run(pull_requests=[{"number": number}]))["data"]["pr"] is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PAYLOADS = {
    "check_run": github.check_run(),
    "check_suite": github.check_suite(),
    "workflow_run": github.workflow_run(),
    "pull_request": github.closed(merged=False),
    "pull_request_review": github.review(),
    "issue_comment": github.comment(),
}


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for key, item in items for below in _paths(item, (*path, key)))]


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = value.copy()
    changed[path[0]] = _replaced(value[path[0]], path[1:], new)
    return changed


@given(st.data())
def test_any_field_may_hold_anything(data: st.DataObject) -> None:
    event = data.draw(st.sampled_from(sorted(PAYLOADS)))
    payload = PAYLOADS[event]
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(_paths(payload)[1:]))
        payload = _replaced(payload, path, data.draw(json_values))
    body = json.dumps(payload).encode()
    try:
        signal = github_signal(headers(event, body), body, SECRET)
    except PayloadError:
        return
    if signal is not None:
        assert json.dumps(signal)
        assert signal["summary"].strip()
        assert set(signal["data"]) >= {"event", "action", "pr", "sha", "repository"}
