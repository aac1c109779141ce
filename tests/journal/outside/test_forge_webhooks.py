"""GitLab's and Bitbucket's deliveries: who may send, what they decide, and what each is known by."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import PayloadError, SignatureError
from pytest_golden.journal.outside.forge_webhooks import COMMIT_STATES, PIPELINES, bitbucket_signal, gitlab_signal
from tests.journal.conftest import BEGIN
from tests.journal.outside.github_payloads import SECRET, SHA, sign

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.journal.service import Journal


def pipeline(request: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a pipeline event of the documented shape."""
    attributes = {
        "id": 31,
        "iid": 3,
        "name": None,
        "ref": "totals",
        "tag": False,
        "sha": SHA,
        "source": "push",
        "status": "success",
        "detailed_status": "passed",
        "finished_at": "2026-03-01 11:58:00 UTC",
        "url": "https://gitlab.example/octo/data/shop/-/pipelines/31",
    }
    return {
        "object_kind": "pipeline",
        "object_attributes": {**attributes, **changes},
        "merge_request": request,
        "user": {"id": 1, "name": "Ada", "username": "ada", "email": "[REDACTED]"},
        "project": {"id": 5, "name": "shop", "path_with_namespace": "octo/data/shop"},
        "commit": {"id": SHA, "message": "Count refunds"},
        "builds": [
            {"id": 380, "stage": "test", "name": "unit tests", "status": "failed"},
            {"id": 381, "stage": "deploy", "name": "deploy", "status": "created"},
        ]
        if changes.get("status") == "failed"
        else [],
    }


def merge_request(**changes: Any) -> dict[str, Any]:
    """Return a merge request event of the documented shape."""
    attributes = {
        "id": 99,
        "iid": 42,
        "title": "Count refunds",
        "author_id": 1,
        "source_branch": "totals",
        "source_project_id": 5,
        "target_project_id": 5,
        "source": {"path_with_namespace": "octo/data/shop"},
        "state": "merged",
        "action": "merge",
        "last_commit": {"id": SHA},
        "merge_commit_sha": "c" * 40,
        "updated_at": "2026-03-01 11:59:00 UTC",
        "url": "https://gitlab.example/octo/data/shop/-/merge_requests/42",
    }
    return {
        "object_kind": "merge_request",
        "user": {"id": 1, "username": "ada"},
        "project": {"id": 5, "path_with_namespace": "octo/data/shop"},
        "object_attributes": {**attributes, **changes},
    }


def status(**changes: Any) -> dict[str, Any]:
    """Return a commit status event of the documented shape."""
    commit = {"href": f"https://api.bitbucket.org/2.0/repositories/octo/shop/commit/{SHA}"}
    told = {
        "name": "Unit tests",
        "description": "12 of 12",
        "state": "SUCCESSFUL",
        "key": "unit",
        "url": "https://ci.example/1",
        "type": "build",
        "updated_on": "2026-03-01T11:58:00+00:00",
        "links": {"commit": commit, "self": {"href": f"{commit['href']}/statuses/build/unit"}},
    }
    return {
        "actor": {"nickname": "ada", "uuid": "{ada}", "type": "user"},
        "repository": {"full_name": "octo/shop", "uuid": "{shop}"},
        "commit_status": {**told, **changes},
    }


def closed(**changes: Any) -> dict[str, Any]:
    """Return a pull request event of the documented shape."""
    told = {
        "id": 42,
        "title": "Count refunds",
        "author": {"nickname": "ada", "uuid": "{ada}"},
        "source": {
            "branch": {"name": "totals"},
            "commit": {"hash": SHA[:12]},
            "repository": {"full_name": "octo/shop"},
        },
        "merge_commit": {"hash": "c" * 12},
        "updated_on": "2026-03-01T11:59:00+00:00",
        "links": {"html": {"href": "https://bitbucket.org/octo/shop/pull-requests/42"}},
    }
    return {
        "actor": {"nickname": "ada", "uuid": "{ada}"},
        "repository": {"full_name": "octo/shop", "uuid": "{shop}"},
        "pullrequest": {**told, **changes},
    }


def from_gitlab(payload: Any, **headers: str) -> dict[str, Any] | None:
    body = json.dumps(payload).encode()
    return gitlab_signal(headers or {"X-Gitlab-Token": SECRET}, body, SECRET, now=BEGIN)


def from_bitbucket(event: str, payload: Any) -> dict[str, Any] | None:
    body = json.dumps(payload).encode()
    return bitbucket_signal({"X-Event-Key": event, "X-Hub-Signature": sign(body)}, body, SECRET)


def standard(body: bytes, key: bytes, seconds: float = 0, name: str = "msg_1") -> dict[str, str]:
    """Return the headers of the Standard Webhooks."""
    sent = str(int(BEGIN.timestamp() + seconds))
    digest = hmac.digest(key, b".".join((name.encode(), sent.encode(), body)), hashlib.sha256)
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": name, "webhook-timestamp": sent, "webhook-signature": f"v1,b3RoZXI= {signature}"}


@pytest.mark.parametrize(("told", "says"), PIPELINES.items())
def test_end_of_a_pipeline_is_a_signal(told: str, says: str) -> None:
    signal = from_gitlab(pipeline(status=told))
    assert signal is not None
    assert (signal["source"], signal["signal_type"]) == ("gitlab", says)
    assert signal["data"] == {
        "event": "pipeline",
        "action": None,
        "repository": "octo/data/shop",
        "pr": None,
        "sha": SHA,
        "name": "pipeline",
        "branch": "totals",
        "author": "ada",
        "conclusion": told,
        "url": "https://gitlab.example/octo/data/shop/-/pipelines/31",
        **({"told": "failed: unit tests"} if told == "failed" else {}),
    }


def test_summary_of_a_failed_pipeline_names_its_jobs() -> None:
    signal = from_gitlab(pipeline(status="failed", name="nightly"))
    assert signal is not None
    assert signal["summary"] == "pipeline nightly: failed, failed: unit tests (octo/data/shop, 5a3b9c1)"


@pytest.mark.parametrize("told", ["created", "pending", "running", "manual", "scheduled", None, 7])
def test_pipeline_that_has_not_ended_decides_nothing(told: Any) -> None:
    assert from_gitlab(pipeline(status=told)) is None


def test_pipeline_of_a_merge_request_has_its_number_and_branch() -> None:
    request = {"id": 1, "iid": 42, "source_branch": "totals", "source_project_id": 5, "target_project_id": 5}
    own = from_gitlab(pipeline(request, ref="refs/merge-requests/42/head"))
    foreign = from_gitlab(pipeline({**request, "source_project_id": 6, "source_branch": "main"}))
    assert own is not None
    assert foreign is not None
    assert (own["data"]["pr"], own["data"]["branch"]) == (42, "totals")
    assert foreign["data"]["branch"] == "fork:main"


def test_pipeline_of_a_tag_has_no_branch() -> None:
    signal = from_gitlab(pipeline(tag=True, ref="main"))
    assert signal is not None
    assert "branch" not in signal["data"]


def test_merge_request_is_merged_or_closed() -> None:
    merged, shut = from_gitlab(merge_request()), from_gitlab(merge_request(action="close", state="closed"))
    assert merged is not None
    assert shut is not None
    assert [one["signal_type"] for one in (merged, shut)] == ["positive", "negative"]
    assert merged["summary"] == "merge request merged: Count refunds (octo/data/shop#42, 5a3b9c1)"
    assert (merged["data"]["merge_sha"], merged["data"]["by"]) == ("c" * 40, "ada")
    assert "merge_sha" not in shut["data"]
    assert from_gitlab(merge_request(action="update")) is None


def test_stranger_who_withdraws_their_own_request_judges_nothing() -> None:
    foreign = {"source_project_id": 6, "source": {"path_with_namespace": "mallory/shop"}}
    assert from_gitlab(merge_request(action="close", **foreign)) is None
    merged = from_gitlab(merge_request(**foreign))
    assert merged is not None
    assert merged["data"]["branch"] == "mallory:totals"
    closed_by_us = from_gitlab(merge_request(action="close", author_id=7, **foreign))
    assert closed_by_us is not None
    other = {**closed()["pullrequest"]["source"], "repository": {"full_name": "mallory/shop"}}
    assert from_bitbucket("pullrequest:rejected", closed(source=other)) is None
    taken = from_bitbucket("pullrequest:fulfilled", closed(source=other))
    assert taken is not None
    assert taken["data"]["branch"] == "mallory:totals"


@pytest.mark.parametrize("kind", ["push", "note", "build", "", None])
def test_other_events_of_gitlab_decide_nothing(kind: str | None) -> None:
    assert from_gitlab({**pipeline(), "object_kind": kind}) is None


@pytest.mark.parametrize(("told", "says"), COMMIT_STATES.items())
def test_commit_status_is_a_signal(told: str, says: str) -> None:
    signal = from_bitbucket("repo:commit_status_updated", status(state=told))
    assert signal is not None
    assert (signal["source"], signal["signal_type"]) == ("bitbucket", says)
    assert signal["data"] == {
        "event": "commit_status",
        "action": "repo:commit_status_updated",
        "repository": "octo/shop",
        "pr": None,
        "sha": SHA,
        "name": "Unit tests",
        "author": "ada",
        "conclusion": told,
        "told": "12 of 12",
        "url": "https://ci.example/1",
    }


def test_commit_status_under_way_and_other_events_decide_nothing() -> None:
    assert from_bitbucket("repo:commit_status_created", status(state="INPROGRESS")) is None
    assert from_bitbucket("repo:push", {"push": {}}) is None


def test_pull_request_of_bitbucket_is_merged_or_declined() -> None:
    merged, declined = (from_bitbucket(f"pullrequest:{what}", closed()) for what in ("fulfilled", "rejected"))
    assert merged is not None
    assert declined is not None
    assert [one["signal_type"] for one in (merged, declined)] == ["positive", "negative"]
    assert declined["summary"] == "pull request closed without merging: Count refunds (octo/shop#42, 5a3b9c1)"
    assert (merged["data"]["event"], merged["data"]["pr"]) == ("pull_request", 42)
    assert merged["data"]["branch"] == "totals"


@pytest.mark.parametrize("key", [SECRET.encode(), b"\0\xffkey"])
def test_signature_of_the_standard_webhooks_is_enough(key: bytes) -> None:
    body = json.dumps(pipeline()).encode()
    secret: str | bytes = SECRET if key == SECRET.encode() else f"whsec_{base64.b64encode(key).decode()}"
    assert gitlab_signal(standard(body, key), body, secret, now=BEGIN) is not None
    for change in ({"webhook-id": "msg_2"}, {"webhook-timestamp": "1"}, {"webhook-signature": "v1,AAAA"}):
        with pytest.raises(SignatureError):
            gitlab_signal({**standard(body, key), **change}, body, secret, now=BEGIN)
    with pytest.raises(SignatureError):
        gitlab_signal(standard(body, key), body + b" ", secret, now=BEGIN)


@pytest.mark.parametrize("minutes", [-6, 6])
def test_old_signature_is_refused(minutes: int) -> None:
    body = json.dumps(pipeline()).encode()
    headers = standard(body, SECRET.encode(), minutes * 60)
    with pytest.raises(SignatureError, match="neither X-Gitlab-Token nor webhook-signature"):
        gitlab_signal(headers, body, SECRET, now=BEGIN)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Gitlab-Token": ""},
        {"X-Gitlab-Token": "another"},
        {"X-Gitlab-Token": SECRET + "é"},
        {"webhook-timestamp": "9" * 400, "webhook-signature": "v1,", "webhook-id": "é"},
        {"webhook-timestamp": "²", "webhook-signature": "v1,"},
        {"X-Hub-Signature-256": sign(b"{}")},
    ],
)
def test_delivery_without_the_secret_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(SignatureError):
        gitlab_signal(headers, b"{}", SECRET, now=BEGIN)


def test_delivery_needs_a_secret_here_and_what_its_event_has() -> None:
    body = json.dumps({"object_kind": "pipeline", "object_attributes": []}).encode()
    for secret in ("", b""):
        with pytest.raises(SignatureError, match="secret is not set"):
            gitlab_signal({"X-Gitlab-Token": ""}, body, secret, now=BEGIN)
    with pytest.raises(SignatureError):
        gitlab_signal({}, body, "whsec_?", now=BEGIN)
    with pytest.raises(PayloadError, match="no object_attributes"):
        gitlab_signal({"X-Gitlab-Token": SECRET}, body, SECRET, now=BEGIN)
    with pytest.raises(PayloadError, match="has no commit_status"):
        from_bitbucket("repo:commit_status_created", {})
    with pytest.raises(PayloadError, match="X-Event-Key is missing"):
        bitbucket_signal({"X-Hub-Signature": sign(body)}, body, SECRET)
    with pytest.raises(SignatureError):
        bitbucket_signal({"X-Event-Key": "repo:push"}, body, SECRET)


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [{}], {"source": 1}])
def test_odd_shapes_make_no_error_but_ours(value: Any) -> None:
    told = [
        from_gitlab({**payload, key: value})
        for payload in (pipeline(), merge_request())
        for key in payload
        if key != "object_attributes"
    ]
    told += [
        from_gitlab({**payload, "object_attributes": {**payload["object_attributes"], key: value}})
        for payload in (pipeline(), merge_request())
        for key in payload["object_attributes"]
    ]
    told += [
        from_bitbucket(event, {**payload, name: {**payload[name], key: value}})
        for event, name, payload in (
            ("repo:commit_status_created", "commit_status", status()),
            ("pullrequest:fulfilled", "pullrequest", closed()),
        )
        for key in payload[name]
    ]
    assert {signal["signal_type"] for signal in told if signal is not None} <= {"positive", "negative", "neutral"}
    assert any(signal is not None for signal in told)


def test_replay_counts_once_and_a_retried_pipeline_takes_its_failure_back(journal: Journal) -> None:
    entry = journal.log_intent("count totals", agent_id="builder")
    hint = {"source": "gitlab", "event": "pipeline", "sha": SHA}
    asked = {"description": "CI is green", "match_hint": hint, "expires_minutes": 60}
    journal.log_outcome(entry.id, "success", expectations=[asked])
    for _ in range(2):
        failed = from_gitlab(pipeline(status="failed"))
        assert failed is not None
        journal.add_signal(**failed)
    assert journal.get(entry.id).assessment == "failure"
    again = from_gitlab(pipeline(finished_at="2026-03-01 12:20:00 UTC"))
    assert again is not None
    journal.add_signal(**again)
    assert journal.get(entry.id).assessment == "success"
    assert journal.get(entry.id).signals[0].summary.startswith("pipeline")


def test_messages_are_fresh_for_five_minutes() -> None:
    body = json.dumps(pipeline()).encode()
    headers = standard(body, SECRET.encode())
    assert gitlab_signal(headers, body, SECRET, now=BEGIN + timedelta(minutes=4)) is not None
