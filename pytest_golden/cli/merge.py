"""`golden merge`: takes everything of other stores into one, as of the shards of a CI job that each had its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.cli.journal_action import declare_common, read_rules
from pytest_golden.cli.progress import show_progress
from pytest_golden.cli.screen import open_console, print_json, print_list, styled
from pytest_golden.cli.store_option import locate_store
from pytest_golden.gate.merging.merging import merge_stores
from pytest_golden.storage.location import parse_location

if TYPE_CHECKING:
    import argparse

_EPILOG = """\
In any order and however often the same stores are merged, the result is the
same. Sources are never changed.

exit code: 0 merged, 2 a source cannot be used, and nothing was merged."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden merge`."""
    parser.epilog = _EPILOG
    parser.add_argument("sources", metavar="SOURCE", nargs="+", help="The file of a store to take in.")
    declare_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Merge the stores that are named into the one that is meant."""
    location = locate_store(arguments, makes=True)
    with show_progress("entries read:") as progress:
        report = merge_stores(location, arguments.sources, rules=read_rules(arguments), progress=progress)
    shown = parse_location(location).shown
    if arguments.json:
        print_json({"store": shown, "sources": arguments.sources, **report.to_dict()})
        return 0
    console = open_console()
    amount = len(arguments.sources)
    console.print(styled(f"{amount} store{'' if amount == 1 else 's'} merged into {shown}", "bold"))
    told = {
        "entries": f"{report.added:,} new, {report.merged:,} merged with what was here, {report.unchanged:,} known already",
        "gate runs": f"{report.runs:,} new",
        "results": f"{report.results:,} new",
        "memories": f"{report.memories:,} with something new",
    }
    print_list(console, list(told.items()))
    return 0
