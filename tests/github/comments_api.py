"""A local server that plays GitHub's API for the comments of a pull request."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from types import TracebackType


class CommentsApi:
    """Keeps comments as GitHub would.

    `refuses` is a status that it answers every request with, `person` whose token it is: None for the job's own.
    """

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.authorizations: list[list[str]] = []
        self.refuses: int | None = None
        self.person: str | None = None
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(*api.answer(self.path))

            def do_POST(self) -> None:
                comment = {"id": len(api.comments) + 1, "user": api.author(), **self._read()}
                api.comments.append(comment)
                self._answer(201, comment)

            def do_PATCH(self) -> None:
                comment = api.comments[int(self.path.rpartition("/")[2]) - 1]
                comment.update(self._read())
                self._answer(200, comment)

            def _read(self) -> dict[str, Any]:
                told: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                return told

            def _answer(self, status: int, value: Any) -> None:
                api.requests.append(f"{self.command} {urlsplit(self.path).path} {self.headers['Authorization']}")
                api.authorizations.append(self.headers.get_all("Authorization") or [])
                data = json.dumps(value).encode()
                self.send_response(api.refuses or status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def answer(self, path: str) -> tuple[int, Any]:
        """Return status and value for a GET; of what it does not know, that it is not there."""
        if path == "/user":
            return (403 if self.person is None else 200), {"login": self.person}
        query = parse_qs(urlsplit(path).query)
        if "page" not in query:
            return 404, None
        size, page = int(query["per_page"][0]), int(query["page"][0])
        return 200, self.comments[(page - 1) * size : page * size]

    def author(self) -> dict[str, str]:
        """Who writes with this token."""
        if self.person is None:
            return {"type": "Bot", "login": "github-actions[bot]"}
        return {"type": "User", "login": self.person}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
