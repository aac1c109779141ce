"""`golden store`: check the store, copy it while it is in use, repair it, and bring its tables up to date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.options import add_json_option, add_manifest_option, add_store_option, locate_store
from pytest_golden.cli.screen import open_console, print_json, print_list, show_line, styled
from pytest_golden.clock import utc_now
from pytest_golden.errors import SettingsError
from pytest_golden.regression.wording import format_size
from pytest_golden.storage.copying import copy_store
from pytest_golden.storage.integrity import check_store, mend_store, repair_store
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.sqlite import backup_store
from pytest_golden.storage.store import Store
from pytest_golden.storage.version import newest_version

if TYPE_CHECKING:
    import argparse

    from pytest_golden.storage.copying import Progress, StoreCopy
    from pytest_golden.storage.integrity import StoreCheck, StoreMending


_SHOWN_DIGITS = 12
_ACTIONS = {
    "check": "Tell whether the store is whole, and how much is in it.",
    "backup": "Copy the store into a new file; gates may go on writing meanwhile.",
    "copy": "Copy the store to another database, such as a PostgreSQL server or back into a file; gates may go on.",
    "mend": "Copy the file, then repair text that cannot be read; gates wait meanwhile.",
    "upgrade": "Bring the tables up to date, and make a damaged search index or tally again.",
}
_EPILOG = "exit code: 0 whole or done, 1 something is damaged, differs or cannot be repaired, 2 bad input."


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
    """Run the action on the store."""
    location = locate_store(arguments)
    if arguments.action == "check":
        return _check(location, as_json=arguments.json)
    if arguments.action == "copy":
        return run_copy(location, arguments)
    if arguments.action == "mend":
        return _mend(location, as_json=arguments.json)
    told, facts = _back_up(location, arguments.file) if arguments.action == "backup" else _upgrade(location)
    if arguments.json:
        print_json(facts)
    else:
        open_console().print(styled(told))
    return 0


def _check(location: str | Path, *, as_json: bool) -> int:
    found = check_store(location)
    if as_json:
        print_json(_check_as_json(found))
    else:
        _show_check(found)
    return 1 if found.problems else 0


def _show_check(found: StoreCheck) -> None:
    console = open_console()
    state = "damaged" if found.problems else "whole"
    version = "" if found.version is None else f", version {found.version} of the tables"
    console.print(styled(f"{found.where}: {state}, {format_size(found.size_bytes)}{version}", "bold"))
    print_list(console, [(name, str(count)) for name, count in found.tables.items()])
    for note in found.notes:
        console.print(styled(f"note: {note}"))
    for problem in found.problems:
        console.print(styled(problem, "red"))


def _check_as_json(found: StoreCheck) -> dict[str, Any]:
    return {
        "store": found.where,
        "version": found.version,
        "size_bytes": found.size_bytes,
        "tables": dict(found.tables),
        "problems": list(found.problems),
        "notes": list(found.notes),
    }


def add_copy_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden store copy`."""
    parser.add_argument(
        "--to",
        metavar="STORE",
        required=True,
        help="Where to: a file that is not there yet, or the URL of a PostgreSQL database without rows of a store.",
    )


def run_copy(location: str | Path, arguments: argparse.Namespace) -> int:
    """Copy the store to another database, and print what was copied, table by table."""
    if not arguments.to.strip():
        raise SettingsError("--to is empty: give a file or a URL")
    with show_line() as show:
        copy = copy_store(location, arguments.to, report=lambda step: show(_describe_progress(step)))
    if arguments.json:
        print_json(_copy_as_json(copy))
    else:
        _show_copy(copy)
    return 1 if copy.problems else 0


def _describe_progress(step: Progress) -> str:
    return f"{step.doing}: {step.rows:,} of {step.total:,}"


def _show_copy(copy: StoreCopy) -> None:
    console = open_console()
    if copy.problems:
        console.print(styled(f"{copy.source}: not copied to {copy.target}", "bold"))
    else:
        console.print(styled(f"copied {copy.source} to {copy.target}; both were compared", "bold"))
        lines = ((name, f"{table.rows}  {table.sha256[:_SHOWN_DIGITS]}") for name, table in copy.tables.items())
        print_list(console, lines)
    for problem in copy.problems:
        console.print(styled(problem, "red"))


def _copy_as_json(copy: StoreCopy) -> dict[str, Any]:
    return {
        "store": copy.source,
        "to": copy.target,
        "tables": {name: {"rows": table.rows, "sha256": table.sha256} for name, table in copy.tables.items()},
        "problems": list(copy.problems),
    }


def _mend(location: str | Path, *, as_json: bool) -> int:
    done = mend_store(location, utc_now())
    if as_json:
        backup = None if done.backup is None else str(done.backup)
        print_json({"store": done.where, "mended": list(done.mended), "left": list(done.left), "backup": backup})
    else:
        _show_mending(done)
    return 1 if done.left else 0


def _show_mending(done: StoreMending) -> None:
    console = open_console()
    count = (
        f"{len(done.mended)} text{'' if len(done.mended) == 1 else 's'} repaired"
        if done.mended
        else "nothing to repair"
    )
    console.print(styled(f"{done.where}: {count}", "bold"))
    for mended in done.mended:
        console.print(styled(mended))
    if done.backup is not None:
        console.print(styled(f"copy of the store before the repair: {done.backup}"))
    for left in done.left:
        console.print(styled(f"{left}: not repaired", "red"))


def _back_up(location: str | Path, target: Path) -> tuple[str, dict[str, Any]]:
    store = parse_location(location).shown
    size = backup_store(location, target)
    told = f"copied {store} to {target}, {format_size(size)}"
    return told, {"store": store, "file": str(target), "size_bytes": size}


def _upgrade(location: str | Path) -> tuple[str, dict[str, Any]]:
    with Store.open(location, upgrades=True) as store:
        faults = repair_store(store)
    repaired = "".join(f"; {fault}, and was made again" for fault in faults)
    told = f"{store.where}: version {newest_version()} of the tables, up to date{repaired}"
    return told, {"store": store.where, "version": newest_version(), "repaired": "; ".join(faults) or None}
