"""`golden store copy`: copies the store to another database, and says of each table what has arrived there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.cli.progress import show_line
from pytest_golden.cli.screen import open_console, print_json, print_list, styled
from pytest_golden.errors import SettingsError
from pytest_golden.storage.copying import copy_store

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from pytest_golden.storage.copying import Progress, StoreCopy

_SHOWN_DIGITS = 12


def add_copy_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what this action has beyond the other ones."""
    parser.add_argument(
        "--to",
        metavar="STORE",
        required=True,
        help="Where to: a file that is not there yet, or the URL of a PostgreSQL database without rows of a store.",
    )


def run_copy(location: str | Path, arguments: argparse.Namespace) -> int:
    """Copy it, and tell what was copied."""
    if not arguments.to.strip():
        raise SettingsError("--to is empty: give a file or a URL")
    with show_line() as show:
        copy = copy_store(location, arguments.to, report=lambda step: show(_tell(step)))
    if arguments.json:
        print_json(_as_json(copy))
    else:
        _show(copy)
    return 1 if copy.problems else 0


def _tell(step: Progress) -> str:
    return f"{step.doing}: {step.rows:,} of {step.total:,}"


def _show(copy: StoreCopy) -> None:
    console = open_console()
    if copy.problems:
        console.print(styled(f"{copy.source}: not copied to {copy.target}", "bold"))
    else:
        console.print(styled(f"copied {copy.source} to {copy.target}; both were compared", "bold"))
        lines = ((name, f"{table.rows}  {table.sha256[:_SHOWN_DIGITS]}") for name, table in copy.tables.items())
        print_list(console, lines)
    for problem in copy.problems:
        console.print(styled(problem, "red"))


def _as_json(copy: StoreCopy) -> dict[str, Any]:
    return {
        "store": copy.source,
        "to": copy.target,
        "tables": {name: {"rows": table.rows, "sha256": table.sha256} for name, table in copy.tables.items()},
        "problems": list(copy.problems),
    }
