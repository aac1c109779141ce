"""`golden history [NAME]`: what the store knows of earlier runs, of all projects or of one. It reads; it runs nothing."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from rich.table import Table

from pytest_golden.cli.manifest_option import (
    add_json_option,
    add_manifest_option,
    locate_manifest,
    read_command_settings,
)
from pytest_golden.cli.screen import open_console, print_json, print_table, styled
from pytest_golden.cli.store_option import add_store_option, open_store
from pytest_golden.clock import iso_utc
from pytest_golden.errors import ManifestError, SettingsError
from pytest_golden.gate.history import flakiness, usual_duration
from pytest_golden.gate.store import list_projects, list_results
from pytest_golden.manifest import load_manifest
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.report.history_text import describe_streak, explain_signs, show_moment, sparkline, strip

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from pytest_golden.gate.past import PastResult
    from pytest_golden.storage.store import Store

_DEFAULT_LIMIT = 20
# Enough to tell a streak by, whatever few runs are to be shown.
_LEAST_READ = 10
_SHORT = 7
_STYLES = {
    ResultStatus.PASSED: "green",
    ResultStatus.FAILED: "bold red",
    ResultStatus.ERROR: "bold red",
    ResultStatus.SKIPPED: "yellow",
}
_EPILOG = """\
Without a NAME all projects are listed, one a line; with one, its runs, the newest first. Times are UTC.
Flakiness is the share of neighbouring results on one commit that differ.

exit code: 0 told, 2 bad input."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden history`."""
    parser.epilog = _EPILOG
    parser.add_argument("name", metavar="NAME", nargs="?", help="The golden project's name (default: all of them).")
    parser.add_argument(
        "--limit",
        metavar="N",
        default=str(_DEFAULT_LIMIT),
        help=f"How many runs to look at (default {_DEFAULT_LIMIT}).",
    )
    add_manifest_option(parser)
    add_store_option(parser)
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Tell the history."""
    limit = _read_limit(arguments.limit)
    declared = _list_declared(arguments)
    with open_store(arguments) as store:
        if arguments.name is None:
            histories = _read_all(store, declared, limit)
        else:
            histories = {arguments.name: _read_one(store, arguments.name, declared, limit)}
    if arguments.json:
        told = [_as_json(name, results, limit) for name, results in histories.items()]
        print_json({"projects": told} if arguments.name is None else told[0])
    elif arguments.name is None:
        _show_all(open_console(), histories, limit)
    else:
        _show_one(open_console(), arguments.name, histories[arguments.name], limit)
    return 0


def _read_limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 100_000:
        raise SettingsError(f"--limit {text} is no number of runs; give one from 1 to 100000")
    return int(text)


def _list_declared(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Give the declared names in their order; the past can be told without a manifest that is right, or any."""
    try:
        manifest = load_manifest(locate_manifest(read_command_settings(arguments)))
    except ManifestError:
        return ()
    return tuple(project.name for project in manifest.projects)


def _read_all(store: Store, declared: Sequence[str], limit: int) -> dict[str, tuple[PastResult, ...]]:
    with store.read() as connection:
        names = dict.fromkeys([*declared, *list_projects(connection)])
        return {name: list_results(connection, name, max(limit, _LEAST_READ)) for name in names}


def _read_one(store: Store, name: str, declared: Sequence[str], limit: int) -> tuple[PastResult, ...]:
    with store.read() as connection:
        results = list_results(connection, name, max(limit, _LEAST_READ))
        if not results and name not in declared:
            known = dict.fromkeys([*declared, *list_projects(connection)])
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "; `golden history` lists all"
            raise SettingsError(f"no golden project called {name!r} has a run in {store.where}{hint}")
    return results


def _as_json(name: str, results: Sequence[PastResult], limit: int) -> dict[str, Any]:
    shown = results[:limit]
    usual = usual_duration(shown)
    return {
        "name": name,
        "runs": [_run_as_json(result) for result in shown],
        "streak": describe_streak(results),
        "flakiness": flakiness(shown),
        "median_seconds": usual.median_seconds,
        "mad_seconds": usual.mad_seconds,
    }


def _run_as_json(result: PastResult) -> dict[str, Any]:
    plain = {name: getattr(result, name) for name in result.__slots__ if name != "project"}
    return {**plain, "status": result.status.value, "created_at": iso_utc(result.created_at)}


def _show_all(console: Console, histories: Mapping[str, tuple[PastResult, ...]], limit: int) -> None:
    if not histories:
        console.print(styled("no golden project has a run here yet: `pytest --golden` makes the first"))
        return
    is_unicode = _draws_unicode(console)
    table = _make_table("project", "runs, newest right", "last", "usual", "")
    for name, results in histories.items():
        last = results[0].status if results else None
        table.add_row(
            styled(name, "bold"),
            styled(strip(results[:limit], is_unicode=is_unicode)),
            styled(last or "-", _STYLES[last] if last else "dim"),
            styled(_show_usual(results[:limit])),
            styled(describe_streak(results) if results else "no run yet"),
        )
    print_table(console, table)
    console.print(styled(explain_signs(is_unicode=is_unicode), "dim"))


def _show_one(console: Console, name: str, results: Sequence[PastResult], limit: int) -> None:
    shown = results[:limit]
    if not shown:
        console.print(styled(f"{name} has no run yet: `pytest --golden -k {name}` makes the first"))
        return
    is_unicode = _draws_unicode(console)
    streak = describe_streak(results)
    console.print(styled(f"{name}: {streak}" if streak else name, "bold"))
    console.print(
        styled(f"runs       {strip(shown, is_unicode=is_unicode)}   ({explain_signs(is_unicode=is_unicode)})")
    )
    console.print(styled(f"durations  {sparkline(shown, is_unicode=is_unicode)}   ({_explain_usual(shown)})"))
    console.print(styled(f"flakiness  {_show_flakiness(shown)}"))
    print_table(console, _list_runs(shown))


def _list_runs(results: Sequence[PastResult]) -> Table:
    table = _make_table("when (UTC)", "status", "time", "commit", "tries", "reason")
    for result in results:
        reason = "" if result.message is None else next(iter(result.message.splitlines()), "")
        took = "-" if result.status is ResultStatus.SKIPPED else format_elapsed(result.execution_time_seconds)
        table.add_row(
            styled(show_moment(result.created_at)),
            styled(result.status, _STYLES[result.status]),
            styled(took),
            styled(_show_commit(result)),
            styled(result.attempts),
            styled(reason),
        )
    return table


def _make_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        is_number = column in {"time", "usual", "tries"}
        table.add_column(column, justify="right" if is_number else "left", no_wrap=column != "reason", overflow="fold")
    return table


def _show_commit(result: PastResult) -> str:
    edited = "+edits" if result.dirty else ""
    return "-" if result.commit is None else f"{result.commit[:_SHORT]}{edited}"


def _show_usual(results: Sequence[PastResult]) -> str:
    usual = usual_duration(results).median_seconds
    return "-" if usual is None else format_elapsed(usual)


def _explain_usual(results: Sequence[PastResult]) -> str:
    usual = usual_duration(results)
    if usual.median_seconds is None or usual.mad_seconds is None:
        return "no pass among them"
    if sum(result.status is ResultStatus.PASSED for result in results) == 1:
        return f"{format_elapsed(usual.median_seconds)} in the one pass"
    within = format_elapsed(usual.mad_seconds)
    return f"usually {format_elapsed(usual.median_seconds)}, half of the passes within {within} of it"


def _show_flakiness(results: Sequence[PastResult]) -> str:
    share = flakiness(results)
    if share is None:
        return "not known: no commit has two runs"
    told = f"{share:.0%} of neighbouring results on one commit differ"
    return f"{told}; some ran on edits that were not committed" if any(result.dirty for result in results) else told


def _draws_unicode(console: Console) -> bool:
    return console.encoding.lower().replace("-", "").startswith("utf") and not console.legacy_windows
