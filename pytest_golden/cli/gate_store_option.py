"""The option `--store` of the commands that run gates: none is an answer, and the gates make one that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_gate_store_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--store`; `read_command_settings` reads it."""
    parser.add_argument(
        "--store",
        metavar="STORE",
        help="The store: a file, a URL or none (default: env GOLDEN_STORE_URL, else .golden/golden.db).",
    )
