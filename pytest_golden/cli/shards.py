"""`golden shards plan`: divide the projects of a manifest into shards that take about the same time. It runs nothing.

Durations are the medians of the last recorded passes; a project without one counts as the median of the others.
Projects that need each other stay together. Run each shard with `pytest --golden --golden-shard I/N`, all with the same
plan, and merge their stores with `golden merge`.

exit code: 0 planned, 2 bad input.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli import options
from pytest_golden.cli.options import Action
from pytest_golden.cli.screen import answer, print_list, styled
from pytest_golden.gate.run_record import open_existing
from pytest_golden.gate.state_folder import find_state_folder, find_store_place
from pytest_golden.history.past_store import read_medians
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.wording import count_of, format_elapsed
from pytest_golden.report.report_files import write_report
from pytest_golden.verify.shard_plan import MOST_SHARDS, PLAN_NAME, ShardPlan, complete_plan, total_seconds, write_plan

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from pytest_golden.manifest.model import Manifest
    from pytest_golden.settings import GoldenSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `golden shards`."""
    options.add_actions(parser, [Action("plan", _plan, _declare_plan)], "--store", "--manifest", "--json")


run = options.run_action


def _declare_plan(plan: argparse.ArgumentParser) -> None:
    plan.add_argument("--shards", metavar="N", required=True, help=f"The number of shards, from 1 to {MOST_SHARDS}.")
    plan.add_argument("--output", metavar="FILE", help=f"The file to write (default: {PLAN_NAME} beside the manifest).")


def _plan(arguments: argparse.Namespace) -> int:
    """Write a plan of the projects in each shard, balanced by recorded durations."""
    count = options.read_limit(arguments.shards, MOST_SHARDS, "--shards")
    settings = options.read_command_settings(arguments)
    path = options.locate_manifest(settings)
    manifest = load_manifest(path)
    seconds = _read_seconds(arguments, settings, manifest)
    plan = complete_plan(manifest.projects, ShardPlan(count, seconds=seconds))
    output = Path(arguments.output) if arguments.output else path.parent / PLAN_NAME
    write_report(output, write_plan(plan), option="--output")
    facts = {"file": str(output), **_describe(plan)}
    return answer(arguments, facts, lambda console: _show(console, plan, output))


def _read_seconds(arguments: argparse.Namespace, settings: GoldenSettings, manifest: Manifest) -> dict[str, float]:
    """Read how long the projects usually take; a store that was not named need not exist."""
    names = [project.name for project in manifest.projects]
    if arguments.store is not None:
        with options.open_store(arguments) as store, store.read() as connection:
            return read_medians(connection, names)
    place = find_store_place(settings.store, find_state_folder(manifest.workspace_root))
    with open_existing(place) as found:
        if found is None:
            return {}
        with found.read() as connection:
            return read_medians(connection, names)


def _describe(plan: ShardPlan) -> dict[str, object]:
    totals = total_seconds(plan)
    shards = [
        {
            "shard": f"{number}/{plan.count}",
            "projects": [name for name, shard in plan.shards.items() if shard == number],
            "seconds": round(total, 3),
        }
        for number, total in enumerate(totals, 1)
    ]
    return {"shards": shards, "projects": len(plan.shards), "without_duration": _count_unknown(plan)}


def _count_unknown(plan: ShardPlan) -> int:
    return len(plan.shards) - len(plan.seconds)


def _show(console: Console, plan: ShardPlan, output: Path) -> None:
    projects, shards = count_of(len(plan.shards), "project"), count_of(plan.count, "shard")
    console.print(styled(f"{projects} in {shards}, written to {output}", "bold"))
    counts = [list(plan.shards.values()).count(number) for number in range(1, plan.count + 1)]
    totals = total_seconds(plan)
    rows = [
        (f"{number}/{plan.count}", f"{count:>5} project{' ' if count == 1 else 's'}  about {format_elapsed(total)}")
        for number, (count, total) in enumerate(zip(counts, totals, strict=True), 1)
    ]
    print_list(console, rows if plan.seconds else [(name, told.partition("  about")[0]) for name, told in rows])
    unknown = _count_unknown(plan)
    if not plan.seconds:
        console.print("none of them has a recorded duration")
    elif unknown:
        console.print(f"{unknown} of them have no recorded pass, and count as the median of the others")
