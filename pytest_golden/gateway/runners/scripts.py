"""The runners of files that need no engine: shell scripts, Python scripts and Jupyter notebooks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.runners.runner import Runner, RunnerError, explain_closed, find_missing_modules, read_shebang

if TYPE_CHECKING:
    from pytest_golden.gateway.runners.runner import PipelineFile

_NOTEBOOK_CHILD = Path(__file__).with_name("notebook_child.py")
_NOTEBOOK_NEEDS = ("nbclient", "ipykernel")


def _find_shell(pipeline: PipelineFile) -> tuple[str, ...]:
    """Return nothing for an executable script, which its own first line starts, and else the path of `sh`."""
    try:
        words = read_shebang(pipeline.file)
    except OSError as error:
        raise explain_closed(pipeline, error) from error
    if words and os.access(pipeline.file, os.X_OK) and os.name == "posix":
        trouble = _find_trouble(words, pipeline.path_variable)
        if trouble:
            raise RunnerError(Problem.COMMAND_NOT_FOUND, pipeline, f"line 1 of {pipeline.file} {trouble}")
        return ()
    shell = shutil.which("sh", path=pipeline.path_variable)
    if shell is None:
        message = f"`sh` is not on PATH ({pipeline.path_variable}): install a shell, or give `command:`"
        raise RunnerError(Problem.COMMAND_NOT_FOUND, pipeline, message)
    return (shell,)


def _find_trouble(words: tuple[str, ...], path_variable: str) -> str | None:
    """Explain a first line that the kernel would answer with a bare "No such file or directory"."""
    if words[-1].endswith("\r"):
        return "ends as on Windows (CR LF): save the script with LF line ends"
    if not Path(words[0]).is_file():
        return f"names {words[0] or 'nothing'}, which is not there: correct it"
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


RUNNERS = (
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
