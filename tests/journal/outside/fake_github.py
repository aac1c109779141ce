"""A GitHub of our own: a server that knows what an ETag is, with one pull request."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from tests.journal.outside import github_payloads as github

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = "octo/shop"


class FakeGitHub(ThreadingHTTPServer):
    """Answers with `pages`, by path without its query but the page number; an answer may be a status and a document."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, Any] = {}
        self.headers: dict[str, str] = {"X-RateLimit-Remaining": "4990"}
        self.asked: Counter[str] = Counter()
        self.tokens: set[str | None] = set()
        self.methods: set[str] = set()

    @classmethod
    @contextmanager
    def answering(cls) -> Iterator[FakeGitHub]:
        """Let one answer, and be asked by what asks GitHub here."""
        with cls() as fake, pytest.MonkeyPatch.context() as patch:
            Thread(target=fake.serve_forever, daemon=True).start()
            patch.setenv("GITHUB_API_URL", fake.url)
            patch.setenv("GITHUB_TOKEN", "secret")
            yield fake
            fake.shutdown()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeGitHub

    def do_GET(self) -> None:
        path, _, query = self.path.lstrip("/").partition("?")
        page = 1 if "page=" not in query.replace("per_page=", "") else int(query.rpartition("page=")[2])
        found = self.server.pages.get(path, (404, {"message": "Not Found"}))
        if isinstance(found, list):
            found = found[(page - 1) * 100 : page * 100]
        status, document = found if isinstance(found, tuple) else (200, found)
        etag = f'"{hash(repr(document))}"'
        self.server.asked[path] += 1
        self.server.tokens.add(self.headers["Authorization"])
        self.server.methods.add(self.command)
        is_known = status == 200 and self.headers["If-None-Match"] == etag
        self.send_response(304 if is_known else status)
        for name, value in {**self.server.headers, "ETag": etag}.items():
            self.send_header(name, value)
        self.end_headers()
        if not is_known:
            self.wfile.write(document if isinstance(document, bytes) else json.dumps(document).encode())

    def log_message(self, *_: Any) -> None:
        pass


def request(number: int = 42, **changes: Any) -> dict[str, Any]:
    found = github.request(number=number, **changes)
    return {**found, "base": {"ref": "main", "repo": {"id": github.REPOSITORY["id"]}}}


def put(server: FakeGitHub, number: int = 42, **more: Any) -> None:
    """Let GitHub have a pull request with one of each: a check, a status, a review, two comments."""
    found = request(number, **more)
    sha = found["head"]["sha"]
    whole = f"repos/{REPOSITORY}"
    run = github.check_run(conclusion="failure", pull_requests=[github.listed(number)])["check_run"]
    server.pages |= {
        f"{whole}/pulls/{number}": found,
        f"{whole}/pulls/{number}/reviews": [github.review("APPROVED")["review"]],
        f"{whole}/issues/{number}/comments": [github.comment("Good job!")["comment"]],
        f"{whole}/pulls/{number}/comments": [github.review_comment("What about nulls?")["comment"]],
        f"{whole}/commits/{sha}/check-runs": {"total_count": 1, "check_runs": [run]},
        f"{whole}/commits/{sha}/status": {"sha": sha, "statuses": [{**github.status(), "id": 5}]},
    }
