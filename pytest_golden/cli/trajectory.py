"""`golden trajectory`: look into the trajectory of one run, in the store or in a file. It changes nothing.

RUN is a golden project's name (its newest run), the id of a trajectory or of its journal entry, a unique beginning of
one, or a file of JSON Lines that a recorder wrote. Times are UTC.

exit code: 0 done, 2 bad input.
"""

from __future__ import annotations

import json
from collections import deque
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.text import Text

from pytest_golden.cli import options
from pytest_golden.cli.options import Action
from pytest_golden.cli.screen import answer, print_beside, print_list, styled
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.regression.wording import count_of, format_elapsed
from pytest_golden.report.history_text import show_moment
from pytest_golden.trajectory.difference import diff_trajectories
from pytest_golden.trajectory.jsonlines import (
    dump_lines,
    iter_snapshots,
    iter_steps,
    read_outline,
    read_trajectory,
    write_trajectory,
)
from pytest_golden.trajectory.model import grow_tree, summarize_steps
from pytest_golden.trajectory.query import parse_query
from pytest_golden.trajectory.store import find_kept, find_success_before, find_trajectory, list_traced_projects
from pytest_golden.trajectory.vocabulary import Importance, TrajectoryOutcome, cut_content
from pytest_golden.values.json_form import json_form

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from rich.console import Console
    from sqlalchemy import Connection

    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import StateSnapshot, Step
    from pytest_golden.trajectory.store import KeptTrajectory

    # A step with its number and its depth.
    Placed = tuple[int, int, Step]


_STYLES = {Importance.CRITICAL: "bold red", Importance.HIGH: "yellow", Importance.LOW: "dim"}
_OUTCOME_STYLES = {TrajectoryOutcome.SUCCESS: "green", TrajectoryOutcome.PARTIAL: "yellow", None: "cyan"}
_MOST_OF_TEXT = 160
_MOST_READ = 4096
_TYPE_WIDTH = len("state_change")
# Deeper steps are not indented further.
_DEEPEST = 20
_MOST_NAMED = 5
# However long a trajectory is, at most `--limit` steps are shown; a file is read step by step.
_DEFAULT_LIMIT, _MOST = 50, 100_000
_LIMITED = "The most steps to show"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `golden trajectory`."""
    options.add_actions(parser, ACTIONS, "--manifest", "--store", "--json")


run = options.run_action


def _declare_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="The run; see below.")


def _declare_limit(parser: argparse.ArgumentParser) -> None:
    _declare_run(parser)
    options.add_limit_option(parser, _DEFAULT_LIMIT, _LIMITED)


def _show(arguments: argparse.Namespace) -> int:
    """Show the steps in order, then the snapshots; of a long run, the first and the last steps."""
    limit = options.read_limit(arguments.limit, _MOST)
    source = find_source(arguments, arguments.run)
    numbered = enumerate(source.iter_steps(), start=1)
    first = [(number, 0, step) for number, step in islice(numbered, limit - limit // 3)]
    ends = deque(((number, 0, step) for number, step in numbered), maxlen=max(1, limit // 3))
    readable = ends[-1][0] if ends else len(first)
    last = list(ends) if limit // 3 else []
    facts = {
        **_outline(source),
        "left_out": max(0, source.total_steps - len(first) - len(last)),
        "steps": [step.to_dict() for _, _, step in (*first, *last)],
        "snapshots": [snapshot.to_dict() for snapshot in islice(source.iter_snapshots(), limit)],
    }
    unseen = readable - len(first) - len(last)

    def show(console: Console) -> None:
        _print_steps(console, source, first, unseen, last)
        _print_snapshots(console, source, {step.id: number for number, _, step in (*first, *last)}, limit)

    return answer(arguments, facts, show)


def _print_snapshots(console: Console, source: Source, numbers: Mapping[str, int], limit: int) -> None:
    """Print each snapshot in a line: the number of its step, if that is shown, why it was made, and the state."""
    for snapshot in islice(source.iter_snapshots(), limit):
        number = "" if snapshot.step_id is None else str(numbers.get(snapshot.step_id, ""))
        first = styled(f"{number:>5} {'':>8}  {'snapshot':<{_TYPE_WIDTH}}", "dim")
        print_beside(console, first, styled(f"{shorten(snapshot.reason)}: {shorten(snapshot.state)}"))
    if source.total_snapshots > limit:
        console.print(styled(f"      ... {count_of(source.total_snapshots - limit, 'more snapshot')} ...", "dim"))


def _print_steps(
    console: Console, source: Source, first: Sequence[Placed], unseen: int, last: Sequence[Placed] = ()
) -> None:
    """Print the first and the last steps, how many between them are not shown, and how many cannot be read."""
    for line in describe_source(source):
        console.print(line)
    for number, depth, step in first:
        print_step(console, step, number, source.outline.started_at, depth=depth)
    if unseen > 0:
        console.print(styled(f"      ... {count_of(unseen, 'more step')}; --limit shows more ...", "dim"))
    for number, depth, step in last:
        print_step(console, step, number, source.outline.started_at, depth=depth)
    lost = source.total_steps - len(first) - unseen - len(last)
    if lost > 0:
        console.print(styled(f"lost: {count_of(lost, 'step')} of the file cannot be read", "yellow"))


def _tree(arguments: argparse.Namespace) -> int:
    """Show the steps below their parents."""
    limit = options.read_limit(arguments.limit, _MOST)
    source = find_source(arguments, arguments.run)
    rest = source.iter_steps()
    steps = list(islice(rest, limit))
    numbers = {step.id: number for number, step in enumerate(steps, start=1)}
    placed = [(numbers[node.step.id], depth, node.step) for root in grow_tree(steps) for depth, node in root.walk()]
    facts = {
        **_outline(source),
        "left_out": max(0, source.total_steps - len(steps)),
        "tree": [{"depth": depth, **step.to_dict()} for _, depth, step in placed],
    }
    unseen = sum(1 for _ in rest)
    return answer(arguments, facts, lambda console: _print_steps(console, source, placed, unseen))


def _declare_other(parser: argparse.ArgumentParser) -> None:
    _declare_run(parser)
    parser.add_argument(
        "other",
        metavar="OTHER",
        nargs="?",
        help="The run to compare RUN with; without one, RUN is compared with its project's last success before it.",
    )


def _diff(arguments: argparse.Namespace) -> int:
    """Show where two runs begin to differ."""
    left, right = find_pair(arguments, arguments.run, arguments.other)
    found = diff_trajectories(left.read(), right.read())

    def show(console: Console) -> None:
        for side, source in (("left ", left), ("right", right)):
            console.print(styled(f"{side}  {source.outline.id}", "dim"))
        console.print(styled(found, "green" if found.identical else "bold"))

    return answer(arguments, {"left": left.outline.id, "right": right.outline.id, **found.to_dict()}, show)


def _stats(arguments: argparse.Namespace) -> int:
    """Count steps, durations, depth and errors."""
    source = find_source(arguments, arguments.run)
    found = summarize_steps(source.iter_steps(), source.outline, total_snapshots=source.total_snapshots)

    def show(console: Console) -> None:
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

    return answer(arguments, {"id": source.outline.id, "project": source.project, **found.to_dict()}, show)


def _count_with_time(count: int, milliseconds: float | None) -> str:
    return str(count) if milliseconds is None else f"{count} in {show_duration(milliseconds)}"


def _declare_query(parser: argparse.ArgumentParser) -> None:
    _declare_run(parser)
    parser.add_argument("query", metavar="QUERY", nargs="+", help="The query; see below.")
    options.add_limit_option(parser, _DEFAULT_LIMIT, _LIMITED)


def _query(arguments: argparse.Namespace) -> int:
    """Show the steps that match a query.

    fields      type importance content text error duration_ms timestamp under
                metadata.PATH
    operators   = != < <= > >= ~ (contains the text, ignoring case)
    joined by   and (or a blank), or, not, ( )

    such as     type=tool_call importance>=high error~"timeout"
                duration_ms>=1000 or metadata.rows=0
    """
    limit = options.read_limit(arguments.limit, _MOST)
    with options.refusing_values("QUERY, "):
        asked = parse_query(" ".join(arguments.query))
    source = find_source(arguments, arguments.run)
    selected = asked.select_placed(source.iter_steps())
    found = list(islice(selected, limit))
    total = len(found) + sum(1 for _ in selected)
    left_out = total - len(found)
    facts = {
        **_outline(source),
        "query": str(asked),
        "total_found": total,
        "left_out": left_out,
        "steps": [step.to_dict() for _, step in found],
    }

    def show(console: Console) -> None:
        for place, step in found:
            print_step(console, step, place + 1, source.outline.started_at)
        more = f"; {left_out:,} are not shown, --limit shows more" if left_out else ""
        console.print(styled(f"{total:,} of {source.total_steps:,} steps{more}", "dim"))

    return answer(arguments, facts, show)


def _declare_file(parser: argparse.ArgumentParser) -> None:
    _declare_run(parser)
    parser.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, help="The file to write (default: print the lines on stdout)."
    )


def _export(arguments: argparse.Namespace) -> int:
    """Write the whole trajectory as JSON Lines, or as one object with --json."""
    source = find_source(arguments, arguments.run)
    trajectory = source.read()
    if arguments.file is None:

        def show(_: Console) -> None:
            for line in dump_lines(trajectory):
                print(line.decode("ascii"), end="")

        return answer(arguments, trajectory.to_dict, show)
    if arguments.file.exists():
        raise SettingsError(f"{arguments.file} already exists; give the name of a new file")
    folder = arguments.file.parent
    if not folder.is_dir():
        raise SettingsError(f"{folder} is not a folder; create it, or give a file in another folder")
    write_trajectory(arguments.file, trajectory)
    facts = {"id": trajectory.id, "file": str(arguments.file), "total_steps": source.total_steps}
    return answer(arguments, facts, f"wrote {source.total_steps:,} steps of {trajectory.id} to {arguments.file}")


def _outline(source: Source) -> dict[str, Any]:
    """Return a trajectory's JSON form without its steps and snapshots."""
    told = source.outline.without_steps().to_dict()
    del told["steps"], told["state_snapshots"]
    counts = {"total_steps": source.total_steps, "total_snapshots": source.total_snapshots}
    return {**told, "project": source.project, **counts}


ACTIONS = (
    Action("show", _show, _declare_limit),
    Action("tree", _tree, _declare_limit),
    Action("diff", _diff, _declare_other),
    Action("stats", _stats, _declare_run),
    Action("query", _query, _declare_query),
    Action("export", _export, _declare_file),
)


class Source(NamedTuple):
    """A trajectory that need not be in memory: its outline, and three ways to read it.

    `outline` has everything but the steps and snapshots, which it contains only if they are cheap to read.
    """

    outline: Trajectory
    project: str | None
    total_steps: int
    total_snapshots: int
    iter_steps: Callable[[], Iterator[Step]]
    iter_snapshots: Callable[[], Iterator[StateSnapshot]]
    read: Callable[[], Trajectory]


def find_source(arguments: argparse.Namespace, run: str) -> Source:
    """Find the trajectory that RUN names: a file, or one of the store by its id, the id's beginning or its project.

    Raises:
        SettingsError: none matches, or several ids begin so.
        GoldenError: the store or the file cannot be read.
    """
    if not run.strip() or "\x00" in run:
        raise SettingsError("RUN is blank: give a golden project's name, the id of a trajectory, or a file")
    file = Path(run)
    if file.is_file():
        return _open_file(file)
    if file.suffix == ".jsonl":
        raise SettingsError(f"there is no file {run}")
    with options.open_store(arguments) as store, store.read() as connection:
        kept = _find_one(connection, run, store.where)
        return _from_store(connection, kept)


def find_pair(arguments: argparse.Namespace, run: str, other: str | None) -> tuple[Source, Source]:
    """Find two trajectories to compare; without `other`, compare with the project's last success before RUN.

    Raises:
        SettingsError: none matches, several ids begin so, or the project had no earlier success.
        GoldenError: the store or a file cannot be read.
    """
    if other is not None:
        return find_source(arguments, run), find_source(arguments, other)
    if Path(run).is_file():
        raise SettingsError("a file has no earlier run: name the OTHER to compare it with")
    with options.open_store(arguments) as store, store.read() as connection:
        kept = _find_one(connection, run, store.where)
        earlier = None if kept.project is None else find_success_before(connection, kept)
        if earlier is None:
            raise SettingsError(f"there is no success of {kept.project or kept.id} before {kept.id}: name the OTHER")
        return _from_store(connection, earlier), _from_store(connection, kept)


def _open_file(file: Path) -> Source:
    outline, total_steps, total_snapshots = read_outline(file)
    steps, snapshots = partial(iter_steps, file), partial(iter_snapshots, file)
    return Source(outline, None, total_steps, total_snapshots, steps, snapshots, partial(read_trajectory, file))


def _from_store(connection: Connection, kept: KeptTrajectory) -> Source:
    try:
        found = find_trajectory(connection, kept.id)
    except ValueError as error:
        raise GoldenError(f"trajectory {kept.id}: {error}") from None
    if found is None:
        raise SettingsError(f"trajectory {kept.id} is no longer there")
    steps, snapshots = len(found.steps), len(found.state_snapshots)
    iterate = partial(iter, found.steps), partial(iter, found.state_snapshots)
    return Source(found, kept.project, steps, snapshots, *iterate, lambda: found)


def _find_one(connection: Connection, run: str, where: str) -> KeptTrajectory:
    found = find_kept(connection, run, _MOST_NAMED)
    if len(found) == 1:
        return found[0]
    if found:
        raise SettingsError(f"several ids begin with {run!r}: {', '.join(kept.id for kept in found)}; give more of one")
    otherwise = "give a golden project's name, an id or its beginning, or a file"
    hint = options.suggest_name(run, list_traced_projects(connection), otherwise)
    raise SettingsError(f"no run {run!r} has a trajectory in {where}; {hint}")


def describe_source(source: Source) -> Iterator[Text]:
    """Yield the first lines: which trajectory it is, how it ended, how many steps it has."""
    outline = source.outline
    took = "" if outline.duration_ms is None else f" in {show_duration(outline.duration_ms)}"
    count = f"{count_of(source.total_steps, 'step')}{took}"
    yield Text.assemble(
        styled(source.project or "trajectory", "bold"),
        ": ",
        styled(outline.outcome or "open", _OUTCOME_STYLES.get(outline.outcome, "bold red")),
        styled(f", {count}, {show_moment(outline.started_at)} UTC, {outline.id}"),
    )
    if outline.error:
        yield styled(f"error: {shorten(outline.error)}", "red")
    lost = outline.metadata.get("lost_steps")
    if lost:
        yield styled(f"lost: {shorten(lost)} steps could not be written or read", "yellow")


def print_step(console: Console, step: Step, number: int, started_at: datetime, *, depth: int = 0) -> None:
    """Print a step's line: number, time, type, content, duration, error; folded lines continue below the content."""
    when = (step.timestamp - started_at).total_seconds()
    first = styled(f"{number:>5} {f'+{format_elapsed(max(0.0, when))}':>8}  {step.type:<{_TYPE_WIDTH}}", "dim")
    first.append("  " * min(depth, _DEEPEST))
    told = styled(shorten(step.content), _STYLES.get(step.importance, ""))
    if step.duration_ms is not None:
        told.append_text(styled(f"  {show_duration(step.duration_ms)}", "dim"))
    error = step.metadata.get("error") or step.metadata.get("failed")
    if error:
        told.append_text(styled("  failed" if error is True else f"  {shorten(error)}", "red"))
    print_beside(console, first, told)


def shorten(value: Any) -> str:
    """Return any value in one line of bounded length."""
    plain = value if isinstance(value, str) else json_form(value)
    told = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    told = " ".join(str(cut_content(told, _MOST_READ)[0]).split())
    return told if len(told) <= _MOST_OF_TEXT else f"{told[: _MOST_OF_TEXT - 3]}..."


def show_duration(milliseconds: float) -> str:
    """Return a duration as text, below a second in milliseconds."""
    return f"{milliseconds:.0f}ms" if milliseconds < 1000 else format_elapsed(milliseconds / 1000)
