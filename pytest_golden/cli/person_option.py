"""The option `--by` of the commands whose word is a person's."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_person_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--by`."""
    parser.add_argument("--by", metavar="NAME", help="Who says so (default: the user).")


def find_person(arguments: argparse.Namespace) -> str:
    """Give the name of who says so."""
    if arguments.by is not None:
        return str(arguments.by)
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"
