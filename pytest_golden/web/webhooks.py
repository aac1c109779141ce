"""Webhooks: signals from forges and from senders that share the secret. Nothing else about the sender is checked."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pytest_golden.clock import utc_now
from pytest_golden.errors import JournalError, PayloadError, SignatureError
from pytest_golden.journal.outside.forge_webhooks import bitbucket_signal, gitlab_signal
from pytest_golden.journal.outside.github_webhooks import github_signal
from pytest_golden.journal.outside.signed import callback_signal
from pytest_golden.web.access import Attempts, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from pytest_golden.web.rendering import Site

    Read = Callable[[Mapping[str, str], bytes, str], dict[str, Any] | None]

_MOST_WRONG = 200
_IGNORED = {"ignored": True}


def list_routes(site: Site) -> list[Route]:
    """Return the routes of this part."""
    webhooks = _Webhooks(site)
    return [
        Route(f"/webhooks/{name}", partial(webhooks.receive, read=read), methods=["POST"])
        for name, read in _READERS.items()
    ]


_READERS: Mapping[str, Read] = {
    "github": github_signal,
    "gitlab": lambda headers, body, secret: gitlab_signal(headers, body, secret, now=utc_now()),
    "bitbucket": bitbucket_signal,
    "callback": lambda headers, body, secret: callback_signal(headers, body, secret, now=utc_now()),
}


class _Webhooks:
    def __init__(self, site: Site) -> None:
        self._journal = site.services.journal
        self._secret = site.options.webhook_secret
        self._wrongs = Attempts(_MOST_WRONG)

    async def receive(self, request: Request, read: Read) -> Response:
        if self._secret is None:
            raise Refusal(404, "Webhooks are closed here: GOLDEN_WEBHOOK_SECRET is not set.")
        body = await request.body()
        try:
            signal = read(request.headers, body, self._secret)
        except SignatureError as error:
            self._wrongs.count(request.scope["golden.address"])
            raise Refusal(401, str(error), {"WWW-Authenticate": "Signature"}) from None
        except PayloadError as error:
            raise Refusal(400, str(error)) from None
        return JSONResponse(_IGNORED if signal is None else await run_in_threadpool(self._take_in, signal))

    def _take_in(self, signal: dict[str, Any]) -> dict[str, Any]:
        try:
            received = self._journal.add_signal(**signal)
        except JournalError as error:
            raise Refusal(422, str(error)) from None
        return {"signal_id": received.id, "routed_by": received.routed_by.value}
