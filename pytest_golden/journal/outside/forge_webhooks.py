"""GitLab's and Bitbucket's webhooks as signals: who sent it, and what a pipeline's end or a merge decides. Nothing is stored.

GitLab names the secret itself (`X-Gitlab-Token`), or signs the body by the Standard Webhooks; Bitbucket Cloud signs it as
GitHub does. Headers that name an event are not signed, so the body must have what its event has. Comments are not read: neither says whether
their author belongs to the repository.

Sources: https://docs.gitlab.com/user/project/integrations/webhook_events/,
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md and
https://support.atlassian.com/bitbucket-cloud/docs/event-payloads/
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import PayloadError, SignatureError
from pytest_golden.journal.model import SignalType
from pytest_golden.journal.outside.signed import (
    MOST_APART,
    News,
    check_signature,
    find_header,
    list_at,
    make_signal,
    name_branch,
    number_at,
    read_closing,
    read_object,
    require_readable,
    text_at,
    value_at,
)
from pytest_golden.journal.rules import BITBUCKET, GITLAB

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

#: The signal types of the statuses of GitLab's pipelines; a pipeline that has not ended decides nothing.
PIPELINES = {
    "success": SignalType.POSITIVE,
    "failed": SignalType.NEGATIVE,
    "canceled": SignalType.NEUTRAL,
    "skipped": SignalType.NEUTRAL,
}
#: The signal types of the states of Bitbucket's commit statuses.
COMMIT_STATES = {
    "SUCCESSFUL": SignalType.POSITIVE,
    "FAILED": SignalType.NEGATIVE,
    "STOPPED": SignalType.NEUTRAL,
}
_CLOSINGS = {"merge": True, "close": False, "pullrequest:fulfilled": True, "pullrequest:rejected": False}
_COMMIT_LINK = re.compile(r"/commit/([0-9a-f]{7,64})$")
_KEY_PREFIX = "whsec_"


def gitlab_signal(
    headers: Mapping[str, str], body: bytes, secret: str | bytes, *, now: datetime
) -> dict[str, Any] | None:
    """Return the arguments of `Journal.add_signal` for a delivery of GitLab; None when it decides nothing.

    Raises:
        SignatureError: neither `X-Gitlab-Token` nor `webhook-signature` proves that the sender knows the secret.
        PayloadError: the body is too large, not a JSON object, or not what its event has.
    """
    require_readable(body, secret)
    key = secret if isinstance(secret, bytes) else secret.encode("utf-8", "surrogateescape")
    token = find_header(headers, "X-Gitlab-Token")
    is_known = token is not None and hmac.compare_digest(token.encode("utf-8", "surrogateescape"), key)
    if not is_known and not _is_signed(headers, bytes(body), key, now):
        raise SignatureError(
            "neither X-Gitlab-Token nor webhook-signature fits the secret: give GitLab the one in GOLDEN_WEBHOOK_SECRET"
        )
    payload = read_object(bytes(body))
    kind = text_at(payload, "object_kind")
    if kind not in _OF_GITLAB:
        return None
    if not isinstance(payload.get("object_attributes"), dict):
        raise PayloadError(f"the body says that it is a {kind}, but it has no object_attributes")
    news = _OF_GITLAB[kind](payload)
    if news is None:
        return None
    repository = number_at(payload, "project", "id"), text_at(payload, "project", "path_with_namespace")
    return make_signal(GITLAB, kind, text_at(payload, "object_attributes", "action"), repository, news, bytes(body))


def _is_signed(headers: Mapping[str, str], body: bytes, key: bytes, now: datetime) -> bool:
    """Tell whether one of the signatures of the Standard Webhooks fits, of a message sent within five minutes of now."""
    sent, message, given = (find_header(headers, f"webhook-{name}") or "" for name in ("timestamp", "id", "signature"))
    if not sent.isascii() or not sent.isdigit() or abs(now.timestamp() - int(sent[:18])) > MOST_APART.total_seconds():
        return False
    if key.startswith(_KEY_PREFIX.encode()):
        try:
            key = base64.b64decode(key[len(_KEY_PREFIX) :], validate=True)
        except ValueError:
            return False
    signed = b".".join((message.encode("utf-8", "surrogateescape"), sent.encode(), body))
    wanted = f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"
    return any(hmac.compare_digest(one.encode("utf-8", "surrogateescape"), wanted.encode()) for one in given.split())


def _read_pipeline(payload: dict[str, Any]) -> News | None:
    pipeline = payload["object_attributes"]
    status = text_at(pipeline, "status")
    if status not in PIPELINES:
        return None
    request = value_at(payload, "merge_request")
    branch = text_at(request, "source_branch") or text_at(pipeline, "ref")
    failed = [text_at(job, "name") for job in list_at(payload, "builds") if text_at(job, "status") == "failed"]
    told = f"failed: {', '.join(sorted(filter(None, failed)))}" if any(failed) else None
    facts = {
        "pr": number_at(request, "iid"),
        "sha": text_at(pipeline, "sha"),
        "name": text_at(pipeline, "name") or "pipeline",
        "branch": None if pipeline.get("tag") is True else name_branch(branch, None if _is_own(request) else "fork"),
        "author": text_at(payload, "user", "username"),
        "conclusion": status,
        "told": told,
        "url": text_at(pipeline, "url"),
    }
    title = f"pipeline {facts['name']}: {status}" if facts["name"] != "pipeline" else f"pipeline: {status}"
    identity = (number_at(pipeline, "id"), status, text_at(pipeline, "finished_at"))
    return News(PIPELINES[status], f"{title}, {told}" if told else title, facts, identity)


def _read_merge_request(payload: dict[str, Any]) -> News | None:
    request, user = payload["object_attributes"], value_at(payload, "user")
    is_merged = _CLOSINGS.get(str(request.get("action")))
    is_withdrawn = not _is_own(request) and number_at(request, "author_id") == number_at(user, "id")
    # A stranger who withdraws their own judges nothing.
    if is_merged is None or (is_withdrawn and not is_merged):
        return None
    source = text_at(request, "source", "path_with_namespace") or "fork"
    facts = {
        "pr": number_at(request, "iid"),
        "sha": text_at(request, "last_commit", "id"),
        "branch": name_branch(text_at(request, "source_branch"), None if _is_own(request) else source),
        "by": text_at(user, "username"),
        "merge_sha": text_at(request, "merge_commit_sha"),
        "url": text_at(request, "url"),
    }
    identity = (number_at(request, "id"), text_at(request, "updated_at"))
    return read_closing("merge request", text_at(request, "title"), facts, identity, is_merged=is_merged)


def _is_own(request: Any) -> bool:
    """Tell whether a merge request comes from its own project, and from no fork."""
    return number_at(request, "source_project_id") == number_at(request, "target_project_id")


def bitbucket_signal(headers: Mapping[str, str], body: bytes, secret: str | bytes) -> dict[str, Any] | None:
    """Return the arguments of `Journal.add_signal` for a delivery of Bitbucket Cloud; None when it decides nothing.

    Raises:
        SignatureError: `X-Hub-Signature` is missing, malformed or wrong.
        PayloadError: the body is too large, not a JSON object, or not what its event has.
    """
    check_signature(headers, body, secret, header="X-Hub-Signature")
    event = find_header(headers, "X-Event-Key")
    if event is None:
        raise PayloadError("the header X-Event-Key is missing; it names the event")
    payload = read_object(bytes(body))
    if event not in _OF_BITBUCKET:
        return None
    name, wanted, read = _OF_BITBUCKET[event]
    if not isinstance(payload.get(wanted), dict):
        raise PayloadError(f"the header names the event {event}, but the body has no {wanted}")
    news = read(event, payload)
    if news is None:
        return None
    repository = text_at(payload, "repository", "uuid"), text_at(payload, "repository", "full_name")
    return make_signal(BITBUCKET, name, event, repository, news, bytes(body))


def _read_commit_status(_event: str, payload: dict[str, Any]) -> News | None:
    status = payload["commit_status"]
    state = text_at(status, "state")
    if state not in COMMIT_STATES:
        return None
    linked = _COMMIT_LINK.search(text_at(status, "links", "commit", "href") or "")
    sha = text_at(status, "commit", "hash") or (linked[1] if linked else None)
    facts = {
        "pr": None,
        "sha": sha,
        "name": text_at(status, "name") or text_at(status, "key"),
        "branch": text_at(status, "refname"),
        "author": text_at(payload, "actor", "nickname"),
        "conclusion": state,
        "told": text_at(status, "description"),
        "url": text_at(status, "url"),
    }
    identity = (text_at(status, "key"), sha, state, text_at(status, "updated_on"))
    return News(COMMIT_STATES[state], f"commit status {facts['name'] or 'without a name'}: {state}", facts, identity)


def _read_pull_request(event: str, payload: dict[str, Any]) -> News | None:
    request = payload["pullrequest"]
    source = text_at(request, "source", "repository", "full_name")
    is_own = source is not None and source == text_at(payload, "repository", "full_name")
    is_withdrawn = not is_own and text_at(request, "author", "uuid") == text_at(payload, "actor", "uuid")
    if is_withdrawn and not _CLOSINGS[event]:
        return None
    facts = {
        "pr": number_at(request, "id"),
        "sha": text_at(request, "source", "commit", "hash"),
        "branch": name_branch(text_at(request, "source", "branch", "name"), None if is_own else source or "fork"),
        "author": text_at(request, "author", "nickname"),
        "by": text_at(payload, "actor", "nickname"),
        "merge_sha": text_at(request, "merge_commit", "hash"),
        "url": text_at(request, "links", "html", "href"),
    }
    identity = (number_at(request, "id"), text_at(request, "updated_on"))
    return read_closing("pull request", text_at(request, "title"), facts, identity, is_merged=_CLOSINGS[event])


_OF_GITLAB: dict[str, Callable[[dict[str, Any]], News | None]] = {
    "pipeline": _read_pipeline,
    "merge_request": _read_merge_request,
}
#: For each event of Bitbucket, what it is called in hints, the object that its body must have, and the function that reads it.
_OF_BITBUCKET: dict[str, tuple[str, str, Callable[[str, dict[str, Any]], News | None]]] = {
    "repo:commit_status_created": ("commit_status", "commit_status", _read_commit_status),
    "repo:commit_status_updated": ("commit_status", "commit_status", _read_commit_status),
    "pullrequest:fulfilled": ("pull_request", "pullrequest", _read_pull_request),
    "pullrequest:rejected": ("pull_request", "pullrequest", _read_pull_request),
}
