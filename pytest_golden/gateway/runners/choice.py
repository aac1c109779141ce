"""Chooses the runner of a pipeline and puts its command together. Starts nothing."""

from __future__ import annotations

import os
import shutil
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.model import Problem, RunnerCommand
from pytest_golden.gateway.runners.dbt import DBT
from pytest_golden.gateway.runners.model import RunnerError
from pytest_golden.gateway.runners.notebook import NOTEBOOK
from pytest_golden.gateway.runners.odibi import ODIBI
from pytest_golden.gateway.runners.scripts import COMMAND, PYTHON, SHELL

if TYPE_CHECKING:
    from pytest_golden.gateway.runners.model import PipelineFile, Runner

_BY_FILE = (DBT, ODIBI, PYTHON, SHELL, NOTEBOOK)
_BY_NAME = {runner.name: runner for runner in (*_BY_FILE, COMMAND)}


def find_runner_command(pipeline: PipelineFile) -> RunnerCommand:
    """Return the command of a pipeline, by its `runner:` and `command:`, else by its file.

    Raises:
        RunnerError: the runner's name or the kind of file is unknown, or a program is missing.
    """
    runner = find_runner(pipeline)
    argv = _find_argv(runner, pipeline)
    return RunnerCommand((*argv, *pipeline.config.args), runner.environment(pipeline), runner.step_readers)


def find_runner(pipeline: PipelineFile) -> Runner:
    """Return the runner of a pipeline, by its `runner:` or `command:`, else by its file.

    Raises:
        RunnerError: the runner's name or the kind of file is unknown.
    """
    name = pipeline.config.runner
    if name == "auto":
        return _recognise(pipeline)
    runner = _BY_NAME.get(name)
    if runner is None:
        known = ("auto", *_BY_NAME)
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        message = f"{pipeline.config.name}: no runner is called {name!r}: {hint}"
        raise RunnerError(Problem.RUNNER_UNKNOWN, message)
    return runner


def _recognise(pipeline: PipelineFile) -> Runner:
    if COMMAND.recognises(pipeline):
        return next((runner for runner in _BY_FILE if _begins_with_program(pipeline, runner)), COMMAND)
    for runner in _BY_FILE:
        if runner.recognises(pipeline):
            return runner
    raise RunnerError(Problem.RUNNER_UNKNOWN, f"{pipeline.config.name}: {_unrecognised(pipeline.file)}")


def _unrecognised(file: Path) -> str:
    if file.is_dir():
        return f"{file} is a folder: name the pipeline's file in it, such as {file.name}/dbt_project.yml"
    if file.suffix.lower() in {".yaml", ".yml"}:
        return (
            f"{file} does not look like an Odibi project (top-level `pipelines` with `project`, `connections`, `story` "
            "or `system`) or dbt_project.yml: say `runner: odibi`, or give `command:`"
        )
    return (
        f"no runner knows what to do with {file.name!r} (known: Odibi's YAML, dbt_project.yml, .py, .sh, .ipynb): "
        "name a `runner:`, or give `command:`"
    )


def _find_argv(runner: Runner, pipeline: PipelineFile) -> tuple[str, ...]:
    command = pipeline.config.command
    if not command:
        return (*runner.find_start(pipeline), *runner.arguments(pipeline))
    if _begins_with_program(pipeline, runner):
        return (*runner.find_start(pipeline), *command[1:])
    return (_find_program(command[0], pipeline), *command[1:])


def _begins_with_program(pipeline: PipelineFile, runner: Runner) -> bool:
    """Tell whether `command:` says the runner's program by its bare name; a path means exactly that file."""
    command = pipeline.config.command
    return command is not None and command[:1] == (runner.program,)


def _find_program(program: str, pipeline: PipelineFile) -> str:
    """Return a bare program name its absolute path; leave a path or `{path}` as it is, once it can be executed."""
    if Path(program).name == program and program != "{path}":
        found = shutil.which(program, path=pipeline.path_variable)
        where = f"is not on PATH ({pipeline.path_variable}): install it, or name the environment that has it by `venv:`"
    else:
        file = pipeline.file if program == "{path}" else pipeline.project_dir / program
        found = program if os.access(file, os.X_OK) and not file.is_dir() else None
        where = f"is no file that can be executed ({file}): correct the path, or make it executable"
    if found is not None:
        return found
    if pipeline.config.before:
        # What runs before the pipeline may make the program.
        return program
    raise RunnerError(Problem.COMMAND_NOT_FOUND, f"{pipeline.config.name}: `{program}` {where}")
