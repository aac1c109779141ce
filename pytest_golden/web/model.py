"""How the web face is served, as values."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.web.place import PublicPlace

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What `golden serve` was told.

    `token` opens the door where it is closed: with `demands_token` to all, else to those who come through a proxy.
    `manifest` tells which projects are declared; it need not exist. Without `webhook_secret` webhooks are closed.
    `heartbeat_seconds` is None where nothing is swept. `cookie_suffix` tells this server's cookies from those of others on its machine.
    """

    manifest: Path
    place: PublicPlace
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    demands_token: bool = False
    webhook_secret: str | None = field(default=None, repr=False)
    is_read_only: bool = False
    heartbeat_seconds: float | None = None
    sandbox: str = "auto"
    cookie_suffix: str = ""
