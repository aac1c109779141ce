"""GitHub is a server of our own here, that knows what an ETag is, and a program `gh` that is a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import JournalError
from pytest_golden.journal.outside.github_sync import (
    Known,
    SyncReport,
    Wanted,
    ask_with_gh,
    ask_with_token,
    list_wanted,
    read_known,
    sync_github,
    write_known,
)
from tests.journal.outside import github_payloads as github
from tests.journal.outside.fake_github import REPOSITORY, FakeGitHub, put, request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_golden.journal.service import Journal


@pytest.fixture
def server() -> Iterator[FakeGitHub]:
    with FakeGitHub.answering() as fake:
        yield fake


def sync(journal: Journal, server: FakeGitHub, known: Known | None = None, **more: Any) -> SyncReport:
    ask = ask_with_token(server.url, "secret")
    return sync_github(journal, REPOSITORY, ask, Known() if known is None else known, **more)


def expect(journal: Journal, **hint: Any) -> str:
    entry = journal.log_intent("open a pull request", agent_id="builder")
    wish = {"description": "it is accepted", "match_hint": {"source": "github", **hint}}
    return journal.log_outcome(entry.id, "success", expectations=[wish]).id


def says(report: SyncReport) -> list[tuple[str, str]]:
    return [(one.signal_type.value, str(one.data["event"])) for one in report.signals]


def test_news_that_is_expected_is_brought_in_once(journal: Journal, server: FakeGitHub) -> None:
    put(server)
    entry = expect(journal, pr=42, event="check_run", name="unit tests")
    known = Known()
    report = sync(journal, server, known)
    assert says(report) == [
        ("positive", "pull_request_review"),
        ("positive", "issue_comment"),
        ("neutral", "pull_request_review_comment"),
        ("negative", "check_run"),
        ("positive", "status"),
    ]
    assert (report.asked, report.unchanged, report.left) == (6, 0, 4990)
    assert journal.get(entry).assessment == "failure"
    assert (server.methods, server.tokens) == ({"GET"}, {"Bearer secret"})
    expect(journal, pr=42, event="pull_request")
    again = sync(journal, server, known)
    # The pull request itself is always read: it names the commit.
    assert (again.signals, again.asked, again.unchanged) == ((), 6, 5)
    server.pages[f"repos/{REPOSITORY}/pulls/42"] |= {
        "closed_at": "2026-03-01T13:00:00Z",
        "merged_at": "2026-03-01",
        "merged": True,
    }
    assert says(sync(journal, server, known)) == [("positive", "pull_request")]


def test_what_came_by_a_webhook_is_known(journal: Journal, server: FakeGitHub) -> None:
    put(server, closed_at="2026-03-01T13:00:00Z", merged=True, merged_at="2026-03-01T13:00:00Z")
    delivered = (
        ("pull_request", github.closed(merged=True)),
        ("pull_request_review", github.review()),
        ("issue_comment", github.comment()),
        ("pull_request_review_comment", github.review_comment("What about nulls?")),
        ("check_run", github.check_run(conclusion="failure")),
    )
    for event, payload in delivered:
        journal.add_signal(**github.heard(event, payload))
    assert says(sync(journal, server, pull_requests=[42])) == [("positive", "status")]


def test_nothing_is_asked_if_nobody_waits(journal: Journal, server: FakeGitHub) -> None:
    expect(journal, pr=7, repository="other/place")
    entry = journal.log_intent("wait for the mail", agent_id="builder")
    journal.log_outcome(entry.id, "success", expectations=[{"description": "d", "match_hint": {"source": "mail"}}])
    assert sync(journal, server) == SyncReport(0, 0, (), None)
    assert not server.asked


def test_a_commit_and_a_branch_are_asked_about_by_name(journal: Journal, server: FakeGitHub) -> None:
    server.pages[f"repos/{REPOSITORY}"] = {"id": 4711}
    # In an answer, a suite has nothing but its id.
    run = github.check_run(pull_requests=[], check_suite={"id": 1})["check_run"]
    for ref in ("totals%2Fv2", github.SHA):
        server.pages[f"repos/{REPOSITORY}/commits/{ref}/check-runs"] = {"check_runs": [run]}
    by_branch = expect(journal, branch="totals/v2")
    expect(journal, sha=github.SHA, name="lint")
    report = sync(journal, server)
    # Heard for both names, it is one.
    assert says(report) == [("positive", "check_run")]
    assert journal.get(by_branch).assessment == "success"


def test_a_number_may_be_an_issues_and_a_repository_that_is_not_shown_is_told(
    journal: Journal, server: FakeGitHub
) -> None:
    entry = expect(journal, issue=7)
    with pytest.raises(JournalError, match=r"GitHub does not show octo/shop \(Not Found\)"):
        sync(journal, server)
    server.pages[f"repos/{REPOSITORY}"] = {"id": 4711}
    server.pages[f"repos/{REPOSITORY}/issues/7/comments"] = [github.comment("This is wrong")["comment"]]
    report = sync(journal, server)
    assert [(one.signal_type, one.data["issue"], one.data["pr"]) for one in report.signals] == [("correction", 7, None)]
    assert journal.get(entry).assessment == "failure"


def test_a_stranger_who_closes_their_own_decides_nothing(journal: Journal, server: FakeGitHub) -> None:
    closed = {"closed_at": "2026-03-01T13:00:00Z", "merged": False, "author_association": "NONE"}
    put(server, 42, **closed)
    stranger = request()["user"]
    server.pages[f"repos/{REPOSITORY}/issues/42"] = {"closed_by": stranger}
    assert ("negative", "pull_request") not in says(sync(journal, server, pull_requests=[42]))
    server.pages[f"repos/{REPOSITORY}/issues/42"] = {"closed_by": github.user("ada", 1)}
    assert says(sync(journal, server, pull_requests=[42])) == [("negative", "pull_request")]


def test_long_lists_are_read_to_their_end_also_if_their_first_page_has_not_changed(
    journal: Journal, server: FakeGitHub
) -> None:
    put(server)
    path = f"repos/{REPOSITORY}/issues/42/comments"
    server.pages[path] = [
        github.comment(f"Good job! {'👍' * number}", id=number + 1)["comment"] for number in range(100)
    ]
    known = Known()
    assert len(sync(journal, server, known, pull_requests=[42]).signals) == 104
    server.pages[path].append(github.comment("This is wrong", id=500)["comment"])
    assert says(sync(journal, server, known, pull_requests=[42])) == [("correction", "issue_comment")]


@pytest.mark.parametrize(
    ("status", "headers", "told"),
    [
        (401, {}, "GitHub refuses the token"),
        (404, {}, "GitHub does not show octo/shop (no); check its name"),
        (
            403,
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772370000"},
            "rate limit is reached until 13:00 UTC",
        ),
        (429, {"Retry-After": "60"}, "rate limit is reached for 60 s"),
        (500, {}, "GitHub cannot answer about octo/shop now (no)"),
    ],
)
def test_refusals_are_told(
    journal: Journal, server: FakeGitHub, status: int, headers: Mapping[str, str], told: str
) -> None:
    put(server)
    expect(journal, branch="main")
    server.headers = dict(headers)
    server.pages[f"repos/{REPOSITORY}"] = (status, {"message": "no"})
    with pytest.raises(JournalError) as refused:
        sync(journal, server)
    assert told in str(refused.value)


def test_what_was_heard_before_the_limit_is_kept(journal: Journal, server: FakeGitHub) -> None:
    put(server)
    server.pages[f"repos/{REPOSITORY}/issues/42/comments"] = (429, {"message": "slow down"})
    server.headers = {"Retry-After": "60"}
    known = Known()
    with pytest.raises(JournalError, match="the answers so far are kept"):
        sync(journal, server, known, pull_requests=[42])
    assert [one.data["event"] for one in journal.orphans()] == ["pull_request_review"]
    put(server)
    assert len(sync(journal, server, known, pull_requests=[42]).signals) == 4


def test_no_network_odd_answers_and_bad_names_are_told(journal: Journal, server: FakeGitHub) -> None:
    expect(journal, pr=1)
    with pytest.raises(JournalError, match=r"GitHub cannot be reached at http://127\.0\.0\.1:1: "):
        sync_github(journal, REPOSITORY, ask_with_token("http://127.0.0.1:1", None), Known())
    server.pages[f"repos/{REPOSITORY}/pulls/1"] = b"<html>"
    with pytest.raises(JournalError, match="is not JSON"):
        sync(journal, server)
    for name in ("octo", "octo/shop/x", "../x", "octo/..", "octo/sh op", ""):
        with pytest.raises(JournalError, match="write it as OWNER/NAME"):
            sync_github(journal, name, ask_with_token(server.url, None), Known())
    for url in ("http://example.org", "ftp://127.0.0.1"):
        with pytest.raises(JournalError, match="give an https address"):
            ask_with_token(url, "secret")


@pytest.mark.parametrize("odd", [[], {}, None, [None, 1, "x", {}], {"check_runs": [{}]}, [[]], "x"])
def test_objects_without_their_keys_say_nothing(journal: Journal, server: FakeGitHub, odd: Any) -> None:
    put(server)
    server.pages = {path: odd if path.count("/") > 3 else page for path, page in server.pages.items()}
    server.pages[f"repos/{REPOSITORY}/pulls/42"] = request()
    assert sync(journal, server, pull_requests=[42]).signals == ()


def test_gh_asks_with_its_own_login(
    journal: Journal, server: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(server)
    program = tmp_path / "gh"
    program.write_text(
        "#!/bin/sh\n"
        '[ "$1 $2 $3 $4" = "api --include --method GET" ] || exit 9\n'
        'shift 4\n[ "$1" = --header ] && { set -- "$3" "$2"; }\n'
        f'exec curl -s -i ${{2:+-H "$2"}} "{server.url}/$1"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    ask = ask_with_gh()
    assert ask is not None
    known = Known()
    assert len(sync_github(journal, REPOSITORY, ask, known, pull_requests=[42]).signals) == 5
    again = sync_github(journal, REPOSITORY, ask, known, pull_requests=[42])
    assert (again.signals, again.unchanged) == ((), 5)
    program.write_text("#!/bin/sh\necho 'To get started, run: gh auth login' >&2\nexit 4\n")
    with pytest.raises(JournalError, match="gh did not answer: To get started, run: gh auth login"):
        sync_github(journal, REPOSITORY, ask, Known(), pull_requests=[42])
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert ask_with_gh() is None


def test_hints_name_what_is_asked(journal: Journal) -> None:
    for hint in (
        {"pr": 5},
        {"pr": "6"},
        {"issue": 7},
        {"sha": "abc"},
        {"branch": "b", "pr": 5},
        {"pr": "x"},
        {"job": 1},
    ):
        expect(journal, **hint)
    wanted = list_wanted(journal.open_expectations(), REPOSITORY, [9])
    assert wanted == Wanted((9, 5, 6, 7), ("abc",))


def test_what_is_remembered_is_kept_by_key_and_a_damaged_file_forgets(tmp_path: Path) -> None:
    path = tmp_path / ".golden" / "github.json"
    for key in ("a", "b"):
        write_known(path, key, Known(1, {key: '"x"'}))
    assert read_known(path, "a") == Known(1, {"a": '"x"'})
    assert read_known(path, "c") == Known()
    for damaged in (b"", b"[]", b'{"a": []}', b'{"a": {"etags": 3}}', b"\xff"):
        path.write_bytes(damaged)
        assert read_known(path, "a") == Known()
    write_known(path, "a", Known(2))
    assert read_known(path, "a") == Known(2)
    write_known(tmp_path / "a file" / "x", "a", Known())
    (tmp_path / "file").write_text("")
    write_known(tmp_path / "file" / "github.json", "a", Known())


def test_pull_request_of_a_branch_is_found_by_its_branch(journal: Journal, server: FakeGitHub) -> None:
    put(server, closed_at="2026-03-01T13:00:00Z", merged=True, merged_at="2026-03-01T13:00:00Z")
    other = request(43, head={"ref": "totals-2", "sha": "d" * 40, "repo": github.REPOSITORY})
    server.pages[f"repos/{REPOSITORY}/pulls"] = [request(42), other, {"number": 44}, 7]
    entry = expect(journal, event="pull_request", branch="totals")
    report = sync(journal, server)
    assert ("positive", "pull_request") in says(report)
    assert journal.get(entry).assessment == "success"
    assert server.asked[f"repos/{REPOSITORY}/pulls/43"] == 0


def test_deployment_that_is_expected_is_asked_for(journal: Journal, server: FakeGitHub) -> None:
    told = [github.deployment_status(state, id=number) for number, state in ((3, "success"), (2, "error"))]
    whole = f"repos/{REPOSITORY}"
    server.pages |= {
        whole: github.REPOSITORY,
        f"{whole}/deployments": [{**told[0]["deployment"]}, {"id": "?"}],
        f"{whole}/deployments/145988746/statuses": [one["deployment_status"] for one in told],
    }
    entry = expect(journal, event="deployment_status", sha=github.SHA)
    known = Known()
    assert says(sync(journal, server, known)) == [("negative", "deployment_status"), ("positive", "deployment_status")]
    # What was deployed at last counts.
    assert journal.get(entry).assessment == "success"
    assert sync(journal, server, known).signals == ()
