"""`coverage: true`: what coverage.py counts of a gate, in a session of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.session.workspace import OPTIONS, Workspace

if TYPE_CHECKING:
    from pathlib import Path

LIBRARY = "def used(x):\n    if x > 1:\n        return 2\n    return 3\n\n\ndef unused():\n    return 1\n"
SCRIPT = """\
import subprocess, sys
sys.path.insert(0, "{root}")
import library
library.used({value})
if {value}:
    subprocess.run([sys.executable, __file__.replace("run", "more")], check=True)
"""


@pytest.fixture
def shop(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> Workspace:
    """Two projects, one in the workspace's own folder; the first starts a process that starts nothing."""
    project = Workspace(pytester)
    (project.path / "library.py").write_text(LIBRARY)
    (project.path / "jobs").mkdir()
    for name, value in (("run", 5), ("more", 0)):
        (project.path / "jobs" / f"{name}.py").write_text(SCRIPT.format(root=project.path, value=value))
    (project.path / "top.py").write_text("import library\nlibrary.used(7)\n")
    return project


def count(shop: Workspace, *words: str, sandbox: str = "auto", **keys: Any) -> tuple[str, list[int]]:
    """Run a gate under `coverage run`; return what it says, and the lines of the library that were run."""
    projects = [{"name": "jobs", "path": "jobs/run.py"}, {"name": "top", "path": "top.py"}]
    shop.declare(*({**project, **keys} for project in projects))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    measuring = (sys.executable, "-m", "coverage")
    gate = ("-m", "pytest", "--golden", *OPTIONS, f"--golden-sandbox={sandbox}", "-rA", *words)
    ran = subprocess.run(
        (*measuring, "run", "--rcfile=/dev/null", "--branch", "--source=.", *gate),
        cwd=shop.path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    subprocess.run((*measuring, "json", "-q", "--rcfile=/dev/null"), cwd=shop.path, env=environ, check=True)
    files = json.loads((shop.path / "coverage.json").read_text())["files"]
    return ran.stdout, files["library.py"]["executed_lines"]


def test_lines_of_pipelines_and_of_their_processes_are_counted(shop: Workspace) -> None:
    told, lines = count(shop, coverage=True, set_env={"TMPDIR": "/var/tmp"})
    assert "2 passed" in told, told
    assert lines == [1, 2, 3, 4, 7]


def test_without_it_none_are_counted(shop: Workspace) -> None:
    told, lines = count(shop)
    assert "2 passed" in told, told
    assert lines == []


def test_a_pipeline_whose_python_has_no_coverage_is_told(shop: Workspace, tmp_path: Path) -> None:
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", str(shop.path / "env")), check=True)
    told, lines = count(shop, coverage=True, venv="env")
    assert "2 passed" in told, told
    assert "no line of it was counted: install coverage" in told
    assert lines == []


def test_data_that_a_pipeline_has_spoilt_is_told(shop: Workspace) -> None:
    (shop.path / "top.py").write_text(
        "import os, pathlib\nplace = pathlib.Path(os.environ['COVERAGE_PROCESS_START']).parent\n"
        "(place / 'lines.aaa').write_text('no data')\n(place / 'lines.link').symlink_to('/dev/zero')\n"
    )
    told, lines = count(shop, coverage=True)
    assert "2 passed" in told, told
    assert "its lines could not be added" in told
    assert lines == [1, 2, 3, 4, 7]


def test_a_pipeline_cannot_lead_us_to_other_data(shop: Workspace, tmp_path: Path) -> None:
    (tmp_path / "lines.db").write_text("no data")
    (shop.path / "top.py").write_text(
        "import os, pathlib, shutil\nplace = pathlib.Path(os.environ['COVERAGE_PROCESS_START']).parent\n"
        f"shutil.rmtree(place)\nplace.symlink_to({str(tmp_path)!r})\n"
    )
    told, _ = count(shop, coverage=True)
    assert "no line of it was counted" in told
