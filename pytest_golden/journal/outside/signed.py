"""Signed messages from outside: is it from whom it says, and is it a JSON object? What it means is read elsewhere."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_golden.errors import PayloadError, SignatureError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: GitHub caps its own at 25 MiB; what decides something is a hundred times smaller.
MAX_BODY_BYTES = 2 * 1024 * 1024
_SIGNATURE = re.compile(r"sha256=([0-9a-fA-F]{64})")


def check_signature(headers: Mapping[str, str], body: bytes, secret: str | bytes, *, header: str) -> None:
    """Refuse a body that is not signed with the secret: `sha256=` and the HMAC-SHA256 of the raw body in hexadecimal.

    Raises:
        PayloadError: the body is larger than 2 MiB, or is not bytes as they were received.
        SignatureError: the signature is missing, malformed or wrong, or there is no secret.
    """
    if not isinstance(body, bytes | bytearray):
        raise PayloadError(f"the body must be bytes as they were received, not {type(body).__name__}")
    if len(body) > MAX_BODY_BYTES:
        raise PayloadError(f"the body has {len(body)} bytes; more than {MAX_BODY_BYTES} are not read")
    if not secret:
        raise SignatureError(
            "there is no secret, so nobody can be believed; set GOLDEN_WEBHOOK_SECRET here and at the sender"
        )
    key = secret if isinstance(secret, bytes) else secret.encode("utf-8", "surrogateescape")
    given = find_header(headers, header)
    if given is None:
        raise SignatureError(f"the header {header} is missing; give the sender the secret")
    found = _SIGNATURE.fullmatch(given.strip())
    if found is None:
        raise SignatureError(f"the header {header} must be sha256= and 64 hexadecimal digits")
    if not hmac.compare_digest(bytes.fromhex(found[1]), hmac.digest(key, body, hashlib.sha256)):
        raise SignatureError(f"the header {header} does not fit the body: another secret, or a changed body")


def find_header(headers: Mapping[str, str], name: str) -> str | None:
    """Give a header's value, whatever the letter case of its name; one that is given twice as HTTP joins it."""
    wanted = name.lower()
    values = [
        value
        for key, value in headers.items()
        if isinstance(key, str) and isinstance(value, str) and key.lower() == wanted
    ]
    return ", ".join(values) if values else None


def read_object(body: bytes | str) -> dict[str, Any]:
    """Read a JSON object strictly: UTF-8, no NaN, and no key twice, since then readers would differ on what was signed.

    Raises:
        PayloadError: it is something else.
    """
    try:
        text = body if isinstance(body, str) else bytes(body).decode("utf-8")
        read = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError:
        raise PayloadError("the body is nested too deeply to be read") from None
    except ValueError as error:
        raise PayloadError(f"the body is not JSON: {error}") from None
    if not isinstance(read, dict):
        raise PayloadError("the body must be a JSON object")
    return read


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("an object has a key twice")
    return read


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")
