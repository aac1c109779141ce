"""What every HTTP request passes before the protocol sees it: its host, its origin, its token, its body."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from pytest_golden.serving.bearer import BearerCheck, ask_for_token
from pytest_golden.serving.bodies import Bodies, pass_over, refuse_two_lengths, replay, until_end
from pytest_golden.serving.hosts import is_own_host, is_own_origin
from pytest_golden.serving.origin import refuse_cross_site, refuse_foreign_host
from pytest_golden.serving.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Door:
    """Where a server listens, and the token that opens it; None opens it to all who reach it."""

    host: str
    token: str | None = field(repr=False)


class Guard:
    """An application around the protocol's. `say_ready` is called when requests are answered.

    Whoever has the token is let in however often others at the same address were wrong.
    """

    def __init__(self, app: ASGIApp, door: Door, say_ready: Callable[[], None]) -> None:
        self._app = app
        self._host = door.host
        self._say_ready = say_ready
        self._bearers = None if door.token is None else BearerCheck(door.token)
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, self._with_word(send))
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = until_end(receive)
        try:
            heard = await self._let_in(scope, receive, body)
        except Refusal as refusal:
            # Whoever is still sending would find the connection cut, and not the answer.
            if await pass_over(body, Headers(scope=scope)):
                refusal.headers["Connection"] = "close"
            await PlainTextResponse(refusal.detail, refusal.status, refusal.headers)(scope, receive, send)
        else:
            await self._app(scope, heard, send)

    async def _let_in(self, scope: Scope, receive: Receive, body: Receive) -> Receive:
        headers = Headers(scope=scope)
        refuse_two_lengths(headers)
        host = refuse_foreign_host(headers, lambda name: is_own_host(name, self._host))
        refuse_cross_site(headers, lambda origin: is_own_origin(origin, host))
        address = str((scope.get("client") or [""])[0])
        if self._bearers is not None and not self._bearers.is_right(headers, address):
            raise ask_for_token("Send the header `Authorization: Bearer TOKEN`.")
        if scope["method"] != "POST":
            return receive
        return replay(await self._bodies.read(body, headers.get("content-length"), MOST_BODY_BYTES), receive)

    def _with_word(self, send: Send) -> Send:
        async def send_and_say(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                self._say_ready()

        return send_and_say
