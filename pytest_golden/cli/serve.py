"""`golden serve`: the web page, the JSON API and the webhooks; and the options that it shares with `golden mcp`.

env GOLDEN_SERVE_TOKEN is the token for signing in and for the JSON API; without it, your own is made at the first start.
env GOLDEN_WEBHOOK_SECRET turns on the webhooks.
env GOLDEN_NOTIFY_URL is a webhook (Slack and compatible) that is told when the gate turns red, recovers or is flaky.

exit code: 130 ended by Ctrl-C, 0 by SIGTERM, 2 bad input.
"""

from __future__ import annotations

import hashlib
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.options import (
    add_options,
    exit_when_ended,
    locate_manifest,
    locate_store,
    read_command_settings,
    say,
)
from pytest_golden.errors import SettingsError
from pytest_golden.regression.wording import name_some
from pytest_golden.storage.store import Store
from pytest_golden.web.access import PublicPlace, Token, tell_token, warn_of_host

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path


TOKEN_VARIABLE = "GOLDEN_SERVE_TOKEN"
_DEFAULT_HOST, _MOST_PORT = "127.0.0.1", 65_535
_NEEDED = ("fastapi", "uvicorn", "jinja2", "itsdangerous", "python_multipart")
_DEFAULT_PORT = 8765
_MOST_NAMED = 3
_DEFAULT_HEARTBEAT_SECONDS = 30.0
_LONGEST_HEARTBEAT_SECONDS = 86_400.0
# Requests can read while a gate writes; one that writes is soon told to try again, not kept waiting.
_BUSY_SECONDS = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden serve`."""
    add_listening_options(parser, _DEFAULT_PORT)
    parser.add_argument("--require-token", action="store_true", help="Everybody needs the token (the default).")
    parser.add_argument(
        "--no-token",
        action="store_true",
        help="Nobody on this machine needs the token, except for a person's decisions. Refused if a pipeline could reach the page.",
    )
    parser.add_argument(
        "--public-url", metavar="URL", help="The URL behind a proxy, such as https://ci.example.org/golden."
    )
    parser.add_argument("--read-only", action="store_true", help="Write nothing, and resolve no expectations.")
    parser.add_argument(
        "--heartbeat-seconds",
        metavar="N",
        type=float,
        default=_DEFAULT_HEARTBEAT_SECONDS,
        help=f"How often to resolve expectations that are due (default {_DEFAULT_HEARTBEAT_SECONDS:.0f}).",
    )
    add_options(parser, "--store", "--manifest")


def run(arguments: argparse.Namespace) -> int:
    """Serve until it is ended."""
    refuse_missing_extra("golden serve", "web", *_NEEDED)
    host, port = read_address(arguments, _DEFAULT_PORT)
    token = read_token()
    options = _read_options(arguments, host, token)
    location = locate_store(arguments, makes=not arguments.read_only)
    opened = Store.open(location, busy_seconds=_BUSY_SECONDS, only_reads=arguments.read_only, follows=True)
    with exit_when_ended(), opened as store:
        from pytest_golden.web import app

        def tell(address: str) -> None:
            for line in _tell_who_comes_in(options, token, address):
                say(line)
            print(address, flush=True)

        app.serve(store, options, port, say=tell)
    return 0


def _read_options(arguments: argparse.Namespace, host: str, token: Token) -> Any:
    if not 0 < arguments.heartbeat_seconds <= _LONGEST_HEARTBEAT_SECONDS:
        raise SettingsError("--heartbeat-seconds: give a number of seconds above 0, a day at most")
    settings = read_command_settings(arguments)
    place = PublicPlace.parse(arguments.public_url, host)
    from pytest_golden.web.services import ServeOptions

    if arguments.no_token:
        _refuse_open_door(arguments, locate_manifest(settings), place)
    return ServeOptions(
        manifest=locate_manifest(settings),
        place=place,
        token=token.text,
        demands_token=not arguments.no_token,
        webhook_secret=os.environ.get("GOLDEN_WEBHOOK_SECRET") or None,
        is_read_only=arguments.read_only,
        heartbeat_seconds=arguments.heartbeat_seconds,
        notify_url=os.environ.get("GOLDEN_NOTIFY_URL") or None,
        sandbox=settings.sandbox,
        # The same after a restart, so that users stay signed in.
        cookie_suffix="_" + hashlib.sha256(os.fsencode(locate_manifest(settings).absolute())).hexdigest()[:8],
    )


def _refuse_open_door(arguments: argparse.Namespace, manifest: Path, place: PublicPlace) -> None:
    """Raise if somebody whom nobody knows could come in without a token."""
    if arguments.require_token or not place.is_loopback:
        raise SettingsError("--no-token: other machines, and --require-token, need the token; leave one of them out")
    from pytest_golden.manifest.reader import load_manifest

    reaching = [one.name for one in load_manifest(manifest).projects if one.network] if manifest.exists() else []
    if reaching:
        raise SettingsError(
            f"--no-token: {name_some(reaching, _MOST_NAMED)} could reach the page and speak as a person: leave it out, or "
            "declare `network: false` for every project"
        )


def _tell_who_comes_in(options: Any, token: Token, address: str) -> Iterator[str]:
    place = options.place
    yield from warn_of_host(place.bound_host)
    if place.is_behind_proxy and not options.demands_token:
        yield (
            "warning: people who come through the proxy must sign in only if it sets Host, X-Forwarded-For or "
            "Forwarded; leave --no-token out unless you know that yours does"
        )
    outside = f"{place.scheme}://{place.host}{place.prefix}" if place.is_behind_proxy else address
    yield from tell_token(token, f"{outside}/sign-in")


def add_listening_options(parser: argparse.ArgumentParser, default_port: int) -> None:
    """Declare `--host` and `--port`."""
    parser.add_argument("--host", help=f"The address to listen on (default {_DEFAULT_HOST}: only this machine).")
    parser.add_argument("--port", type=int, help=f"The port (default {default_port}; 0 chooses a free one).")


def read_address(arguments: argparse.Namespace, default_port: int) -> tuple[str, int]:
    """Return the host and the port to listen on.

    Raises:
        SettingsError: one of them cannot be used.
    """
    host = _DEFAULT_HOST if arguments.host is None else arguments.host
    port = default_port if arguments.port is None else arguments.port
    if not host.strip():
        raise SettingsError("--host is empty: give an address, or none")
    if not 0 <= port <= _MOST_PORT:
        raise SettingsError(f"--port {port}: give a number from 0 to {_MOST_PORT}")
    return host, port


def read_token() -> Token:
    """Return the token from the environment, or this user's own."""
    return Token.read(os.environ.get(TOKEN_VARIABLE, ""))


def refuse_missing_extra(command: str, extra: str, *modules: str) -> None:
    """Import the modules that an extra brings.

    Raises:
        SettingsError: one of them is not installed.
    """
    for name in modules:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            install = f"python -m pip install 'pytest-golden-projects[{extra}]'"
            raise SettingsError(f"{command} needs {error.name}: run `{install}`") from None
