"""Who calls the tools, and how that is found out. Frozen values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerOptions:
    """`agent` is the caller of every tool, None: the client's name; `session` the key of all calls, None: one per connection."""

    agent: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls a tool, and in which session."""

    agent: str
    session: str
