"""`golden cycle`: run an improvement and a review as commands, and verify the result against the floor.

Both commands run with `sh -c` in a git worktree of HEAD, on a new branch golden/cycle-... The improvement is what the
first one changes or commits there. The second approves it with exit code 0 and rejects it with 1. Then the golden
projects run on it as the base declares them. Nothing is merged or reverted: the work stays on the branch.

The commands are not sealed. GOLDEN_CYCLE_TASK is the task. GOLDEN_CYCLE_DIFF is a file with everything proposed so far,
and GOLDEN_CYCLE_STATE one with the state of the cycle. GOLDEN_CYCLE_ID, GOLDEN_CYCLE_ROUND and GOLDEN_CYCLE_BASE are also set.

exit code: 0 SUCCESS, 1 PARTIAL (flagged or rejected), 3 FAILURE, 2 bad input.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from pytest_golden.cli import options
from pytest_golden.cli.screen import answer, print_indented, styled
from pytest_golden.cycle.model import CycleEventType, CycleVerdict
from pytest_golden.cycle.rules import FAILURE, SUCCESS, get_final_status
from pytest_golden.cycle.service import CommandCycle
from pytest_golden.errors import SettingsError
from pytest_golden.report.result_text import make_visible, summarize_reasons

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from pytest_golden.cycle.model import CycleEvent
    from pytest_golden.cycle.service import CycleOutcome

_PARTIAL, _FAILED = 1, 3
_NEWEST = ""
_STYLES = {CycleVerdict.VERIFIED: "bold green", CycleVerdict.FLAGGED: "bold red", CycleVerdict.REJECTED: "bold yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden cycle`."""
    parser.add_argument("--improve", metavar="CMD", help="The command that makes the improvement in its folder.")
    parser.add_argument("--review", metavar="CMD", help="The command that approves (exit code 0) or rejects (1).")
    parser.add_argument("--task", metavar="TEXT", help="What is to be done, for the commands and the journal.")
    parser.add_argument(
        "--max-improvements", metavar="N", type=int, help="The most improvements to propose (default 3)."
    )
    parser.add_argument("--max-hours", metavar="H", type=float, help="The time limit in hours (default 8).")
    parser.add_argument(
        "--require-golden-projects", action="store_true", help="Do not begin if the base declares none."
    )
    parser.add_argument(
        "--resume",
        metavar="ID",
        nargs="?",
        const=_NEWEST,
        help="Continue a cycle that was interrupted or killed (default: the newest one).",
    )
    options.add_gate_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the cycle, and show its result."""
    settings = options.read_command_settings(arguments)
    for name in ("improve", "review", "task"):
        given = getattr(arguments, name)
        if given is not None and not given.strip():
            raise SettingsError(f"--{name} is empty")
    cycle = CommandCycle(
        manifest=options.locate_manifest(settings),
        improve=arguments.improve,
        review=arguments.review,
        limits=_read_limits(arguments),
        store=settings.store,
        environment=dict(os.environ),
        say=options.say,
        show=_show_line,
        on_event=_tell,
    )
    with options.raise_when_ended():
        found = cycle.run() if arguments.resume is None else cycle.resume(arguments.resume or None)
    answer(arguments, found.to_dict(), lambda console: _show(console, found))
    final = get_final_status(found.state)
    return _FAILED if final == FAILURE else 0 if final == SUCCESS else _PARTIAL


def _read_limits(arguments: argparse.Namespace) -> dict[str, Any]:
    limits = {
        "task_description": arguments.task,
        "max_improvements": arguments.max_improvements,
        "max_runtime_hours": arguments.max_hours,
        "require_golden_projects": arguments.require_golden_projects or None,
    }
    return {name: value for name, value in limits.items() if value is not None}


def _tell(event: CycleEvent) -> None:
    if event.event_type is CycleEventType.STEP_STARTED:
        return
    kinds = {CycleEventType.STARTED: "cycle: ", CycleEventType.FINISHED: "cycle: ", CycleEventType.WARNING: "WARNING: "}
    options.say(f"{kinds.get(event.event_type, '')}{event.message}")


def _show_line(line: str) -> None:
    print(make_visible(line), file=sys.stderr, flush=True)


def _show(console: Console, found: CycleOutcome) -> None:
    state, verdict = found.state, found.state.verdict
    console.print(styled(f"{get_final_status(state)}, verdict {verdict}", _STYLES.get(verdict, "bold")))
    for result in () if state.regression_check is None else state.regression_check.results:
        told = f": {summarize_reasons(result)}" if result.reasons else ""
        print_indented(console, f"{result.status} {result.name}{told}", 2)
    if state.weakened_floor:
        console.print(styled("weakened floor", "bold red"))
        for one in state.weakened_floor:
            named = f"{one['project']}: " if one.get("project") else ""
            print_indented(console, f"{named}{one['message']}", 2)
    if found.branch is not None:
        console.print(styled(f"the work is on branch {found.branch} ({str(found.commit)[:12]}); nothing was merged"))
    resumed = f": take it up by `golden cycle --resume {state.cycle_id}`" if state.interrupted else ""
    console.print(styled(f"cycle {state.cycle_id}{resumed}"))
