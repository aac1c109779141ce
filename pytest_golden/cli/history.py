"""`golden history [NAME]`: show what the store knows about earlier runs, of all projects or of one. It runs nothing.

Without a NAME, all projects are listed, one per line. With a NAME, its runs are listed, newest first. Times are UTC.
Flakiness is the share of consecutive results on one commit, without edits, that differ.

exit code: 0 done, 2 bad input.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_golden.cli import options
from pytest_golden.cli.screen import STATUS_STYLES, answer, make_table, print_table, style_of, styled
from pytest_golden.errors import ManifestError, SettingsError
from pytest_golden.history.past_store import list_projects
from pytest_golden.history.recorded_model import ProjectHistory, ProjectTrend
from pytest_golden.history.recorded_store import list_runs, read_history, read_trend
from pytest_golden.history.trends import count_retried, flakiness, usual_duration
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.slowdown import explain_unjudged, show_seconds
from pytest_golden.report.history_text import explain_signs, plot_durations, show_moment, sparkline, strip

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text
    from sqlalchemy import Connection

    from pytest_golden.history.changes import PastResult
    from pytest_golden.history.recorded_model import ListedRun
    from pytest_golden.manifest.model import GoldenProjectConfig

_DEFAULT_LIMIT = 20
_HEADERS = ("project", "runs, newest right", "last", "usual", "")
_SHORT_HEADER = "runs"
# Fewer signs tell too little: leave out the other columns instead.
_LEAST_SIGNS = 10
_GAP = 2
_MOST_RUNS = 100_000
_SHORT = 7
# In a pipe there is no width; a screen's is enough for what fits there.
_WIDEST_PLOT = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden history`."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="The golden project's name (default: all of them).")
    parser.add_argument("--slowest", action="store_true", help="List the projects that usually take longest first.")
    options.add_limit_option(parser, _DEFAULT_LIMIT, "The most runs to show")
    options.add_options(parser, "--manifest", "--store", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Show the history."""
    limit = options.read_limit(arguments.limit, _MOST_RUNS)
    if arguments.slowest and arguments.name is not None:
        raise SettingsError("--slowest orders the list of all projects: give it without a NAME")
    declared = _find_declared(arguments)
    with options.open_store(arguments) as store, store.read() as connection:
        if arguments.name is not None:
            one = _read_one(connection, arguments.name, declared, limit, store.where)
            return answer(arguments, one.to_dict, lambda console: _show_one(console, one))
        histories = [read_history(connection, name, limit) for name in [*declared, *_list_gone(connection, declared)]]
        last = next((run for _, run in list_runs(connection, before=None, limit=1, own_only=True)), None)
    if arguments.slowest:
        histories.sort(key=lambda history: -(usual_duration(history.runs).median_seconds or 0.0))
    newest = None if last is None else last.to_dict()
    facts = {"last_run": newest, "projects": [history.to_dict() for history in histories]}
    return answer(arguments, facts, lambda console: _show_all(console, histories, declared, last))


def _find_declared(arguments: argparse.Namespace) -> dict[str, GoldenProjectConfig]:
    """Return the declared projects in their order; none if the manifest is missing or wrong, which history does not need."""
    try:
        manifest = load_manifest(options.find_manifest(arguments))
    except ManifestError:
        return {}
    return {project.name: project for project in manifest.projects}


def _list_gone(connection: Connection, declared: Collection[str]) -> list[str]:
    return [name for name in list_projects(connection) if name not in declared]


def _read_one(
    connection: Connection, name: str, declared: Mapping[str, GoldenProjectConfig], limit: int, where: str
) -> ProjectHistory:
    history = read_history(connection, name, limit)
    if not history.runs and name not in declared:
        hint = options.suggest_name(name, [*declared, *_list_gone(connection, declared)])
        raise SettingsError(f"no golden project called {name!r} has a run in {where}; {hint}")
    return replace(history, trend=read_trend(connection, name, declared.get(name)))


def _show_all(
    console: Console, histories: Sequence[ProjectHistory], declared: Collection[str], newest: ListedRun | None
) -> None:
    if not histories:
        console.print(styled("no golden project has a run here yet: `pytest --golden` makes the first"))
        return
    is_unicode = _draws_unicode(console)
    rows = []
    for history in histories:
        name, shown = history.name, history.runs
        last = shown[0].status if shown else None
        told = [history.streak if shown else "no run yet"]
        told += ["(no longer declared)"] if declared and name not in declared else []
        row = (
            styled(name, "bold"),
            styled(strip(shown, is_unicode=is_unicode)),
            styled(last or "-", STATUS_STYLES[last] if last else "dim"),
            styled(_show_usual(shown)),
            styled(" ".join(filter(None, told))),
        )
        rows.append(row)
    print_table(console, _fit(rows, console.width))
    console.print(styled(explain_signs(is_unicode=is_unicode), "dim"))
    if newest is not None:
        sentence = f"last run ({show_moment(newest.started_at)}): {newest.verdict.sentence}"
        console.print(styled(sentence, style_of(newest.verdict)))


def _fit(rows: Sequence[tuple[Text, Text, Text, Text, Text]], width: int) -> Table:
    """Fit the table to the width: leave out the oldest runs first, then the durations, then the ends of the sentences."""
    widths = [
        max(len(header), *(part.cell_len for part in column))
        for header, column in zip(_HEADERS, zip(*rows, strict=True), strict=True)
    ]
    name, runs, last, usual, told = widths
    room = width - name - last - told - 4 * _GAP - usual
    has_usual = room >= _LEAST_SIGNS
    room += 0 if has_usual else usual + _GAP
    runs = min(runs, max(room, _LEAST_SIGNS))
    told = max(0, told + min(0, room - _LEAST_SIGNS))
    headers = [_HEADERS[0], _HEADERS[1] if runs >= len(_HEADERS[1]) else _SHORT_HEADER, *_HEADERS[2:]]
    table = _make_table(*(header for header in headers if has_usual or header != "usual"))
    for shown, signs, status, duration, sentence in rows:
        durations = [duration] if has_usual else []
        table.add_row(shown, signs[-runs:], status, *durations, _shorten(sentence, told))
    return table


def _shorten(told: Text, width: int) -> Text:
    if told.cell_len <= width:
        return told
    return styled(f"{told.plain[: width - 3].rstrip()}..." if width > 3 else "")


def _show_one(console: Console, history: ProjectHistory) -> None:
    name, shown, trend = history.name, history.runs, history.trend or ProjectTrend(None, None)
    if not shown:
        console.print(styled(f"{name} has no run yet: `pytest --golden -k {name}` makes the first"))
        return
    is_unicode = _draws_unicode(console)
    console.print(styled(f"{name}: {history.streak}" if history.streak else name, "bold"))
    console.print(
        styled(f"runs       {strip(shown, is_unicode=is_unicode)}   ({explain_signs(is_unicode=is_unicode)})")
    )
    console.print(styled(f"durations  {sparkline(shown, is_unicode=is_unicode)}   ({_explain_usual(shown)})"))
    console.print(styled(f"flakiness  {_show_flakiness(shown)}"))
    if trend.max_slowdown is not None:
        console.print(styled(f"limit      {_explain_limit(trend)}"))
    for line in _plot(console, shown, trend, is_unicode=is_unicode):
        console.print(styled(line))
    print_table(console, _list_runs(shown))


def _plot(console: Console, shown: Sequence[PastResult], trend: ProjectTrend, *, is_unicode: bool) -> tuple[str, ...]:
    seconds = [result.execution_time_seconds if result.counts else None for result in reversed(shown)]
    return plot_durations(
        seconds,
        min(console.width, _WIDEST_PLOT),
        median=usual_duration(shown).median_seconds,
        limit=trend.limit_seconds,
        is_unicode=is_unicode,
    )


def _explain_limit(trend: ProjectTrend) -> str:
    unjudged = explain_unjudged(trend.durations)
    if unjudged is not None or trend.durations is None or trend.limit_seconds is None:
        return str(unjudged)
    usual, factor = trend.durations, f"{trend.max_slowdown:g}"
    figures = f"median {show_seconds(usual.median_seconds)} and MAD {show_seconds(usual.mad_seconds)}"
    told = f"{figures} of its last {usual.pass_count} passes in one environment"
    return f"{show_seconds(trend.limit_seconds)} (max_slowdown {factor}; {told})"


def _list_runs(results: Sequence[PastResult]) -> Table:
    table = _make_table("when (UTC)", "status", "time", "commit", "tries", "reason")
    for result in results:
        reason = "" if result.message is None else next(iter(result.message.splitlines()), "")
        took = show_seconds(result.execution_time_seconds) if result.counts else "-"
        table.add_row(
            styled(show_moment(result.created_at)),
            styled(result.status, STATUS_STYLES[result.status]),
            styled(took),
            styled(_show_commit(result)),
            styled(result.attempts),
            styled(reason),
        )
    return table


def _make_table(*columns: str) -> Table:
    table = make_table(*columns, right=["time", "usual", "tries"])
    for column in table.columns:
        column.no_wrap = column.header not in {"project", "reason"}
    return table


def _show_commit(result: PastResult) -> str:
    edited = "+edits" if result.dirty else ""
    return "-" if result.commit is None else f"{result.commit[:_SHORT]}{edited}"


def _show_usual(results: Sequence[PastResult]) -> str:
    usual = usual_duration(results).median_seconds
    return "-" if usual is None else show_seconds(usual)


def _explain_usual(results: Sequence[PastResult]) -> str:
    usual = usual_duration(results)
    if usual.median_seconds is None or usual.mad_seconds is None:
        return "no pass among them"
    if sum(result.status is ResultStatus.PASSED for result in results) == 1:
        return f"{show_seconds(usual.median_seconds)} in the one pass"
    within = show_seconds(usual.mad_seconds)
    return f"usually {show_seconds(usual.median_seconds)}, half of the passes within {within} of it"


def _show_flakiness(results: Sequence[PastResult]) -> str:
    share = flakiness(results)
    told = "not known: no commit has two runs without edits"
    if share is not None:
        told = f"{share:.0%} of consecutive results on one commit differ"
    ran, retried = sum(result.counts for result in results), count_retried(results)
    return f"{told}; passed only after a retry in {retried} of {ran} runs" if retried else told


def _draws_unicode(console: Console) -> bool:
    return console.encoding.lower().replace("-", "").startswith("utf") and not console.legacy_windows
