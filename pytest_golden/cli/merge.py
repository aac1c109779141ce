"""`golden merge`: merge other stores into one, such as those of the shards of a CI job.

The result is the same in any order and after any number of merges. Sources are never changed.

The last gates of the sources, which may be shards, are checked together: the gate is whole if every declared project
has a result, from one manifest and one commit.

exit code: 0 merged, 1 merged and the gate is not whole, 2 a source cannot be
used, and nothing was merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.cli.options import add_options, locate_store, read_rules
from pytest_golden.cli.screen import answer, print_list, show_progress, style_of, styled
from pytest_golden.journal.agent_rules import parse_rules
from pytest_golden.regression.wording import count_of
from pytest_golden.storage.location import parse_location
from pytest_golden.verify.merging_store import merge_stores

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from pytest_golden.verify.merging_store import MergeReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden merge`."""
    parser.add_argument("sources", metavar="SOURCE", nargs="+", help="The file of a store to merge.")
    add_options(parser, "--manifest", "--store", "--json", "--rules")


def run(arguments: argparse.Namespace) -> int:
    """Merge the named stores into the store that the command uses."""
    location = locate_store(arguments, makes=True)
    with show_progress("entries read:") as progress:
        rules = parse_rules(read_rules(arguments))
        report = merge_stores(location, arguments.sources, rules=rules, progress=progress)
    shown = parse_location(location).shown
    facts = {"store": shown, "sources": arguments.sources, **report.to_dict()}
    told = f"{count_of(len(arguments.sources), 'store')} merged into {shown}"
    answer(arguments, facts, lambda console: _show(console, told, report))
    return 0 if report.gate is None or report.gate.is_whole else 1


def _show(console: Console, heading: str, report: MergeReport) -> None:
    console.print(styled(heading, "bold"))
    told = {
        "entries": f"{report.added:,} new, {report.merged:,} merged with what was here, {report.unchanged:,} known already",
        "gate runs": f"{report.runs:,} new",
        "results": f"{report.results:,} new",
        "memories": f"{report.memories:,} with something new",
    }
    print_list(console, told.items())
    if (gate := report.gate) is not None:
        declared = f"{len(gate.declared)} declared projects: {gate.verdict.sentence}"
        console.print(styled(declared, style_of(gate.verdict)))
        for problem in gate.problems:
            console.print(styled(f"  {problem}"))
