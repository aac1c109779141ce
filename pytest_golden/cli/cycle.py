"""`golden cycle`: run an improvement and a review as commands, and verify the result against the floor.

Both commands run with `sh -c` in a git worktree of HEAD, on a new branch golden/cycle-... The improvement is what the
first one changes or commits there. The second approves it with exit code 0 and rejects it with 1. Then the golden
projects run on it as the base declares them. Nothing is merged or reverted: the work stays on the branch.

The commands are not sealed. GOLDEN_CYCLE_TASK is the task. GOLDEN_CYCLE_DIFF is a file with everything proposed so far,
and GOLDEN_CYCLE_STATE one with the state of the cycle. GOLDEN_CYCLE_ID, GOLDEN_CYCLE_ROUND and GOLDEN_CYCLE_BASE are also set.

`golden cycle list` shows the recorded cycles, `golden cycle show [ID]` one of them: the reasons, the changes, and the next step for its branch.

exit code: 0 SUCCESS, 1 PARTIAL (flagged or rejected), 3 FAILURE, 2 bad input.
"""

from __future__ import annotations

import os
import sys
from shlex import quote
from typing import TYPE_CHECKING, Any

from pytest_golden.cli import options
from pytest_golden.cli.screen import answer, print_indented, print_listing, show_local, styled
from pytest_golden.cycle.model import CycleEventType, CycleVerdict, StepStatus
from pytest_golden.cycle.past_cycles import get_cycle, list_cycles
from pytest_golden.cycle.rules import FAILURE, SUCCESS, get_final_status
from pytest_golden.cycle.service import CommandCycle
from pytest_golden.errors import SettingsError
from pytest_golden.journal.service import Journal
from pytest_golden.report.result_text import make_visible, summarize_reasons

if TYPE_CHECKING:
    import argparse

    from rich.console import Console
    from rich.text import Text

    from pytest_golden.cycle.model import CycleEvent
    from pytest_golden.cycle.past_cycles import PastCycle
    from pytest_golden.cycle.service import CycleOutcome

_PARTIAL, _FAILED = 1, 3
_NEWEST = ""
_MOST_LISTED = 50
_HOOKS = (CycleVerdict.VERIFIED, CycleVerdict.FLAGGED)
_STYLES = {CycleVerdict.VERIFIED: "bold green", CycleVerdict.FLAGGED: "bold red", CycleVerdict.REJECTED: "bold yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden cycle`."""
    parser.add_argument(
        "action", metavar="ACTION", nargs="?", choices=["list", "show"], help="list or show recorded cycles."
    )
    parser.add_argument("cycle", metavar="ID", nargs="?", help="The cycle to show (default: the newest).")
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
    for verdict in _HOOKS:
        parser.add_argument(
            f"--on-{verdict}",
            metavar="CMD",
            help=f"A command to run in the checkout when a cycle is {verdict}; GOLDEN_CYCLE_STATE is its outcome.",
        )
    options.add_gate_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the cycle, and show its result."""
    if arguments.action is not None:
        return _show_past(arguments)
    settings = options.read_command_settings(arguments)
    for name in ("improve", "review", "task", *(f"on_{verdict}" for verdict in _HOOKS)):
        given = getattr(arguments, name)
        if given is not None and not given.strip():
            raise SettingsError(f"--{name.replace('_', '-')} is empty")
    cycle = CommandCycle(
        manifest=options.locate_manifest(settings),
        improve=arguments.improve,
        review=arguments.review,
        hooks={verdict: given for verdict in _HOOKS if (given := getattr(arguments, f"on_{verdict}")) is not None},
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


def _show_past(arguments: argparse.Namespace) -> int:
    checkout = options.find_root(options.find_manifest(arguments))
    with options.open_store(arguments) as store:
        journal = Journal(store)
        if arguments.action == "list":
            if arguments.cycle is not None:
                raise SettingsError(f"list takes no {arguments.cycle!r:.100}; write: golden cycle show ID")
            cycles = list_cycles(journal, checkout, limit=_MOST_LISTED)
            facts = {"cycles": [one.to_dict() for one in cycles]}
            return answer(arguments, facts, lambda console: _list(console, cycles))
        found = get_cycle(journal, checkout, arguments.cycle)
    return answer(arguments, found.to_dict(), lambda console: _show_one(console, found.cycle, found.changes))


def _list(console: Console, cycles: tuple[PastCycle, ...]) -> None:
    if not cycles:
        console.print(styled("no cycle has been recorded"))
        return
    rows = [
        (
            _style_verdict(one.verdict or "not ended", one),
            show_local(one.started_at),
            one.task,
            _describe_branch(one),
        )
        for one in cycles
    ]
    print_listing(console, ("verdict", "began", "task", "branch"), rows, whole=("verdict", "began"))


def _describe_branch(cycle: PastCycle) -> str:
    if cycle.reverted_by is not None:
        return f"reverted by {cycle.reverted_by}"
    return "-" if cycle.branch_state == "gone" else f"{cycle.branch} ({cycle.branch_state})"


def _style_verdict(text: str, cycle: PastCycle) -> Text:
    # A journal that was brought in may hold any word.
    style = next((style for verdict, style in _STYLES.items() if verdict == cycle.verdict), "bold")
    return styled(text, style)


def _show_one(console: Console, cycle: PastCycle, changes: str) -> None:
    console.print(styled(cycle.task, "bold"))
    console.print(_style_verdict(cycle.result or "it has not ended", cycle))
    ended = "" if cycle.ended_at is None else f", ended {show_local(cycle.ended_at)}"
    cost = "" if cycle.cost_usd is None else f", cost ${cycle.cost_usd:.2f}"
    console.print(
        styled(f"{cycle.cycle_id}: began {show_local(cycle.started_at)}{ended}{cost}; entry {cycle.entry_id}")
    )
    if cycle.reverted_by is not None:
        console.print(styled(f"it was reverted by {cycle.reverted_by}", "bold red"))
    if cycle.why and cycle.verdict != CycleVerdict.VERIFIED:
        print_indented(console, cycle.why, 2)
    for step in (one for one in cycle.steps if one.get("status") != StepStatus.SKIPPED):
        took = f" ({step['seconds']:.1f} s)" if isinstance(step.get("seconds"), int | float) else ""
        reason = f": {step['reason']}" if step.get("reason") else ""
        run = f" (gate run {step['run_id']})" if step.get("run_id") else ""
        print_indented(console, f"{step.get('step')} {step.get('status')}{took}{reason}{run}", 2)
    for title, lines in (
        ("golden projects", cycle.projects),
        ("weakened floor", [str(one.get("message", one)) for one in cycle.weakened_floor]),
        ("warnings", cycle.warnings),
        ("changed", changes.splitlines()),
    ):
        if lines:
            console.print(styled(title, "bold"))
            for line in lines:
                print_indented(console, line, 2)
    _show_branch(console, cycle)


def _show_branch(console: Console, cycle: PastCycle) -> None:
    if cycle.merge is not None:
        console.print(styled(f"its merge is {cycle.merge}"))
    if cycle.branch_state == "gone":
        console.print(styled(f"its branch {cycle.branch} is not here"))
        return
    console.print(styled(f"its branch {cycle.branch} ({str(cycle.commit)[:12]}) is {cycle.branch_state}"))
    if cycle.branch_state == "open":
        console.print(styled(f"  git diff {quote(f'HEAD...{cycle.branch}')}", "dim"))
        if cycle.verdict == CycleVerdict.VERIFIED:
            console.print(styled(f"  git merge {quote(cycle.branch)}", "dim"))


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
    resumed = f": resume it with `golden cycle --resume {state.cycle_id}`" if state.interrupted else ""
    console.print(styled(f"cycle {state.cycle_id}{resumed}"))
