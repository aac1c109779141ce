"""Who calls a tool: the agent that was named at the start, or the client by its own name; and in which session."""

from __future__ import annotations

import hashlib
import unicodedata
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import new_id
from pytest_golden.learning.results.reading import GATE_AGENT
from pytest_golden.mcp.model import Caller

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext
    from starlette.requests import Request

    from pytest_golden.mcp.model import CallerOptions

_NAMELESS = "mcp"
_LONGEST_NAME = 100
_KEY_DIGITS = 26
#: The key of the state that lives as long as a server of one connection does, or as a server of many.
SESSION = "session"


def begin_session() -> dict[str, str]:
    """Make the state of a server: a key for its connection."""
    return {SESSION: new_id("mcp")}


def find_caller(context: ServerRequestContext[dict[str, str], Any], options: CallerOptions) -> Caller:
    """Tell who calls.

    Raises:
        ValueError: the client's name is the gate's own.
    """
    agent = options.agent or _name_client(context)
    return Caller(agent, options.session or _find_session(context))


def is_gates_own(agent: str) -> bool:
    """Tell whether a name is that of the gate, whose entries no agent may touch; what is not seen hides no name."""
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
    """Give one key per connection. By HTTP that is the protocol's session, and since 2026, which has none, the network's."""
    own = context.lifespan_context[SESSION]
    request: Request | None = context.request
    if request is None:
        return own
    named = request.headers.get("mcp-session-id") or f"{request.client}"
    digits = hashlib.sha256(f"{own} {named}".encode()).hexdigest()
    return f"{own.partition('_')[0]}_{digits[:_KEY_DIGITS].upper()}"
