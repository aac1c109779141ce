"""The option `--limit` of the commands that list something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.errors import SettingsError

if TYPE_CHECKING:
    import argparse

_MOST_DIGITS = 9


def add_limit_option(parser: argparse.ArgumentParser, default: int, told: str = "How many at most") -> None:
    """Declare `--limit`."""
    parser.add_argument("--limit", metavar="N", default=str(default), help=f"{told} (default {default}).")


def read_limit(text: str, most: int, option: str = "--limit") -> int:
    """Read the value of `--limit`, or of another option that is a limit.

    Raises:
        SettingsError: it is no number from 1 to `most`.
    """
    # Cut, since Python refuses to read a number of thousands of digits.
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:_MOST_DIGITS]) <= most:
        raise SettingsError(f"{option} {text} cannot be used; give a number from 1 to {most}")
    return int(text)
