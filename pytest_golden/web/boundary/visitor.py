"""Who sends a request: from what address, and whether the token or a session opens the door."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.requests import cookie_parser

from pytest_golden.clock import monotonic_seconds
from pytest_golden.serving.attempts import Attempts
from pytest_golden.serving.bearer import BearerCheck, ask_for_token
from pytest_golden.serving.refusal import Refusal
from pytest_golden.serving.token import is_same
from pytest_golden.web.sign_in.sessions import Sessions

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Scope

    from pytest_golden.web.model import ServeOptions

SIGN_IN = "/sign-in"
_OPEN_PATHS = frozenset({"/healthz", SIGN_IN})
_OPEN_FOLDERS = ("/static/", "/webhooks/")
_PROGRAM_FOLDERS = ("/api/", "/events")
_MOST_WRONG_TOKENS, _WINDOW_SECONDS = 10, 300.0
# What proxies add: a request that carries one comes from somewhere else.
_FORWARDING = ("x-forwarded", "forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip")


class Doorkeeper:
    """Lets in who may come in. `sessions` makes their cookies."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._place = options.place
        self.sessions = Sessions(options.token, options.place, options.cookie_suffix)
        self._bearers = BearerCheck(options.token)
        self._wrong_tokens = Attempts(_MOST_WRONG_TOKENS, _WINDOW_SECONDS, monotonic_seconds)

    def is_token(self, told: str) -> bool:
        """Tell whether a text in the form is the token."""
        return is_same(told.encode("utf-8", "replace"), self._options.token)

    def refuse_wrong_token(self, address: str) -> None:
        """Count a wrong token in the form. Raises Refusal when there were too many from this address."""
        self._wrong_tokens.count(address)

    def demands_token(self, headers: Headers, host: str) -> bool:
        """Tell whether this request needs the token: all do where it was asked for, else those through a proxy."""
        is_forwarded = self._place.is_public(host) or any(name.startswith(_FORWARDING) for name in headers)
        return self._options.demands_token or (self._place.is_behind_proxy and is_forwarded)

    def check(self, scope: Scope, headers: Headers, path: str, host: str) -> None:
        """Let a request pass.

        Raises:
            Refusal: it needs a token, or has a wrong one. A browser is sent to where the token is asked for.
        """
        if path in _OPEN_PATHS or path.startswith(_OPEN_FOLDERS) or not self.demands_token(headers, host):
            return
        is_right = self._bearers.is_right(headers, self.find_address(scope, headers))
        if is_right or self.sessions.is_open(cookie_parser(headers.get("cookie", ""))):
            return
        is_program = path.startswith(_PROGRAM_FOLDERS) or "authorization" in headers
        if is_program or scope["method"] not in {"GET", "HEAD"}:
            raise ask_for_token("Sign in, or send the header `Authorization: Bearer TOKEN`.")
        query = scope.get("query_string", b"").decode("latin-1")
        asked = quote(path, safe="/") + (f"?{query}" if query else "")
        location = f"{self._place.prefix}{SIGN_IN}?next={quote(asked, safe='')}"
        raise Refusal(303, "Sign in first.", {"Location": location})

    def find_address(self, scope: Scope, headers: Headers) -> str:
        """Give where a request comes from. A proxy is believed only where one was announced."""
        forwarded = ",".join(headers.getlist("x-forwarded-for")) if self._place.is_behind_proxy else ""
        if forwarded:
            # What stands before the last one was written by whoever sent it; some proxies add a header of their own.
            return forwarded.rpartition(",")[2].strip()[:64]
        client = scope.get("client")
        return client[0] if client else ""
