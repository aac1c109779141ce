"""Sessions of signed-in people, and the forms' secret: cookies that only this server can make."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

from itsdangerous import BadSignature, Signer, TimestampSigner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

    from pytest_golden.web.place import PublicPlace

_SESSION_SECONDS = 12 * 60 * 60
_MOST_SIGNED_OUT = 10_000


class Sessions:
    """Makes and reads the cookies. With the same token they outlive a restart; whoever signed out stays so until then."""

    def __init__(self, token: str, place: PublicPlace, suffix: str = "") -> None:
        self._place = place
        # Browsers give all servers of one machine the same cookies, whatever their ports.
        self._session_cookie, self._visit_cookie = f"golden_session{suffix}", f"golden_visit{suffix}"
        # Whoever may sign in knows the token, and with it could make any session: nothing is gained by that.
        key = hashlib.sha256(b"golden serve\0" + token.encode("utf-8", "surrogateescape")).digest()
        self._sessions = TimestampSigner(key, salt="session", digest_method=hashlib.sha256)
        self._visits = Signer(secrets.token_bytes(32), salt="visit", digest_method=hashlib.sha256)
        self._signed_out: dict[bytes, None] = {}

    def is_open(self, cookies: Mapping[str, str]) -> bool:
        """Tell whether a request's cookies are of a session that lasts."""
        session = self._find_session(cookies)
        return session is not None and session not in self._signed_out

    def open(self, response: Response) -> None:
        """Give a browser a session."""
        session = self._sessions.sign(secrets.token_urlsafe(16)).decode()
        self._set(response, self._session_cookie, session, "lax", _SESSION_SECONDS)

    def close(self, response: Response, cookies: Mapping[str, str]) -> None:
        """End a session, also for whoever has copied its cookie."""
        session = self._find_session(cookies)
        if session is not None:
            self._signed_out[session] = None
            if len(self._signed_out) > _MOST_SIGNED_OUT:
                self._signed_out.pop(next(iter(self._signed_out)))
        response.delete_cookie(self._session_cookie, path=self._place.prefix or "/")

    def find_visit(self, cookies: Mapping[str, str]) -> str | None:
        """Give the visit that a request's cookies name; None where this server did not make it."""
        cookie = cookies.get(self._visit_cookie)
        if cookie is None:
            return None
        try:
            return self._visits.unsign(cookie).decode()
        except BadSignature:
            return None

    def begin_visit(self) -> str:
        """Give a new visit, to be set as a cookie: forms are bound to it, also where nobody signs in."""
        return secrets.token_urlsafe(16)

    def set_visit(self, response: Response, visit: str) -> None:
        """Let a browser remember its visit."""
        self._set(response, self._visit_cookie, self._visits.sign(visit).decode(), "strict", None)

    def sign_form(self, visit: str) -> str:
        """Give what a form of this visit must bring back."""
        return self._visits.get_signature(f"form {visit}").decode()

    def fits_form(self, visit: str | None, told: str) -> bool:
        """Tell whether a form brought back what it was given."""
        return visit is not None and hmac.compare_digest(
            self.sign_form(visit).encode(), told.encode("utf-8", "replace")
        )

    def _find_session(self, cookies: Mapping[str, str]) -> bytes | None:
        """Give the session that a cookie is of. Not the cookie: the same signature can be written in several ways."""
        cookie = cookies.get(self._session_cookie)
        if cookie is None:
            return None
        try:
            return self._sessions.unsign(cookie, max_age=_SESSION_SECONDS)
        except BadSignature:
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
