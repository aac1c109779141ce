"""Ask GitHub for the events that its webhooks would send, where no webhook arrives: only with GET, and only about open expectations.

An object of the REST API has the same form as in a webhook. So it is read by the same rules and identified by the same external id, and
an event that arrives both ways has one effect. A page that has not changed since the last time does not count against GitHub's limit
(conditional requests).

Source: https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from email.parser import Parser
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pytest_golden.errors import JournalError
from pytest_golden.journal.model import Signal, SignalType
from pytest_golden.journal.outside.github_webhooks import CONCLUSIONS, TRUSTED, read_event
from pytest_golden.journal.outside.signed import list_at, number_at, text_at, value_at
from pytest_golden.journal.receiving_store import find_by_external_id
from pytest_golden.storage.folder import make_folder, replace_file
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from email.message import Message
    from pathlib import Path

    from pytest_golden.journal.model import Expectation
    from pytest_golden.journal.store import SweptStore

#: GitHub's address, unless GITHUB_API_URL names another one.
DEFAULT_URL = "https://api.github.com"
MOST_PULL_REQUESTS = 50
_SECONDS = 30.0
_PAGE_SIZE = 100
_MOST_PAGES = 10
_LARGEST = 32 << 20
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_SHA = re.compile(r"[0-9a-f]{40}")
_UNCHANGED, _GONE = 304, frozenset({404, 410, 422})
_LIMITED = frozenset({403, 429})


class Reply(NamedTuple):
    """GitHub's answer to one request; `document` is None if nothing has changed."""

    status: int
    headers: Mapping[str, str]
    document: Any


class _Journal(Protocol):
    @property
    def swept_store(self) -> SweptStore: ...

    def open_expectations(self) -> tuple[Expectation, ...]: ...

    def add_signal(
        self, source: str, signal_type: str, summary: str, *, data: Any = None, external_id: str | None = None
    ) -> Signal: ...


class Ask(Protocol):
    """Sends one GET request for a path. `etag` is that of the known answer, "" for none."""

    def __call__(self, path: str, etag: str) -> Reply:
        """Send it, or raise JournalError."""
        ...


@dataclass(slots=True)
class Known:
    """What is remembered between two calls: the repository's id, and the ETag of each page."""

    repository: int | None = None
    etags: dict[str, str] = field(default_factory=dict)


def read_known(path: Path, key: str) -> Known:
    """Read what is remembered under a key; nothing if the file does not exist or cannot be used."""
    try:
        kept = json.loads(path.read_bytes())[key]
        etags = {str(name): str(etag) for name, etag in kept["etags"].items()}
        return Known(number_at(kept, "repository"), etags)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Known()


def write_known(path: Path, key: str, known: Known) -> None:
    """Remember it, beside the other keys. If it cannot be written, the next call asks for everything again."""
    with suppress(OSError):
        try:
            kept = json.loads(path.read_bytes())
        except (OSError, ValueError):
            kept = {}
        kept = {**(kept if isinstance(kept, dict) else {}), key: asdict(known)}
        make_folder(path.parent)
        with replace_file(path) as file:
            json.dump(kept, file)


class Wanted(NamedTuple):
    """The subjects to ask about: pull requests by number or by branch, commits or branches, and their deployments."""

    pull_requests: tuple[int, ...]
    refs: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    deployed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncReport(Shape):
    """The result of a synchronization: the number of requested pages, and the new signals.

    `unchanged` pages do not count against GitHub's limit, of which `left` requests remain (None: not known).
    """

    asked: int
    unchanged: int
    signals: tuple[Signal, ...]
    left: int | None


def list_wanted(expectations: Iterable[Expectation], repository: str, pull_requests: Iterable[int] = ()) -> Wanted:
    """List the subjects that open expectations wait for in a repository, by their hints, and these pull requests; at most 50 of each."""
    numbers = dict.fromkeys(pull_requests)
    refs, heads, deployed = dict[str, None](), dict[str, None](), dict[str, None]()
    for expectation in expectations:
        hint = expectation.match_hint or {}
        if hint.get("source", "github") != "github" or hint.get("repository", repository) != repository:
            continue
        number = str(hint.get("pr") or hint.get("issue") or "")
        if number.isascii() and number.isdigit() and len(number) < 10:
            numbers[int(number)] = None
        elif hint.get("event") == "pull_request" and hint.get("branch"):
            heads[str(hint["branch"])] = None
        elif ref := hint.get("sha") or hint.get("branch"):
            (deployed if hint.get("event") == "deployment_status" else refs)[str(ref)] = None
    names = (tuple(found)[:MOST_PULL_REQUESTS] for found in (refs, heads, deployed))
    return Wanted(tuple(numbers)[:MOST_PULL_REQUESTS], *names)


def sync_github(
    journal: _Journal,
    repository: str,
    ask: Ask,
    known: Known,
    *,
    pull_requests: Iterable[int] = (),
    progress: Callable[[int], None] | None = None,
) -> SyncReport:
    """Fetch what GitHub says about these pull requests and about the subjects of the journal's open expectations.

    `progress` receives the number of pull requests and commits that were asked about. `known` is changed.

    Raises:
        JournalError: `repository` is not `owner/name`; GitHub refuses, cannot be reached, or its limit is reached. Earlier answers are kept.
        StorageError: the journal cannot be read or written.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise JournalError(f"{repository!r:.200} is not a repository; write it as OWNER/NAME")
    new: dict[str, Signal] = {}

    def take(given: dict[str, Any]) -> None:
        with journal.swept_store.store.read() as connection:
            is_known = find_by_external_id(connection, given["source"], given["external_id"]) is not None
        if not is_known:
            signal = journal.add_signal(**given)
            new[signal.id] = signal

    wanted = list_wanted(journal.open_expectations(), repository, pull_requests)
    run = GitHubSync(repository, ask, known, take)
    run.run(wanted, progress)
    return SyncReport(run.asked, run.unchanged, tuple(new.values()), run.left)


class GitHubSync:
    """One synchronization of a repository, `owner/name`. It reads the wanted subjects and passes each event to `take`."""

    def __init__(self, repository: str, ask: Ask, known: Known, take: Callable[[dict[str, Any]], None]) -> None:
        self._repository = repository
        self._ask = ask
        self._known = known
        self._take = take
        self._seen: set[str] = set()
        self.asked = self.unchanged = 0
        self.left: int | None = None

    def run(self, wanted: Wanted, progress: Callable[[int], None] | None = None) -> None:
        """Ask about the wanted subjects. Answers are kept even if GitHub stops answering half-way.

        Raises:
            JournalError: GitHub refuses, cannot be reached, or its limit is reached; the message says until when.
        """
        steps: list[tuple[Callable[[Any], None], Any]] = [
            *((self._sync_pull_request, one) for one in wanted.pull_requests),
            *((self._sync_head, one) for one in wanted.heads),
            *((self._sync_ref, one) for one in wanted.refs),
            *((self._sync_deployments, one) for one in wanted.deployed),
        ]
        for done, (sync, one) in enumerate(steps, 1):
            sync(one)
            if progress is not None:
                progress(done)
        # Subjects that no expectation waits for are forgotten.
        self._known.etags = {path: etag for path, etag in self._known.etags.items() if path in self._seen}

    def _sync_pull_request(self, number: int) -> None:
        path = f"pulls/{number}"
        found = self._get(path, always=True)
        if found is None:
            self._sync_issue(number)
            return
        around = {"number": number, "pull_request": found}
        self._learn_repository(found)
        if text_at(found, "closed_at"):
            self._hear("pull_request", {**around, "action": "closed", "sender": self._find_closer(number, found)})
        issue = {"number": number, "pull_request": {}}
        for review in self._list(f"{path}/reviews"):
            is_dismissed = (text_at(review, "state") or "").upper() == "DISMISSED"
            self._hear(
                "pull_request_review",
                {**around, "action": "dismissed" if is_dismissed else "submitted", "review": review},
            )
        self._sync_comments(number, issue)
        for comment in self._list(f"{path}/comments"):
            self._hear("pull_request_review_comment", {**around, "action": "created", "comment": comment})
        if sha := text_at(found, "head", "sha"):
            self._sync_ref(sha, found)

    def _sync_head(self, branch: str) -> None:
        """Read the pull requests of a branch; one of a fork is named `owner:branch`."""
        head = branch if ":" in branch else f"{self._repository.partition('/')[0]}:{branch}"
        for found in self._list(f"pulls?state=all&head={quote(head, safe='')}", always=True):
            if text_at(found, "head", "ref") == branch.rpartition(":")[2] and (number := number_at(found, "number")):
                self._sync_pull_request(number)

    def _sync_deployments(self, ref: str) -> None:
        """Read the results of the deployments of a commit or branch."""
        self._require_repository()
        key = "sha" if _SHA.fullmatch(ref) else "ref"
        for deployment in self._list(f"deployments?{key}={quote(ref, safe='')}", always=True):
            if number := number_at(deployment, "id"):
                # GitHub lists the newest first.
                for status in reversed(list(self._list(f"deployments/{number}/statuses"))):
                    self._hear("deployment_status", {"deployment_status": status, "deployment": deployment})

    def _sync_issue(self, number: int) -> None:
        """Read the comments on an issue; if the repository is not accessible at all, say so."""
        self._require_repository()
        self._sync_comments(number, {"number": number})

    def _sync_comments(self, number: int, issue: dict[str, Any]) -> None:
        for comment in self._list(f"issues/{number}/comments"):
            self._hear("issue_comment", {"action": "created", "issue": issue, "comment": comment})

    def _find_closer(self, number: int, found: dict[str, Any]) -> Any:
        """Return who closed a pull request. A stranger who closes their own pull request decides nothing."""
        if text_at(found, "merged_at") or text_at(found, "author_association") in TRUSTED:
            return value_at(found, "merged_by")
        return value_at(self._get(f"issues/{number}", always=True), "closed_by")

    def _sync_ref(self, ref: str, request: dict[str, Any] | None = None) -> None:
        """Read the checks and statuses of a commit or branch, with the pull request whose head it is."""
        self._require_repository()
        place = f"commits/{quote(ref, safe='')}"
        known_branch = None if request is None else self._name_branch(request)
        number = number_at(request, "number")
        for run in self._list(f"{place}/check-runs", "check_runs"):
            suite: dict[str, Any] = {}
            if isinstance(run.get("check_suite"), dict):
                suite = run["check_suite"]
            branch = known_branch or (ref if text_at(run, "head_sha") != ref else None)
            listed = run.get("pull_requests") or ([] if number is None else [{"number": number}])
            told = {**run, "check_suite": {"head_branch": branch, **suite}, "pull_requests": listed}
            self._hear("check_run", {"action": "completed", "check_run": told})
        answer = self._get(f"{place}/status?per_page={_PAGE_SIZE}")
        for status in list_at(answer, "statuses"):
            branches = [] if known_branch is None else [{"name": known_branch}]
            self._hear("status", {**status, "sha": text_at(answer, "sha"), "branches": branches})

    def _name_branch(self, request: dict[str, Any]) -> str | None:
        ours = text_at(request, "head", "repo", "full_name") == self._repository
        return text_at(request, "head", "ref") if ours else None

    def _require_repository(self) -> None:
        if self._known.repository is None:
            self._learn_repository({"base": {"repo": self._get("", always=True)}})

    def _learn_repository(self, found: Any) -> None:
        self._known.repository = number_at(found, "base", "repo", "id") or self._known.repository

    def _hear(self, event: str, payload: dict[str, Any]) -> None:
        repository = {"id": self._known.repository, "full_name": self._repository}
        signal = read_event(event, {"repository": repository, **payload})
        if signal is not None:
            self._take(signal)

    def _list(self, path: str, key: str | None = None, *, always: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the objects of all pages of a list."""
        start = f"{path}{'&' if '?' in path else '?'}per_page={_PAGE_SIZE}&page="
        for page in range(1, _MOST_PAGES + 1):
            found = self._get(f"{start}{page}", always=always)
            listed = found if key is None else value_at(found, key)
            rows = listed if isinstance(listed, list) else []
            yield from (row for row in rows if isinstance(row, dict))
            # A full page is followed by another, also if it has not changed since.
            following = self._name_page(f"{start}{page + 1}")
            if len(rows) < _PAGE_SIZE and not (found is None and following in self._known.etags):
                return

    def _get(self, path: str, *, always: bool = False) -> Any:
        """Return the content of a page; None if it has not changed or does not exist. `always` also asks for known pages."""
        whole = self._name_page(path)
        reply = self._ask(whole, "" if always else self._known.etags.get(whole, ""))
        self._seen.add(whole)
        self.asked += 1
        left = reply.headers.get("x-ratelimit-remaining", "")
        self.left = int(left) if left.isdigit() else self.left
        if reply.status == _UNCHANGED:
            self.unchanged += 1
            return None
        if reply.status in _GONE and path:
            return None
        if reply.status != 200:
            _refuse(reply, self._repository)
        if etag := reply.headers.get("etag"):
            self._known.etags[whole] = etag
        return reply.document

    def _name_page(self, path: str) -> str:
        return f"repos/{self._repository}{f'/{path}' if path else ''}"


class GitHubState(NamedTuple):
    """What GitHub says about a subject now; `says` is None if it is not decided yet."""

    says: SignalType | None
    told: str
    url: str | None = None


def find_ask() -> Ask:
    """Return a function that asks GitHub: with GITHUB_TOKEN or GH_TOKEN, else with `gh`, else without a login; at GITHUB_API_URL if set.

    Raises:
        JournalError: a token must not be sent to that address.
    """
    url = os.environ.get("GITHUB_API_URL") or DEFAULT_URL
    token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN")
    return ask_with_token(url, token) if token else ask_with_gh() or ask_with_token(url, None)


def find_state(subject: str, name: str = "", ask: Ask | None = None) -> GitHubState:
    """Tell how a pull request (`owner/name#42`) ended, or the check of this name on it or on a commit (`owner/name@commit`).

    Raises:
        JournalError: GitHub refuses, cannot be reached, or its limit is reached.
    """
    repository, mark, place = re.split("([#@])", subject, maxsplit=1)
    asking = ask or find_ask()

    def get(path: str) -> Any:
        reply = asking(f"repos/{repository}/{path}", "")
        if reply.status != 200:
            _refuse(reply, repository)
        return reply.document

    if mark == "#":
        found = get(f"pulls/{place}")
        if not name:
            return _read_request(found)
        place = text_at(found, "head", "sha") or ""
    query = f"check_name={quote(name, safe='')}&filter=latest"
    runs = list_at(get(f"commits/{quote(place, safe='')}/check-runs?{query}"), "check_runs")
    return _read_run(name, runs[0] if runs else None)


def _read_request(found: Any) -> GitHubState:
    url, number = text_at(found, "html_url"), number_at(found, "number")
    if text_at(found, "merged_at"):
        return GitHubState(SignalType.POSITIVE, f"pull request {number} was merged", url)
    if text_at(found, "state") == "closed":
        return GitHubState(SignalType.NEGATIVE, f"pull request {number} was closed without merging", url)
    return GitHubState(None, f"pull request {number} is open", url)


def _read_run(name: str, run: Any) -> GitHubState:
    if run is None:
        return GitHubState(None, f"GitHub has no check {name!r}")
    url, conclusion = text_at(run, "html_url"), text_at(run, "conclusion")
    if conclusion is None:
        return GitHubState(None, f"check {name!r} is {text_at(run, 'status') or 'not there'}", url)
    says = CONCLUSIONS.get(conclusion, SignalType.NEUTRAL)
    told = f"check {name!r}: {conclusion}"
    return GitHubState(None if says is SignalType.NEUTRAL else says, told, url)


def _refuse(reply: Reply, repository: str) -> NoReturn:
    if reply.status in _LIMITED and (
        reply.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in reply.headers
    ):
        waits = reply.headers.get("retry-after")
        until = f"for {waits} s" if waits else f"until {_show_reset(reply.headers.get('x-ratelimit-reset', ''))}"
        raise JournalError(f"GitHub's rate limit is reached {until}; the answers so far are kept, so ask again then")
    if reply.status == 401:
        raise JournalError("GitHub refuses the token; give one that may read in GITHUB_TOKEN, or run: gh auth login")
    told = text_at(reply.document, "message") or f"status {reply.status}"
    if reply.status in {301, 403, 404}:
        raise JournalError(
            f"GitHub does not show {repository} ({told}); check its name, and whether the token may read it"
        )
    raise JournalError(f"GitHub cannot answer about {repository} now ({told}); ask again later")


def _show_reset(text: str) -> str:
    return f"{datetime.fromtimestamp(int(text), UTC):%H:%M} UTC" if text.isdigit() else "later"


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect: the token would go with it."""


def ask_with_token(url: str, token: str | None) -> Ask:
    """Return a function that asks at this URL directly, through the proxy of the environment if there is one.

    Raises:
        JournalError: a token would be sent over an unencrypted connection.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost", "::1"}):
        raise JournalError(f"GITHUB_API_URL is {url!r:.200}; give an https address")
    opener = build_opener(_NoRedirect)
    fixed = {
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "pytest-golden-projects",
    }

    def ask(path: str, etag: str) -> Reply:
        headers = {
            **fixed,
            **({"Authorization": f"Bearer {token}"} if token else {}),
            **({"If-None-Match": etag} if etag else {}),
        }
        try:
            with opener.open(Request(f"{url.rstrip('/')}/{path}", headers=headers), timeout=_SECONDS) as answer:
                return _read_reply(answer.status, answer.headers, answer.read(_LARGEST))
        except HTTPError as error:
            with error:
                return _read_reply(error.code, error.headers, error.read(_LARGEST))
        except (URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise JournalError(f"GitHub cannot be reached at {url}: {reason}; ask again later") from None

    return ask


def ask_with_gh() -> Ask | None:
    """Return a function that asks with GitHub's own program `gh` and its login; None if it is not installed."""
    program = shutil.which("gh")
    if program is None:
        return None

    def ask(path: str, etag: str) -> Reply:
        known = ["--header", f"If-None-Match: {etag}"] if etag else []
        try:
            done = subprocess.run(
                [program, "api", "--include", "--method", "GET", *known, path],
                capture_output=True, timeout=_SECONDS * 2, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise JournalError(f"gh cannot be run: {error}; give a token in GITHUB_TOKEN instead") from None
        head, _, body = done.stdout.replace(b"\r\n", b"\n").partition(b"\n\n")
        first, _, lines = head.decode("utf-8", "replace").partition("\n")
        status = first.split()[1:2]
        if not first.startswith("HTTP/") or not status or not status[0].isdigit():
            told = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise JournalError(f"gh did not answer: {told[0] if told else f'exit code {done.returncode}'}")
        return _read_reply(int(status[0]), Parser().parsestr(lines, headersonly=True), body)

    return ask


def _read_reply(status: int, headers: Message, body: bytes) -> Reply:
    try:
        document = json.loads(body) if body.strip() else None
    except (ValueError, RecursionError):
        raise JournalError(f"GitHub's answer is not JSON (status {status}); is GITHUB_API_URL right?") from None
    return Reply(status, {name.lower(): value for name, value in headers.items()}, document)
