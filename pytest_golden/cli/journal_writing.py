"""The actions of `golden journal` that write: intents, outcomes, signals, a person's word, and the sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.cli.action import Action
from pytest_golden.cli.journal_action import DEFAULT_AGENT, open_journal, read_json
from pytest_golden.cli.person_option import add_person_option, find_person
from pytest_golden.cli.screen import open_console, print_json, styled
from pytest_golden.journal.model import Assessment, ExpectationStatus, ImmediateResult, SignalType

if TYPE_CHECKING:
    import argparse

    from pytest_golden.journal.model import JournalEntry, Signal


def _declare_intent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("intent", metavar="INTENT", help="What is about to be done.")
    parser.add_argument("--type", metavar="TYPE", help="The intent type, such as deploy.")
    parser.add_argument(
        "--agent", metavar="NAME", default=DEFAULT_AGENT, help=f"Who is about to do it (default {DEFAULT_AGENT})."
    )
    parser.add_argument("--session", metavar="KEY", help="The session that it belongs to.")
    parser.add_argument("--job", metavar="ID", help="The job that it belongs to.")
    parser.add_argument("--parent", metavar="ENTRY", help="The entry that it is a part of.")


def _log_intent(arguments: argparse.Namespace) -> int:
    with open_journal(arguments, makes=True) as journal:
        entry = journal.log_intent(
            arguments.intent,
            arguments.type,
            agent_id=arguments.agent,
            session_key=arguments.session,
            job_id=arguments.job,
            parent_id=arguments.parent,
        )
    if arguments.json:
        print_json(entry.to_dict())
    else:
        # Alone, so that a script can keep it.
        open_console().print(styled(entry.id))
    return 0


def _declare_outcome(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("entry", metavar="ID", help="The entry.")
    parser.add_argument("result", metavar="RESULT", help=f"One of {', '.join(ImmediateResult)}.")
    parser.add_argument("--notes", metavar="TEXT", help="What was seen.")
    parser.add_argument("--actions", metavar="JSON", help="What was done: a list.")
    parser.add_argument(
        "--expect",
        metavar="JSON",
        action="append",
        default=[],
        help="What is expected now, or a list of it: {description, match_hint, expires_minutes, polarity, critical, check}. "
        "May be given several times.",
    )
    parser.add_argument("--agent", metavar="NAME", help="Refuse an entry that is not this agent's.")


def _log_outcome(arguments: argparse.Namespace) -> int:
    expected: list[Any] = []
    for text in arguments.expect:
        given = read_json("--expect", text)
        expected += given if isinstance(given, list) else [given]
    actions = () if arguments.actions is None else read_json("--actions", arguments.actions)
    with open_journal(arguments) as journal:
        entry = journal.log_outcome(
            arguments.entry,
            arguments.result,
            arguments.notes,
            actions=actions,
            expectations=expected,
            agent_id=arguments.agent,
        )
    _tell_entry(entry, arguments)
    return 0


def _declare_signal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="Who says it, such as ci; human is a person's word.")
    parser.add_argument("type", metavar="TYPE", help=f"One of {', '.join(SignalType)}.")
    parser.add_argument("summary", metavar="SUMMARY", help="What it says, for people.")
    parser.add_argument("--data", metavar="JSON", help="What hints are compared with: an object.")
    parser.add_argument("--entry", metavar="ID", help="The entry that it is about.")
    parser.add_argument("--agent", metavar="NAME", help="Whose expectations are asked (default: the hints of all).")
    parser.add_argument("--session", metavar="KEY", help="The session that it came in.")
    parser.add_argument("--external-id", metavar="ID", help="The source's own id: said twice, it has one effect.")


def _add_signal(arguments: argparse.Namespace) -> int:
    data = None if arguments.data is None else read_json("--data", arguments.data)
    with open_journal(arguments, makes=True) as journal:
        signal = journal.add_signal(
            arguments.source,
            arguments.type,
            arguments.summary,
            data=data,
            external_id=arguments.external_id,
            agent_id=arguments.agent,
            session_key=arguments.session,
            entry_id=arguments.entry,
        )
        entry = None if signal.entry_id is None else journal.get(signal.entry_id)
    if arguments.json:
        print_json(signal.to_dict())
    else:
        open_console().print(styled(_describe_signal(signal, entry)))
    return 0


def _describe_signal(signal: Signal, entry: JournalEntry | None) -> str:
    if entry is None:
        return f"{signal.id}: no entry is concerned; it waits as an orphan"
    answered = next((asked for asked in entry.expectations if asked.id == signal.expectation_id), None)
    told = "" if answered is None else f"; {answered.status}: {answered.description}"
    return f"{signal.id}: by {signal.routed_by.replace('_', ' ')} to {entry.id}, now {entry.assessment}{told}"


def _declare_assess(parser: argparse.ArgumentParser) -> None:
    words = ", ".join(word for word in Assessment if word is not Assessment.OPEN)
    parser.add_argument("entry", metavar="ID", help="The entry.")
    parser.add_argument("assessment", metavar="ASSESSMENT", help=f"One of {words}.")
    parser.add_argument("--notes", metavar="TEXT", help="Why.")
    add_person_option(parser)


def _assess(arguments: argparse.Namespace) -> int:
    with open_journal(arguments) as journal:
        entry = journal.assess(arguments.entry, arguments.assessment, arguments.notes, by=find_person(arguments))
    _tell_entry(entry, arguments)
    return 0


def _tell_entry(entry: JournalEntry, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json(entry.to_dict())
        return
    waiting = sum(asked.status is ExpectationStatus.OPEN for asked in entry.expectations)
    told = f"; {waiting} open expectation{'' if waiting == 1 else 's'}" if waiting else ""
    open_console().print(styled(f"{entry.id}: {entry.assessment}{told}"))


def _declare_nothing(_: argparse.ArgumentParser) -> None:
    pass


def _sweep(arguments: argparse.Namespace) -> int:
    with open_journal(arguments) as journal:
        resolved = journal.sweep()
    if arguments.json:
        print_json({"resolved": resolved})
    else:
        told = f"{resolved} expectation{'' if resolved == 1 else 's'} resolved, since the time was over"
        open_console().print(styled(told if resolved else "nothing was due"))
    return 0


ACTIONS = (
    Action("log-intent", "Begin an entry: say what is about to be done. Prints its id.", _declare_intent, _log_intent),
    Action("log-outcome", "Say how an entry ended and what is expected now.", _declare_outcome, _log_outcome),
    Action("signal", "Take in news, and let it answer the expectation that it fits.", _declare_signal, _add_signal),
    Action("assess", "Say where an entry stands, above all rules; the last word wins.", _declare_assess, _assess),
    Action("sweep", "Resolve the expectations whose time is over.", _declare_nothing, _sweep),
)
