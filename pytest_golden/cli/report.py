"""`golden report [ENTRY]`: a recorded gate run as text, as one HTML page, or as the gate report. It runs nothing.

ENTRY is the journal entry of a gate run or of one of its results, or the beginning of a run's id. With --html FILE the
run is written as one page that needs no network, with --json its gate report is printed. A failure includes what was
known when it happened, and the lessons learned since.

With --since WHEN (1d, 7d, a time) it is the report of that period: gate runs, agents, failures and why, what waits. With --html FILE that
is a page to mail.

With --notify a message is posted to a webhook (Slack and compatible) if the last run is the first red one after green, the first green one after red, or
flaky; env GOLDEN_NOTIFY_URL is its address, which is a secret.

exit code: 0 done, whatever the run's verdict, 2 bad input.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.options import add_options, find_manifest, open_store, read_command_settings, read_moment
from pytest_golden.cli.screen import (
    STATUS_STYLES,
    answer,
    print_indented,
    print_listing,
    show_local,
    style_of,
    styled,
)
from pytest_golden.clock import utc_now
from pytest_golden.errors import ManifestError, SettingsError
from pytest_golden.history.recorded_store import read_run
from pytest_golden.journal.service import Journal
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.report.gate_report import gate_report
from pytest_golden.report.html_page import ShownRun, describe_place, html_report
from pytest_golden.report.report_files import write_report
from pytest_golden.report.result_text import explain_failure, short_reason

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping

    from rich.console import Console

    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.report.period import PeriodReport
    from pytest_golden.storage.store import Store

_MOST_FAILURES = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden report`."""
    parser.add_argument("entry", metavar="ENTRY", nargs="?", help="The gate run (default: the last one).")
    parser.add_argument("--html", metavar="FILE", type=Path, help="Write the run as one HTML page.")
    parser.add_argument(
        "--notify",
        action="store_true",
        help="Post a message to GOLDEN_NOTIFY_URL if the gate changed with the last run.",
    )
    parser.add_argument("--link", metavar="URL", help="Where a reader of that message reads more.")
    parser.add_argument(
        "--since", metavar="WHEN", help="Report a period instead of a run: since then, such as 1d or 7d."
    )
    add_options(parser, "--manifest", "--store", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Show the run, or write it as a page."""
    if arguments.notify:
        return _notify(arguments)
    if arguments.since is not None:
        return _report_period(arguments)
    report = _read_report(arguments)
    if arguments.html is not None:
        write_report(arguments.html, html_report(report), option="--html")
        return answer(arguments, report, f"wrote {arguments.html}")
    return answer(arguments, report, lambda console: _show(console, ShownRun.read(report)))


def _notify(arguments: argparse.Namespace) -> int:
    # Here, since only this needs the network.
    from pytest_golden.report.notification import VARIABLE, find_change, post_change

    url = os.environ.get(VARIABLE)
    if not url:
        raise SettingsError(f"--notify posts to the address in {VARIABLE}, which is not set")
    with open_store(arguments) as store:
        change = find_change(store, link=arguments.link)
    if change is not None:
        post_change(url, change)
    facts = {"change": None if change is None else change.to_dict()}
    return answer(
        arguments, facts, "nothing has changed: nothing is posted" if change is None else f"posted: {change.text}"
    )


def _report_period(arguments: argparse.Namespace) -> int:
    from pytest_golden.report.period import period_html, sum_up_period

    if arguments.entry is not None:
        raise SettingsError("a period and a run are two reports; leave out --since or ENTRY")
    since, manifest = read_moment("--since", arguments.since), None
    with suppress(ManifestError):
        manifest = load_manifest(find_manifest(arguments))
    with open_store(arguments) as store:
        found = sum_up_period(store, Journal(store), manifest, since, utc_now())
    if arguments.html is not None:
        write_report(arguments.html, period_html(found), option="--html")
        return answer(arguments, found.to_dict(), f"wrote {arguments.html}")
    return answer(arguments, found.to_dict(), lambda console: _show_period(console, found))


def _show_period(console: Console, report: PeriodReport) -> None:
    from pytest_golden.report.period import describe_gates, describe_waiting

    console.print(styled(f"since {show_local(report.since)}", "bold"))
    style = "" if report.is_red is None else "bold red" if report.is_red else "green"
    console.print(styled(describe_gates(report), style))
    for one in report.agents:
        rate = "nothing assessed" if one.success_rate is None else f"{one.success_rate:.0%} of {one.assessed} succeeded"
        print_indented(console, f"{one.agent}: {rate}, {one.open} open, {one.expired} expired", 2)
    if report.failures:
        console.print(styled(f"failures ({report.failure_count})", "bold"))
    for failure in report.failures:
        print_indented(console, f"{show_local(failure.at)}  {failure.agent}: {failure.intent}", 2)
        if failure.why:
            print_indented(console, failure.why, 4)
    console.print(styled(f"waiting: {describe_waiting(report)}; see: golden inbox"))


def _read_report(arguments: argparse.Namespace) -> dict[str, Any]:
    with open_store(arguments) as store:
        with store.read() as connection:
            recorded = read_run(connection, arguments.entry)
        if recorded is None:
            told = "no gate run" if arguments.entry is None else f"no single gate run for {arguments.entry!r}"
            raise SettingsError(
                f"{told} is recorded in {store.where}; `golden journal review` lists the newest entries"
            )
        check = recorded.check
        if read_command_settings(arguments).learning != "off":
            check = RegressionCheckResult(tuple(_with_lessons(store, check.results)))
    return gate_report(check, verdict=recorded.verdict, gate=recorded.gate, weakened_floor=recorded.weakened_floor)


def _with_lessons(store: Store, results: Iterable[GoldenProjectResult]) -> Iterator[GoldenProjectResult]:
    from pytest_golden.gate.known import find_known_lessons

    left = _MOST_FAILURES
    for result in results:
        if not result.is_regression or not left:
            yield result
            continue
        left -= 1
        told = {_name_lesson(one) for one in result.known}
        found = find_known_lessons(store, result, "", keeps=False)
        yield replace(result, known=(*result.known, *(one for one in found if _name_lesson(one) not in told)))


def _name_lesson(known: Mapping[str, Any]) -> Any:
    lesson = known.get("lesson")
    return lesson.get("id") if isinstance(lesson, dict) else None


def _show(console: Console, shown: ShownRun) -> None:
    verdict = shown.verdict
    console.print(styled(verdict.heading, style_of(verdict)))
    if verdict.count:
        console.print(styled(verdict.count))
    console.print(styled(f"{shown.gate['entry_id']}, {describe_place(shown.gate)}", "dim"))
    rows = [
        (
            styled(result.status, STATUS_STYLES[result.status]),
            result.name,
            "-" if result.status is ResultStatus.SKIPPED else format_elapsed(result.execution_time_seconds),
            "" if result.name in shown.failing else short_reason(result),
        )
        for result in shown.check.results
    ]
    print_listing(console, ("status", "project", "time", "reason"), rows, right=["time"])
    for weakening in shown.weakened_floor:
        name = weakening.get("project") or "the manifest"
        console.print(
            styled(f"weakened floor: {name}: {weakening.get('message')}", "red" if verdict.is_floor_bad else "")
        )
    for title, key in (("not run", "not_run"), ("deselected", "deselected")):
        if names := shown.list_names(key):
            console.print(styled(f"{title}: {', '.join(names)}", "yellow"))
    failures = [result for result in shown.check.results if result.name in shown.failing]
    for result in failures[:_MOST_FAILURES]:
        console.print(styled(f"\n{result.name}", "bold"))
        console.print(styled(explain_failure(result, shell_command=None)))
    if len(failures) > _MOST_FAILURES:
        console.print(styled(f"\nand {len(failures) - _MOST_FAILURES} more failures: --html and --json have them"))
