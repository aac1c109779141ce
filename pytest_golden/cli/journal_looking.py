"""The actions of `golden journal` that look: what is open, orphans, why a signal went where it went, and sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from pytest_golden.cli.journal_action import MOST_LISTED, Action, open_journal, show_local
from pytest_golden.cli.limit_option import add_limit_option, read_limit
from pytest_golden.cli.moment_option import read_moment
from pytest_golden.cli.screen import open_console, print_json, print_table, styled

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from rich.console import Console

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
        print_table(open_console(), _list_expectations(found))
    else:
        open_console().print(styled("nothing is expected"))
    return 0


def _list_expectations(found: Iterable[Expectation]) -> Table:
    table = _make_table("until", "expected", "hint", "entry")
    for asked in found:
        hint = ", ".join(f"{key}={value}" for key, value in (asked.match_hint or {}).items())
        no_news = "no news of: " if asked.polarity == "negative" else ""
        told = f"{no_news}{asked.description}{' (critical)' if asked.critical else ''}"
        until = "-" if asked.expires_at is None else show_local(asked.expires_at)
        table.add_row(*map(styled, (until, told, hint, asked.entry_id)))
    return table


def _declare_orphans(parser: argparse.ArgumentParser) -> None:
    add_limit_option(parser, _DEFAULT_LIMIT)


def _show_orphans(arguments: argparse.Namespace) -> int:
    limit = read_limit(arguments.limit, MOST_LISTED)
    with open_journal(arguments) as journal:
        found = journal.orphans(limit=limit)
    if arguments.json:
        print_json({"signals": [signal.to_dict() for signal in found]})
    elif found:
        print_table(open_console(), _list_signals(found))
    else:
        open_console().print(styled("no signal is an orphan"))
    return 0


def _list_signals(found: Iterable[Signal]) -> Table:
    table = _make_table("when", "source", "type", "summary", "id")
    for signal in found:
        told = (show_local(signal.created_at), signal.source, signal.signal_type, signal.summary, signal.id)
        table.add_row(*map(styled, told))
    return table


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
    table = _make_table("", "expectation", "rule", "why")
    for one in found.candidates:
        mark = "taken" if one.taken else ""
        table.add_row(*map(styled, (mark, one.expectation_id, one.rule.replace("_", " "), one.reason)))
    print_table(console, table)
    if found.others:
        console.print(styled(f"and {found.others} more that were open"))


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
    table = _make_table("", "succeeded", "of", "open", "expired")
    rows: list[tuple[str, JournalSummary | SuccessRate]] = [("all", found)]
    rows += [(kind or "(no type)", rate) for kind, rate in found.by_intent_type.items()]
    for name, rate in [*rows, *found.by_time.items()]:
        table.add_row(*map(styled, (name, _show_rate(rate), rate.n, rate.open, rate.expired)))
    print_table(console, table)


def _show_rate(rate: JournalSummary | SuccessRate) -> str:
    return "-" if rate.success_rate is None else f"{rate.success_rate:.0%}"


def _make_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right" if column in {"succeeded", "of"} else "left", overflow="fold")
    return table


ACTIONS = (
    Action("open", "List what is still expected, the soonest first.", _declare_open, _show_open),
    Action("orphans", "List the signals that found no entry yet.", _declare_orphans, _show_orphans),
    Action("explain", "Tell why a signal went where it went.", _declare_explain, _explain),
    Action("summary", "Sum up how often what was intended succeeded.", _declare_summary, _summarize),
)
