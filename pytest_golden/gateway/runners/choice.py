"""Choose the runner of a pipeline and put its command together. Nothing is started here.

Shell scripts, Python scripts and Jupyter notebooks need no engine: their runners are here. The folder is the list of the
engines: every other file in it has `RUNNERS`, and `READERS` of their steps; no file names it. It is called like the engine's
program, in small letters and up to a hyphen, so that a `command:` loads no other engine.
"""

from __future__ import annotations

import os
import shutil
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from pytest_golden.gateway.content import read_shebang
from pytest_golden.gateway.model import Problem, RunnerCommand
from pytest_golden.gateway.runners.runner import (
    PipelineFile,
    Runner,
    RunnerError,
    explain_closed,
    explain_old,
    find_missing_modules,
    find_program,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.trajectory.readers.model import StepReader

_NO_ENGINES = frozenset({"choice", "runner"})
_NOTEBOOK_CHILD = Path(__file__).with_name("notebook_child.py")
_NOTEBOOK_NEEDS = ("nbclient", "ipykernel")
#: Runs whatever `command:` names.
COMMAND = Runner(
    name="command",
    files="",
    suffixes=(),
    find_start=lambda _: (),
    arguments=lambda pipeline: pipeline.config.command or (),
)


def _find_shell(pipeline: PipelineFile) -> tuple[str, ...]:
    """Return nothing for an executable script, which its own first line starts, and else the path of `sh`."""
    try:
        words = read_shebang(pipeline.file)
    except OSError as error:
        raise explain_closed(pipeline, error) from error
    if words and os.access(pipeline.file, os.X_OK):
        trouble = _find_trouble(words, pipeline.path_variable)
        if trouble:
            raise RunnerError(Problem.COMMAND_NOT_FOUND, pipeline, f"line 1 of {pipeline.file} {trouble}")
        return ()
    return find_program("sh", pipeline, "install a shell, or give `command:`")


def _find_trouble(words: tuple[str, ...], path_variable: str) -> str | None:
    """Explain a first line that the kernel would answer with a bare "No such file or directory"."""
    if words[-1].endswith("\r"):
        return "has Windows line endings (CR LF): save the script with LF line endings"
    if not Path(words[0]).is_file():
        return f"names {words[0] or 'nothing'}, which does not exist: correct it"
    program = words[1].split()[0] if Path(words[0]).name == "env" and len(words) > 1 else "-"
    if not program.startswith("-") and shutil.which(program, path=path_variable) is None:
        return f"wants `{program}`, which is not on PATH ({path_variable}): install it"
    return None


def _find_notebook_start(pipeline: PipelineFile) -> tuple[str, ...]:
    missing = find_missing_modules(pipeline.python, _NOTEBOOK_NEEDS)
    if missing:
        message = (
            f"a notebook needs {' and '.join(missing)} in the environment of {pipeline.python}: "
            f"run `{pipeline.python} -m pip install {' '.join(missing)}`"
        )
        raise RunnerError(Problem.COMMAND_NOT_FOUND, pipeline, message)
    return (pipeline.python, str(_NOTEBOOK_CHILD))


_SCRIPTS = (
    # What was printed before a crash or a kill must not be lost in a buffer.
    Runner(
        name="python",
        files="Python scripts (.py)",
        suffixes=(".py",),
        find_start=lambda pipeline: (pipeline.python,),
        environment=lambda _: {"PYTHONUNBUFFERED": "1"},
    ),
    Runner(name="shell", files="shell scripts (.sh)", suffixes=(".sh",), find_start=_find_shell),
    # All cells in order, in a kernel of the project's own interpreter; the notebook itself is not written.
    Runner(
        name="notebook",
        files="notebooks (.ipynb)",
        suffixes=(".ipynb",),
        find_start=_find_notebook_start,
        # The second: debugpy, which ipykernel loads, would warn about the interpreter's frozen modules at every start.
        environment=lambda _: {"PYTHONUNBUFFERED": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
        is_sure=True,
        distributions=_NOTEBOOK_NEEDS,
    ),
)


def list_runners() -> Iterator[Runner]:
    """Yield the runners that recognise files. The engines' are last, and imported when they are needed."""
    yield from _SCRIPTS
    for module in _list_engines():
        yield from module.RUNNERS


def _list_engines(first: str = "") -> Iterator[ModuleType]:
    for name in sorted(_list_names(), key=lambda name: (name != first, name)):
        yield import_module(f"{__package__}.{name}")


def _list_names() -> list[str]:
    return _list_modules(*import_module(__package__).__path__)


@cache
def _list_modules(*folders: str) -> list[str]:
    names = (found.name for found in iter_modules(folders))
    return [name for name in names if name not in _NO_ENGINES and not name.endswith("_child")]


def list_readers(first: str = "") -> Iterator[StepReader]:
    """Yield the step readers of the engines, those of one engine first; the others' are imported when they are needed."""
    for module in _list_engines(first):
        yield from getattr(module, "READERS", ())


def find_reader(name: str) -> StepReader | None:
    """Return the step reader of this name; None if no engine has it."""
    return next((reader for reader in list_readers(name) if reader.name == name), None)


def find_runner_command(pipeline: PipelineFile) -> RunnerCommand:
    """Return the command of a pipeline, by its `runner:` and `command:`, else by its file.

    Raises:
        RunnerError: the runner's name or the kind of file is unknown, or a program is missing.
    """
    runner = find_runner(pipeline)
    argv = _find_argv(runner, pipeline)
    environment = runner.environment(pipeline)
    return RunnerCommand(
        (*argv, *pipeline.config.args),
        environment,
        runner.step_readers,
        runner.engine_files,
        runner.is_incremental,
        runner.list_data,
        explain_old(runner, argv[0]) if argv else "",
    )


def find_runner(pipeline: PipelineFile) -> Runner:
    """Return the runner of a pipeline, by its `runner:` or `command:`, else by its file.

    Raises:
        RunnerError: the runner's name or the kind of file is unknown.
    """
    name = pipeline.config.runner
    if name == "auto":
        return _recognise(pipeline)
    runners = {runner.name: runner for runner in (*list_runners(), COMMAND)}
    if name not in runners:
        known = ("auto", *runners)
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        raise RunnerError(Problem.RUNNER_UNKNOWN, pipeline, f"no runner is called {name!r}: {hint}")
    return runners[name]


def find_narrowing(project: GoldenProjectConfig, workspace_root: Path) -> Callable[[str], bool] | None:
    """Return the test for paths whose change reaches only a part of a project (`Runner.find_narrowing`); None if all of it must run."""
    if project.command is not None or project.expected_outcome != "success" or project.needs:
        return None
    runner = _find_runner(project, workspace_root)
    return None if runner is None else runner.find_narrowing(project, workspace_root / project.path)


def hides_ignored(project: GoldenProjectConfig, workspace_root: Path) -> bool:
    """Tell whether a project certainly sees nothing that git ignores in its own folder, except what `depends_on` names."""
    runner = _find_runner(project, workspace_root) if project.view == "tracked" else None
    return runner is not None and runner.list_data is None


def _find_runner(project: GoldenProjectConfig, workspace_root: Path) -> Runner | None:
    file = workspace_root / project.path
    try:
        return find_runner(PipelineFile(project, file, file.parent, "", "")) if file.is_file() else None
    except RunnerError:
        return None


def _recognise(pipeline: PipelineFile) -> Runner:
    if pipeline.config.command:
        name = pipeline.config.command[0].lower().partition("-")[0]
        runners = import_module(f"{__package__}.{name}").RUNNERS if name in _list_names() else ()
        return next((runner for runner in runners if _begins_with_program(pipeline, runner)), COMMAND)
    suffix = pipeline.file.suffix.lower()
    for runner in list_runners():
        if suffix in runner.suffixes and runner.recognises(pipeline):
            return runner
    raise RunnerError(Problem.RUNNER_UNKNOWN, pipeline, _explain_unrecognised(pipeline.file))


def _explain_unrecognised(file: Path) -> str:
    if file.is_dir():
        return f"{file} is a folder: name the pipeline's file in it, such as {file.name}/dbt_project.yml"
    near = [runner for runner in list_runners() if file.suffix.lower() in runner.suffixes]
    if near:
        kinds, names = (
            " or ".join(words) for words in zip(*((one.files, f"`runner: {one.name}`") for one in near), strict=True)
        )
        return f"{file} does not look like {kinds}: say {names}, or give `command:`"
    kinds = ", ".join(runner.files for runner in list_runners())
    return f"no runner knows what to do with {file.name!r} (known: {kinds}): name a `runner:`, or give `command:`"


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
        where = f"is not on PATH ({pipeline.path_variable}): install it, or name its environment with `venv:`"
    else:
        file = pipeline.file if program == "{path}" else pipeline.project_dir / program
        found = program if os.access(file, os.X_OK) and not file.is_dir() else None
        where = f"is not an executable file ({file}): correct the path, or make it executable"
    # A command of `before:` may make the program.
    if found is None and not pipeline.config.before:
        raise RunnerError(Problem.COMMAND_NOT_FOUND, pipeline, f"`{program}` {where}")
    return found or program
