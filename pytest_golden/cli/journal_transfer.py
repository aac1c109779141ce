"""The actions of `golden journal` that carry a journal elsewhere, or leave less of it: export, import, prune."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pytest_golden.cli.action import Action
from pytest_golden.cli.journal_action import MOST_LISTED, open_journal, read_rules
from pytest_golden.cli.limit_option import read_limit
from pytest_golden.cli.moment_option import read_moment
from pytest_golden.cli.progress import show_progress
from pytest_golden.cli.screen import open_console, print_json, styled
from pytest_golden.cli.store_option import open_store
from pytest_golden.clock import utc_now
from pytest_golden.errors import SettingsError
from pytest_golden.gate.pruning.pruning import Kept, PruneOrder, prune_store
from pytest_golden.regression.wording import format_size

if TYPE_CHECKING:
    import argparse

    from pytest_golden.gate.pruning.pruning import PruneReport
    from pytest_golden.journal.transfer.model import ImportReport

_STANDARD = "-"


def _declare_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default=_STANDARD, help="The file to make (default -, which is stdout)."
    )


def _export(arguments: argparse.Namespace) -> int:
    goes_out = arguments.file == _STANDARD
    file: str | IO[Any] = sys.stdout if goes_out else arguments.file
    with open_journal(arguments) as journal, show_progress("lines written:") as progress:
        report = journal.export(file, progress=progress)
    if goes_out:
        return 0
    if arguments.json:
        print_json({"file": arguments.file, **report.to_dict()})
    else:
        told = f"{_count(report.entries, 'entry', 'entries')} and {_count(report.orphans, 'orphan', 'orphans')}"
        open_console().print(styled(f"{told} written to {arguments.file}"))
    return 0


def _declare_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default=_STANDARD, help="The export to take in (default -, which is stdin)."
    )
    parser.add_argument(
        "--with-checks", action="store_true", help="Let a heartbeat here run its checks: for a file that you trust."
    )


def _import(arguments: argparse.Namespace) -> int:
    file: str | IO[Any] = sys.stdin.buffer if arguments.file == _STANDARD else arguments.file
    if isinstance(file, str) and not Path(file).exists():
        raise SettingsError(f"there is no file {file}; give an export, or - for stdin")
    with open_journal(arguments, makes=True) as journal, show_progress("lines read:") as progress:
        report = journal.import_(file, with_checks=arguments.with_checks, progress=progress)
    if arguments.json:
        print_json(report.to_dict())
    else:
        open_console().print(styled(_describe(report)))
    return 0


def _describe(report: ImportReport) -> str:
    if not report.is_change:
        return f"nothing new: {_count(report.unchanged, 'entry', 'entries')} known already"
    told = [
        f"{_count(report.added, 'entry', 'entries')} new",
        f"{report.merged:,} merged with what was here",
        f"{report.unchanged:,} known already",
        f"{_count(report.orphans, 'orphan', 'orphans')} new",
    ]
    return "; ".join(told)


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _declare_prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than", metavar="WHEN", help="What was closed before: 90d, 12h ago, or a time (default: by the rules)."
    )
    parser.add_argument(
        "--keep", metavar="N", help="Beyond the newest N closed entries of an agent (default: by the rules)."
    )
    parser.add_argument("--agent", metavar="NAME", help="Of this agent alone (default: of all).")
    parser.add_argument("--dry-run", action="store_true", help="Only tell what would go.")
    parser.add_argument(
        "--vacuum", action="store_true", help="Then write the file anew, without the room of what is gone."
    )


def _prune(arguments: argparse.Namespace) -> int:
    kept = Kept(
        None if arguments.older_than is None else read_moment("--older-than", arguments.older_than),
        None if arguments.keep is None else read_limit(arguments.keep, MOST_LISTED, "--keep"),
    )
    order = PruneOrder(kept=kept, agent_id=arguments.agent, is_trial=arguments.dry_run, gives_back=arguments.vacuum)
    rules = read_rules(arguments)
    with open_store(arguments) as store, show_progress("entries looked at:") as progress:
        report = prune_store(store, order, rules, utc_now(), progress=progress)
    if arguments.json:
        print_json({"dry_run": arguments.dry_run, **report.to_dict()})
    else:
        open_console().print(styled(_describe_pruning(report, is_trial=arguments.dry_run)))
    return 0


def _describe_pruning(report: PruneReport, *, is_trial: bool) -> str:
    told = (
        f"{_count(report.entries, 'entry', 'entries')} and {_count(report.trajectories, 'trajectory', 'trajectories')}"
    )
    if is_trial:
        return f"{told} would be removed; nothing was changed"
    freed = "" if report.freed_bytes is None else f"; the file is {format_size(max(0, report.freed_bytes))} smaller"
    return f"{told} removed{freed}"


ACTIONS = (
    Action("export", "Write the whole journal as JSON Lines.", _declare_export, _export),
    Action("import", "Take in an export, all of it or nothing; what differs is merged.", _declare_import, _import),
    Action(
        "prune", "Remove closed entries that are old or too many; never what is open or needed.", _declare_prune, _prune
    ),
)
