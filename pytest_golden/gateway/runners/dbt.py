"""The runner of dbt projects: `dbt build`. A selection that matched nothing is no pass (see `dbt_child.py`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import Runner, find_tool_python

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.gateway.runners.runner import PipelineFile

_CHILD = Path(__file__).with_name("dbt_child.py")


def _folder_in_view(pipeline: PipelineFile) -> str:
    """Return the dbt project's folder, relative to the working folder, where the view may lie at another path."""
    folder = pipeline.file.parent
    if folder.is_relative_to(pipeline.project_dir):
        return os.path.relpath(folder, pipeline.project_dir)
    return str(folder)


def _environment(pipeline: PipelineFile) -> Mapping[str, str]:
    environment = {
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "DO_NOT_TRACK": "1",
        "DBT_USE_COLORS": "false",
        "NO_COLOR": "1",
        "PYTHONUNBUFFERED": "1",
    }
    # dbt looks for profiles in the working folder and in HOME, not beside dbt_project.yml.
    if (pipeline.file.parent / "profiles.yml").is_file():
        environment["DBT_PROFILES_DIR"] = _folder_in_view(pipeline)
    return environment


RUNNERS = (
    Runner(
        name="dbt",
        files="dbt_project.yml",
        suffixes=(".yml", ".yaml"),
        recognises=lambda pipeline: pipeline.file.stem == "dbt_project",
        find_start=lambda pipeline: (find_tool_python("dbt", "dbt", pipeline), str(_CHILD)),
        arguments=lambda pipeline: ("build", "--project-dir", _folder_in_view(pipeline)),
        environment=_environment,
        step_readers=("dbt",),
        program="dbt",
        is_sure=True,
        distributions=("dbt-core", "dbt-"),
    ),
)
