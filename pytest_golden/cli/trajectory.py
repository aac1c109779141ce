"""`golden trajectory`: looks into the trajectory of one run, in the store or in a file. It changes nothing.

However long a trajectory is, no more of it is shown than `--limit` allows; a file is read step by step.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.action import Action, add_actions
from pytest_golden.cli.limit_option import add_limit_option, read_limit
from pytest_golden.cli.manifest_option import add_json_option, add_manifest_option
from pytest_golden.cli.screen import open_console, print_json, print_list, styled
from pytest_golden.cli.store_option import add_store_option
from pytest_golden.cli.trajectory_lines import describe_source, print_step, show_duration
from pytest_golden.cli.trajectory_source import find_pair, find_source
from pytest_golden.errors import SettingsError
from pytest_golden.trajectory.difference import diff_trajectories
from pytest_golden.trajectory.jsonlines import dump_lines, write_trajectory
from pytest_golden.trajectory.query_text import parse_query
from pytest_golden.trajectory.statistics import summarize_steps
from pytest_golden.trajectory.tree import grow_tree

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from pytest_golden.cli.trajectory_source import Source
    from pytest_golden.trajectory.step import Step

_DEFAULT_LIMIT, _MOST = 50, 100_000
_EPILOG = """\
RUN is a golden project's name (its newest run), the id of a trajectory or of
its journal entry or the beginning of one that is the only such, or a file of
JSON Lines that a recorder wrote. Times are UTC.

exit code: 0 told, 2 bad input."""
_QUERY_HELP = """\
fields      type importance content text error duration_ms timestamp under
            metadata.PATH
operators   = != < <= > >= ~ (the text is in it, upper and lower case alike)
joined by   a blank for and, or, not, ( )

such as     type=tool_call importance>=high error~"timeout"
            duration_ms>=1000 or metadata.rows=0

"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `golden trajectory`."""
    for action, declared in add_actions(parser, ACTIONS.values(), _EPILOG):
        declared.add_argument("run", metavar="RUN", help="Which run; see below.")
        action.declare(declared)
        add_manifest_option(declared)
        add_store_option(declared)
        add_json_option(declared)


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked."""
    return ACTIONS[arguments.action].run(arguments)


def _declare_limit(parser: argparse.ArgumentParser) -> None:
    add_limit_option(parser, _DEFAULT_LIMIT, "How many steps to show at most")


def _show(arguments: argparse.Namespace) -> int:
    limit = read_limit(arguments.limit, _MOST)
    source = find_source(arguments, arguments.run)
    numbered, readable = _ends(source.iter_steps(), limit)
    if arguments.json:
        left_out = max(0, source.total_steps - len(numbered))
        print_json({**_outline(source), "left_out": left_out, "steps": [step.to_dict() for _, step in numbered]})
        return 0
    console = open_console()
    for line in describe_source(source):
        console.print(line)
    last = 0
    for number, step in numbered:
        _tell_gap(console, number - last - 1)
        print_step(console, step, number, source.outline.started_at)
        last = number
    _tell_gap(console, readable - last)
    _tell_unreadable(console, source.total_steps - readable)
    return 0


def _tell_gap(console: Console, left_out: int) -> None:
    if left_out > 0:
        told = f"{left_out:,} more step{'' if left_out == 1 else 's'}"
        console.print(styled(f"      ... {told}; --limit shows more ...", "dim"))


def _tell_unreadable(console: Console, lost: int) -> None:
    if lost > 0:
        console.print(styled(f"lost: {lost:,} step{'' if lost == 1 else 's'} of the file cannot be read", "yellow"))


def _ends(steps: Iterator[Step], limit: int) -> tuple[list[tuple[int, Step]], int]:
    """Give the first and the last steps with their numbers, so many in all, and how many there are."""
    numbered = enumerate(steps, start=1)
    first = list(islice(numbered, limit - limit // 3))
    last = deque(numbered, maxlen=max(1, limit // 3))
    readable = last[-1][0] if last else len(first)
    return [*first, *(last if limit // 3 else ())], readable


def _tree(arguments: argparse.Namespace) -> int:
    limit = read_limit(arguments.limit, _MOST)
    source = find_source(arguments, arguments.run)
    rest = source.iter_steps()
    steps = list(islice(rest, limit))
    numbers = {step.id: number for number, step in enumerate(steps, start=1)}
    placed = [(depth, node.step) for root in grow_tree(steps) for depth, node in root.walk()]
    left_out = max(0, source.total_steps - len(steps))
    if arguments.json:
        nodes = [{"depth": depth, **step.to_dict()} for depth, step in placed]
        print_json({**_outline(source), "left_out": left_out, "tree": nodes})
        return 0
    console = open_console()
    for line in describe_source(source):
        console.print(line)
    for depth, step in placed:
        print_step(console, step, numbers[step.id], source.outline.started_at, depth=depth)
    unseen = sum(1 for _ in rest)
    _tell_gap(console, unseen)
    _tell_unreadable(console, left_out - unseen)
    return 0


def _declare_other(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "other",
        metavar="OTHER",
        nargs="?",
        help="The run to compare RUN with; without one, RUN is compared with its project's last success before it.",
    )


def _diff(arguments: argparse.Namespace) -> int:
    left, right = find_pair(arguments, arguments.run, arguments.other)
    found = diff_trajectories(left.read(), right.read())
    if arguments.json:
        print_json({"left": left.outline.id, "right": right.outline.id, **found.to_dict()})
        return 0
    console = open_console()
    for side, source in (("left ", left), ("right", right)):
        console.print(styled(f"{side}  {source.outline.id}", "dim"))
    console.print(styled(found, "green" if found.identical else "bold"))
    return 0


def _stats(arguments: argparse.Namespace) -> int:
    source = find_source(arguments, arguments.run)
    found = summarize_steps(source.iter_steps(), source.outline, total_snapshots=source.total_snapshots)
    if arguments.json:
        print_json({"id": source.outline.id, "project": source.project, **found.to_dict()})
        return 0
    console = open_console()
    for line in describe_source(source):
        console.print(line)
    durations = found.duration_ms_by_type
    rows = [
        *((word.value, _count_with_time(count, durations.get(word))) for word, count in found.step_types.items()),
        *((word.value, str(count)) for word, count in found.importance_distribution.items()),
        ("errors", str(found.error_count)),
        ("depth", str(found.max_depth)),
        ("snapshots", str(found.total_snapshots)),
    ]
    print_list(console, rows)
    return 0


def _count_with_time(count: int, milliseconds: float | None) -> str:
    return str(count) if milliseconds is None else f"{count} in {show_duration(milliseconds)}"


def _declare_query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="+", help="What is asked of the steps; see below.")
    _declare_limit(parser)


def _query(arguments: argparse.Namespace) -> int:
    limit = read_limit(arguments.limit, _MOST)
    try:
        asked = parse_query(" ".join(arguments.query))
    except ValueError as error:
        raise SettingsError(f"QUERY, {error}") from None
    source = find_source(arguments, arguments.run)
    selected = asked.select_placed(source.iter_steps())
    found = list(islice(selected, limit))
    total = len(found) + sum(1 for _ in selected)
    if arguments.json:
        told = {"query": str(asked), "total_found": total, "left_out": total - len(found)}
        print_json({**_outline(source), **told, "steps": [step.to_dict() for _, step in found]})
        return 0
    _show_found(source, found, total)
    return 0


def _show_found(source: Source, found: Sequence[tuple[int, Step]], total: int) -> None:
    console = open_console()
    for place, step in found:
        print_step(console, step, place + 1, source.outline.started_at)
    left_out = total - len(found)
    more = f"; {left_out:,} are not shown, --limit shows more" if left_out else ""
    console.print(styled(f"{total:,} of {source.total_steps:,} steps{more}", "dim"))


def _declare_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, help="The file to make (default: print the lines on stdout)."
    )


def _export(arguments: argparse.Namespace) -> int:
    source = find_source(arguments, arguments.run)
    trajectory = source.read()
    if arguments.file is None:
        if arguments.json:
            print_json(trajectory.to_dict())
        else:
            for line in dump_lines(trajectory):
                print(line, end="")
        return 0
    if arguments.file.exists():
        raise SettingsError(f"{arguments.file} is there already; give the name of a new file")
    folder = arguments.file.parent
    if not folder.is_dir():
        raise SettingsError(f"{folder} is no folder; make it, or give a file in another one")
    write_trajectory(arguments.file, trajectory)
    if arguments.json:
        print_json({"id": trajectory.id, "file": str(arguments.file), "total_steps": source.total_steps})
    else:
        open_console().print(styled(f"wrote {source.total_steps:,} steps of {trajectory.id} to {arguments.file}"))
    return 0


def _outline(source: Source) -> dict[str, Any]:
    """Give what a trajectory says of itself, without its steps and snapshots."""
    told = source.outline.without_steps().to_dict()
    del told["steps"], told["state_snapshots"]
    counts = {"total_steps": source.total_steps, "total_snapshots": source.total_snapshots}
    return {**told, "project": source.project, **counts}


ACTIONS = {
    action.name: action
    for action in (
        Action("show", "Show the steps in order, the first and the last of many.", _declare_limit, _show),
        Action("tree", "Show the steps below their parents.", _declare_limit, _tree),
        Action("diff", "Tell where two runs part.", _declare_other, _diff),
        Action("stats", "Count steps, durations, depth and errors.", lambda _: None, _stats),
        Action("query", "Show the steps that are asked for.", _declare_query, _query, _QUERY_HELP),
        Action("export", "Write all of it as JSON Lines, or as one object with --json.", _declare_file, _export),
    )
}
