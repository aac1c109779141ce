from __future__ import annotations

from typing import Any

import pytest

from tests.journal.outside import github_payloads as github
from tests.journal.outside.github_payloads import FORK, SHA, deliver, heard, listed, user

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


@pytest.mark.parametrize("body", ["Not good.", "Is this wrong?", "> Good job!", "I will look at it.", "", None])
def test_comment_outside_the_grammar_decides_nothing(body: str | None) -> None:
    assert deliver("issue_comment", github.comment(body)) is None


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
