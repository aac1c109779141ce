"""Kedro projects: `kedro run`, and a step for each node (see `kedro_child.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import Runner, find_tool_python, read_beginning

if TYPE_CHECKING:
    from pytest_golden.gateway.runners.runner import PipelineFile

_CHILD = Path(__file__).with_name("kedro_child.py")


def _recognises(pipeline: PipelineFile) -> bool:
    """Tell a Kedro project by the section of its `pyproject.toml`, also where the file is broken elsewhere."""
    if pipeline.file.name != "pyproject.toml":
        return False
    lines = read_beginning(pipeline).splitlines()
    return any(line.strip() == b"[tool.kedro]" for line in lines)


RUNNERS = (
    Runner(
        name="kedro",
        files="pyproject.toml with [tool.kedro]",
        suffixes=(".toml",),
        recognises=_recognises,
        find_start=lambda pipeline: (find_tool_python("kedro", "kedro", pipeline), str(_CHILD)),
        arguments=lambda _: ("run",),
        environment=lambda _: {
            "KEDRO_DISABLE_TELEMETRY": "1",
            "DO_NOT_TRACK": "1",
            # Kedro prints by rich, which wraps at the terminal's width.
            "COLUMNS": "1000",
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",
        },
        engine_files=("**/.viz/**", "**/.telemetry", "info.log"),
        program="kedro",
        is_sure=True,
        distributions=("kedro", "kedro-datasets"),
    ),
)
