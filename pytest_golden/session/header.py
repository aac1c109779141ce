"""What a session says about itself: the lines of its header, its warnings, and the row of each project. Plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import count_of, format_elapsed
from pytest_golden.report.result_text import describe_step, make_visible, short_reason
from pytest_golden.settings import find_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pytest

    from pytest_golden.gateway.model import GatewayAbilities
    from pytest_golden.history.unchanged import Selection
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.gateway import SessionGateway


FLEET_VIEW = "fleet"
_FOREIGN = "pytest-golden"
_MOST_NAMED = 10
_SHORT = 12
_REPEAT = ("repeat", "pytest_repeat")
_RETRIES = "{} does not run golden projects again: set `retries:` in the manifest"
_STATUS_WIDTH = max(len(status) for status in ResultStatus)
_DURATION_WIDTH = 10
_TIME_WIDTH = 7
INDENT = " " * (_STATUS_WIDTH + 1)
_LONGEST_NAME, _SHORTEST_NAME = 40, 5


def describe_declared(declared: Declared) -> Iterator[str]:
    """Say what is declared and where."""
    yield f"golden: {declared.label}, {count_of(len(declared.projects), 'project')}"


def describe_options(config: pytest.Config, declared: Declared) -> Iterator[str]:
    """Explain what the given options of pytest and of well-known plug-ins mean for golden projects."""
    projects = declared.projects.values()
    shell = "`golden run NAME --shell` opens a shell in the project's view"
    told = {
        "usepdb": f"--pdb stops at the result of a golden project, not inside its pipeline: {shell}",
        "trace": f"--trace does not step into golden projects: {shell}",
        "reruns": _RETRIES.format("--reruns"),
        "force_reruns": "--force-reruns counts reruns of golden projects but runs none again: set `retries:` in the manifest",
        "failedfirst": "--ff moves only `independent` golden projects to the front; the others keep the manifest's order",
    }
    if projects and _has_ini(config, "reruns"):
        yield f"golden: {_RETRIES.format('reruns in the ini file')}"
    if config.getoption("count", default=1) != 1 and any(map(config.pluginmanager.hasplugin, _REPEAT)):
        told["count"] = "--count does not repeat golden projects: each runs once"
    if any(project.quarantine is not None for project in projects):
        told["runxfail"] = "--runxfail does not end a quarantine: remove `quarantine:` from the manifest"
    yield from (
        f"golden: {line}" for option, line in told.items() if projects and config.getoption(option, default=None)
    )


def _has_ini(config: pytest.Config, name: str) -> bool:
    try:
        return bool(config.getini(name))
    except ValueError:  # no plug-in has declared it
        return False


def describe_real_writes(declared: Declared) -> Iterator[str]:
    """Name the paths outside their views that pipelines write to."""
    written = {
        name: [mount.path for mount in project.mounts if mount.mode == "write"]
        for name, project in declared.projects.items()
    }
    told = [f"golden: {name} writes outside its view: {', '.join(paths)}" for name, paths in written.items() if paths]
    yield from map(make_visible, told[:_MOST_NAMED])
    if len(told) > _MOST_NAMED:
        yield f"golden: {len(told) - _MOST_NAMED} more projects write outside their views: `golden check` names them"


def describe_gateway(gateway: SessionGateway, *, in_full: bool) -> Iterator[str]:
    """Say which view and seal are used; add the reasons if a better one exists or if `in_full`."""
    try:
        abilities: GatewayAbilities | None = gateway.call("describe")
    except GoldenError as error:
        yield f"golden sandbox: {error}"
        return
    if abilities is None:
        yield "golden sandbox: a gateway from a plug-in, which does not describe itself"
        return
    if abilities.view == FLEET_VIEW:
        yield f"golden fleet: {abilities.view_reason}"
        return
    yield f"golden sandbox: {abilities.summary}"
    if in_full or abilities.view != "overlay" or abilities.seal_reason:
        yield from (f"  {reason}" for reason in abilities.reasons)
    elif abilities.network_note:
        yield f"  {abilities.network_note}"


def describe_selection(selection: Selection | None, *, in_full: bool) -> Iterator[str]:
    """Say which projects are left out, why the others run (all reasons if `in_full`), and what broke before."""
    if selection is None:
        return
    count = len(selection.left_out) + len(selection.why)
    at = "" if selection.commit is None else f" ({selection.commit[:_SHORT]})"
    reasons = set(selection.why.values())
    if selection.left_out:
        yield f"golden: {len(selection.left_out)} of {count} projects left out: unchanged since {selection.ref}{at}"
    elif count:
        why = f": {next(iter(reasons))}" if len(reasons) == 1 else ", -v says why"
        yield make_visible(f"golden: no project is left out as unchanged since {selection.ref}{at}{why}")
    if in_full:
        yield from (make_visible(f"  {name} runs: {why}") for name, why in selection.why.items())
    elif selection.narrowed:
        yield from (make_visible(f"  {name}: {selection.why[name]}") for name in selection.narrowed)
    if selection.forewarnings:
        yield "golden: earlier changes of the same files broke:"
        yield from (make_visible(f"  {line}") for line in selection.forewarnings)


def warn_of_foreign_distribution() -> Iterator[str]:
    """Warn if the distribution `pytest-golden` is installed too: both contain a package of this name."""
    found = find_version(_FOREIGN)
    if found is not None:
        yield (
            f"golden: the other distribution {_FOREIGN} {found} is installed too and shares the package pytest_golden; "
            "this one keeps working, but uninstalling either breaks both."
        )


def warn_of_nothing(declared: Declared, mode: str) -> str | None:
    """Return the warning about an empty manifest in improvement mode, else None."""
    if declared.projects or mode != "improvement":
        return None
    return f"No golden projects: {declared.label} declares none, so nothing guards this change."


def result_row(
    result: GoldenProjectResult, width: int, limit: int, *, history: str = "", tells_reason: bool = True
) -> str:
    """Return the rest of a row after the status: name, time, history and reason.

    In a terminal of `limit` columns a long name is cut first, so that time and reason stay visible.
    """
    told = describe(result, history, tells_reason=tells_reason)
    others = _STATUS_WIDTH + 1 + 2 + _TIME_WIDTH + (2 + min(len(told), limit // 3) if told else 0)
    room = max(_SHORTEST_NAME, limit - others)
    return f"{fit(result.name, room):<{min(width, room)}}  {elapsed(result):>{_TIME_WIDTH}}  {told}".rstrip()


def name_width(names: Iterable[str]) -> int:
    """Return the width of the column of names; names longer than that stick out."""
    return min(_LONGEST_NAME, max(map(len, names), default=0))


def padded_status(result: GoldenProjectResult) -> str:
    """Return the status, padded to the longest one. It is plain text: xdist's -f can send nothing else."""
    return str(result.status).ljust(_STATUS_WIDTH)


def describe(result: GoldenProjectResult, history: str, *, tells_reason: bool) -> str:
    """Return the reason for a project's status, then its history, which matters less: the end may be cut off."""
    return "; ".join(filter(None, [short_reason(result) if tells_reason else "", history]))


def elapsed(result: GoldenProjectResult) -> str:
    """Return how long a project took, or a dash if it did not run."""
    return "-" if result.status is ResultStatus.SKIPPED else format_elapsed(result.execution_time_seconds)


def list_durations(results: Iterable[GoldenProjectResult], record_seconds: Mapping[str, float]) -> list[str]:
    """Return the head of a table, and a row for each project that ran, the slowest first: where its time went, in seconds."""
    rows = []
    for one in results:
        if one.status is not ResultStatus.SKIPPED:
            recorded = record_seconds.get(one.name, 0.0)
            parts = (one.prepare_seconds, one.execution_time_seconds, one.compare_seconds, recorded)
            rows.append((sum(parts), *parts, one.name))
    rows.sort(reverse=True)
    heads = "".join(f"{head:>{_DURATION_WIDTH}}" for head in ("total", "prepare", "pipeline", "compare", "record"))
    return [
        f"{heads}  project",
        *("".join(f"{part:>{_DURATION_WIDTH - 1}.3f}s" for part in row[:-1]) + f"  {row[-1]}" for row in rows),
    ]


def details(result: GoldenProjectResult) -> Iterator[str]:
    """Yield the steps that a pipeline took, and every path that it wrote."""
    for step in result.steps:
        yield f"{INDENT}step: {describe_step(step)}"
    written = result.write_set
    for told, paths in (("created", written.created), ("changed", written.changed), ("removed", written.removed)):
        yield from (f"{INDENT}{told}: {make_visible(path)}" for path in paths)


def notes(result: GoldenProjectResult) -> Iterator[str]:
    """Yield the lines below a project's row: its warnings, and where its files are kept."""
    told = [f"note: {warning}" for warning in result.warnings]
    told += [f"kept view: {result.kept_view}"] if result.kept_view else []
    yield from (f"{INDENT}{' '.join(make_visible(line).split())}" for line in told)


def running_text(running: Sequence[tuple[str, float]], step: str | None) -> str | None:
    """Name what is running, for how long, and the step it has reached; return None if nothing runs."""
    if not running:
        return None
    told = ", ".join(f"{name}  {format_elapsed(seconds)}" for name, seconds in running)
    return f"{told}  {make_visible(step)}" if step else told


def fit(text: str, width: int) -> str:
    """Cut a line to `width` characters, and mark the cut."""
    return text if len(text) <= width else f"{text[: max(0, width - 3)]}..."
