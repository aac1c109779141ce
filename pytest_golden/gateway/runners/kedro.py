"""Kedro projects: `kedro run`, and a step for each node (see `kedro_child.py`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import (
    LEFT_OUT_FILE,
    Runner,
    find_tool_python,
    is_started_beside,
    read_beginning,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.gateway.runners.runner import PipelineFile
    from pytest_golden.manifest.model import GoldenProjectConfig

# A module, or data below the usual folder; the script of this engine finds out of which nodes they are.
_NODE = re.compile(r"(?:.+/)?(?!__init__|__main__|settings|pipeline|hooks|cli)\w+\.py|data/.+")
_CHILD = Path(__file__).with_name("kedro_child.py")


def _recognises(pipeline: PipelineFile) -> bool:
    """Tell a Kedro project by the section of its `pyproject.toml`, also where the file is broken elsewhere."""
    if pipeline.file.name != "pyproject.toml":
        return False
    lines = read_beginning(pipeline).splitlines()
    return any(line.strip() == b"[tool.kedro]" for line in lines)


def _find_narrowing(project: GoldenProjectConfig, _file: Path) -> Callable[[str], bool] | None:
    """Return the test for modules, data and baselines; None if an output is a table, or if it is started from another folder."""
    if not is_started_beside(project) or any(output.is_of_tables for output in project.outputs):
        return None
    return lambda path: _NODE.fullmatch(path) is not None


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
        engine_files=("**/.viz/**", "**/.telemetry", "info.log", LEFT_OUT_FILE),
        program="kedro",
        is_sure=True,
        distributions=("kedro", "kedro-datasets"),
        oldest="0.18.14",
        find_narrowing=_find_narrowing,
    ),
)
