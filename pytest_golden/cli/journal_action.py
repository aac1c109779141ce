"""What the actions of `golden journal` have in common: how they are declared, and the journal that they work on."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.options import add_json_option, add_manifest_option, add_store_option, open_store
from pytest_golden.errors import SettingsError
from pytest_golden.journal.agent_rules import find_rules, parse_rules, read_rules_file
from pytest_golden.journal.service import Journal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from datetime import datetime

    from pytest_golden.journal.rules import Rules

#: Whose entries are meant when nobody is named: the gate's own agent.
DEFAULT_AGENT = "golden"
#: As many entries as one answer may hold.
MOST_LISTED = 100_000


def declare_common(parser: argparse.ArgumentParser) -> None:
    """Declare the options that every action has."""
    add_manifest_option(parser)
    add_store_option(parser)
    add_json_option(parser)
    parser.add_argument(
        "--rules", metavar="FILE", help="Rules of agents, YAML or JSON (default: env GOLDEN_JOURNAL_RULES, else none)."
    )


def read_rules(arguments: argparse.Namespace) -> dict[str, Rules]:
    """Read the rules of agents that are meant.

    Raises:
        SettingsError: they cannot be used.
    """
    return parse_rules(find_rules() if arguments.rules is None else read_rules_file(Path(arguments.rules)))


@contextmanager
def open_journal(arguments: argparse.Namespace, *, makes: bool = False) -> Iterator[Journal]:
    """Return the journal that is meant; what it refuses inside the block is bad input. With `makes` a store may be made.

    Raises:
        SettingsError: there is no store, or something that was given is refused.
        GoldenError: whatever else the journal says.
    """
    rules = find_rules() if arguments.rules is None else read_rules_file(Path(arguments.rules))
    with open_store(arguments, makes=makes) as store:
        try:
            yield Journal(store, rules=rules)
        except ValueError as error:
            raise SettingsError(str(error)) from None


def read_json(option: str, text: str) -> Any:
    """Read a value that is given as JSON.

    Raises:
        SettingsError: it is no JSON.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise SettingsError(f"{option} is nested too deeply") from None
    except ValueError as error:
        raise SettingsError(f"{option} is no JSON: {error}; write it in single quotes") from None


def show_local(moment: datetime) -> str:
    """Write a moment in the local time zone, to the minute."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")
