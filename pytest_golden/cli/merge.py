"""`golden merge`: takes everything of other stores into one, as of the shards of a CI job that each had its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.cli.journal_action import declare_common, read_rules
from pytest_golden.cli.options import locate_store
from pytest_golden.cli.screen import open_console, print_json, print_list, show_progress, style_of, styled
from pytest_golden.storage.location import parse_location
from pytest_golden.verify.merging_store import merge_stores

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from pytest_golden.verify.merging_store import MergeReport
    from pytest_golden.verify.shards import GateUnion

_EPILOG = """\
In any order and however often the same stores are merged, the result is the
same. Sources are never changed.

The last gates of the sources, which may be shards, are looked at as one: it is
whole when every declared project has a result, of one manifest and one commit.

exit code: 0 merged, 1 merged and the gate is not whole, 2 a source cannot be
used, and nothing was merged."""


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
        return _exit_code(report)
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
    if report.gate is not None:
        _show_gate(console, report.gate)
    return _exit_code(report)


def _exit_code(report: MergeReport) -> int:
    return 0 if report.gate is None or report.gate.is_whole else 1


def _show_gate(console: Console, gate: GateUnion) -> None:
    told = f"{len(gate.declared)} declared projects: {gate.verdict.sentence}"
    console.print(styled(told, style_of(gate.verdict)))
    for problem in gate.problems:
        console.print(styled(f"  {problem}"))
