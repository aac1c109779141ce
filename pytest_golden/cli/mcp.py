"""`golden mcp`: what was recorded, as tools for agents, over stdin and stdout or over HTTP.

Without --http the tools are served over stdin and stdout, for a client that starts this command itself:
docs/how-to/agents-tools.md has the settings of common clients. With --http they are served at /mcp, by default only on
this machine.

env GOLDEN_AGENT is the default of --agent. env GOLDEN_SERVE_TOKEN is the token that HTTP clients send as
`Authorization: Bearer TOKEN`. With another host than this machine, a token is always required.

exit code: 0 stdin ended, or SIGTERM with --http; 130 ended by Ctrl-C, 2 bad
input.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.options import add_options, exit_when_ended, find_manifest, locate_store, refusing_values, say
from pytest_golden.cli.serve import (
    TOKEN_VARIABLE,
    add_listening_options,
    read_address,
    read_token,
    refuse_missing_extra,
)
from pytest_golden.errors import SettingsError
from pytest_golden.journal.agent_rules import find_rules
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.store import Store
from pytest_golden.web.access import is_loopback, tell_token, warn_of_host

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from mcp.server.lowlevel import Server

_DEFAULT_PORT = 8766
# An agent is told that the store is locked rather than kept waiting.
_BUSY_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden mcp`."""
    parser.add_argument("--http", action="store_true", help="Serve over HTTP instead of stdin and stdout.")
    add_listening_options(parser, _DEFAULT_PORT)
    parser.add_argument(
        "--agent",
        metavar="NAME",
        help="The agent that calls the tools (default: env GOLDEN_AGENT, else the client's own name).",
    )
    parser.add_argument("--session", metavar="KEY", help="The session of all calls (default: one per connection).")
    parser.add_argument("--read-only", action="store_true", help="Offer only the tools that read.")
    add_options(parser, "--store", "--manifest")


def run(arguments: argparse.Namespace) -> int:
    """Serve until it is ended."""
    host, port = _read_address(arguments)
    options = _read_options(arguments)
    with _loading():
        refuse_missing_extra("golden mcp", "mcp", "mcp.server")
        serve = _load_http(host, port) if arguments.http else _load_stdio()
        place = _open_workplace(arguments)
        from pytest_golden.mcp.tool_server import make_server
    with place:
        serve(make_server(place, options))
    return 0


@contextmanager
def _loading() -> Iterator[None]:
    """Turn garbage collection off during the imports, and never examine later what they have loaded."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def _load_stdio() -> Callable[[Server[Any]], None]:
    from pytest_golden.mcp.stdio import serve_stdio

    def serve(server: Server[Any]) -> None:
        # Over stdio, only the protocol may use stdout.
        logging.basicConfig(format="golden: %(message)s", stream=sys.stderr)
        serve_stdio(server)

    return serve


def _load_http(host: str, port: int) -> Callable[[Server[Any]], None]:
    from pytest_golden.mcp.http import serve_http
    from pytest_golden.web.listening import bind

    def serve(server: Server[Any]) -> None:
        with exit_when_ended(), bind(host, port) as bound:
            serve_http(server, host, _find_token(host), bound, say=lambda address: print(address, flush=True))

    return serve


def _read_address(arguments: argparse.Namespace) -> tuple[str, int]:
    if not arguments.http and (arguments.host is not None or arguments.port is not None):
        raise SettingsError("--host and --port work only with --http: add it, or remove them")
    return read_address(arguments, _DEFAULT_PORT)


def _read_options(arguments: argparse.Namespace) -> Any:
    agent = arguments.agent if arguments.agent is not None else os.environ.get("GOLDEN_AGENT") or None
    from pytest_golden.journal.caller_input import clean_optional
    from pytest_golden.journal.rules import check_free_name
    from pytest_golden.mcp.workplace import CallerOptions

    for name, value in (("--agent", agent), ("--session", arguments.session)):
        with refusing_values():
            clean_optional(name, value)

    if agent is not None:
        with refusing_values():
            check_free_name(agent, "--agent")
    return CallerOptions(agent=agent, session=arguments.session)


def _open_workplace(arguments: argparse.Namespace) -> Any:
    """Make the workplace of the tools. Open an existing store now, so that an unusable one is reported at once."""
    file = parse_location(locate_store(arguments, makes=True))

    def open_it() -> Any:
        location = locate_store(arguments, makes=not arguments.read_only)
        return Store.open(location, busy_seconds=_BUSY_SECONDS, only_reads=arguments.read_only, follows=True)

    from pytest_golden.mcp.workplace import Workplace

    place = Workplace(open_it, find_manifest(arguments), find_rules(), is_read_only=arguments.read_only)
    if file.is_there or not arguments.read_only:
        place.open()
    return place


def _find_token(host: str) -> str | None:
    """Return the token that clients have to send, which is told first; None where none is needed."""
    if is_loopback(host) and not os.environ.get(TOKEN_VARIABLE, "").strip():
        return None
    token = read_token()
    for line in (*warn_of_host(host), *tell_token(token)):
        say(line)
    return token.text
