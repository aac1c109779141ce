"""The actions of `golden journal` that only read: review, open expectations, orphans, routing explained, and sums."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.text import Text

from pytest_golden.cli import options
from pytest_golden.cli.options import Action
from pytest_golden.cli.screen import WIDE, answer, print_beside, print_indented, print_listing, show_local, styled
from pytest_golden.gate.store import RESULT_TYPE
from pytest_golden.journal.model import Assessment, ExpectationStatus
from pytest_golden.journal.review import FILTERS
from pytest_golden.journal.service import Journal
from pytest_golden.values.shape import plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from rich.console import Console

    from pytest_golden.journal.model import Expectation, JournalEntry, Signal
    from pytest_golden.journal.review import JournalSummary, SuccessRate
    from pytest_golden.journal.routing import RoutingExplanation


#: Whose entries are meant when nobody is named: the gate's own agent.
DEFAULT_AGENT = "golden"
#: The most entries that one answer may hold.
MOST_LISTED = 100_000
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
_MOST_SHOWN = 50


@contextmanager
def open_journal(arguments: argparse.Namespace, *, makes: bool = False) -> Iterator[Journal]:
    """Yield the journal that the command uses; what it refuses inside the block is bad input.

    With `makes`, create a store that does not exist yet.

    Raises:
        SettingsError: there is no store, or the journal refuses an argument.
        GoldenError: any other error of the journal.
    """
    rules = options.read_rules(arguments)
    with options.open_store(arguments, makes=makes) as store, options.refusing_values():
        yield Journal(store, rules=rules)


def _declare_review(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--filter", choices=FILTERS, default=FILTERS[0], metavar="WORD", help=f"{', '.join(FILTERS)} (default all)."
    )
    parser.add_argument("--type", metavar="TYPE", help="Only entries of this intent type, such as regression_check.")
    parser.add_argument(
        "--agent",
        metavar="NAME",
        help=f"Only entries of this agent (default: of all, without the gate's results; --agent {DEFAULT_AGENT} shows these, too).",
    )
    options.add_limit_option(parser, _DEFAULT_REVIEW_LIMIT)


def _review(arguments: argparse.Namespace) -> int:
    """Show the newest entries of all agents, or of one, with their expectations."""
    limit = options.read_limit(arguments.limit, MOST_LISTED)
    with open_journal(arguments) as journal:
        hidden = RESULT_TYPE if arguments.agent is None and arguments.type is None else None
        entries = journal.review_journal(
            arguments.filter, arguments.type, limit, agent_id=arguments.agent, without_type=hidden
        )
    facts = {"entries": [entry.to_dict() for entry in entries]}
    return answer(arguments, facts, lambda console: _show_review(console, entries, arguments))


def _show_review(console: Console, entries: Sequence[JournalEntry], arguments: argparse.Namespace) -> None:
    if not entries:
        kind = "" if arguments.filter == FILTERS[0] else f"{arguments.filter} "
        of_type = "" if arguments.type is None else f" of type {arguments.type}"
        owner = "" if arguments.agent is None else f" of agent {arguments.agent}"
        console.print(styled(f"no {kind}entry{of_type}{owner}"))
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
    yield ", ".join(filter(None, [entry.agent_id, entry.intent_type, entry.id]))
    notes = f": {entry.immediate_notes}" if entry.immediate_notes else ""
    yield f"result: {entry.immediate_result}{notes}"
    if entry.assessment_notes:
        yield f"assessed: {entry.assessment_notes}"
    if entry.expectations:
        counts = Counter(asked.status for asked in entry.expectations)
        told = ", ".join(f"{counts[status]} {status}" for status in ExpectationStatus if counts[status])
        yield f"expectations: {told}"
        yield from _name_unanswered(entry.expectations)


def _show(arguments: argparse.Namespace) -> int:
    """Show one entry: the reasons of its assessment, its expectations, its signals, and its history."""
    with open_journal(arguments) as journal:
        entry = journal.get(arguments.entry)
    return answer(arguments, entry.to_dict(), lambda console: _show_entry(console, entry))


def _show_entry(console: Console, entry: JournalEntry) -> None:
    first = styled(entry.assessment, _STYLES[entry.assessment])
    console.print(first, styled(entry.intent, "bold"))
    for line in _describe_facts(entry):
        print_indented(console, line, 2)
    heard = {signal.id: signal for signal in entry.signals}
    parts = {
        "expected": [_tell_expectation(asked, heard) for asked in entry.expectations],
        "heard": [
            f"{show_local(one.created_at)}  {one.signal_type} from {one.source}: {one.summary} ({one.id}, found by {one.routed_by})"
            for one in entry.signals
        ],
        "history": [
            f"{show_local(one.when)}  {one.what} by {one.who}{_tell_change(one.details)}{f': {one.why}' if one.why else ''}"
            for one in entry.history
        ],
    }
    for title, lines in parts.items():
        if lines:
            console.print(styled(title, "bold"))
        for line in lines[-_MOST_SHOWN:]:
            print_indented(console, line, 2)
        if len(lines) > _MOST_SHOWN:
            console.print(styled(f"  and {len(lines) - _MOST_SHOWN} before; --json has all", "dim"))


def _describe_facts(entry: JournalEntry) -> Iterator[str]:
    if entry.assessment_notes:
        yield f"because: {entry.assessment_notes}"
    yield from list(_describe_entry(entry))[:2]
    closed = "" if entry.closed_at is None else f", closed {show_local(entry.closed_at)}"
    yield f"began {show_local(entry.created_at)}{closed}"
    for name, value in (("session", entry.session_key), ("job", entry.job_id), ("part of", entry.parent_id)):
        if value:
            yield f"{name}: {value}"
    for action in entry.actions:
        yield f"did: {action if isinstance(action, str) else json.dumps(plain(action), ensure_ascii=False)}"


def _tell_expectation(asked: Expectation, heard: Mapping[str, Signal]) -> str:
    signal = heard.get(asked.resolved_by or "")
    by = f"{signal.source}: {signal.summary}" if signal is not None else asked.resolved_by
    told = [asked.status.value, asked.description]
    marks = [
        mark
        for mark, is_so in (("critical", asked.critical), ("must not happen", asked.polarity == "negative"))
        if is_so
    ]
    told[1] += f" ({', '.join(marks)})" if marks else ""
    if asked.status is ExpectationStatus.OPEN:
        told += [] if asked.expires_at is None else [f"until {show_local(asked.expires_at)}"]
    elif by:
        told.append(f"by {by}")
    return ": ".join(told[:2]) + "".join(f", {one}" for one in told[2:])


def _tell_change(details: Mapping[str, Any]) -> str:
    return f" ({details['from']} -> {details['to']})" if {"from", "to"} <= details.keys() else ""


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
    options.add_options(parser, "--agent")
    options.add_limit_option(parser, _DEFAULT_LIST_LIMIT)


def _show_open(arguments: argparse.Namespace) -> int:
    """List what is still expected, the soonest first."""
    limit = options.read_limit(arguments.limit, MOST_LISTED)
    with open_journal(arguments) as journal:
        found = journal.open_expectations(arguments.agent, limit=limit)
    facts = {"expectations": [asked.to_dict() for asked in found]}
    return answer(arguments, facts, lambda console: _list_expectations(console, found))


def _list_expectations(console: Console, found: Sequence[Expectation]) -> None:
    rows = [_describe_expectation(asked) for asked in found]
    if not found:
        console.print(styled("nothing is expected"))
    elif console.width >= WIDE:
        print_listing(console, ("until", "expected", "hint", "entry"), rows, whole=("until", "entry"))
    else:
        narrow = [(until, "\n".join(filter(None, (told, hint))), entry) for until, told, hint, entry in rows]
        print_listing(console, ("until", "expected", "entry"), narrow, whole=("until", "entry"))


def _describe_expectation(asked: Expectation) -> tuple[str, str, str, str]:
    hint = ", ".join(f"{key}={value}" for key, value in (asked.match_hint or {}).items())
    no_news = "no news of: " if asked.polarity == "negative" else ""
    told = f"{no_news}{asked.description}{' (critical)' if asked.critical else ''}"
    return show_local(asked.expires_at), told, hint, asked.entry_id


def _show_orphans(arguments: argparse.Namespace) -> int:
    """List the signals that have found no entry yet."""
    limit = options.read_limit(arguments.limit, MOST_LISTED)
    with open_journal(arguments) as journal:
        found = journal.orphans(limit=limit)
    facts = {"signals": [signal.to_dict() for signal in found]}
    return answer(arguments, facts, lambda console: _list_signals(console, found))


def _list_signals(console: Console, found: Sequence[Signal]) -> None:
    rows = [(show_local(one.created_at), one.source, one.signal_type, one.summary, one.id) for one in found]
    if not found:
        console.print(styled("no signal is an orphan"))
    elif console.width >= WIDE:
        print_listing(console, ("when", "source", "type", "summary", "id"), rows, whole=("when", "type", "id"))
    else:
        narrow = [(when, f"{source}, {kind}: {summary}", id_) for when, source, kind, summary, id_ in rows]
        print_listing(console, ("when", "news", "id"), narrow, whole=("when", "id"))


def _explain(arguments: argparse.Namespace) -> int:
    """Explain why a signal was routed as it was."""
    with open_journal(arguments) as journal:
        found = journal.explain_routing(arguments.signal)
    return answer(arguments, found.to_dict(), lambda console: _show_explanation(console, found))


def _show_explanation(console: Console, found: RoutingExplanation) -> None:
    console.print(styled(f"{found.signal_id}: {found.rule.replace('_', ' ')}", "bold"))
    if not found.candidates:
        console.print(styled("no expectation was a candidate"))
        return
    rows = [
        ("taken" if one.taken else "", one.expectation_id, one.rule.replace("_", " "), one.reason)
        for one in found.candidates
    ]
    if console.width >= WIDE:
        print_listing(console, ("", "expectation", "rule", "why"), rows, whole=("", "expectation", "rule"))
    else:
        narrow = [(mark, expectation, f"{rule}: {why}") for mark, expectation, rule, why in rows]
        print_listing(console, ("", "expectation", "why"), narrow, whole=("", "expectation"))
    if found.others:
        more = "or more" if found.is_count_cut else "more"
        console.print(styled(f"and {found.others} {more} that were open"))


def _declare_summary(parser: argparse.ArgumentParser) -> None:
    options.add_options(parser, "--agent")
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="Only entries that began since: 90d, 12h, 30m ago, or a time such as 2026-03-01T12:00Z.",
    )


def _summarize(arguments: argparse.Namespace) -> int:
    """Show how often entries succeeded."""
    since = None if arguments.since is None else options.read_moment("--since", arguments.since)
    with open_journal(arguments) as journal:
        found = journal.summary(arguments.agent, since)
    return answer(arguments, found.to_dict(), lambda console: _show_summary(console, found))


def _show_summary(console: Console, found: JournalSummary) -> None:
    kinds: list[tuple[str, JournalSummary | SuccessRate]] = [("all", found)]
    kinds += [(kind or "(no type)", rate) for kind, rate in found.by_intent_type.items()]
    rows = [
        (name, show_rate(rate), str(rate.n), str(rate.open), str(rate.expired))
        for name, rate in [*kinds, *found.by_time.items()]
    ]
    numbers = ("succeeded", "of", "open", "expired")
    print_listing(console, ("", *numbers), rows, right=numbers)


def show_rate(rate: JournalSummary | SuccessRate) -> str:
    """Return a success rate as a percentage that is 100 or 0 only if all or none succeeded."""
    if rate.success_rate is None:
        return "-"
    told = f"{rate.success_rate:.0%}"
    if told == "100%" and rate.success_rate < 1:
        return ">99%"
    return "<1%" if told == "0%" and rate.success_rate > 0 else told


ACTIONS = (
    Action("review", _review, _declare_review),
    Action("show", _show, lambda one: one.add_argument("entry", metavar="ENTRY", help="The entry's id.")),
    Action("open", _show_open, _declare_open),
    Action("orphans", _show_orphans, lambda one: options.add_limit_option(one, _DEFAULT_LIST_LIMIT)),
    Action("explain", _explain, lambda one: one.add_argument("signal", metavar="SIGNAL", help="The signal's id.")),
    Action("summary", _summarize, _declare_summary),
)
