"""`golden journal`: intents, expectations and signals. Here are the actions that write; those that read are in `journal_review`.

The gate's agent is golden. A gate run is an entry of type regression_check, a result one of type golden_run.
Times are shown in the local time zone, in JSON as UTC.

exit code: 0 done, 2 bad input.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pytest_golden.cli import journal_review, options
from pytest_golden.cli.journal_review import DEFAULT_AGENT, MOST_LISTED, open_journal
from pytest_golden.cli.options import Action
from pytest_golden.cli.screen import WIDE, answer, print_indented, print_listing, show_local, show_progress, styled
from pytest_golden.clock import iso_utc, monotonic_seconds, utc_now
from pytest_golden.cycle.past_cycles import record_merges_and_reverts
from pytest_golden.errors import GoldenError, JournalError, SettingsError
from pytest_golden.gate.pruning_store import PruneOrder, prune_store
from pytest_golden.gateway.git import find_github_repository
from pytest_golden.journal.agent_rules import parse_rules
from pytest_golden.journal.checks.heartbeat import Heartbeat
from pytest_golden.journal.model import Assessment, ExpectationStatus, ImmediateResult, SignalType
from pytest_golden.journal.rules import is_reserved, name_reserved
from pytest_golden.regression.wording import count_of, format_size
from pytest_golden.storage.folder import STATE_FOLDER

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from pytest_golden.gate.pruning_store import PruneReport
    from pytest_golden.journal.checks.heartbeat import CheckRun, HeartbeatReport
    from pytest_golden.journal.model import JournalEntry, Signal
    from pytest_golden.journal.outside.github_sync import SyncReport
    from pytest_golden.journal.transfer.service import ImportReport


_STANDARD = "-"
_DEFAULT_TIMEOUT = "60s"
_LEAST_EVERY = 1.0
_BUDGET_SECONDS = 600.0
_LARGEST_PR = 10**9
# What is remembered of GitHub's pages, so that an unchanged one costs nothing.
_KNOWN_NAME = "github.json"
_STYLES = {SignalType.POSITIVE: "green", SignalType.NEGATIVE: "bold red", SignalType.NEUTRAL: "yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `golden journal`."""
    options.add_actions(parser, ACTIONS, "--manifest", "--store", "--json", "--rules")


run = options.run_action


def _read_json(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise SettingsError(f"{option} is nested too deeply") from None
    except ValueError as error:
        raise SettingsError(f"{option} is not JSON: {error}; write it in single quotes") from None


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
    """Begin an entry before the work is done, and print its id."""
    with open_journal(arguments, makes=True) as journal:
        entry = journal.log_intent(
            arguments.intent,
            arguments.type,
            agent_id=arguments.agent,
            session_key=arguments.session,
            job_id=arguments.job,
            parent_id=arguments.parent,
        )
    # The id alone, so that a script can keep it.
    return answer(arguments, entry.to_dict(), entry.id)


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
    """Record how an entry ended and what is expected now."""
    expected: list[Any] = []
    for text in arguments.expect:
        given = _read_json("--expect", text)
        expected += given if isinstance(given, list) else [given]
    actions = () if arguments.actions is None else _read_json("--actions", arguments.actions)
    with open_journal(arguments) as journal:
        entry = journal.log_outcome(
            arguments.entry,
            arguments.result,
            arguments.notes,
            actions=actions,
            expectations=expected,
            agent_id=arguments.agent,
        )
    return _tell_entry(entry, arguments)


def _declare_signal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="SOURCE", help=f"The sender, such as ci; {name_reserved()} only for a person."
    )
    parser.add_argument("type", metavar="TYPE", help=f"One of {', '.join(SignalType)}.")
    parser.add_argument("summary", metavar="SUMMARY", help="The message, for people.")
    parser.add_argument("--data", metavar="JSON", help="An object to compare hints with.")
    parser.add_argument("--entry", metavar="ID", help="The entry that it concerns.")
    parser.add_argument(
        "--agent", metavar="NAME", help="Only expectations of this agent (default: of all agents, by hint)."
    )
    parser.add_argument("--session", metavar="KEY", help="The session that it belongs to.")
    parser.add_argument("--external-id", metavar="ID", help="The source's own id; the same id takes effect once.")
    options.add_options(parser, "--as-person")


def _add_signal(arguments: argparse.Namespace) -> int:
    """Record a signal, which answers the expectation that it matches."""
    data = None if arguments.data is None else _read_json("--data", arguments.data)
    if is_reserved(arguments.source):
        own = "give your own name as the source: `golden journal signal NAME TYPE SUMMARY --agent NAME`"
        options.check_person(arguments, f"a signal from {arguments.source}", own)
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
    return answer(arguments, signal.to_dict(), _describe_signal(signal, entry))


def _describe_signal(signal: Signal, entry: JournalEntry | None) -> str:
    if entry is None:
        return f"{signal.id}: no entry matches; it waits as an orphan"
    answered = next((asked for asked in entry.expectations if asked.id == signal.expectation_id), None)
    told = "" if answered is None else f"; {answered.status}: {answered.description}"
    return f"{signal.id}: by {signal.routed_by.replace('_', ' ')} to {entry.id}, now {entry.assessment}{told}"


def _declare_assess(parser: argparse.ArgumentParser) -> None:
    words = ", ".join(word for word in Assessment if word is not Assessment.OPEN)
    parser.add_argument("entry", metavar="ID", help="The entry.")
    parser.add_argument("assessment", metavar="ASSESSMENT", help=f"One of {words}.")
    parser.add_argument("--notes", metavar="TEXT", help="Why.")
    options.add_options(parser, "--by", "--as-person")


def _assess(arguments: argparse.Namespace) -> int:
    """Record a person's judgement of an entry, which overrides all rules; the last one wins."""
    by = options.find_person(arguments, "assessing an entry")
    with open_journal(arguments) as journal:
        entry = journal.assess(arguments.entry, arguments.assessment, arguments.notes, by=by)
    return _tell_entry(entry, arguments)


def _declare_attach(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("signal", metavar="SIGNAL", help="A signal that found no entry.")
    parser.add_argument("entry", metavar="ENTRY", help="The entry that it is about.")
    options.add_options(parser, "--as-person")


def _attach(arguments: argparse.Namespace) -> int:
    """Attach a signal without an entry to one; it counts for the entry, not for an expectation."""
    options.check_person(arguments, "attaching a signal")
    with open_journal(arguments) as journal:
        signal = journal.attach(arguments.signal, arguments.entry)
        entry = journal.get(arguments.entry)
    return answer(arguments, signal.to_dict(), _describe_signal(signal, entry))


def _tell_entry(entry: JournalEntry, arguments: argparse.Namespace) -> int:
    waiting = sum(asked.status is ExpectationStatus.OPEN for asked in entry.expectations)
    told = f"; {count_of(waiting, 'open expectation')}" if waiting else ""
    return answer(arguments, entry.to_dict(), f"{entry.id}: {entry.assessment}{told}")


def _sweep(arguments: argparse.Namespace) -> int:
    """Resolve the expectations that have expired."""
    with open_journal(arguments) as journal:
        resolved = journal.sweep()
    told = f"{count_of(resolved, 'expectation')} resolved as expired" if resolved else "nothing was due"
    return answer(arguments, {"resolved": resolved}, told)


def _declare_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default=_STANDARD, help="The file to write (default -, which is stdout)."
    )


def _export(arguments: argparse.Namespace) -> int:
    """Write the whole journal as JSON Lines."""
    goes_out = arguments.file == _STANDARD
    file: str | IO[Any] = sys.stdout if goes_out else arguments.file
    with open_journal(arguments) as journal, show_progress("lines written:") as progress:
        report = journal.export(file, progress=progress)
    if goes_out:
        return 0
    told = f"{count_of(report.entries, 'entry', 'entries')} and {count_of(report.orphans, 'orphan')}"
    facts = {"file": arguments.file, **report.to_dict()}
    return answer(arguments, facts, f"{told} written to {arguments.file}")


def _declare_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default=_STANDARD, help="The export to import (default -, which is stdin)."
    )
    parser.add_argument(
        "--with-checks",
        action="store_true",
        help="Let a heartbeat here run the imported checks: only for a file that you trust.",
    )
    options.add_options(parser, "--as-person")


def _import(arguments: argparse.Namespace) -> int:
    """Import an export, with the words of people in it, all or nothing; differing records are merged."""
    options.check_person(arguments, "importing a journal")
    file: str | IO[Any] = sys.stdin.buffer if arguments.file == _STANDARD else arguments.file
    if isinstance(file, str) and not Path(file).exists():
        raise SettingsError(f"there is no file {file}; give an export, or - for stdin")
    with open_journal(arguments, makes=True) as journal, show_progress("lines read:") as progress:
        report = journal.import_(file, with_checks=arguments.with_checks, progress=progress)
    return answer(arguments, report.to_dict(), _describe_import(report))


def _describe_import(report: ImportReport) -> str:
    if not report.is_change:
        return f"nothing new: {count_of(report.unchanged, 'entry', 'entries')} known already"
    return (
        f"{count_of(report.added, 'entry', 'entries')} new; {report.merged:,} merged with what was here; "
        f"{report.unchanged:,} known already; {count_of(report.orphans, 'orphan')} new"
    )


def _declare_prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than",
        metavar="WHEN",
        help="Remove entries closed before: 90d, 12h ago, or a time (default: by the rules).",
    )
    parser.add_argument(
        "--keep", metavar="N", help="Keep only the newest N closed entries of each agent (default: by the rules)."
    )
    options.add_options(parser, "--agent")
    parser.add_argument("--dry-run", action="store_true", help="Only show what would be removed.")
    parser.add_argument("--vacuum", action="store_true", help="Then rewrite the file to free the space.")


def _prune(arguments: argparse.Namespace) -> int:
    """Remove closed entries that are old or too many; never open or needed ones."""
    older, keep = arguments.older_than, arguments.keep
    order = PruneOrder(
        closed_after=None if older is None else options.read_moment("--older-than", older),
        kept_entries=None if keep is None else options.read_limit(keep, MOST_LISTED, "--keep"),
        agent_id=arguments.agent,
        is_trial=arguments.dry_run,
        gives_back=arguments.vacuum,
    )
    rules = parse_rules(options.read_rules(arguments))
    with options.open_store(arguments) as store, show_progress("entries looked at:") as progress:
        report = prune_store(store, order, rules, utc_now(), progress=progress)
    facts = {"dry_run": arguments.dry_run, **report.to_dict()}
    return answer(arguments, facts, _describe_pruning(report, is_trial=arguments.dry_run))


def _describe_pruning(report: PruneReport, *, is_trial: bool) -> str:
    entries = count_of(report.entries, "entry", "entries")
    told = f"{entries} and {count_of(report.trajectories, 'trajectory', 'trajectories')}"
    if is_trial:
        return f"{told} would be removed; nothing was changed"
    freed = "" if report.freed_bytes is None else f"; the file is {format_size(max(0, report.freed_bytes))} smaller"
    return f"{told} removed{freed}"


def _declare_sync(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", choices=["github"], help="Who is asked: github.")
    parser.add_argument(
        "--repo",
        metavar="OWNER/NAME",
        help="The repository (default: GITHUB_REPOSITORY, else that of the remote origin).",
    )
    parser.add_argument(
        "--pr",
        metavar="N",
        action="append",
        default=[],
        help="A pull request, beside those that open expectations wait for. May be given several times.",
    )
    options.add_options(parser, "--as-person")


def _sync(arguments: argparse.Namespace) -> int:
    """Ask GitHub for the events that its webhooks would send: read-only, and only about open expectations."""
    # Here, since only this action needs the network.
    from pytest_golden.journal.outside.github_sync import (
        find_ask,
        read_known,
        sync_github,
        write_known,
    )

    options.check_person(arguments, "bringing in GitHub's news")
    numbers = [options.read_limit(one, _LARGEST_PR, "--pr") for one in arguments.pr]
    root = options.find_root(options.find_manifest(arguments))
    repository = arguments.repo or os.environ.get("GITHUB_REPOSITORY") or _find_repository(root)
    ask = find_ask()
    with open_journal(arguments, makes=True) as journal, show_progress("asked about:") as progress:
        place = f"{journal.swept_store.store.where} {os.environ.get('GITHUB_API_URL')} {repository}"
        key = hashlib.sha256(place.encode()).hexdigest()[:16]
        path = root / STATE_FOLDER / _KNOWN_NAME
        known = read_known(path, key)
        try:
            report = sync_github(journal, repository, ask, known, pull_requests=numbers, progress=progress)
        except JournalError:
            # What was read until then is recorded.
            write_known(path, key, known)
            raise
        write_known(path, key, known)
        entries = [None if one.entry_id is None else journal.get(one.entry_id) for one in report.signals]
    return answer(arguments, report.to_dict(), lambda console: _show_sync(console, report, entries))


def _find_repository(root: Path) -> str:
    with suppress(GoldenError):
        if found := find_github_repository(root):
            return found
    raise SettingsError("no repository is known; give --repo OWNER/NAME")


def _show_sync(console: Console, report: SyncReport, entries: list[JournalEntry | None]) -> None:
    for signal, entry in zip(report.signals, entries, strict=True):
        console.print(styled(f"{signal.signal_type}: {signal.summary}", _STYLES.get(signal.signal_type, "")))
        print_indented(console, _describe_signal(signal, entry), 2)
    if not report.asked:
        told = "no open expectation waits for a pull request, a commit or a branch of it: nothing was asked"
        console.print(styled(f"{told}; --pr N asks about one"))
        return
    left = "" if report.left is None else f"; {report.left:,} requests are left of GitHub's limit"
    asked = f"{count_of(report.asked, 'page')} asked for, {report.unchanged} unchanged"
    console.print(styled(f"{count_of(len(report.signals), 'new signal')}; {asked}{left}"))


def _declare_heartbeat(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--every",
        metavar="TIME",
        help="Repeat at this interval, such as 60s or 5m, until Ctrl-C or SIGTERM (default: once).",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        default=_DEFAULT_TIMEOUT,
        help=f"How long one check may take (default {_DEFAULT_TIMEOUT}).",
    )


def _beat_as_asked(arguments: argparse.Namespace) -> int:
    """Resolve the expectations and run the checks that are due, and route orphans again."""
    every = None if arguments.every is None else options.read_duration("--every", arguments.every)
    if every is not None and every < _LEAST_EVERY:
        raise SettingsError(f"--every {arguments.every} is too often; give one second or more")
    timeout = options.read_duration("--timeout", arguments.timeout)
    with options.raise_when_ended():
        if every is not None:
            return _repeat(arguments, timeout, every)
        report = _beat(arguments, timeout, _BUDGET_SECONDS)
    return answer(arguments, report.to_dict(), lambda console: _show_beat(console, report))


def _show_beat(console: Console, report: HeartbeatReport) -> None:
    console.print(styled(_sum_up_beat(report)))
    if report.checks:
        _list_checks(console, report.checks)


def _beat(arguments: argparse.Namespace, timeout: float, budget: float) -> HeartbeatReport:
    """Beat once; each check may take `timeout` seconds, and after `budget` seconds no further one is begun."""
    settings = options.read_command_settings(arguments)
    root = options.find_root(options.locate_manifest(settings))
    with open_journal(arguments) as journal:
        report = Heartbeat(
            journal, workspace_root=root, view=settings.sandbox, timeout_seconds=timeout, budget_seconds=budget
        ).beat()
        record_merges_and_reverts(journal, root)
        return report


def _repeat(arguments: argparse.Namespace, timeout: float, every: float) -> int:
    """Beat at fixed intervals from the first beat; skip those that come due while a beat is still running."""
    began = monotonic_seconds()
    try:
        while True:
            _tell_round(arguments, timeout, max(timeout, every))
            time.sleep(every - (monotonic_seconds() - began) % every)
    except KeyboardInterrupt:
        return 0


def _tell_round(arguments: argparse.Namespace, timeout: float, budget: float) -> None:
    """Beat once and print one line about it. An error ends this round only: the next one may succeed."""
    at = utc_now()
    shown = f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
    try:
        report = _beat(arguments, timeout, budget)
    except (GoldenError, OSError) as error:
        told: dict[str, Any] = {"error": str(error)}
        options.say(f"{shown}  {str(error).splitlines()[0]}")
    else:
        told = report.to_dict()
        if not arguments.json:
            print(f"{shown}  {_sum_up_beat(report)}", flush=True)
    if arguments.json:
        print(json.dumps({"at": iso_utc(at), **told}), flush=True)


def _sum_up_beat(report: HeartbeatReport) -> str:
    found = Counter(one.signal_type for one in report.checks)
    kinds = ", ".join(f"{found[kind]} {kind}" for kind in _STYLES if found[kind])
    checked = f"{len(report.checks)} checked{f' ({kinds})' if kinds else ''}"
    left = f"; {report.left} left" if report.left else ""
    return f"{report.resolved} resolved; {checked}; {report.rerouted} rerouted{left}"


def _list_checks(console: Console, checks: tuple[CheckRun, ...]) -> None:
    rows = [
        (
            styled(one.signal_type, _STYLES[one.signal_type]),
            one.description,
            one.summary,
            show_local(one.next_at),
            one.entry_id,
        )
        for one in checks
    ]
    if console.width >= WIDE:
        titles = ("answer", "expected", "what was found", "again", "entry")
        print_listing(console, titles, rows, whole=("answer", "again", "entry"))
        return
    narrow = [
        (kind, f"{asked}\n{found}{'' if again == '-' else f'; again {again}'}", entry)
        for kind, asked, found, again, entry in rows
    ]
    print_listing(console, ("answer", "expected, and what was found", "entry"), narrow, whole=("answer", "entry"))


ACTIONS = (
    Action("log-intent", _log_intent, _declare_intent),
    Action("log-outcome", _log_outcome, _declare_outcome),
    Action("signal", _add_signal, _declare_signal),
    Action("assess", _assess, _declare_assess),
    Action("attach", _attach, _declare_attach),
    Action("sweep", _sweep),
    Action("heartbeat", _beat_as_asked, _declare_heartbeat),
    Action("sync", _sync, _declare_sync),
    *journal_review.ACTIONS,
    Action("export", _export, _declare_export),
    Action("import", _import, _declare_import),
    Action("prune", _prune, _declare_prune),
)
