"""`golden journal review`: what was intended, how it ended and what is still expected. It reads; it changes nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.text import Text

from pytest_golden.cli.manifest_option import add_json_option, add_manifest_option
from pytest_golden.cli.screen import open_console, print_beside, print_json, styled
from pytest_golden.cli.store_option import add_store_option, open_store
from pytest_golden.errors import SettingsError
from pytest_golden.journal.model import Assessment, ExpectationStatus
from pytest_golden.journal.service import FILTERS, Journal
from pytest_golden.report.history_text import show_moment

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from pytest_golden.journal.model import Expectation, JournalEntry

_DEFAULT_AGENT = "golden"
_DEFAULT_LIMIT = 10
_MOST_NAMED = 5
_STYLES = {
    Assessment.OPEN: "cyan",
    Assessment.SUCCESS: "green",
    Assessment.FAILURE: "bold red",
    Assessment.PARTIAL: "yellow",
    Assessment.EXPIRED: "yellow",
}
_WIDEST = max(map(len, Assessment))
_REVIEW = "Show the newest entries of an agent, with what it expects."
_EPILOG = """\
The gate's agent is golden: a run is an entry of type regression_check, a result one of type golden_run.
Times are UTC.

exit code: 0 told, 2 bad input."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden journal`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    review = actions.add_parser(
        "review",
        help=_REVIEW,
        description=_REVIEW,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=parser.formatter_class,
    )
    review.add_argument(
        "--filter", choices=FILTERS, default=FILTERS[0], metavar="WORD", help=f"{', '.join(FILTERS)} (default all)."
    )
    review.add_argument("--type", metavar="TYPE", help="Only entries of this intent type, such as regression_check.")
    review.add_argument(
        "--agent", metavar="NAME", default=_DEFAULT_AGENT, help=f"Whose entries (default {_DEFAULT_AGENT}, the gate)."
    )
    review.add_argument(
        "--limit", metavar="N", default=str(_DEFAULT_LIMIT), help=f"How many at most (default {_DEFAULT_LIMIT})."
    )
    add_manifest_option(review)
    add_store_option(review)
    add_json_option(review)


def run(arguments: argparse.Namespace) -> int:
    """Show the entries that are asked for."""
    limit = _read_limit(arguments.limit)
    with open_store(arguments) as store:
        try:
            entries = Journal(store).review_journal(arguments.filter, arguments.type, limit, agent_id=arguments.agent)
        except ValueError as error:
            raise SettingsError(str(error)) from None
    if arguments.json:
        print_json({"entries": [entry.to_dict() for entry in entries]})
    else:
        _show(open_console(), entries, arguments)
    return 0


def _read_limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 100_000:
        raise SettingsError(f"--limit {text} is no number of entries; give one from 1 to 100000")
    return int(text)


def _show(console: Console, entries: Sequence[JournalEntry], arguments: argparse.Namespace) -> None:
    if not entries:
        kind = "" if arguments.filter == FILTERS[0] else f"{arguments.filter} "
        of_type = "" if arguments.type is None else f" of type {arguments.type}"
        console.print(styled(f"no {kind}entry{of_type} of agent {arguments.agent}"))
    for number, entry in enumerate(entries):
        if number:
            console.print()
        first = Text.assemble(
            styled(entry.assessment.ljust(_WIDEST), _STYLES[entry.assessment]), "  ", show_moment(entry.created_at)
        )
        print_beside(console, first, entry.intent)
        for line in _describe(entry):
            print_beside(console, Text(" " * _WIDEST), line)


def _describe(entry: JournalEntry) -> Iterator[str]:
    yield ", ".join(filter(None, [entry.intent_type, entry.id]))
    notes = f": {entry.immediate_notes}" if entry.immediate_notes else ""
    yield f"result: {entry.immediate_result}{notes}"
    if entry.assessment_notes:
        yield f"assessed: {entry.assessment_notes}"
    if entry.expectations:
        counts = Counter(asked.status for asked in entry.expectations)
        told = ", ".join(f"{counts[status]} {status}" for status in ExpectationStatus if counts[status])
        yield f"expectations: {told}"
        yield from _name_unanswered(entry.expectations)


def _name_unanswered(expectations: Sequence[Expectation]) -> Iterator[str]:
    """Name those that are lost or open: what is met needs no look."""
    order = (ExpectationStatus.UNMET, ExpectationStatus.EXPIRED, ExpectationStatus.OPEN)
    unanswered = [asked for status in order for asked in expectations if asked.status is status]
    for asked in unanswered[:_MOST_NAMED]:
        expiry = asked.expires_at if asked.status is ExpectationStatus.OPEN else None
        until = "" if expiry is None else f" until {show_moment(expiry)}"
        yield f"  {asked.status}{until}: {asked.description}{' (critical)' if asked.critical else ''}"
    if len(unanswered) > _MOST_NAMED:
        yield f"  and {len(unanswered) - _MOST_NAMED} more"
