"""Which bodies are taken here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.serving.refusal import Refusal

if TYPE_CHECKING:
    from starlette.datastructures import Headers

_JSON = "application/json"
_KIB = 1024
_MOST_BYTES = 1024 * _KIB
_MOST_WEBHOOK_BYTES = 2048 * _KIB


def most_bytes(path: str) -> int:
    """Give how large a body may be that is sent to a path."""
    return _MOST_WEBHOOK_BYTES if path.startswith("/webhooks/") else _MOST_BYTES


def refuse_other_kinds(method: str, headers: Headers) -> None:
    """Let the API be told JSON alone, which no form of another site can send.

    Raises:
        Refusal: it is something else.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method == "POST" and kind != _JSON:
        raise Refusal(415, f"Send JSON, with the header `Content-Type: {_JSON}`.")
