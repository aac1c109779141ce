"""The runner of Jupyter notebooks: all cells in order, in a kernel of the project's own interpreter. Writes no notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.runners.model import Runner, RunnerError
from pytest_golden.gateway.runners.programs import find_missing_modules

if TYPE_CHECKING:
    from pytest_golden.gateway.runners.model import PipelineFile

_CHILD = Path(__file__).with_name("notebook_child.py")
_NEEDED = ("nbclient", "ipykernel")


def _find_start(pipeline: PipelineFile) -> tuple[str, ...]:
    missing = find_missing_modules(pipeline.python, _NEEDED)
    if missing:
        message = (
            f"{pipeline.config.name}: a notebook needs {' and '.join(missing)} in the environment of {pipeline.python}: "
            f"run `{pipeline.python} -m pip install {' '.join(missing)}`"
        )
        raise RunnerError(Problem.COMMAND_NOT_FOUND, message)
    return (pipeline.python, str(_CHILD))


NOTEBOOK = Runner(
    name="notebook",
    recognises=lambda pipeline: pipeline.file.suffix.lower() == ".ipynb",
    find_start=_find_start,
    arguments=lambda _: ("{path}",),
    # The second: debugpy, which ipykernel loads, would warn about the interpreter's frozen modules at every start.
    environment=lambda _: {"PYTHONUNBUFFERED": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
)
