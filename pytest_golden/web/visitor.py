"""Who sends a request: the address, and whether a token or a session lets it in; the cookies of sessions and visits."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from itsdangerous import BadSignature, Signer, TimestampSigner
from starlette.requests import cookie_parser

from pytest_golden.web.access import Attempts, BearerCheck, PublicPlace, Refusal, ask_for_token, is_same

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

    from pytest_golden.web.services import ServeOptions

SIGN_IN = "/sign-in"
_OPEN_PATHS = frozenset({"/healthz", SIGN_IN})
_OPEN_FOLDERS = ("/static/", "/webhooks/")
_PROGRAM_FOLDERS = ("/api/", "/events")
_MOST_WRONG_TOKENS = 10
# Headers that proxies add: a request with one of them comes from another machine.
_FORWARDING = ("x-forwarded", "forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip")
_IS_PERSON = "golden.is_person"
_SESSION_SECONDS = 12 * 60 * 60
_MOST_SIGNED_OUT = 10_000


class Doorkeeper:
    """Decides which requests need the token, and lets in those that carry it. `sessions` makes the cookies."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._place = options.place
        self.sessions = Sessions(options.token, options.place, options.cookie_suffix)
        self._bearers = BearerCheck(options.token)
        self._wrong_tokens = Attempts(_MOST_WRONG_TOKENS)

    def is_token(self, told: str) -> bool:
        """Tell whether a text from the form is the token."""
        return is_same(told.encode("utf-8", "replace"), self._options.token)

    def refuse_wrong_token(self, address: str) -> None:
        """Count a wrong token in the form; raise Refusal after too many from this address."""
        self._wrong_tokens.count(address)

    def demands_token(self, headers: Headers, host: str) -> bool:
        """Tell whether this request needs the token: by option all requests do, else those through a proxy."""
        is_forwarded = self._place.is_public(host) or any(name.startswith(_FORWARDING) for name in headers)
        return self._options.demands_token or (self._place.is_behind_proxy and is_forwarded)

    def check(self, scope: Scope, headers: Headers, path: str, host: str) -> None:
        """Let a request pass, and note in its scope whether a person sends it: somebody who has the token.

        Raises:
            Refusal: it needs a token, or has a wrong one. A browser is redirected to the page that asks for the token.
        """
        scope[_IS_PERSON] = False
        if path in _OPEN_PATHS or path.startswith(_OPEN_FOLDERS):
            return
        is_right = self._bearers.is_right(headers, self.find_address(scope, headers))
        scope[_IS_PERSON] = is_right or self.sessions.is_open(cookie_parser(headers.get("cookie", "")))
        if scope[_IS_PERSON] or not self.demands_token(headers, host):
            return
        is_program = path.startswith(_PROGRAM_FOLDERS) or "authorization" in headers
        if is_program or scope["method"] not in {"GET", "HEAD"}:
            raise ask_for_token("Sign in, or send the header `Authorization: Bearer TOKEN`.")
        query = scope.get("query_string", b"").decode("latin-1")
        asked = quote(path, safe="/") + (f"?{query}" if query else "")
        location = f"{self._place.prefix}{SIGN_IN}?next={quote(asked, safe='')}"
        raise Refusal(303, "Sign in first.", {"Location": location})

    def find_address(self, scope: Scope, headers: Headers) -> str:
        """Return the address that a request comes from. A proxy's header is believed only if a proxy was announced."""
        forwarded = ",".join(headers.getlist("x-forwarded-for")) if self._place.is_behind_proxy else ""
        if forwarded:
            # Only the last address comes from the proxy itself; some proxies add a header of their own.
            return forwarded.rpartition(",")[2].strip()[:64]
        client = scope.get("client")
        return client[0] if client else ""


def is_person(request: Request) -> bool:
    """Tell whether a person sends a request that the doorkeeper has let pass."""
    found: bool = request.scope[_IS_PERSON]
    return found


def check_person(request: Request) -> None:
    """Let only a person do what a request asks for.

    Raises:
        Refusal: somebody sends it who has not shown the token.
    """
    if not is_person(request):
        raise ask_for_token("This is for people: sign in, or send the header `Authorization: Bearer TOKEN`.")


class Sessions:
    """Makes and reads cookies that only this server can make. With the same token, sessions outlive a restart."""

    def __init__(self, token: str, place: PublicPlace, suffix: str = "") -> None:
        self._place = place
        # Browsers give all servers of one machine the same cookies, whatever their ports.
        self._session_cookie, self._visit_cookie = f"golden_session{suffix}", f"golden_visit{suffix}"
        # Users who can sign in know the token, so a key made of it gives them nothing new.
        key = hashlib.sha256(b"golden serve\0" + token.encode("utf-8", "surrogateescape")).digest()
        self._sessions = TimestampSigner(key, salt="session", digest_method=hashlib.sha256)
        self._visits = Signer(secrets.token_bytes(32), salt="visit", digest_method=hashlib.sha256)
        self._signed_out: dict[bytes, None] = {}

    def is_open(self, cookies: Mapping[str, str]) -> bool:
        """Tell whether a request's cookies belong to an open session."""
        session = self._find_session(cookies)
        return session is not None and session not in self._signed_out

    def open(self, response: Response) -> None:
        """Give a browser a session."""
        session = self._sessions.sign(secrets.token_urlsafe(16)).decode()
        self._set(response, self._session_cookie, session, "lax", _SESSION_SECONDS)

    def close(self, response: Response, cookies: Mapping[str, str]) -> None:
        """End a session until the server restarts, also for anybody who has copied its cookie."""
        session = self._find_session(cookies)
        if session is not None:
            self._signed_out[session] = None
            if len(self._signed_out) > _MOST_SIGNED_OUT:
                self._signed_out.pop(next(iter(self._signed_out)))
        response.delete_cookie(self._session_cookie, path=self._place.prefix or "/")

    def find_visit(self, cookies: Mapping[str, str]) -> str | None:
        """Return the visit in a request's cookies; None if there is none that this server made."""
        with suppress(BadSignature):
            return self._visits.unsign(cookies.get(self._visit_cookie, "")).decode()
        return None

    def begin_visit(self) -> str:
        """Return a new visit, to be set as a cookie: forms are bound to it, also without a sign-in."""
        return secrets.token_urlsafe(16)

    def set_visit(self, response: Response, visit: str) -> None:
        """Set the cookie of a visit."""
        self._set(response, self._visit_cookie, self._visits.sign(visit).decode(), "strict", None)

    def sign_form(self, visit: str) -> str:
        """Return the token that a form of this visit must send back."""
        return self._visits.get_signature(f"form {visit}").decode()

    def fits_form(self, visit: str | None, told: str) -> bool:
        """Tell whether a form sent back the token that it was given."""
        return visit is not None and hmac.compare_digest(
            self.sign_form(visit).encode(), told.encode("utf-8", "replace")
        )

    def _find_session(self, cookies: Mapping[str, str]) -> bytes | None:
        """Return the session in the cookie. Not the cookie: one signature can be written in several ways."""
        with suppress(BadSignature):
            return self._sessions.unsign(cookies.get(self._session_cookie, ""), max_age=_SESSION_SECONDS)
        return None

    def _set(self, response: Response, name: str, value: str, same_site: str, seconds: int | None) -> None:
        response.set_cookie(
            name,
            value,
            max_age=seconds,
            path=self._place.prefix or "/",
            secure=self._place.is_secure,
            httponly=True,
            samesite="lax" if same_site == "lax" else "strict",
        )
