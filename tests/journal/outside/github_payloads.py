"""Deliveries as GitHub sends them: signed bodies of the documented shapes, with the fields that matter and some that do not.

Source: https://docs.github.com/en/webhooks/webhook-events-and-payloads
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from pytest_golden.journal.outside.github_webhooks import github_signal

SECRET = "it's a secret to everybody"
SHA = "5a3b9c1f0e2d4a6b8c7d9e0f1a2b3c4d5e6f7a8b"
REPOSITORY = {
    "id": 4711,
    "name": "shop",
    "full_name": "octo/shop",
    "private": False,
    "owner": {"login": "octo", "id": 7, "type": "Organization"},
    "html_url": "https://github.com/octo/shop",
    "default_branch": "main",
}
FORK = {**REPOSITORY, "id": 4712, "full_name": "mallory/shop", "owner": {"login": "mallory", "id": 9, "type": "User"}}
REPO_LINK = {"id": 4711, "name": "shop", "url": "https://api.github.com/repos/octo/shop"}


def user(login: str = "ada", number: int = 1, kind: str = "User") -> dict[str, Any]:
    return {"login": login, "id": number, "node_id": "MDQ6VXNlcjE=", "type": kind, "site_admin": False}


def listed(number: int = 42, base: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a pull request as checks and runs list it."""
    return {
        "url": f"https://api.github.com/repos/octo/shop/pulls/{number}",
        "id": 900 + number,
        "number": number,
        "head": {"ref": "totals", "sha": SHA, "repo": REPO_LINK},
        "base": {"ref": "main", "sha": "b" * 40, "repo": REPO_LINK if base is None else base},
    }


def around(**objects: Any) -> dict[str, Any]:
    return {
        "action": "completed",
        "repository": REPOSITORY,
        "sender": user(),
        "organization": {"login": "octo"},
        **objects,
    }


def check_run(**changes: Any) -> dict[str, Any]:
    run = {
        "id": 128620228,
        "node_id": "MDg6Q2hlY2tSdW4xMjg2MjAyMjg=",
        "head_sha": SHA,
        "external_id": "",
        "html_url": "https://github.com/octo/shop/runs/128620228",
        "status": "completed",
        "conclusion": "success",
        "started_at": "2026-03-01T12:00:00Z",
        "completed_at": "2026-03-01T12:04:00Z",
        "output": {"title": None, "summary": None, "text": None, "annotations_count": 0},
        "name": "unit tests",
        "check_suite": {"id": 118578147, "head_branch": "totals", "head_sha": SHA, "pull_requests": [listed()]},
        "app": {"id": 15368, "slug": "github-actions", "name": "GitHub Actions", "owner": user("github", 99)},
        "pull_requests": [listed()],
    }
    return around(check_run={**run, **changes})


def check_suite(**changes: Any) -> dict[str, Any]:
    suite = {
        "id": 118578147,
        "head_branch": "totals",
        "head_sha": SHA,
        "status": "completed",
        "conclusion": "success",
        "before": "0" * 40,
        "after": SHA,
        "pull_requests": [listed()],
        "app": {"id": 15368, "slug": "github-actions", "name": "GitHub Actions"},
        "created_at": "2026-03-01T12:00:00Z",
        "updated_at": "2026-03-01T12:04:00Z",
        "latest_check_runs_count": 1,
        "head_commit": {"id": SHA, "message": "Count totals", "author": {"name": "Ada", "email": "ada@example.org"}},
    }
    return around(check_suite={**suite, **changes})


def workflow_run(**changes: Any) -> dict[str, Any]:
    run = {
        "id": 289782451,
        "name": "CI",
        "head_branch": "totals",
        "head_sha": SHA,
        "path": ".github/workflows/ci.yml",
        "display_title": "Count totals",
        "run_number": 163,
        "event": "pull_request",
        "status": "completed",
        "conclusion": "success",
        "workflow_id": 2823525,
        "check_suite_id": 118578147,
        "html_url": "https://github.com/octo/shop/actions/runs/289782451",
        "pull_requests": [listed()],
        "created_at": "2026-03-01T12:00:00Z",
        "updated_at": "2026-03-01T12:04:00Z",
        "run_attempt": 1,
        "actor": user(),
        "triggering_actor": user("grace", 2),
        "head_repository": REPOSITORY,
        "repository": REPOSITORY,
    }
    return around(workflow={"id": 2823525, "name": "CI", "state": "active"}, workflow_run={**run, **changes})


def request(**changes: Any) -> dict[str, Any]:
    return {
        "id": 279147437,
        "number": 42,
        "state": "open",
        "title": "Count totals",
        "user": user("builder", 3),
        "body": "Counts them.",
        "html_url": "https://github.com/octo/shop/pull/42",
        "closed_at": None,
        "merged_at": None,
        "merge_commit_sha": "c" * 40,
        "assignee": None,
        "milestone": None,
        "head": {"label": "octo:totals", "ref": "totals", "sha": SHA, "user": user("octo", 7), "repo": REPOSITORY},
        "base": {"label": "octo:main", "ref": "main", "sha": "b" * 40, "repo": REPOSITORY},
        "author_association": "MEMBER",
        "draft": False,
        **changes,
    }


def closed(*, merged: bool, **changes: Any) -> dict[str, Any]:
    at = "2026-03-01T13:00:00Z"
    ending = {"state": "closed", "closed_at": at, "merged": merged, "merged_at": at if merged else None}
    return {**around(number=42, pull_request=request(**{**ending, **changes})), "action": "closed"}


def review(state: str = "approved", action: Any = "submitted", **changes: Any) -> dict[str, Any]:
    said = {
        "id": 237895671,
        "user": user(),
        "body": None,
        "commit_id": "d" * 40,
        "submitted_at": "2026-03-01T12:30:00Z",
        "state": state,
        "html_url": "https://github.com/octo/shop/pull/42#pullrequestreview-237895671",
        "author_association": "MEMBER",
        **changes,
    }
    return {**around(review=said, pull_request=request()), "action": action}


def comment(body: str | None = "Good job!", **changes: Any) -> dict[str, Any]:
    said = {
        "id": 492700400,
        "user": user(),
        "created_at": "2026-03-01T12:30:00Z",
        "updated_at": "2026-03-01T12:30:00Z",
        "author_association": "COLLABORATOR",
        "performed_via_github_app": None,
        "body": body,
        "html_url": "https://github.com/octo/shop/issues/42#issuecomment-492700400",
        **changes,
    }
    issue = {
        "id": 444500041,
        "number": 42,
        "title": "Count totals",
        "user": user("builder", 3),
        "state": "open",
        "milestone": None,
        "pull_request": {"url": "https://api.github.com/repos/octo/shop/pulls/42", "merged_at": None},
        "body": None,
    }
    return {**around(issue=issue, comment=said), "action": "created"}


def review_comment(body: str | None = "Good job!", **changes: Any) -> dict[str, Any]:
    said = {"commit_id": "d" * 40, "path": "models/orders.sql", "line": 3, "diff_hunk": "@@ -1 +1 @@", **changes}
    return {**around(comment={**comment(body)["comment"], **said}, pull_request=request()), "action": "created"}


def status(state: str = "success", **changes: Any) -> dict[str, Any]:
    told = {
        "id": 6805126730,
        "sha": SHA,
        "name": "octo/shop",
        "context": "ci/circle",
        "description": "47 tests passed",
        "state": state,
        "target_url": "https://ci.example/47",
        "commit": {"sha": SHA},
        "branches": [{"name": "totals", "commit": {"sha": SHA}}],
        **changes,
    }
    return {**around(**told), "action": None}


def deployment_status(state: str = "success", **changes: Any) -> dict[str, Any]:
    told = {
        "id": 1115122,
        "state": state,
        "creator": user(),
        "description": "rolled out",
        "environment": "production",
        "environment_url": "https://shop.example",
        "log_url": "https://ci.example/48",
        **changes,
    }
    deployment = {"id": 145988746, "sha": SHA, "ref": "main", "environment": "production"}
    return {**around(deployment_status=told, deployment=deployment), "action": "created"}


def merge_group(reason: str = "merged", **changes: Any) -> dict[str, Any]:
    branch = f"refs/heads/gh-readonly-queue/main/pr-42-{'b' * 40}"
    group = {"head_sha": SHA, "head_ref": branch, "base_ref": "refs/heads/main", "base_sha": "b" * 40, **changes}
    return {**around(merge_group=group), "action": "destroyed", "reason": reason}


def sign(body: bytes, secret: str = SECRET) -> str:
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


def headers(event: str, body: bytes, **more: str) -> dict[str, str]:
    return {
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "X-Hub-Signature-256": sign(body),
        "Content-Type": "application/json",
        **more,
    }


def deliver(event: str, payload: Any, **more: str) -> dict[str, Any] | None:
    """Deliver a payload, or a body as it is, signed."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return github_signal(headers(event, body, **more), body, SECRET)


def heard(event: str, payload: Any) -> dict[str, Any]:
    signal = deliver(event, payload)
    assert signal is not None
    return signal
