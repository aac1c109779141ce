"""Which runners would find their programs here: for `golden doctor`. Nothing of a project is run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli.findings import Finding, State
from pytest_golden.gateway.runners import PipelineFile, RunnerError
from pytest_golden.gateway.runners.dbt import DBT
from pytest_golden.gateway.runners.notebook import NOTEBOOK
from pytest_golden.gateway.runners.odibi import ODIBI
from pytest_golden.gateway.runners.python import PYTHON
from pytest_golden.gateway.runners.shell import SHELL
from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.gateway.runners.model import Runner

# Each runner with a path that it would take, and the distributions whose versions tell something; "dbt-" is a prefix.
_RUNNERS = (
    (ODIBI, "pipeline.yaml", ("odibi",)),
    (DBT, "dbt_project.yml", ("dbt-core", "dbt-")),
    (PYTHON, "etl.py", ()),
    (SHELL, "run.sh", ()),
    (NOTEBOOK, "analysis.ipynb", ("nbclient", "ipykernel")),
)
_PROBE_SECONDS = 60
_VERSIONS = """
import importlib.metadata as m, sys
hidden = {"dbt-common", "dbt-adapters", "dbt-extractor", "dbt-protos", "dbt-semantic-interfaces"}
found = {d.metadata["Name"].lower().replace("_", "-"): d.version for d in m.distributions() if d.metadata["Name"]}
for wanted in sys.argv[1:]:
    for name in sorted(found):
        if name == wanted or wanted.endswith("-") and name.startswith(wanted) and name not in hidden | {*sys.argv}:
            print(name, found[name])
"""


def examine_runners() -> Iterator[Finding]:
    """Look for each runner's program, the way a project without a `venv:` of its own would."""
    yield from (_examine(runner, file_name, distributions) for runner, file_name, distributions in _RUNNERS)


def _examine(runner: Runner, file_name: str, distributions: tuple[str, ...]) -> Finding:
    subject = f"runner {runner.name}"
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    pipeline = PipelineFile(
        config=GoldenProjectConfig(name=runner.name, path=file_name),
        file=Path(os.devnull),
        project_dir=Path.cwd(),
        path_variable=os.pathsep.join(folders),
        python=sys.executable,
    )
    try:
        start = runner.find_start(pipeline)
    except RunnerError as error:
        told, _, advice = error.message.removeprefix(f"{runner.name}: ").rpartition(": ")
        return Finding(subject, State.ABSENT, told, advice)
    versions = _read_versions(start[0], distributions)
    return Finding(subject, State.GOOD, f"{', '.join(versions)} at {start[0]}" if versions else start[0])


def _read_versions(python: str, distributions: tuple[str, ...]) -> tuple[str, ...]:
    """Ask an interpreter for versions; a broken one has none to tell, and says why when it is used."""
    if not distributions:
        return ()
    try:
        answer = subprocess.run(
            [python, "-c", _VERSIONS, *distributions],
            cwd=Path(python).parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(answer.stdout.splitlines())
