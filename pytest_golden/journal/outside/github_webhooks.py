"""GitHub's webhooks as signals: check that a delivery is signed, and read what it decides. Nothing is stored.

What is not signed (the delivery's id, the event's name) is not trusted: the body must have what its event has, and a replay
is recognised by what the body is about. Facts (a conclusion, a merge) are taken as they are; a person's word counts only
from people of the repository, not from strangers or bots.

Sources: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries and
https://docs.github.com/en/webhooks/webhook-events-and-payloads
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from pytest_golden.errors import PayloadError
from pytest_golden.journal.model import SignalType
from pytest_golden.journal.outside.human import human_signal
from pytest_golden.journal.outside.signed import (
    News,
    check_signature,
    find_header,
    list_at,
    make_signal,
    name_branch,
    number_at,
    read_closing,
    read_object,
    text_at,
    value_at,
)
from pytest_golden.journal.rules import GITHUB

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: The signal types of the conclusions of checks, check suites and workflow runs; others are neutral.
CONCLUSIONS = {
    "success": SignalType.POSITIVE,
    "failure": SignalType.NEGATIVE,
    "timed_out": SignalType.NEGATIVE,
    "startup_failure": SignalType.NEGATIVE,
    "action_required": SignalType.NEGATIVE,
    "neutral": SignalType.NEUTRAL,
    "skipped": SignalType.NEUTRAL,
    "cancelled": SignalType.NEUTRAL,
    "stale": SignalType.NEUTRAL,
}
#: The signal types of the states of reviews; others are ignored.
REVIEWS = {
    "approved": SignalType.POSITIVE,
    "changes_requested": SignalType.NEGATIVE,
    "commented": SignalType.NEUTRAL,
    "dismissed": SignalType.NEUTRAL,
}
#: The signal types of commit statuses and deployments; what is under way decides nothing.
STATES = {
    "success": SignalType.POSITIVE,
    "failure": SignalType.NEGATIVE,
    "error": SignalType.NEGATIVE,
    "inactive": SignalType.NEUTRAL,
}
#: The signal types of what became of a merge group.
MERGE_GROUPS = {
    "merged": SignalType.POSITIVE,
    "dequeued": SignalType.NEGATIVE,
    "invalidated": SignalType.NEUTRAL,
}
#: The author associations of people whose word decides.
TRUSTED = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_REVIEW_ACTIONS = frozenset({"submitted", "dismissed"})
_FORM = "application/x-www-form-urlencoded"
_QUEUE_BRANCH = re.compile(r"gh-readonly-queue/.+/pr-(\d{1,18})-[0-9a-f]+$")


def github_signal(headers: Mapping[str, str], body: bytes, secret: str | bytes) -> dict[str, Any] | None:
    """Return the arguments of `Journal.add_signal` for a GitHub delivery; None when it decides nothing.

    The external id is derived from the signed body, so that a replay has one effect, whatever its delivery id. A re-run of a
    check is new news.

    Raises:
        SignatureError: `X-Hub-Signature-256` is missing, malformed or wrong.
        PayloadError: the body is too large, not a JSON object, or not what its event has.
    """
    check_signature(headers, body, secret, header="X-Hub-Signature-256")
    event = find_header(headers, "X-GitHub-Event")
    if event is None:
        raise PayloadError("the header X-GitHub-Event is missing; it names the event")
    payload = read_object(_take_from_form(headers, bytes(body)))
    if event not in EVENTS:
        return None
    for name in EVENTS[event][0]:
        if not isinstance(payload.get(name), dict):
            raise PayloadError(f"the header names the event {event}, but the body has no {name}")
    return read_event(event, payload, bytes(body))


def read_event(event: str, payload: dict[str, Any], body: bytes = b"") -> dict[str, Any] | None:
    """Return the arguments of `Journal.add_signal` for an event that has its objects; None when it decides nothing.

    `body` identifies an event to which GitHub gave no id.
    """
    news = EVENTS[event][1](payload)
    if news is None:
        return None
    repository = number_at(payload, "repository", "id"), text_at(payload, "repository", "full_name")
    return make_signal(GITHUB, event, text_at(payload, "action"), repository, news, body)


def _take_from_form(headers: Mapping[str, str], body: bytes) -> bytes | str:
    """Return the JSON text: GitHub can also send it as the field `payload` of a form, and then signs the form."""
    kind = find_header(headers, "Content-Type")
    if not (body.startswith(b"payload=") if kind is None else kind.strip().lower().startswith(_FORM)):
        return body
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=10)
    except ValueError as error:
        raise PayloadError(f"the body is not a form: {error}") from None
    if len(fields.get("payload", ())) != 1:
        raise PayloadError("the form must have the field payload, once")
    return fields["payload"][0]


def _read_check_run(payload: dict[str, Any]) -> News | None:
    run = payload["check_run"]
    branch = text_at(run, "check_suite", "head_branch")
    facts = {
        "name": text_at(run, "name"),
        "app": text_at(run, "app", "slug"),
        "branch": branch,
        "title": text_at(run, "output", "title"),
        "told": text_at(run, "output", "summary"),
    }
    return _read_completed(payload, run, "check", facts, text_at(run, "completed_at"))


def _read_check_suite(payload: dict[str, Any]) -> News | None:
    suite = payload["check_suite"]
    app, branch = text_at(suite, "app", "slug"), text_at(suite, "head_branch")
    facts = {"name": text_at(suite, "app", "name"), "app": app, "branch": branch}
    # A suite keeps its id when it is run again.
    return _read_completed(payload, suite, "check suite", facts, text_at(suite, "updated_at"))


def _read_workflow_run(payload: dict[str, Any]) -> News | None:
    run = payload["workflow_run"]
    attempt = number_at(run, "run_attempt")
    facts = {
        "name": text_at(run, "name") or text_at(payload, "workflow", "name"),
        "branch": _branch(payload, run, text_at(run, "head_branch"), "head_repository"),
        "author": text_at(run, "triggering_actor", "login") or text_at(run, "actor", "login"),
        "run_attempt": attempt,
    }
    return _read_completed(payload, run, "workflow", facts, attempt or text_at(run, "updated_at"))


def _read_completed(
    payload: dict[str, Any], run: dict[str, Any], what: str, facts: Mapping[str, Any], stamp: str | int | None
) -> News | None:
    conclusion = text_at(run, "conclusion")
    if payload.get("action") != "completed" or conclusion is None:
        return None
    known = {
        "pr": _find_pull_request(payload, run),
        "sha": text_at(run, "head_sha"),
        "author": text_at(payload, "sender", "login"),
        "conclusion": conclusion,
        "url": text_at(run, "html_url"),
        **facts,
    }
    says = CONCLUSIONS.get(conclusion, SignalType.NEUTRAL)
    told = f", {facts['title']}" if facts.get("title") else ""
    title = f"{what} {facts['name'] or 'without a name'}: {conclusion}{told}"
    return News(says, title, known, (number_at(run, "id"), stamp, conclusion))


def _read_status(payload: dict[str, Any]) -> News | None:
    state = text_at(payload, "state")
    branches = [text_at(branch, "name") for branch in list_at(payload, "branches")]
    facts = {
        "pr": None,
        "sha": text_at(payload, "sha"),
        "name": text_at(payload, "context"),
        "branch": branches[0] if len(branches) == 1 else None,
        "author": text_at(payload, "sender", "login"),
        "told": text_at(payload, "description"),
        "url": text_at(payload, "target_url"),
    }
    return _read_state("status", state, facts, (number_at(payload, "id"), state))


def _read_deployment(payload: dict[str, Any]) -> News | None:
    status, deployment = payload["deployment_status"], payload["deployment"]
    state = text_at(status, "state")
    facts = {
        "pr": None,
        "sha": text_at(deployment, "sha"),
        "name": text_at(status, "environment") or text_at(deployment, "environment"),
        "branch": text_at(deployment, "ref"),
        "author": text_at(status, "creator", "login"),
        "told": text_at(status, "description"),
        "url": text_at(status, "environment_url") or text_at(status, "log_url") or text_at(status, "target_url"),
    }
    return _read_state("deployment to", state, facts, (number_at(status, "id"), state))


def _read_state(what: str, state: str | None, facts: dict[str, Any], identity: tuple[Any, ...]) -> News | None:
    if state not in STATES:
        return None
    title = f"{what} {facts['name'] or 'a place without a name'}: {state}"
    return News(STATES[state], title, {**facts, "conclusion": state}, identity)


def _read_merge_group(payload: dict[str, Any]) -> News | None:
    group, reason = payload["merge_group"], text_at(payload, "reason")
    if payload.get("action") != "destroyed" or reason not in MERGE_GROUPS:
        return None
    branch, sha = text_at(group, "head_ref"), text_at(group, "head_sha")
    queued = _QUEUE_BRANCH.search(branch or "")
    facts = {
        "pr": int(queued[1]) if queued else None,
        "sha": sha,
        "branch": branch,
        "author": text_at(payload, "sender", "login"),
        "conclusion": reason,
    }
    # A merge group has no id but its commit.
    return News(MERGE_GROUPS[reason], f"merge queue: {reason}", facts, (sha, reason))


def _find_pull_request(payload: dict[str, Any], run: dict[str, Any]) -> int | None:
    """Return the pull request of a run. A fork's run lists none, and one of another repository is ignored."""
    ours = number_at(payload, "repository", "id")
    for listed in list_at(run, "pull_requests") or list_at(run, "check_suite", "pull_requests"):
        number, base = number_at(listed, "number"), number_at(listed, "base", "repo", "id")
        if number is not None and (base is None or ours is None or base == ours):
            return number
    return None


def _branch(payload: dict[str, Any], holder: dict[str, Any], ref: str | None, key: str) -> str | None:
    """Name a branch; one of a fork as `owner:branch`, so that a stranger's `main` is not taken for ours."""
    if ref is None or key not in holder:
        return ref
    head = text_at(holder, key, "full_name")
    if head is not None and head == text_at(payload, "repository", "full_name"):
        return ref
    return name_branch(ref, head or "unknown")


def _read_pull_request(payload: dict[str, Any]) -> News | None:
    request = payload["pull_request"]
    if payload.get("action") != "closed":
        return None
    is_merged = request.get("merged") is True or text_at(request, "merged_at") is not None
    if not is_merged and _is_strangers_own(payload):
        return None
    facts = {
        **_request_facts(payload),
        "by": text_at(payload, "sender", "login"),
        "merge_sha": text_at(request, "merge_commit_sha"),
    }
    identity = (number_at(request, "id"), text_at(request, "closed_at"))
    return read_closing("pull request", text_at(request, "title"), facts, identity, is_merged=is_merged)


def _is_strangers_own(payload: dict[str, Any]) -> bool:
    """Tell whether a stranger has closed their own pull request, which judges nothing."""
    request = payload["pull_request"]
    author, sender = number_at(request, "user", "id"), number_at(payload, "sender", "id")
    association = text_at(request, "author_association")
    is_stranger = association is not None and association not in TRUSTED
    return is_stranger and author is not None and author == sender and _is_person(request)


def _request_facts(payload: dict[str, Any]) -> dict[str, Any]:
    request = payload["pull_request"]
    head = value_at(request, "head")
    return {
        "pr": number_at(request, "number") or number_at(payload, "number"),
        "sha": text_at(head, "sha"),
        "branch": _branch(payload, head, text_at(head, "ref"), "repo") if isinstance(head, dict) else None,
        "author": text_at(request, "user", "login"),
        "url": text_at(request, "html_url"),
    }


def _read_review(payload: dict[str, Any]) -> News | None:
    review = payload["review"]
    state = (text_at(review, "state") or "").lower()
    if text_at(payload, "action") not in _REVIEW_ACTIONS or state not in REVIEWS or not _is_trusted(review):
        return None
    author, body = text_at(review, "user", "login"), text_at(review, "body")
    known = _request_facts(payload)
    facts = {
        **known,
        "sha": text_at(review, "commit_id") or known["sha"],
        "author": author,
        "conclusion": state,
        "url": text_at(review, "html_url"),
    }
    title = f"review by {author}: {state.replace('_', ' ')}{f': {body}' if body else ''}"
    word = human_signal(review["body"]) if state == "commented" and body else None
    says = REVIEWS[state] if word is None else SignalType(word["signal_type"])
    return News(says, title, facts, (number_at(review, "id"), state, text_at(review, "submitted_at")))


def _read_comment(payload: dict[str, Any]) -> News | None:
    issue = payload["issue"]
    number = number_at(issue, "number")
    is_request = isinstance(issue.get("pull_request"), dict)
    return _read_words(payload, {"pr": number if is_request else None, "issue": number})


def _read_review_comment(payload: dict[str, Any]) -> News | None:
    comment, known = payload["comment"], _request_facts(payload)
    sha, path = text_at(comment, "commit_id") or known["sha"], text_at(comment, "path")
    return _read_words(payload, {"pr": known["pr"], "sha": sha, "branch": known["branch"], "path": path})


def _read_words(payload: dict[str, Any], facts: Mapping[str, Any]) -> News | None:
    """Read a comment of a person of the repository: words outside the grammar are kept, and decide nothing."""
    comment = payload["comment"]
    body = text_at(comment, "body")
    if payload.get("action") != "created" or body is None or not _is_trusted(comment):
        return None
    word = human_signal(comment["body"])
    says, title = (SignalType.NEUTRAL, body) if word is None else (SignalType(word["signal_type"]), word["summary"])
    known = {"author": text_at(comment, "user", "login"), "url": text_at(comment, "html_url"), **facts}
    return News(says, title, known, (number_at(comment, "id"),), is_quoted=True)


def _is_trusted(said: dict[str, Any]) -> bool:
    """Tell whether a person of the repository wrote it: not a stranger, a bot or a deleted account."""
    return (
        text_at(said, "author_association") in TRUSTED
        and _is_person(said)
        and said.get("performed_via_github_app") is None
    )


def _is_person(said: dict[str, Any]) -> bool:
    login = text_at(said, "user", "login")
    return login is not None and not login.endswith("[bot]") and text_at(said, "user", "type") in (None, "User")


#: For each event, the objects that its body must have, and the function that reads it.
EVENTS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], News | None]]] = {
    "check_run": (("check_run",), _read_check_run),
    "check_suite": (("check_suite",), _read_check_suite),
    "workflow_run": (("workflow_run",), _read_workflow_run),
    "pull_request": (("pull_request",), _read_pull_request),
    "pull_request_review": (("review", "pull_request"), _read_review),
    "pull_request_review_comment": (("comment", "pull_request"), _read_review_comment),
    "status": (("commit",), _read_status),
    "deployment_status": (("deployment_status", "deployment"), _read_deployment),
    "merge_group": (("merge_group",), _read_merge_group),
    "issue_comment": (("issue", "comment"), _read_comment),
}
