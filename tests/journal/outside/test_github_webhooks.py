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
from tests.journal.outside.github_payloads import FORK, SECRET, SHA, deliver, headers, heard, listed, user


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


PAYLOADS = {
    "check_run": github.check_run(),
    "check_suite": github.check_suite(),
    "workflow_run": github.workflow_run(),
    "pull_request": github.closed(merged=False),
    "pull_request_review": github.review(),
    "pull_request_review_comment": github.review_comment(),
    "issue_comment": github.comment(),
    "status": github.status(),
    "deployment_status": github.deployment_status(),
    "merge_group": github.merge_group(),
}


def test_each_event_has_a_payload() -> None:
    assert PAYLOADS.keys() == EVENTS.keys()


@pytest.mark.parametrize("event", ["push", "ping", "issues", "workflow_job", "deployment", "", "Check_Run"])
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
        PayloadError, match=f"the header names the event {event}, but the body has no {EVENTS[event][0][0]}"
    ):
        deliver(event, wrong)
    with pytest.raises(PayloadError):
        deliver(event, {**wrong, **{name: [1] for name in EVENTS[event][0]}})


def test_replay_under_the_name_of_another_event_says_nothing_new() -> None:
    for event, payload in PAYLOADS.items():
        for other in PAYLOADS.keys() - {event}:
            with suppress(PayloadError):
                assert deliver(other, payload) is None


# --- replays and re-runs


@pytest.mark.parametrize(
    ("event", "payload"),
    PAYLOADS.items(),
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
        ("pull_request_review_comment", github.review_comment(), github.review_comment(id=1)),
        ("status", github.status(), github.status(id=1)),
        ("deployment_status", github.deployment_status(), github.deployment_status(id=1)),
        ("merge_group", github.merge_group(), github.merge_group("dequeued")),
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


SAYS = {
    "success": "positive",
    "failure": "negative",
    "timed_out": "negative",
    "startup_failure": "negative",
    "action_required": "negative",
    "neutral": "neutral",
    "skipped": "neutral",
    "cancelled": "neutral",
    "stale": "neutral",
    "something_new": "neutral",
}


@pytest.mark.parametrize(("conclusion", "says"), SAYS.items())
def test_conclusion_of_a_check_decides(conclusion: str, says: str) -> None:
    for event, make in (
        ("check_run", github.check_run),
        ("check_suite", github.check_suite),
        ("workflow_run", github.workflow_run),
    ):
        signal = heard(event, make(conclusion=conclusion))
        assert (signal["signal_type"], signal["data"]["conclusion"]) == (says, conclusion)


@pytest.mark.parametrize("action", ["created", "rerequested", "requested", "requested_action", "in_progress", None, 3])
def test_check_that_is_not_completed_decides_nothing(action: Any) -> None:
    assert deliver("check_run", {**github.check_run(), "action": action}) is None
    assert deliver("check_suite", {**github.check_suite(), "action": action}) is None
    assert deliver("workflow_run", {**github.workflow_run(), "action": action}) is None
    assert deliver("workflow_run", github.workflow_run(conclusion=None)) is None


def test_suite_and_workflow_tell_what_hints_want() -> None:
    suite, run = heard("check_suite", github.check_suite()), heard("workflow_run", github.workflow_run())
    assert suite["summary"] == "check suite GitHub Actions: success (octo/shop#42, 5a3b9c1)"
    assert suite["data"].items() >= {"pr": 42, "sha": SHA, "branch": "totals", "app": "github-actions"}.items()
    assert run["summary"] == "workflow CI: success (octo/shop#42, 5a3b9c1)"
    assert run["data"].items() >= {"pr": 42, "name": "CI", "author": "grace", "run_attempt": 1}.items()


def test_workflow_without_a_name_has_that_of_its_file() -> None:
    assert heard("workflow_run", github.workflow_run(name=""))["data"]["name"] == "CI"


def test_run_of_an_unknown_or_deleted_user_has_the_sender_as_author() -> None:
    assert heard("workflow_run", github.workflow_run(triggering_actor=None))["data"]["author"] == "ada"
    nobody = github.workflow_run(triggering_actor=None, actor=None)
    assert "author" not in heard("workflow_run", {**nobody, "sender": None})["data"]


@pytest.mark.parametrize("none", [[], None, "x", [None], [{}], [{"number": None}]])
def test_run_may_have_no_pull_request(none: Any) -> None:
    suite = {"head_branch": None, "pull_requests": none}
    for event, payload in (
        ("check_run", github.check_run(pull_requests=none, check_suite=suite)),
        ("check_suite", github.check_suite(pull_requests=none)),
        ("workflow_run", github.workflow_run(pull_requests=none)),
    ):
        data = heard(event, payload)["data"]
        assert (data["pr"], data["sha"]) == (None, SHA)


def test_check_has_the_pull_request_of_its_suite() -> None:
    assert heard("check_run", github.check_run(pull_requests=[]))["data"]["pr"] == 42


def test_pull_request_of_another_repository_is_not_ours() -> None:
    upstream = listed(7, base={"id": 1, "name": "shop", "url": "https://api.github.com/repos/upstream/shop"})
    assert heard("check_run", github.check_run(pull_requests=[upstream, listed(42)]))["data"]["pr"] == 42
    assert heard("workflow_run", github.workflow_run(pull_requests=[upstream]))["data"]["pr"] is None


@pytest.mark.parametrize(("head", "branch"), [(FORK, "mallory:main"), (None, "unknown:main")])
def test_branch_of_a_fork_is_not_taken_for_ours(head: Any, branch: str) -> None:
    run = github.workflow_run(head_branch="main", head_repository=head, pull_requests=[])
    assert heard("workflow_run", run)["data"]["branch"] == branch
    request = github.closed(merged=True, head={"ref": "main", "sha": SHA, "user": None, "repo": head})
    assert heard("pull_request", request)["data"]["branch"] == branch


# --- pull requests


def test_merged_is_positive_and_closed_is_negative() -> None:
    merged, closed = (heard("pull_request", github.closed(merged=merged)) for merged in (True, False))
    assert (merged["signal_type"], closed["signal_type"]) == ("positive", "negative")
    assert merged["summary"] == "pull request merged: Count totals (octo/shop#42, 5a3b9c1)"
    assert closed["summary"] == "pull request closed without merging: Count totals (octo/shop#42, 5a3b9c1)"
    facts = {"pr": 42, "sha": SHA, "author": "builder", "by": "ada", "branch": "totals"}
    assert merged["data"].items() >= {**facts, "conclusion": "merged", "merge_sha": "c" * 40}.items()
    assert closed["data"].items() >= {**facts, "conclusion": "closed"}.items()
    assert "merge_sha" not in closed["data"]


@pytest.mark.parametrize(
    "action", ["opened", "reopened", "synchronize", "edited", "labeled", "converted_to_draft", None]
)
def test_pull_request_that_is_not_closed_decides_nothing(action: Any) -> None:
    assert deliver("pull_request", {**github.closed(merged=False), "action": action}) is None


def test_stranger_who_closes_their_own_says_nothing() -> None:
    own = {"user": user("mallory", 9), "author_association": "NONE", "head": {"ref": "main", "sha": SHA, "repo": FORK}}
    by_author = {**github.closed(merged=False, **own), "sender": user("mallory", 9)}
    assert deliver("pull_request", by_author) is None
    by_maintainer = {**github.closed(merged=False, **own), "sender": user("ada", 1)}
    assert heard("pull_request", by_maintainer)["signal_type"] == "negative"
    merged = {**github.closed(merged=True, **own), "sender": user("mallory", 9)}
    assert heard("pull_request", merged)["signal_type"] == "positive"


def test_app_that_closes_its_own_is_no_stranger() -> None:
    bot = user("builder[bot]", 3, "Bot")
    closed = {**github.closed(merged=False, user=bot, author_association="NONE"), "sender": bot}
    assert heard("pull_request", closed)["signal_type"] == "negative"


def test_pull_request_of_a_deleted_user_and_fork_is_still_news() -> None:
    gone = github.closed(merged=False, user=None, author_association="NONE", head=None, title=None)
    signal = heard("pull_request", {**gone, "sender": None})
    assert signal["summary"] == "pull request closed without merging: untitled (octo/shop#42)"


def test_branch_without_a_word_of_its_repository_is_named_as_it_is() -> None:
    payload = github.workflow_run()
    del payload["workflow_run"]["head_repository"]
    assert heard("workflow_run", payload)["data"]["branch"] == "totals"


# --- words


@pytest.mark.parametrize(
    ("state", "action", "says"),
    [
        ("approved", "submitted", "positive"),
        ("APPROVED", "submitted", "positive"),
        ("changes_requested", "submitted", "negative"),
        ("commented", "submitted", "neutral"),
        ("dismissed", "dismissed", "neutral"),
    ],
)
def test_state_of_a_review_decides(state: str, action: str, says: str) -> None:
    assert heard("pull_request_review", github.review(state, action))["signal_type"] == says


def test_review_tells_who_said_what_of_which_commit() -> None:
    signal = heard("pull_request_review", github.review("changes_requested", body="Refunds\nare missing."))
    assert signal["summary"] == "review by ada: changes requested: Refunds are missing. (octo/shop#42, ddddddd)"
    assert signal["data"].items() >= {"pr": 42, "sha": "d" * 40, "author": "ada", "branch": "totals"}.items()
    assert heard("pull_request_review", github.review(commit_id=None))["data"]["sha"] == SHA


@pytest.mark.parametrize(
    ("state", "action"), [("approved", "edited"), ("approved", []), ("pending", "submitted"), ("", "submitted")]
)
def test_other_reviews_decide_nothing(state: str, action: Any) -> None:
    assert deliver("pull_request_review", github.review(state, action)) is None


@pytest.mark.parametrize(
    ("body", "says", "summary"),
    [
        ("Good job!", "positive", "Good job!"),
        ("@builder that's wrong, refunds are missing", "correction", "refunds are missing"),
        ("> totals: 5\n\nThis is wrong: it should be 7.", "correction", "it should be 7."),
        ("-1", "correction", "-1"),
    ],
)
def test_comment_is_read_by_the_grammar(body: str, says: str, summary: str) -> None:
    signal = heard("issue_comment", github.comment(body))
    assert (signal["source"], signal["signal_type"], signal["summary"]) == ("github", says, summary)
    assert signal["data"] == {
        "event": "issue_comment",
        "action": "created",
        "repository": "octo/shop",
        "pr": 42,
        "sha": None,
        "issue": 42,
        "author": "ada",
        "url": "https://github.com/octo/shop/issues/42#issuecomment-492700400",
    }


def test_comment_on_an_issue_has_no_pull_request() -> None:
    payload = github.comment()
    del payload["issue"]["pull_request"]
    assert heard("issue_comment", payload)["data"].items() >= {"pr": None, "issue": 42}.items()


@pytest.mark.parametrize("body", ["Not good.", "Is this wrong?", "> Good job!", "I will look at it."])
def test_words_outside_the_grammar_are_kept_and_decide_nothing(body: str) -> None:
    for event, payload in (("issue_comment", github.comment), ("pull_request_review_comment", github.review_comment)):
        signal = heard(event, payload(body))
        assert (signal["signal_type"], signal["summary"]) == ("neutral", " ".join(body.split()))


@pytest.mark.parametrize("body", ["", " ", None])
def test_comment_without_words_says_nothing(body: str | None) -> None:
    assert deliver("issue_comment", github.comment(body)) is None


def test_comment_on_a_line_of_a_change_is_read_by_the_grammar() -> None:
    signal = heard("pull_request_review_comment", github.review_comment("This is wrong: it drops refunds"))
    assert (signal["signal_type"], signal["summary"]) == ("correction", "it drops refunds")
    facts = {"pr": 42, "sha": "d" * 40, "path": "models/orders.sql", "branch": "totals", "author": "ada"}
    assert signal["data"].items() >= facts.items()


@pytest.mark.parametrize(
    ("body", "says"), [("You forgot the refunds", "correction"), ("LGTM!", "positive"), ("Why?", "neutral")]
)
def test_words_of_a_review_without_a_verdict_are_read(body: str, says: str) -> None:
    assert heard("pull_request_review", github.review("commented", body=body))["signal_type"] == says
    assert heard("pull_request_review", github.review("approved", body=body))["signal_type"] == "positive"


@pytest.mark.parametrize(
    ("state", "says"), [("success", "positive"), ("failure", "negative"), ("error", "negative"), ("pending", None)]
)
def test_statuses_and_deployments_say_what_their_state_says(state: str, says: str | None) -> None:
    for event, payload in (("status", github.status), ("deployment_status", github.deployment_status)):
        signal = deliver(event, payload(state))
        assert (None if signal is None else signal["signal_type"]) == says


def test_status_and_deployment_name_what_they_are_about() -> None:
    status = heard("status", github.status("failure"))
    assert status["summary"] == f"status ci/circle: failure (octo/shop, {github.SHA[:7]})"
    told = {"name": "ci/circle", "branch": "totals", "sha": github.SHA, "told": "47 tests passed", "pr": None}
    assert status["data"].items() >= told.items()
    assert "branch" not in heard("status", github.status(branches=[]))["data"]
    deployment = heard("deployment_status", github.deployment_status())
    assert deployment["summary"].startswith("deployment to production: success")
    assert deployment["data"].items() >= {"name": "production", "branch": "main", "sha": github.SHA}.items()
    assert heard("deployment_status", github.deployment_status("inactive"))["signal_type"] == "neutral"


@pytest.mark.parametrize(
    ("reason", "says"), [("merged", "positive"), ("dequeued", "negative"), ("invalidated", "neutral")]
)
def test_merge_queue_tells_what_became_of_the_pull_request(reason: str, says: str) -> None:
    signal = heard("merge_group", github.merge_group(reason))
    assert (signal["signal_type"], signal["data"]["pr"], signal["data"]["conclusion"]) == (says, 42, reason)
    assert deliver("merge_group", {**github.merge_group(reason), "action": "checks_requested"}) is None
    assert heard("merge_group", github.merge_group(reason, head_ref="refs/heads/other"))["data"]["pr"] is None


def test_what_a_check_tells_of_itself_is_kept() -> None:
    output = {"title": "2 of 47 tests failed", "summary": "test_totals: 5 is not 7", "text": "long"}
    signal = heard("check_run", github.check_run(conclusion="failure", output=output))
    assert "check unit tests: failure, 2 of 47 tests failed" in signal["summary"]
    assert signal["data"].items() >= {"title": output["title"], "told": output["summary"]}.items()


@pytest.mark.parametrize("action", ["edited", "deleted", None])
def test_comment_decides_when_it_is_made_and_never_after(action: Any) -> None:
    assert deliver("issue_comment", {**github.comment(), "action": action}) is None


@pytest.mark.parametrize("association", ["OWNER", "MEMBER", "COLLABORATOR"])
def test_people_of_the_repository_decide(association: str) -> None:
    assert heard("issue_comment", github.comment(author_association=association))["signal_type"] == "positive"
    assert heard("pull_request_review", github.review(author_association=association))["signal_type"] == "positive"


STRANGERS: list[dict[str, Any]] = [
    *({"author_association": word} for word in ("NONE", "CONTRIBUTOR", "FIRST_TIMER", "FIRST_TIME_CONTRIBUTOR")),
    {"author_association": "MANNEQUIN", "user": user("ada", 1, "Mannequin")},
    {"author_association": "owner"},
    {"author_association": None},
    {"author_association": ["OWNER"]},
    {"user": user("ada[bot]", 1, "Bot")},
    {"user": user("ada", 1, "Bot")},
    {"user": user("ada[bot]", 1)},
    {"user": user("octo", 7, "Organization")},
    {"user": None},
    {"user": {"login": None, "type": "User"}},
    {"performed_via_github_app": {"id": 1, "slug": "builder"}},
]


@pytest.mark.parametrize("stranger", STRANGERS)
def test_strangers_and_bots_never_decide(stranger: dict[str, Any]) -> None:
    assert deliver("issue_comment", github.comment(**stranger)) is None
    assert deliver("pull_request_review", github.review(**stranger)) is None
    assert deliver("pull_request_review", github.review("changes_requested", **stranger)) is None
