"""`golden store`: checks the store of what was recorded, copies it while in use, brings its tables up to date.

Copying it to another database is `store_copy`'s.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.manifest_option import add_json_option, add_manifest_option
from pytest_golden.cli.screen import open_console, print_json, print_list, styled
from pytest_golden.cli.store_copy import add_copy_arguments, run_copy
from pytest_golden.cli.store_option import add_store_option, locate_store
from pytest_golden.regression.wording import format_size
from pytest_golden.storage.integrity import backup_store, check_store, repair_store
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.store import Store
from pytest_golden.storage.version import HEAD

if TYPE_CHECKING:
    import argparse

    from pytest_golden.storage.integrity import StoreCheck

_ACTIONS = {
    "check": "Tell whether the store is whole, and how much is in it.",
    "backup": "Copy the store into a new file; gates may go on writing meanwhile.",
    "copy": "Copy the store to another database, such as a PostgreSQL server or back into a file; gates may go on.",
    "upgrade": "Bring the tables up to date, and make a damaged search index or tally again.",
}
_EPILOG = "exit code: 0 it is whole or done, 1 something is damaged or differs, 2 bad input."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden store`."""
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in _ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        if name == "backup":
            action.add_argument("file", metavar="FILE", type=Path, help="The file to make.")
        if name == "copy":
            add_copy_arguments(action)
        add_store_option(action)
        add_manifest_option(action)
        add_json_option(action)


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked with the store that is meant."""
    location = locate_store(arguments)
    if arguments.action == "check":
        return _check(location, as_json=arguments.json)
    if arguments.action == "copy":
        return run_copy(location, arguments)
    told, facts = _back_up(location, arguments.file) if arguments.action == "backup" else _upgrade(location)
    if arguments.json:
        print_json(facts)
    else:
        open_console().print(styled(told))
    return 0


def _check(location: str | Path, *, as_json: bool) -> int:
    found = check_store(location)
    if as_json:
        print_json(_as_json(found))
    else:
        _show(found)
    return 1 if found.problems else 0


def _show(found: StoreCheck) -> None:
    console = open_console()
    state = "damaged" if found.problems else "whole"
    version = "" if found.version is None else f", version {found.version} of the tables"
    console.print(styled(f"{found.where}: {state}, {format_size(found.size_bytes)}{version}", "bold"))
    print_list(console, [(name, str(count)) for name, count in found.tables.items()])
    for note in found.notes:
        console.print(styled(f"note: {note}"))
    for problem in found.problems:
        console.print(styled(problem, "red"))


def _as_json(found: StoreCheck) -> dict[str, Any]:
    return {
        "store": found.where,
        "version": found.version,
        "size_bytes": found.size_bytes,
        "tables": dict(found.tables),
        "problems": list(found.problems),
        "notes": list(found.notes),
    }


def _back_up(location: str | Path, target: Path) -> tuple[str, dict[str, Any]]:
    store = parse_location(location).shown
    size = backup_store(location, target)
    told = f"copied {store} to {target}, {format_size(size)}"
    return told, {"store": store, "file": str(target), "size_bytes": size}


def _upgrade(location: str | Path) -> tuple[str, dict[str, Any]]:
    with Store.open(location, upgrades=True) as store:
        faults = repair_store(store)
    repaired = "".join(f"; {fault}, and was made again" for fault in faults)
    told = f"{store.where}: version {HEAD} of the tables, up to date{repaired}"
    return told, {"store": store.where, "version": HEAD, "repaired": "; ".join(faults) or None}
