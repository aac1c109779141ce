"""`golden serve`: the web page, the JSON API and the webhooks, on this machine alone unless told otherwise."""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.ending import exit_when_ended
from pytest_golden.cli.manifest_option import add_manifest_option, locate_manifest, read_command_settings
from pytest_golden.cli.screen import make_visible
from pytest_golden.cli.store_option import add_store_option, locate_store
from pytest_golden.errors import SettingsError
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    import argparse

_NEEDED = ("fastapi", "uvicorn", "jinja2", "itsdangerous", "python_multipart")
_DEFAULT_HOST, _DEFAULT_PORT = "127.0.0.1", 8765
_MOST_PORT = 65_535
_DEFAULT_HEARTBEAT_SECONDS = 30.0
_LONGEST_HEARTBEAT_SECONDS = 86_400.0
_SHORT_TOKEN = 16
# Requests read while a gate writes; one that writes is told to come again rather than kept waiting.
_BUSY_SECONDS = 2.0
_EPILOG = """\
env GOLDEN_SERVE_TOKEN is the token for signing in and for the JSON API; without
it one is made and printed. env GOLDEN_WEBHOOK_SECRET opens the webhooks.

exit code: 130 ended by Ctrl-C, 0 by SIGTERM, 2 bad input."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden serve`."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "--host", default=_DEFAULT_HOST, help=f"The address to listen on (default {_DEFAULT_HOST}: this machine alone)."
    )
    parser.add_argument(
        "--port", type=int, default=_DEFAULT_PORT, help=f"The port (default {_DEFAULT_PORT}; 0 picks a free one)."
    )
    parser.add_argument("--require-token", action="store_true", help="Ask for the token on this machine too.")
    parser.add_argument(
        "--public-url", metavar="URL", help="The address behind a proxy, as https://ci.example.org/golden."
    )
    parser.add_argument("--read-only", action="store_true", help="Only show: nothing is written, nothing is swept.")
    parser.add_argument(
        "--heartbeat-seconds",
        metavar="N",
        type=float,
        default=_DEFAULT_HEARTBEAT_SECONDS,
        help=f"How often what is due is resolved (default {_DEFAULT_HEARTBEAT_SECONDS:.0f}).",
    )
    add_store_option(parser)
    add_manifest_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until it is ended."""
    _refuse_missing_extra()
    options = _read_options(arguments)
    location = locate_store(arguments, makes=not arguments.read_only)
    with exit_when_ended(), Store.open(location, busy_seconds=_BUSY_SECONDS) as store:
        serving = import_module("pytest_golden.web.serving")

        def tell(address: str) -> None:
            _tell_who_comes_in(options)
            print(address, flush=True)

        serving.serve(store, options, arguments.port, say=tell)
    return 0


def _refuse_missing_extra() -> None:
    for name in _NEEDED:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            raise SettingsError(
                f"golden serve needs {error.name}: run `python -m pip install 'pytest-golden-projects[serve]'`"
            ) from None


def _read_options(arguments: argparse.Namespace) -> Any:
    if not 0 <= arguments.port <= _MOST_PORT:
        raise SettingsError(f"--port {arguments.port}: give a number from 0 to {_MOST_PORT}")
    if not 0 < arguments.heartbeat_seconds <= _LONGEST_HEARTBEAT_SECONDS:
        raise SettingsError("--heartbeat-seconds: give a number of seconds above 0, a day at most")
    settings = read_command_settings(arguments)
    place = import_module("pytest_golden.web.place").PublicPlace.parse(arguments.public_url, arguments.host)
    return import_module("pytest_golden.web.model").ServeOptions(
        manifest=locate_manifest(settings),
        place=place,
        token=os.environ.get("GOLDEN_SERVE_TOKEN", "").strip() or secrets.token_urlsafe(24),
        demands_token=arguments.require_token or not place.is_loopback,
        webhook_secret=os.environ.get("GOLDEN_WEBHOOK_SECRET") or None,
        is_read_only=arguments.read_only,
        heartbeat_seconds=arguments.heartbeat_seconds,
        sandbox=settings.sandbox,
        # The same after a restart, so that whoever is signed in stays so.
        cookie_suffix="_" + hashlib.sha256(os.fsencode(locate_manifest(settings).absolute())).hexdigest()[:8],
    )


def _tell_who_comes_in(options: Any) -> None:
    place = options.place
    if not place.is_loopback:
        _warn(
            f"warning: {place.bound_host} is reached from other machines, and without a proxy nothing is encrypted: "
            "whoever listens on the way reads the token and all pages"
        )
    if place.is_behind_proxy and not options.demands_token:
        _warn(
            "warning: those who come through the proxy are asked for the token if it says so by Host, X-Forwarded-For or "
            "Forwarded; give --require-token unless you know that yours does"
        )
    if not (options.demands_token or place.is_behind_proxy):
        return
    if not os.environ.get("GOLDEN_SERVE_TOKEN", "").strip():
        _warn(f"token: {options.token}")
    elif len(options.token) < _SHORT_TOKEN:
        _warn(f"warning: GOLDEN_SERVE_TOKEN is shorter than {_SHORT_TOKEN} signs, and may be guessed")


def _warn(line: str) -> None:
    print(f"golden: {make_visible(line)}", file=sys.stderr, flush=True)
