from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_golden.gateway.runners.choice import find_runner_command
from pytest_golden.gateway.runners.runner import PipelineFile
from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GATE_BIN = str(Path(sys.executable).parent)
PLAIN_PATH = os.pathsep.join([GATE_BIN, "/usr/bin", "/bin"])


class MakePipeline(Protocol):
    def __call__(self, path: str, content: str | bytes = "", **keys: Any) -> PipelineFile: ...


@pytest.fixture
def make_pipeline(tmp_path: Path) -> MakePipeline:
    """Write a pipeline's file below tmp_path/project and declare it; `path_variable` and `python` replace the gate's."""

    def make(path: str, content: str | bytes = "", **keys: Any) -> PipelineFile:
        project_dir = tmp_path / "project"
        file = project_dir / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        path_variable = keys.pop("path_variable", PLAIN_PATH)
        python = keys.pop("python", sys.executable)
        config = GoldenProjectConfig("sales", path, **keys)
        return PipelineFile(config, file, project_dir, path_variable, python)

    return make


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a pipeline's command in its folder, in a clean environment, as the gateway would."""

    def run_command(pipeline: PipelineFile, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        command = find_runner_command(pipeline)
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        environment = {
            "PATH": pipeline.path_variable,
            "HOME": str(home),
            "TMPDIR": str(home),
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            **command.environment,
            **(more or {}),
        }
        argv = [word.replace("{path}", str(pipeline.file)) for word in command.argv]
        return subprocess.run(
            argv,
            cwd=pipeline.project_dir,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run_command


def needs(module: str) -> pytest.MarkDecorator:
    """Skip a test where a tool is not installed."""
    return pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed")
