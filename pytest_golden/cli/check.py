"""`golden check`: validates the manifest, shows what would be run, and what of it is missing here. Runs nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from pytest_golden.cli.manifest_option import (
    add_json_option,
    add_manifest_option,
    locate_manifest,
    read_command_settings,
)
from pytest_golden.cli.plan import make_plan
from pytest_golden.cli.screen import make_visible, open_console, print_indented, print_json, print_table, styled
from pytest_golden.errors import ManifestError
from pytest_golden.gate.baselines import find_unused_baselines
from pytest_golden.manifest import load_manifest
from pytest_golden.manifest.comparisons import comparison_of_pattern
from pytest_golden.regression.wording import format_duration, format_size

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from pytest_golden.cli.plan import Plan
    from pytest_golden.errors import ManifestProblem
    from pytest_golden.manifest.model import DeclaredOutput, Manifest

_INVALID = 2
_NARROW = 70
_EPILOG = """\
exit code: 0 everything is there, 1 valid but something is missing on this machine, 2 the manifest has mistakes.
Nothing is run. Runners that a conftest brings are known to pytest only."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden check`."""
    parser.epilog = _EPILOG
    add_manifest_option(parser)
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check the manifest."""
    path = locate_manifest(read_command_settings(arguments))
    try:
        manifest = load_manifest(path)
    except ManifestError as error:
        return _report_mistakes(error, as_json=arguments.json)
    plans = [make_plan(project, manifest.workspace_root) for project in manifest.projects]
    problems = [*_find_problems(manifest, plans)]
    if arguments.json:
        print_json(_as_json(manifest, plans, problems))
    else:
        _show(manifest, plans, problems)
    return 1 if problems else 0


def _report_mistakes(error: ManifestError, *, as_json: bool) -> int:
    if as_json:
        print_json({"errors": [_place(problem)._asdict() for problem in error.problems]})
    for problem in error.problems:
        print(make_visible(str(problem)), file=sys.stderr)
    return _INVALID


def _place(problem: ManifestProblem) -> ManifestProblem:
    """Put a problem of the whole file at its beginning: programs count on a place."""
    return problem._replace(line=problem.line or 1, column=problem.column or 1)


def _find_problems(manifest: Manifest, plans: Sequence[Plan]) -> Iterator[tuple[str | None, int, str]]:
    """Give project, line and message of what keeps the gate from passing here."""
    if not manifest.workspace_root.is_dir():
        yield None, 1, f"workspace_root {manifest.workspace_root} is not a folder"
    elif manifest.require_golden_projects and not manifest.projects:
        yield None, 1, "golden projects are required and none is declared"
    for plan in plans:
        if plan.problem is not None:
            yield plan.project.name, manifest.lines.get(plan.project.name, 1), plan.problem


def _as_json(
    manifest: Manifest, plans: Sequence[Plan], problems: Sequence[tuple[str | None, int, str]]
) -> dict[str, object]:
    return {
        "manifest": str(manifest.path),
        "workspace_root": str(manifest.workspace_root),
        "require_golden_projects": manifest.require_golden_projects,
        "projects": [{**plan.to_dict(), "line": manifest.lines.get(plan.project.name)} for plan in plans],
        "retired": [{"name": retired.name, "reason": retired.reason} for retired in manifest.retired],
        "problems": [{"project": name, "line": line, "message": message} for name, line, message in problems],
        "notes": _notes(manifest),
        "errors": [],
    }


def _show(manifest: Manifest, plans: Sequence[Plan], problems: Sequence[tuple[str | None, int, str]]) -> None:
    console = open_console()
    shown_path = _shorten(manifest.path or Path(), Path.cwd())
    count = len(plans)
    retired = f", {len(manifest.retired)} retired" if manifest.retired else ""
    console.print(styled(f"{shown_path}: valid, {count} golden project{'' if count == 1 else 's'}{retired}", "bold"))
    if plans and console.width < _NARROW:
        _show_one_by_one(console, plans, manifest.workspace_root)
    elif plans:
        print_table(console, _make_table(plans, manifest.workspace_root))
    for note in _notes(manifest):
        console.print(styled(f"note: {note}"))
    for name, line, message in problems:
        told = f"{shown_path}:{line}: {name}: {message}" if name else f"{shown_path}:{line}: {message}"
        console.print(styled(told, "red"))
    if not plans:
        console.print(styled("declare a pipeline that must always work under `golden_projects:`"))


def _notes(manifest: Manifest) -> list[str]:
    """Give what is to be known of the manifest and is no obstacle."""
    return [*find_unused_baselines(manifest)]


def _make_table(plans: Sequence[Plan], root: Path) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("", justify="right", style="dim")
    table.add_column("project")
    table.add_column("runner")
    table.add_column("what is run, where, how it must end")
    for number, plan in enumerate(plans, 1):
        style = "" if plan.problem is None else "red"
        told = Text("\n").join([styled(line) for line in _describe(plan, root)])
        table.add_row(str(number), styled(plan.project.name, f"bold {style}"), styled(plan.runner or "?"), told)
    return table


def _show_one_by_one(console: Console, plans: Sequence[Plan], root: Path) -> None:
    for number, plan in enumerate(plans, 1):
        console.print(styled(f"{number} {plan.project.name}", "bold" if plan.problem is None else "bold red"))
        for line in (f"runner: {plan.runner or '?'}", *_describe(plan, root)):
            print_indented(console, line, 2)


def _describe(plan: Plan, root: Path) -> Iterator[str]:
    project = plan.project
    if plan.command:
        yield plan.shown_command()
    folder = project.project_dir or project.path if plan.folder is None else _shorten(plan.folder, root)
    limits = [f"at most {format_duration(project.timeout)}"]
    limits += [] if project.memory_limit is None else [format_size(project.memory_limit)]
    limits += [] if project.cpu_limit is None else [f"{format_duration(project.cpu_limit)} of CPU time"]
    limits += [] if project.max_slowdown is None else [f"{project.max_slowdown:g} times its own median"]
    limits += [] if project.network else ["no network"]
    yield f"in {folder}, {', '.join(limits)}"
    if project.expected_outcome != "success":
        yield f"must end as {project.expected_outcome}"
    if project.outputs:
        yield f"outputs {', '.join(map(_describe_output, project.outputs))}"
    if project.needs:
        yield f"needs {', '.join(project.needs)}"
    really_written = [mount.path for mount in project.mounts if mount.mode == "write"]
    if really_written:
        yield f"really writes {', '.join(really_written)}"
    yield from (f"note: {note}" for note in plan.notes)


def _describe_output(output: DeclaredOutput) -> str:
    return f"{output.path} ({output.compare or comparison_of_pattern(output.path) or 'by suffix'})"


def _shorten(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
