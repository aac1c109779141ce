"""What the commands that serve have in common: where they listen, and what they say of who comes in."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from pytest_golden.errors import SettingsError
from pytest_golden.serving.token import Token

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

_DEFAULT_HOST, _MOST_PORT = "127.0.0.1", 65_535


def add_listening_options(parser: argparse.ArgumentParser, default_port: int) -> None:
    """Declare `--host` and `--port`."""
    parser.add_argument("--host", help=f"The address to listen on (default {_DEFAULT_HOST}: this machine alone).")
    parser.add_argument("--port", type=int, help=f"The port (default {default_port}; 0 picks a free one).")


def read_address(arguments: argparse.Namespace, default_port: int) -> tuple[str, int]:
    """Give the host and the port to listen on.

    Raises:
        SettingsError: one of them is none.
    """
    host = _DEFAULT_HOST if arguments.host is None else arguments.host
    port = default_port if arguments.port is None else arguments.port
    if not host.strip():
        raise SettingsError("--host is empty: give an address, or none")
    if not 0 <= port <= _MOST_PORT:
        raise SettingsError(f"--port {port}: give a number from 0 to {_MOST_PORT}")
    return host, port


def read_token() -> Token:
    """Take the token of the environment, or make one."""
    return Token.read(os.environ.get("GOLDEN_SERVE_TOKEN", ""))


def say_aside(lines: Iterable[str]) -> None:
    """Say what is no answer."""
    for line in lines:
        # Loaded when there is something to say.
        seen = import_module("pytest_golden.report.failure_text").make_visible(line)
        print(f"golden: {seen}", file=sys.stderr, flush=True)
