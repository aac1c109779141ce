"""The actions of `golden journal` that write: intents, outcomes, signals, assessments, the sweep, export, import, prune."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pytest_golden.cli.action import Action
from pytest_golden.cli.journal_action import DEFAULT_AGENT, MOST_LISTED, open_journal, read_json, read_rules
from pytest_golden.cli.options import add_person_option, find_person, open_store, read_limit, read_moment
from pytest_golden.cli.screen import open_console, print_json, show_progress, styled
from pytest_golden.clock import utc_now
from pytest_golden.errors import SettingsError
from pytest_golden.gate.pruning_store import Kept, PruneOrder, prune_store
from pytest_golden.journal.model import Assessment, ExpectationStatus, ImmediateResult, SignalType
from pytest_golden.regression.wording import format_size

if TYPE_CHECKING:
    import argparse

    from pytest_golden.gate.pruning_store import PruneReport
    from pytest_golden.journal.model import JournalEntry, Signal
    from pytest_golden.journal.transfer.service import ImportReport


_STANDARD = "-"


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


def _declare_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default=_STANDARD, help="The file to make (default -, which is stdout)."
    )


def _export(arguments: argparse.Namespace) -> int:
    goes_out = arguments.file == _STANDARD
    file: str | IO[Any] = sys.stdout if goes_out else arguments.file
    with open_journal(arguments) as journal, show_progress("lines written:") as progress:
        report = journal.export(file, progress=progress)
    if goes_out:
        return 0
    if arguments.json:
        print_json({"file": arguments.file, **report.to_dict()})
    else:
        told = f"{_count(report.entries, 'entry', 'entries')} and {_count(report.orphans, 'orphan', 'orphans')}"
        open_console().print(styled(f"{told} written to {arguments.file}"))
    return 0


def _declare_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default=_STANDARD, help="The export to take in (default -, which is stdin)."
    )
    parser.add_argument(
        "--with-checks", action="store_true", help="Let a heartbeat here run its checks: for a file that you trust."
    )


def _import(arguments: argparse.Namespace) -> int:
    file: str | IO[Any] = sys.stdin.buffer if arguments.file == _STANDARD else arguments.file
    if isinstance(file, str) and not Path(file).exists():
        raise SettingsError(f"there is no file {file}; give an export, or - for stdin")
    with open_journal(arguments, makes=True) as journal, show_progress("lines read:") as progress:
        report = journal.import_(file, with_checks=arguments.with_checks, progress=progress)
    if arguments.json:
        print_json(report.to_dict())
    else:
        open_console().print(styled(_describe_import(report)))
    return 0


def _describe_import(report: ImportReport) -> str:
    if not report.is_change:
        return f"nothing new: {_count(report.unchanged, 'entry', 'entries')} known already"
    told = [
        f"{_count(report.added, 'entry', 'entries')} new",
        f"{report.merged:,} merged with what was here",
        f"{report.unchanged:,} known already",
        f"{_count(report.orphans, 'orphan', 'orphans')} new",
    ]
    return "; ".join(told)


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _declare_prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than", metavar="WHEN", help="What was closed before: 90d, 12h ago, or a time (default: by the rules)."
    )
    parser.add_argument(
        "--keep", metavar="N", help="Beyond the newest N closed entries of an agent (default: by the rules)."
    )
    parser.add_argument("--agent", metavar="NAME", help="Of this agent alone (default: of all).")
    parser.add_argument("--dry-run", action="store_true", help="Only tell what would go.")
    parser.add_argument(
        "--vacuum", action="store_true", help="Then write the file anew, without the room of what is gone."
    )


def _prune(arguments: argparse.Namespace) -> int:
    kept = Kept(
        None if arguments.older_than is None else read_moment("--older-than", arguments.older_than),
        None if arguments.keep is None else read_limit(arguments.keep, MOST_LISTED, "--keep"),
    )
    order = PruneOrder(kept=kept, agent_id=arguments.agent, is_trial=arguments.dry_run, gives_back=arguments.vacuum)
    rules = read_rules(arguments)
    with open_store(arguments) as store, show_progress("entries looked at:") as progress:
        report = prune_store(store, order, rules, utc_now(), progress=progress)
    if arguments.json:
        print_json({"dry_run": arguments.dry_run, **report.to_dict()})
    else:
        open_console().print(styled(_describe_pruning(report, is_trial=arguments.dry_run)))
    return 0


def _describe_pruning(report: PruneReport, *, is_trial: bool) -> str:
    told = (
        f"{_count(report.entries, 'entry', 'entries')} and {_count(report.trajectories, 'trajectory', 'trajectories')}"
    )
    if is_trial:
        return f"{told} would be removed; nothing was changed"
    freed = "" if report.freed_bytes is None else f"; the file is {format_size(max(0, report.freed_bytes))} smaller"
    return f"{told} removed{freed}"


ACTIONS = (
    Action("log-intent", "Begin an entry: say what is about to be done. Prints its id.", _declare_intent, _log_intent),
    Action("log-outcome", "Say how an entry ended and what is expected now.", _declare_outcome, _log_outcome),
    Action("signal", "Take in news, and let it answer the expectation that it fits.", _declare_signal, _add_signal),
    Action("assess", "Say where an entry stands, above all rules; the last word wins.", _declare_assess, _assess),
    Action("sweep", "Resolve the expectations whose time is over.", _declare_nothing, _sweep),
)
# Listed after all other actions.
TRANSFER_ACTIONS = (
    Action("export", "Write the whole journal as JSON Lines.", _declare_export, _export),
    Action("import", "Take in an export, all of it or nothing; what differs is merged.", _declare_import, _import),
    Action(
        "prune", "Remove closed entries that are old or too many; never what is open or needed.", _declare_prune, _prune
    ),
)
