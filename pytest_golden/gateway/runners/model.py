"""What a runner is given, what it is, and how it refuses. Values only; the choice between runners is in `choice.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_golden.errors import GatewayError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pytest_golden.gateway.model import Problem
    from pytest_golden.manifest.model import GoldenProjectConfig


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """A pipeline whose command is wanted, as it lies on the host.

    `file` and `project_dir` are absolute and exist. `path_variable` is the PATH that the pipeline will have, the bin of
    its own virtual environment first. `python` is that environment's interpreter, else the gate's.
    """

    config: GoldenProjectConfig
    file: Path
    project_dir: Path
    path_variable: str
    python: str


@dataclass(frozen=True, slots=True)
class Runner:
    """One kind of pipeline: how it is recognised and started, and what understands what it leaves behind.

    The command is `find_start` (what starts the program), then `arguments`. `program` is the name that people type for
    it: a `command:` that begins with it is started by `find_start` too, so that it is judged alike.
    """

    name: str
    recognises: Callable[[PipelineFile], bool]
    find_start: Callable[[PipelineFile], tuple[str, ...]]
    arguments: Callable[[PipelineFile], tuple[str, ...]]
    environment: Callable[[PipelineFile], Mapping[str, str]]
    step_readers: tuple[str, ...] = ()
    program: str | None = None


class RunnerError(GatewayError):
    """No command can be given for a pipeline; `problem` is the kind of reason."""

    def __init__(self, problem: Problem, message: str) -> None:
        super().__init__(message)
        self.problem = problem
        self.message = message
