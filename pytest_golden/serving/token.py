"""The token that opens a server, and what whoever starts one is told of it."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_golden.serving.hosts import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHORT = 16


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and whether it was given; else it was made."""

    text: str = field(repr=False)
    is_given: bool = True

    @classmethod
    def read(cls, given: str) -> Token:
        """Take the token that was given, or make one."""
        return cls(given.strip()) if given.strip() else cls(secrets.token_urlsafe(24), is_given=False)


def is_same(told: bytes, token: str) -> bool:
    """Tell whether that is the token, in a time that says nothing of how much of it is right."""
    return hmac.compare_digest(told, token.encode("utf-8", "surrogateescape"))


def warn_of_host(host: str) -> Iterator[str]:
    """Say who reaches a host to bind, where others do."""
    if not is_loopback(host):
        yield (
            f"warning: {host} is reached from other machines, and without a proxy nothing is encrypted: whoever listens on the "
            "way reads the token and all that is asked and answered"
        )


def tell_token(token: Token) -> Iterator[str]:
    """Say the token that was made, or that the given one is short."""
    if not token.is_given:
        yield f"token: {token.text}"
    elif len(token.text) < _SHORT:
        yield f"warning: GOLDEN_SERVE_TOKEN is shorter than {_SHORT} signs, and may be guessed"
