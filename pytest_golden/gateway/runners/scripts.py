"""The runners of shell scripts, of Python scripts, and of whatever `command:` names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.runners.model import Runner, RunnerError
from pytest_golden.gateway.runners.programs import read_shebang

if TYPE_CHECKING:
    from pytest_golden.gateway.runners.model import PipelineFile


def _find_shell(pipeline: PipelineFile) -> tuple[str, ...]:
    """Return nothing for an executable script, which its own first line starts, and else the path of `sh`."""
    try:
        words = read_shebang(pipeline.file)
    except OSError as error:
        message = f"{pipeline.config.name}: {pipeline.file} cannot be read ({error.strerror}): make it readable"
        raise RunnerError(Problem.PERMISSION_DENIED, message) from error
    if words and os.access(pipeline.file, os.X_OK) and os.name == "posix":
        _check_interpreter(words, pipeline)
        return ()
    shell = shutil.which("sh", path=pipeline.path_variable)
    if shell is None:
        message = f"{pipeline.config.name}: `sh` is not on PATH ({pipeline.path_variable}): install a shell, or give `command:`"
        raise RunnerError(Problem.COMMAND_NOT_FOUND, message)
    return (shell,)


def _check_interpreter(words: tuple[str, ...], pipeline: PipelineFile) -> None:
    """Refuse a first line that the kernel would answer with a bare "No such file or directory"."""
    line = f"{pipeline.config.name}: line 1 of {pipeline.file}"
    if words[-1].endswith("\r"):
        raise RunnerError(
            Problem.COMMAND_NOT_FOUND, f"{line} ends as on Windows (CR LF): save the script with LF line ends"
        )
    if not Path(words[0]).is_file():
        raise RunnerError(
            Problem.COMMAND_NOT_FOUND, f"{line} names {words[0] or 'nothing'}, which is not there: correct it"
        )
    if Path(words[0]).name == "env" and len(words) > 1:
        program = words[1].split()[0]
        if not program.startswith("-") and shutil.which(program, path=pipeline.path_variable) is None:
            message = f"{line} wants `{program}`, which is not on PATH ({pipeline.path_variable}): install it"
            raise RunnerError(Problem.COMMAND_NOT_FOUND, message)


SHELL = Runner(
    name="shell",
    recognises=lambda pipeline: pipeline.file.suffix.lower() == ".sh",
    find_start=_find_shell,
    arguments=lambda _: ("{path}",),
    environment=lambda _: {},
)
PYTHON = Runner(
    name="python",
    recognises=lambda pipeline: pipeline.file.suffix.lower() == ".py",
    find_start=lambda pipeline: (pipeline.python,),
    arguments=lambda _: ("{path}",),
    # What was printed before a crash or a kill must not be lost in a buffer.
    environment=lambda _: {"PYTHONUNBUFFERED": "1"},
)
COMMAND = Runner(
    name="command",
    recognises=lambda pipeline: bool(pipeline.config.command),
    find_start=lambda _: (),
    arguments=lambda pipeline: pipeline.config.command or (),
    environment=lambda _: {},
)
