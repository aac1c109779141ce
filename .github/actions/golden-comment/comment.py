"""Keep one comment on the pull request: the job's summary, found again by a hidden marker. It never fails the job."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

MOST_SIGNS = 60_000  # GitHub takes 65,536
MOST_OF_HEAD = 20_000
PAGE = 100
MOST_PAGES = 30
TIMEOUT_SECONDS = 30


def main() -> None:
    """Post the comment, or update the one that is there."""
    marker = f"<!-- golden-gate {re.sub(r'[^A-Za-z0-9_.]', '_', os.environ.get('NAME', ''))} -->"
    body = make_body(read_summary(Path(os.environ["REPORTS"])), marker, describe_run())
    comments = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues/{int(os.environ['NUMBER'])}/comments"
    try:
        found = find_comment(comments, marker)
        if found is None:
            ask("POST", comments, {"body": body})
        else:
            ask("PATCH", f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues/comments/{found}", {"body": body})
    except (OSError, ValueError) as error:
        why = f"{error.code} {error.reason}" if isinstance(error, urllib.error.HTTPError) else type(error).__name__
        told = "give the job the permission pull-requests: write; the summary of the job has the same"
        print(f"::notice title=golden comment::no comment on the pull request ({why}): {told}")
    else:
        print(f"golden: the comment was {'posted' if found is None else 'updated'}")


def read_summary(reports: Path) -> str:
    """Give the summary among the reports, which lie in a folder of their own; nothing if the gate has left none."""
    found = sorted(reports.rglob("golden-summary.md"))
    return found[0].read_text(encoding="utf-8", errors="replace") if found else ""


def make_body(summary: str, marker: str, run: str) -> str:
    """Give the comment: the beginning of the summary, and as many whole failures as there is room for."""
    # What is below has its own marks escaped, so that only the summary itself begins a line with this.
    head, *failures = re.split(r"(?m)^(?=<details>)", summary.strip() or "Nothing ran: the log tells why.")
    lines = head.splitlines(keepends=True)
    is_cut = False
    while sum(map(len, lines)) > MOST_OF_HEAD:
        lines.pop()
        is_cut = True
    parts = [marker, "\n", *lines]
    for failure in failures:
        if sum(map(len, parts)) + len(failure) > MOST_SIGNS:
            is_cut = True
            break
        parts.append(failure)
    more = "There is more in the summary of the job. " if is_cut else ""
    return f"{''.join(parts).rstrip()}\n\n{more}{run}\n"


def describe_run() -> str:
    """Give a link to the run that wrote it, and the commit."""
    environment = os.environ
    url = f"{environment['GITHUB_SERVER_URL']}/{environment['GITHUB_REPOSITORY']}/actions/runs/{environment['GITHUB_RUN_ID']}"
    return f"[The whole run]({url}) of {environment.get('GITHUB_SHA', '')[:10]}"


def find_comment(comments: str, marker: str) -> int | None:
    """Find our own comment with the marker: what others quote is theirs."""
    login = find_login()
    for page in range(1, MOST_PAGES + 1):
        told = ask("GET", f"{comments}?per_page={PAGE}&page={page}")
        for comment in told:
            user = comment.get("user") or {}
            is_ours = user.get("type") == "Bot" if login is None else user.get("login") == login
            if is_ours and str(comment.get("body", "")).startswith(marker):
                return int(comment["id"])
        if len(told) < PAGE:
            break
    return None


def find_login() -> str | None:
    """Find the person whose token it is; None for a bot's, as the job's own is, which may not ask."""
    try:
        return str(ask("GET", "/user")["login"])
    except urllib.error.HTTPError:
        return None


def ask(method: str, path: str, value: dict[str, Any] | None = None) -> Any:
    """Ask GitHub's API."""
    request = urllib.request.Request(
        os.environ["GITHUB_API_URL"] + path,
        data=None if value is None else json.dumps(value).encode(),
        method=method,
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ['TOKEN']}",
            "Content-Type": "application/json",
            "User-Agent": "golden-gate",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
