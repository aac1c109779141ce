"""`golden check`: validate the manifest, and show what would be run and what is missing here. Runs nothing.

exit code: 0 nothing is missing, 1 valid but something is missing on this machine, 2 the manifest has errors.
Nothing is run. Runners of a conftest work only in pytest.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from pytest_golden.cli.options import add_options, find_manifest
from pytest_golden.cli.screen import answer, make_table, print_indented, print_json, print_table, styled
from pytest_golden.compare.baselines import EXISTS, find_baselines_folder, find_unused_baselines
from pytest_golden.errors import GatewayError, GoldenError, ManifestError
from pytest_golden.gateway import git
from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.preparation import build_path_variable, find_missing
from pytest_golden.gateway.resolution import resolve_project
from pytest_golden.gateway.runners.choice import find_runner, find_runner_command
from pytest_golden.gateway.runners.runner import PipelineFile, RunnerError
from pytest_golden.history.base_files import warn_of_ignored_baselines
from pytest_golden.manifest.comparisons import comparison_of_pattern
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.wording import format_duration, format_size, name_some
from pytest_golden.report.result_text import make_visible

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from rich.console import Console
    from rich.table import Table

    from pytest_golden.gateway.resolution import ResolvedProject
    from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig, Manifest

    # The project, the line and the message of what keeps the gate from passing here.
    Found = tuple[str | None, int, str]

_ONLY_IN_PYTEST = "a conftest may bring a runner of its own, which only `pytest --golden` knows"
_PYTHON = re.compile(r"python[\d.]*")
_CHILD_END = "_child.py"
_INVALID = 2
_NARROW = 70
_MOST_NAMED = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden check`."""
    add_options(parser, "--manifest", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Check the manifest."""
    path = find_manifest(arguments)
    try:
        manifest = load_manifest(path)
    except ManifestError as error:
        return _report_mistakes(error, as_json=arguments.json)
    plans = [make_plan(project, manifest.workspace_root) for project in manifest.projects]
    problems = list(_find_problems(manifest, plans))
    ignored = warn_of_ignored_baselines(find_baselines_folder(manifest.path, manifest.workspace_root))
    notes = [*find_unused_baselines(manifest), *([] if ignored is None else [ignored]), *_note_undemanding(manifest)]
    facts = _as_json(manifest, plans, problems, notes)
    answer(arguments, facts, lambda console: _show(console, manifest, plans, problems, notes))
    return 1 if problems else 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be run for one project.

    `problem` says why it cannot run here; then `runner`, `command` and `folder` may be unknown. `is_narrow`: it sees only what git
    tracks. `notes` do not keep it from running. In `command`, `{path}` stands for the pipeline's path as it sees it.
    """

    project: GoldenProjectConfig
    runner: str | None = None
    command: tuple[str, ...] = ()
    folder: Path | None = None
    file: Path | None = None
    problem: str | None = None
    notes: tuple[str, ...] = ()
    is_narrow: bool = False

    def shown_command(self) -> str:
        """Return the command for people: programs and scripts by name, the pipeline relative to its folder."""
        inside = self.file.relative_to(self.folder) if self.file and self.folder else self.project.path
        words = [word.replace("{path}", str(inside)) for word in self.command]
        names = [Path(word).name if Path(word).is_absolute() else word for word in words]
        return shlex.join(_as_typed(names))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        project = self.project
        return {
            "name": project.name,
            "path": project.path,
            "title": project.display_title,
            "runner": self.runner,
            "command": list(self.command),
            "project_dir": None if self.folder is None else str(self.folder),
            "view": "tracked" if self.is_narrow else "all",
            "expected_outcome": project.expected_outcome,
            "timeout_seconds": project.timeout,
            "memory_limit_bytes": project.memory_limit,
            "process_limit": project.process_limit,
            "disk_limit_bytes": project.disk_limit,
            "network": project.network,
            "outputs": project.to_dict()["outputs"],
            "max_slowdown": project.max_slowdown,
            "needs": list(project.needs),
            "problem": self.problem,
            "notes": list(self.notes),
        }


def _as_typed(words: list[str]) -> list[str]:
    """Replace our own child script by its tool's name, and the interpreter's name by `python`."""
    if _PYTHON.fullmatch(words[0]):
        words = ["python", *words[1:]]
    if len(words) > 1 and words[1].endswith(_CHILD_END):
        return [words[1].removesuffix(_CHILD_END), *words[2:]]
    return words


def make_plan(project: GoldenProjectConfig, workspace_root: Path) -> Plan:
    """Return what would be run for a project; a missing path or program becomes the plan's `problem`."""
    try:
        resolved = resolve_project(project, workspace_root)
        path_variable = build_path_variable(resolved, os.environ)
        is_made = resolved.uv_project is None or Path(resolved.python).exists()
        missing = find_missing(resolved, path_variable) if is_made else ()
    except GatewayError as error:
        return Plan(project, problem=redact(str(error)))
    notes = tuple(_list_notes(project, missing))
    pipeline = PipelineFile(project, resolved.file, resolved.project_dir, path_variable, resolved.python)
    try:
        runner = find_runner(pipeline).name
        if not is_made:
            told = "uv makes its environment before it runs for the first time"
            return Plan(project, runner, (), resolved.project_dir, resolved.file, notes=(*notes, told))
        command = find_runner_command(pipeline)
    except RunnerError as error:
        return _without_command(resolved, error, notes, is_skipped=bool(missing))
    is_narrow = command.sees_tracked_files(project.view) and _is_tracked(resolved)
    return Plan(
        project, runner, redact(command.argv), resolved.project_dir, resolved.file, notes=notes, is_narrow=is_narrow
    )


def _is_tracked(project: ResolvedProject) -> bool:
    try:
        tracked = git.list_tracked(project.project_dir)
    except GoldenError:
        return False
    return tracked is not None and project.file.relative_to(project.project_dir).as_posix() in tracked


def _without_command(
    resolved: ResolvedProject, error: RunnerError, notes: tuple[str, ...], *, is_skipped: bool
) -> Plan:
    """Return the plan of a project whose command is not found; if it would be skipped anyway, that is not a problem."""
    message = str(error).removeprefix(f"{resolved.config.name}: ")
    if error.problem is Problem.RUNNER_UNKNOWN:
        message = f"{message} ({_ONLY_IN_PYTEST})"
    runner = None if resolved.config.runner == "auto" else resolved.config.runner
    problem = None if is_skipped else redact(message)
    return Plan(resolved.config, runner, (), resolved.project_dir, resolved.file, problem, notes)


def _list_notes(project: GoldenProjectConfig, missing: tuple[str, ...]) -> Iterator[str]:
    if missing:
        yield f"would be SKIPPED: {', '.join(missing)} not installed here"
    unset = [name for name in project.pass_env if name not in os.environ]
    if unset:
        yield f"not set here, so not passed: {', '.join(unset)}"
    if project.not_secret:
        yield f"hidden only under secret names: {', '.join(project.not_secret)}"
    if project.quarantine is not None:
        yield f"in quarantine until {project.quarantine.until}: {project.quarantine.reason}"


def _note_undemanding(manifest: Manifest) -> Iterator[str]:
    """Yield a note that names the projects of which a run that does nothing, or has nothing to read, passes too."""
    names = [
        project.name
        for project in manifest.projects
        if project.expected_outcome == "success" and all(output.compare == EXISTS for output in project.outputs)
    ]
    if names:
        yield f"{name_some(names, _MOST_NAMED)}: passes also with an empty input, since no output is compared"


def _report_mistakes(error: ManifestError, *, as_json: bool) -> int:
    if as_json:
        # Programs expect a line and a column, also for what concerns the whole file.
        placed = [one._replace(line=one.line or 1, column=one.column or 1) for one in error.problems]
        print_json({"errors": [one._asdict() for one in placed]})
    for problem in error.problems:
        print(make_visible(str(problem)), file=sys.stderr)
    return _INVALID


def _find_problems(manifest: Manifest, plans: Sequence[Plan]) -> Iterator[Found]:
    if not manifest.workspace_root.is_dir():
        yield None, 1, f"workspace_root {manifest.workspace_root} is not a folder"
    elif manifest.require_golden_projects and not manifest.projects:
        yield None, 1, "golden projects are required, but none is declared"
    for plan in plans:
        if plan.problem is not None:
            yield plan.project.name, manifest.lines.get(plan.project.name, 1), plan.problem


def _as_json(
    manifest: Manifest, plans: Sequence[Plan], problems: Sequence[Found], notes: Sequence[str]
) -> dict[str, object]:
    return {
        "manifest": str(manifest.path),
        "workspace_root": str(manifest.workspace_root),
        "require_golden_projects": manifest.require_golden_projects,
        "projects": [{**plan.to_dict(), "line": manifest.lines.get(plan.project.name)} for plan in plans],
        "retired": [{"name": retired.name, "reason": retired.reason} for retired in manifest.retired],
        "problems": [{"project": name, "line": line, "message": message} for name, line, message in problems],
        "notes": notes,
        "errors": [],
    }


def _show(
    console: Console, manifest: Manifest, plans: Sequence[Plan], problems: Sequence[Found], notes: Sequence[str]
) -> None:
    shown_path = _shorten(manifest.path or Path(), Path.cwd())
    count = len(plans)
    retired = f", {len(manifest.retired)} retired" if manifest.retired else ""
    console.print(styled(f"{shown_path}: valid, {count} golden project{'' if count == 1 else 's'}{retired}", "bold"))
    if plans and console.width < _NARROW:
        _show_one_by_one(console, plans, manifest.workspace_root)
    elif plans:
        print_table(console, _make_table(plans, manifest.workspace_root))
    for note in notes:
        console.print(styled(f"note: {note}"))
    for name, line, message in problems:
        told = f"{shown_path}:{line}: {name}: {message}" if name else f"{shown_path}:{line}: {message}"
        console.print(styled(told, "red"))
    if not plans:
        console.print(styled("declare a pipeline that must always work under `golden_projects:`"))


def _make_table(plans: Sequence[Plan], root: Path) -> Table:
    table = make_table("", "project", "runner", "what is run, where, how it must end", right=[""])
    for number, plan in enumerate(plans, 1):
        name = styled(plan.project.name, "bold" if plan.problem is None else "bold red")
        told = Text("\n").join([styled(line) for line in _describe(plan, root)])
        table.add_row(styled(number, "dim"), name, styled(plan.runner or "?"), told)
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
    limits = ["seeing what git tracks"] if plan.is_narrow else []
    limits += [] if project.clock is None else [f"from {project.clock} by its own clock"]
    limits += [f"at most {format_duration(project.timeout)}"]
    limits += [] if project.memory_limit is None else [format_size(project.memory_limit)]
    limits += [] if project.cpu_limit is None else [f"{format_duration(project.cpu_limit)} of CPU time"]
    limits += [] if project.process_limit is None else [f"{project.process_limit} processes"]
    limits += [] if project.disk_limit is None else [f"{format_size(project.disk_limit)} of disk"]
    limits += [] if project.max_slowdown is None else [f"{project.max_slowdown:g} times its own median"]
    limits += {False: ["no network"], "host": ["the network of this machine"]}.get(project.network, [])
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
    if output.is_of_tables:
        return f"{output.shown} (tables)"
    return f"{output.path} ({output.compare or comparison_of_pattern(output.path) or 'by suffix'})"


def _shorten(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
