"""The actions of `golden journal` that look: what is open, orphans, why a signal went where it went, and sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.cli.action import Action
from pytest_golden.cli.journal_action import MOST_LISTED, open_journal, show_local
from pytest_golden.cli.limit_option import add_limit_option, read_limit
from pytest_golden.cli.listing import WIDE, make_listing
from pytest_golden.cli.moment_option import read_moment
from pytest_golden.cli.screen import open_console, print_json, print_table, styled

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from rich.console import Console
    from rich.table import Table

    from pytest_golden.journal.model import Expectation, Signal
    from pytest_golden.journal.reading.summary import JournalSummary, SuccessRate
    from pytest_golden.journal.routing.explanation import RoutingExplanation

_DEFAULT_LIMIT = 50


def _declare_open(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", metavar="NAME", help="Of this agent alone (default: of all).")
    add_limit_option(parser, _DEFAULT_LIMIT)


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
    add_limit_option(parser, _DEFAULT_LIMIT)


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
    """Write a success rate as a percentage that is 100 or 0 only when all or none succeeded."""
    if rate.success_rate is None:
        return "-"
    told = f"{rate.success_rate:.0%}"
    if told == "100%" and rate.success_rate < 1:
        return ">99%"
    return "<1%" if told == "0%" and rate.success_rate > 0 else told


ACTIONS = (
    Action("open", "List what is still expected, the soonest first.", _declare_open, _show_open),
    Action("orphans", "List the signals that found no entry yet.", _declare_orphans, _show_orphans),
    Action("explain", "Tell why a signal went where it went.", _declare_explain, _explain),
    Action("summary", "Sum up how often what was intended succeeded.", _declare_summary, _summarize),
)
