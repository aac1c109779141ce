"""`golden journal review`: what was intended, how it ended and what is still expected. It reads; it changes nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.text import Text

from pytest_golden.cli.action import Action
from pytest_golden.cli.journal_action import (
    DEFAULT_AGENT,
    MOST_LISTED,
    open_journal,
    show_local,
)
from pytest_golden.cli.limit_option import add_limit_option, read_limit
from pytest_golden.cli.screen import open_console, print_beside, print_json, styled
from pytest_golden.journal.model import Assessment, ExpectationStatus
from pytest_golden.journal.reading.filters import FILTERS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from pytest_golden.journal.model import Expectation, JournalEntry

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


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--filter", choices=FILTERS, default=FILTERS[0], metavar="WORD", help=f"{', '.join(FILTERS)} (default all)."
    )
    parser.add_argument("--type", metavar="TYPE", help="Only entries of this intent type, such as regression_check.")
    parser.add_argument(
        "--agent", metavar="NAME", default=DEFAULT_AGENT, help=f"Whose entries (default {DEFAULT_AGENT}, the gate)."
    )
    add_limit_option(parser, _DEFAULT_LIMIT)


def _review(arguments: argparse.Namespace) -> int:
    limit = read_limit(arguments.limit, MOST_LISTED)
    with open_journal(arguments) as journal:
        entries = journal.review_journal(arguments.filter, arguments.type, limit, agent_id=arguments.agent)
    if arguments.json:
        print_json({"entries": [entry.to_dict() for entry in entries]})
    else:
        _show(open_console(), entries, arguments)
    return 0


def _show(console: Console, entries: Sequence[JournalEntry], arguments: argparse.Namespace) -> None:
    if not entries:
        kind = "" if arguments.filter == FILTERS[0] else f"{arguments.filter} "
        of_type = "" if arguments.type is None else f" of type {arguments.type}"
        elsewhere = "; --agent NAME shows another's" if arguments.agent == DEFAULT_AGENT else ""
        console.print(styled(f"no {kind}entry{of_type} of agent {arguments.agent}{elsewhere}"))
    for number, entry in enumerate(entries):
        if number:
            console.print()
        first = Text.assemble(
            styled(entry.assessment.ljust(_WIDEST), _STYLES[entry.assessment]), "  ", show_local(entry.created_at)
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
        until = "" if expiry is None else f" until {show_local(expiry)}"
        yield f"  {asked.status}{until}: {asked.description}{' (critical)' if asked.critical else ''}"
    if len(unanswered) > _MOST_NAMED:
        yield f"  and {len(unanswered) - _MOST_NAMED} more"


ACTIONS = (Action("review", "Show the newest entries of an agent, with what it expects.", _declare, _review),)
