"""The actions of `golden journal` that only read: review, open expectations, orphans, routing explained, and sums."""

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
from pytest_golden.cli.options import add_limit_option, read_limit, read_moment
from pytest_golden.cli.screen import WIDE, make_listing, open_console, print_beside, print_json, print_table, styled
from pytest_golden.journal.model import Assessment, ExpectationStatus
from pytest_golden.journal.review import FILTERS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console
    from rich.table import Table

    from pytest_golden.journal.model import Expectation, JournalEntry, Signal
    from pytest_golden.journal.review import JournalSummary, SuccessRate
    from pytest_golden.journal.routing import RoutingExplanation


_DEFAULT_REVIEW_LIMIT = 10
_MOST_NAMED = 5
_STYLES = {
    Assessment.OPEN: "cyan",
    Assessment.SUCCESS: "green",
    Assessment.FAILURE: "bold red",
    Assessment.PARTIAL: "yellow",
    Assessment.EXPIRED: "yellow",
}
_WIDEST = max(map(len, Assessment))
_DEFAULT_LIST_LIMIT = 50


def _declare_review(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--filter", choices=FILTERS, default=FILTERS[0], metavar="WORD", help=f"{', '.join(FILTERS)} (default all)."
    )
    parser.add_argument("--type", metavar="TYPE", help="Only entries of this intent type, such as regression_check.")
    parser.add_argument(
        "--agent", metavar="NAME", default=DEFAULT_AGENT, help=f"Whose entries (default {DEFAULT_AGENT}, the gate)."
    )
    add_limit_option(parser, _DEFAULT_REVIEW_LIMIT)


def _review(arguments: argparse.Namespace) -> int:
    limit = read_limit(arguments.limit, MOST_LISTED)
    with open_journal(arguments) as journal:
        entries = journal.review_journal(arguments.filter, arguments.type, limit, agent_id=arguments.agent)
    if arguments.json:
        print_json({"entries": [entry.to_dict() for entry in entries]})
    else:
        _show_review(open_console(), entries, arguments)
    return 0


def _show_review(console: Console, entries: Sequence[JournalEntry], arguments: argparse.Namespace) -> None:
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
        for line in _describe_entry(entry):
            print_beside(console, Text(" " * _WIDEST), line)


def _describe_entry(entry: JournalEntry) -> Iterator[str]:
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
    """Name the expectations that are unmet, expired or open: those that are met need no attention."""
    order = (ExpectationStatus.UNMET, ExpectationStatus.EXPIRED, ExpectationStatus.OPEN)
    unanswered = [asked for status in order for asked in expectations if asked.status is status]
    for asked in unanswered[:_MOST_NAMED]:
        expiry = asked.expires_at if asked.status is ExpectationStatus.OPEN else None
        until = "" if expiry is None else f" until {show_local(expiry)}"
        yield f"  {asked.status}{until}: {asked.description}{' (critical)' if asked.critical else ''}"
    if len(unanswered) > _MOST_NAMED:
        yield f"  and {len(unanswered) - _MOST_NAMED} more"


def _declare_open(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", metavar="NAME", help="Of this agent alone (default: of all).")
    add_limit_option(parser, _DEFAULT_LIST_LIMIT)


def _show_open(arguments: argparse.Namespace) -> int:
    limit = read_limit(arguments.limit, MOST_LISTED)
    with open_journal(arguments) as journal:
        found = journal.open_expectations(arguments.agent, limit=limit)
    if arguments.json:
        print_json({"expectations": [asked.to_dict() for asked in found]})
    elif found:
        console = open_console()
        print_table(console, _list_expectations(console, found))
    else:
        open_console().print(styled("nothing is expected"))
    return 0


def _list_expectations(console: Console, found: Iterable[Expectation]) -> Table:
    rows = [_describe_expectation(asked) for asked in found]
    if console.width >= WIDE:
        return make_listing(console, ("until", "expected", "hint", "entry"), rows, whole=("until", "entry"))
    narrow = [(until, "\n".join(filter(None, (told, hint))), entry) for until, told, hint, entry in rows]
    return make_listing(console, ("until", "expected", "entry"), narrow, whole=("until", "entry"))


def _describe_expectation(asked: Expectation) -> tuple[str, str, str, str]:
    hint = ", ".join(f"{key}={value}" for key, value in (asked.match_hint or {}).items())
    no_news = "no news of: " if asked.polarity == "negative" else ""
    told = f"{no_news}{asked.description}{' (critical)' if asked.critical else ''}"
    return "-" if asked.expires_at is None else show_local(asked.expires_at), told, hint, asked.entry_id


def _declare_orphans(parser: argparse.ArgumentParser) -> None:
    add_limit_option(parser, _DEFAULT_LIST_LIMIT)


def _show_orphans(arguments: argparse.Namespace) -> int:
    limit = read_limit(arguments.limit, MOST_LISTED)
    with open_journal(arguments) as journal:
        found = journal.orphans(limit=limit)
    if arguments.json:
        print_json({"signals": [signal.to_dict() for signal in found]})
    elif found:
        console = open_console()
        print_table(console, _list_signals(console, found))
    else:
        open_console().print(styled("no signal is an orphan"))
    return 0


def _list_signals(console: Console, found: Iterable[Signal]) -> Table:
    if console.width >= WIDE:
        rows = [(show_local(one.created_at), one.source, one.signal_type, one.summary, one.id) for one in found]
        return make_listing(console, ("when", "source", "type", "summary", "id"), rows, whole=("when", "type", "id"))
    narrow = [(show_local(one.created_at), f"{one.source}, {one.signal_type}: {one.summary}", one.id) for one in found]
    return make_listing(console, ("when", "news", "id"), narrow, whole=("when", "id"))


def _declare_explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("signal", metavar="SIGNAL", help="The signal's id.")


def _explain(arguments: argparse.Namespace) -> int:
    with open_journal(arguments) as journal:
        found = journal.explain_routing(arguments.signal)
    if arguments.json:
        print_json(found.to_dict())
    else:
        _show_explanation(open_console(), found)
    return 0


def _show_explanation(console: Console, found: RoutingExplanation) -> None:
    console.print(styled(f"{found.signal_id}: {found.rule.replace('_', ' ')}", "bold"))
    if not found.candidates:
        console.print(styled("no expectation was in question"))
        return
    rows = [
        ("taken" if one.taken else "", one.expectation_id, one.rule.replace("_", " "), one.reason)
        for one in found.candidates
    ]
    if console.width >= WIDE:
        table = make_listing(console, ("", "expectation", "rule", "why"), rows, whole=("", "expectation", "rule"))
    else:
        narrow = [(mark, expectation, f"{rule}: {why}") for mark, expectation, rule, why in rows]
        table = make_listing(console, ("", "expectation", "why"), narrow, whole=("", "expectation"))
    print_table(console, table)
    if found.others:
        more = "or more" if found.is_count_cut else "more"
        console.print(styled(f"and {found.others} {more} that were open"))


def _declare_summary(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", metavar="NAME", help="Of this agent alone (default: of all).")
    parser.add_argument(
        "--since", metavar="WHEN", help="Only what began since: 90d, 12h, 30m ago, or a time such as 2026-03-01T12:00Z."
    )


def _summarize(arguments: argparse.Namespace) -> int:
    since = None if arguments.since is None else read_moment("--since", arguments.since)
    with open_journal(arguments) as journal:
        found = journal.summary(arguments.agent, since)
    if arguments.json:
        print_json(found.to_dict())
    else:
        _show_summary(open_console(), found)
    return 0


def _show_summary(console: Console, found: JournalSummary) -> None:
    kinds: list[tuple[str, JournalSummary | SuccessRate]] = [("all", found)]
    kinds += [(kind or "(no type)", rate) for kind, rate in found.by_intent_type.items()]
    rows = [
        (name, show_rate(rate), str(rate.n), str(rate.open), str(rate.expired))
        for name, rate in [*kinds, *found.by_time.items()]
    ]
    numbers = ("succeeded", "of", "open", "expired")
    print_table(console, make_listing(console, ("", *numbers), rows, right=numbers))


def show_rate(rate: JournalSummary | SuccessRate) -> str:
    """Return a success rate as a percentage that is 100 or 0 only if all or none succeeded."""
    if rate.success_rate is None:
        return "-"
    told = f"{rate.success_rate:.0%}"
    if told == "100%" and rate.success_rate < 1:
        return ">99%"
    return "<1%" if told == "0%" and rate.success_rate > 0 else told


ACTIONS = (
    Action("review", "Show the newest entries of an agent, with what it expects.", _declare_review, _review),
    Action("open", "List what is still expected, the soonest first.", _declare_open, _show_open),
    Action("orphans", "List the signals that found no entry yet.", _declare_orphans, _show_orphans),
    Action("explain", "Tell why a signal went where it went.", _declare_explain, _explain),
    Action("summary", "Sum up how often what was intended succeeded.", _declare_summary, _summarize),
)
