"""A workspace with small real pipelines, for sessions that pytester runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.gate_processes import WITHOUT_PLUGINS

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PASSES = "echo passed > out.txt"
FAILS = "echo it broke >&2; exit 3"
OPTIONS = (*WITHOUT_PLUGINS, "--golden-sandbox=copy")


class Workspace:
    """Writes pipelines and a manifest below pytester's folder and runs gates over them."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        pytester.makeini("[pytest]\naddopts = --strict-markers\n")

    def write_pipeline(self, name: str, script: str) -> str:
        file: Path = self.path / name / "run.sh"
        file.parent.mkdir(exist_ok=True)
        file.write_text(script + "\n")
        return f"{name}/run.sh"

    def declare(self, *projects: dict[str, Any], file: str = "golden_projects.yaml", **keys: Any) -> None:
        """Write a manifest. `script` of a project is its pipeline."""
        entries = []
        for project in projects:
            entry = dict(project)
            entry.setdefault("path", self.write_pipeline(entry["name"], entry.pop("script", PASSES)))
            entries.append(entry)
        text = json.dumps({"version": 1, **keys, "golden_projects": entries}, indent=1)
        (self.path / file).parent.mkdir(exist_ok=True)
        (self.path / file).write_text(text)

    def run(self, *arguments: str) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess("--golden", *OPTIONS, *arguments)

    def run_apart(self, *arguments: str) -> pytest.RunResult:
        return self.pytester.runpytest_subprocess("--golden", *OPTIONS, *arguments, timeout=120)
