"""Who calls a tool, the agent named at the start or the client by its own name, and in which session."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import new_id
from pytest_golden.learning.gate_results import GATE_AGENT

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext
    from starlette.requests import Request

#: The key of the server's state in its lifespan, which lasts one connection over stdio, and many over HTTP.
SESSION = "session"
_NAMELESS = "mcp"
_LONGEST_NAME = 100
_KEY_DIGITS = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerOptions:
    """`agent` is the caller of every tool (None: the client's name); `session` the key of all calls (None: one per connection)."""

    agent: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls a tool, and in which session."""

    agent: str
    session: str


def begin_session() -> dict[str, str]:
    """Return the state of a server: a key for its connection."""
    return {SESSION: new_id("mcp")}


def find_caller(context: ServerRequestContext[dict[str, str], Any], options: CallerOptions) -> Caller:
    """Return who calls.

    Raises:
        ValueError: the client's name is the gate's own.
    """
    agent = options.agent or _name_client(context)
    return Caller(agent, options.session or _find_session(context))


def is_gates_own(agent: str) -> bool:
    """Tell whether a name is that of the gate, whose entries no agent may touch; invisible characters do not disguise it."""
    return _seen(unicodedata.normalize("NFKC", agent)).casefold() == GATE_AGENT


def _name_client(context: ServerRequestContext[dict[str, str], Any]) -> str:
    params = context.session.client_params
    told = "" if params is None else params.client_info.name
    name = _seen(told)[:_LONGEST_NAME]
    if is_gates_own(name):
        raise ValueError(f"the client is called {name!r} as the gate itself is: start `golden mcp` with --agent NAME")
    return name or _NAMELESS


def _seen(name: str) -> str:
    return "".join(one for one in name if one.isprintable()).strip()


def _find_session(context: ServerRequestContext[dict[str, str], Any]) -> str:
    """Return one key per connection: over HTTP from the protocol's session, or where it has none (since 2026), from the network's."""
    own = context.lifespan_context[SESSION]
    request: Request | None = context.request
    if request is None:
        return own
    named = request.headers.get("mcp-session-id") or f"{request.client}"
    digits = hashlib.sha256(f"{own} {named}".encode()).hexdigest()
    return f"{own.partition('_')[0]}_{digits[:_KEY_DIGITS].upper()}"
