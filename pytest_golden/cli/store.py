"""`golden store`: check the store, copy it while it is in use, repair it, and bring its tables up to date.

exit code: 0 undamaged or done, 1 something is damaged, differs or cannot be repaired, 2 bad input.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli.options import Action, add_actions, locate_store, run_action
from pytest_golden.cli.screen import answer, print_list, show_line, styled
from pytest_golden.clock import utc_now
from pytest_golden.errors import SettingsError
from pytest_golden.regression.wording import count_of, format_size
from pytest_golden.storage.copying import copy_store
from pytest_golden.storage.integrity import check_store, mend_store, repair_store
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.schema import newest_version
from pytest_golden.storage.sqlite import backup_store
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from pytest_golden.storage.copying import StoreCopy
    from pytest_golden.storage.integrity import StoreCheck, StoreMending


_SHOWN_DIGITS = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `golden store`."""
    add_actions(parser, ACTIONS, "--store", "--manifest", "--json")


run = run_action


def _check(arguments: argparse.Namespace) -> int:
    """Check the store for damage, and count its rows."""
    found = check_store(locate_store(arguments))
    answer(arguments, found.to_dict(), lambda console: _show_check(console, found))
    return 1 if found.problems else 0


def _show_check(console: Console, found: StoreCheck) -> None:
    state = "damaged" if found.problems else "whole"
    version = "" if found.version is None else f", version {found.version} of the tables"
    console.print(styled(f"{found.where}: {state}, {format_size(found.size_bytes)}{version}", "bold"))
    print_list(console, [(name, str(count)) for name, count in found.tables.items()])
    for note in found.notes:
        console.print(styled(f"note: {note}"))
    for problem in found.problems:
        console.print(styled(problem, "red"))


def _declare_copy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to",
        metavar="STORE",
        required=True,
        help="The target: a new file, or the URL of a PostgreSQL database without rows of a store.",
    )


def _copy(arguments: argparse.Namespace) -> int:
    """Copy the store to another database, such as a PostgreSQL server or back into a file; gates can write meanwhile."""
    location = locate_store(arguments)
    if not arguments.to.strip():
        raise SettingsError("--to is empty: give a file or a URL")
    with show_line() as show:
        copy = copy_store(
            location, arguments.to, report=lambda step: show(f"{step.doing}: {step.rows:,} of {step.total:,}")
        )
    answer(arguments, copy.to_dict(), lambda console: _show_copy(console, copy))
    return 1 if copy.problems else 0


def _show_copy(console: Console, copy: StoreCopy) -> None:
    if copy.problems:
        console.print(styled(f"{copy.source}: not copied to {copy.target}", "bold"))
    else:
        console.print(styled(f"copied {copy.source} to {copy.target}; both were compared", "bold"))
        lines = ((name, f"{table.rows}  {table.sha256[:_SHOWN_DIGITS]}") for name, table in copy.tables.items())
        print_list(console, lines)
    for problem in copy.problems:
        console.print(styled(problem, "red"))


def _mend(arguments: argparse.Namespace) -> int:
    """Copy the file, then repair text that cannot be read; gates wait meanwhile."""
    done = mend_store(locate_store(arguments), utc_now())
    answer(arguments, done.to_dict(), lambda console: _show_mending(console, done))
    return 1 if done.left else 0


def _show_mending(console: Console, done: StoreMending) -> None:
    count = f"{count_of(len(done.mended), 'text')} repaired" if done.mended else "nothing to repair"
    console.print(styled(f"{done.where}: {count}", "bold"))
    for mended in done.mended:
        console.print(styled(mended))
    if done.backup is not None:
        console.print(styled(f"copy of the store before the repair: {done.backup}"))
    for left in done.left:
        console.print(styled(f"{left}: not repaired", "red"))


def _back_up(arguments: argparse.Namespace) -> int:
    """Copy the store into a new file; gates can write meanwhile."""
    location, target = locate_store(arguments), arguments.file
    store, size = parse_location(location).shown, backup_store(location, target)
    facts = {"store": store, "file": str(target), "size_bytes": size}
    return answer(arguments, facts, f"copied {store} to {target}, {format_size(size)}")


def _upgrade(arguments: argparse.Namespace) -> int:
    """Upgrade the tables, and rebuild a damaged search index or damaged daily counts."""
    with Store.open(locate_store(arguments), upgrades=True) as store:
        faults = repair_store(store)
    repaired = "".join(f"; {fault}, and was rebuilt" for fault in faults)
    facts = {"store": store.where, "version": newest_version(), "repaired": "; ".join(faults) or None}
    return answer(arguments, facts, f"{store.where}: version {newest_version()} of the tables, up to date{repaired}")


ACTIONS = (
    Action("check", _check),
    Action(
        "backup",
        _back_up,
        lambda parser: parser.add_argument("file", metavar="FILE", type=Path, help="The file to write."),
    ),
    Action("copy", _copy, _declare_copy),
    Action("mend", _mend),
    Action("upgrade", _upgrade),
)
