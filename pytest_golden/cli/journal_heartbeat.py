"""`golden journal heartbeat`: resolves, checks and routes again what has come due; once, or again and again until it is stopped."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.cli.action import Action
from pytest_golden.cli.journal_action import open_journal, show_local
from pytest_golden.cli.options import locate_manifest, read_command_settings
from pytest_golden.cli.screen import WIDE, make_listing, make_visible, open_console, print_json, print_table, styled
from pytest_golden.clock import iso_utc, monotonic_seconds, utc_now
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.journal.checks.heartbeat import Heartbeat
from pytest_golden.journal.model import SignalType
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.manifest.units import parse_duration

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from rich.console import Console
    from rich.table import Table

    from pytest_golden.journal.checks.heartbeat import CheckRun, HeartbeatReport

_DEFAULT_TIMEOUT = "60s"
_LEAST_EVERY = 1.0
_BUDGET_SECONDS = 600.0
_STYLES = {SignalType.POSITIVE: "green", SignalType.NEGATIVE: "bold red", SignalType.NEUTRAL: "yellow"}


class _Rhythm(NamedTuple):
    """How long a check may take, and every how many seconds the heart beats; None: once."""

    timeout_seconds: float
    every_seconds: float | None

    @property
    def budget_seconds(self) -> float:
        """After so long no further check is begun in a round, since the next one is near."""
        return _BUDGET_SECONDS if self.every_seconds is None else max(self.timeout_seconds, self.every_seconds)


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--every", metavar="TIME", help="Again and again, as 60s or 5m, until Ctrl-C or SIGTERM (default: once)."
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        default=_DEFAULT_TIMEOUT,
        help=f"How long one check may take (default {_DEFAULT_TIMEOUT}).",
    )


def _run(arguments: argparse.Namespace) -> int:
    every = None if arguments.every is None else _read_time("--every", arguments.every)
    if every is not None and every < _LEAST_EVERY:
        raise SettingsError(f"--every {arguments.every} is too often; give one second or more")
    rhythm = _Rhythm(_read_time("--timeout", arguments.timeout), every)
    with _hearing_sigterm():
        if every is not None:
            return _repeat(arguments, rhythm, every)
        report = _beat(arguments, rhythm)
    if arguments.json:
        print_json(report.to_dict())
    else:
        console = open_console()
        console.print(styled(_sum_up(report)))
        if report.checks:
            print_table(console, _list_checks(console, report.checks))
    return 0


def _read_time(option: str, text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise SettingsError(f"{option}: {error}") from None


def _beat(arguments: argparse.Namespace, rhythm: _Rhythm) -> HeartbeatReport:
    settings = read_command_settings(arguments)
    manifest = locate_manifest(settings)
    root = load_manifest(manifest).workspace_root if manifest.exists() else manifest.parent
    with open_journal(arguments) as journal:
        heartbeat = Heartbeat(
            journal,
            workspace_root=root,
            view=settings.sandbox,
            timeout_seconds=rhythm.timeout_seconds,
            budget_seconds=rhythm.budget_seconds,
        )
        return heartbeat.beat()


def _repeat(arguments: argparse.Namespace, rhythm: _Rhythm, every: float) -> int:
    """Beat at fixed moments after the first; one that is over before the round before it ended is left out."""
    began = monotonic_seconds()
    try:
        while True:
            _tell_round(arguments, rhythm)
            time.sleep(every - (monotonic_seconds() - began) % every)
    except KeyboardInterrupt:
        return 0


def _tell_round(arguments: argparse.Namespace, rhythm: _Rhythm) -> None:
    """Beat once and say so in one line. What keeps one round from its work may be over by the next."""
    at = utc_now()
    try:
        report = _beat(arguments, rhythm)
    except (GoldenError, OSError) as error:
        told: dict[str, Any] = {"error": str(error)}
        line = f"golden: {at.astimezone():%Y-%m-%d %H:%M:%S}  {str(error).splitlines()[0]}"
        print(make_visible(line), file=sys.stderr, flush=True)
    else:
        told = report.to_dict()
        if not arguments.json:
            print(f"{at.astimezone():%Y-%m-%d %H:%M:%S}  {_sum_up(report)}", flush=True)
    if arguments.json:
        print(json.dumps({"at": iso_utc(at), **told}), flush=True)


@contextmanager
def _hearing_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as a Ctrl-C does, so that no check is left as if it were still being run."""

    def end(*_: object) -> None:
        # One more would end the tidying up.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _sum_up(report: HeartbeatReport) -> str:
    found = Counter(one.signal_type for one in report.checks)
    kinds = ", ".join(f"{found[kind]} {kind}" for kind in _STYLES if found[kind])
    told = [
        f"{report.resolved} resolved",
        f"{len(report.checks)} checked{f' ({kinds})' if kinds else ''}",
        f"{report.rerouted} rerouted",
        *([f"{report.left} left"] if report.left else []),
    ]
    return "; ".join(told)


def _list_checks(console: Console, checks: tuple[CheckRun, ...]) -> Table:
    rows = [
        (
            styled(one.signal_type, _STYLES[one.signal_type]),
            one.description,
            one.summary,
            "-" if one.next_at is None else show_local(one.next_at),
            one.entry_id,
        )
        for one in checks
    ]
    if console.width >= WIDE:
        titles = ("answer", "expected", "what was found", "again", "entry")
        return make_listing(console, titles, rows, whole=("answer", "again", "entry"))
    narrow = [
        (answer, f"{asked}\n{found}{'' if again == '-' else f'; again {again}'}", entry)
        for answer, asked, found, again, entry in rows
    ]
    return make_listing(console, ("answer", "expected, and what was found", "entry"), narrow, whole=("answer", "entry"))


ACTIONS = (
    Action("heartbeat", "Resolve what is due, run the checks that are due, and route orphans again.", _declare, _run),
)
