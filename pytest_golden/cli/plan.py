"""What would be run for a golden project on this machine, found out without running it."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GatewayError
from pytest_golden.gateway.environment import build_path_variable, find_missing
from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.resolution import resolve_project
from pytest_golden.gateway.runners import PipelineFile, RunnerError, find_runner, find_runner_command
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.gateway.resolution import ResolvedProject
    from pytest_golden.manifest.model import GoldenProjectConfig

_ONLY_IN_PYTEST = "a conftest may bring a runner of its own, which only `pytest --golden` can ask"


_PYTHON = re.compile(r"python[\d.]*")
_CHILD_END = "_child.py"


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be run for one project.

    `problem` says why it cannot run here; then `runner`, `command` and `folder` may be unknown. `notes` are no
    obstacle. In `command`, `{path}` stands for the pipeline's path as it sees it.
    """

    project: GoldenProjectConfig
    runner: str | None = None
    command: tuple[str, ...] = ()
    folder: Path | None = None
    file: Path | None = None
    problem: str | None = None
    notes: tuple[str, ...] = ()

    def shown_command(self) -> str:
        """Write the command for people: programs and scripts by their names, the pipeline relative to its folder."""
        inside = self.file.relative_to(self.folder) if self.file and self.folder else self.project.path
        words = [word.replace("{path}", str(inside)) for word in self.command]
        names = [Path(word).name if Path(word).is_absolute() else word for word in words]
        return shlex.join(_as_typed(names))

    def to_dict(self) -> dict[str, Any]:
        """Give JSON-safe values."""
        project = self.project
        return {
            "name": project.name,
            "path": project.path,
            "title": project.display_title,
            "runner": self.runner,
            "command": list(self.command),
            "project_dir": None if self.folder is None else str(self.folder),
            "expected_outcome": project.expected_outcome,
            "timeout_seconds": project.timeout,
            "memory_limit_bytes": project.memory_limit,
            "network": project.network,
            "outputs": project.to_dict()["outputs"],
            "max_slowdown": project.max_slowdown,
            "needs": list(project.needs),
            "problem": self.problem,
            "notes": list(self.notes),
        }


def _as_typed(words: list[str]) -> list[str]:
    """Write a tool's name for our script that stands before it, and `python` for whatever an interpreter is called."""
    if _PYTHON.fullmatch(words[0]):
        words = ["python", *words[1:]]
    if len(words) > 1 and words[1].endswith(_CHILD_END):
        return [words[1].removesuffix(_CHILD_END), *words[2:]]
    return words


def make_plan(project: GoldenProjectConfig, workspace_root: Path) -> Plan:
    """Find out what would be run for a project; a missing path or program becomes the plan's `problem`."""
    try:
        resolved = resolve_project(project, workspace_root)
        path_variable = build_path_variable(resolved, os.environ)
        missing = find_missing(resolved, path_variable)
    except GatewayError as error:
        return Plan(project, problem=redact(str(error)))
    notes = tuple(_notes(project, missing))
    pipeline = PipelineFile(project, resolved.file, resolved.project_dir, path_variable, resolved.python)
    try:
        runner, command = find_runner(pipeline).name, find_runner_command(pipeline).argv
    except RunnerError as error:
        return _without_command(resolved, error, notes, is_skipped=bool(missing))
    return Plan(project, runner, redact(command), resolved.project_dir, resolved.file, notes=notes)


def _without_command(
    resolved: ResolvedProject, error: RunnerError, notes: tuple[str, ...], *, is_skipped: bool
) -> Plan:
    """Give the plan of a project whose command is not found, which is no problem of one that is skipped anyway."""
    message = error.message.removeprefix(f"{resolved.config.name}: ")
    if error.problem is Problem.RUNNER_UNKNOWN:
        message = f"{message} ({_ONLY_IN_PYTEST})"
    runner = None if resolved.config.runner == "auto" else resolved.config.runner
    problem = None if is_skipped else redact(message)
    return Plan(resolved.config, runner, (), resolved.project_dir, resolved.file, problem, notes)


def _notes(project: GoldenProjectConfig, missing: tuple[str, ...]) -> Iterator[str]:
    if missing:
        yield f"would be SKIPPED: {', '.join(missing)} not installed here"
    unset = [name for name in project.pass_env if name not in os.environ]
    if unset:
        yield f"not set here, so not passed: {', '.join(unset)}"
    if project.quarantine is not None:
        yield f"in quarantine until {project.quarantine.until}: {project.quarantine.reason}"
