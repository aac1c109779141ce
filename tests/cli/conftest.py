from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pytest

from pytest_golden.cli.main import main
from tests.patience import wait_for_git

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Ran(NamedTuple):
    code: int
    out: str
    err: str
    terminal_device: int | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Golden(Protocol):
    def __call__(self, *words: str) -> Ran: ...


class GoldenProcess(Protocol):
    def __call__(self, *words: str, environment: Mapping[str, str] | None = None) -> Ran: ...


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of its own as the current folder, without anything that is set outside."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / ".git").mkdir()
    monkeypatch.chdir(workspace)
    for name in [name for name in os.environ if name.startswith("GOLDEN_")]:
        monkeypatch.delenv(name)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return workspace


@pytest.fixture
def golden(folder: Path, capsys: pytest.CaptureFixture[str]) -> Golden:
    """Run the command inside this process."""

    def run(*words: str) -> Ran:
        code = main(words)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def person(golden: Golden) -> Golden:
    """Run the command as a person's own script does."""
    return lambda *words: golden(*words, "--as-person")


@pytest.fixture
def golden_process(folder: Path, warm_starts: Path) -> GoldenProcess:
    """Run the command as a process of its own, which starts warm."""

    def run(*words: str, environment: Mapping[str, str] | None = None) -> Ran:
        done = subprocess.run(
            [str(warm_starts / "python"), "-m", "pytest_golden", *words],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def three_projects(folder: Path) -> Path:
    """A manifest with a pipeline that passes, one that fails and one whose file is missing."""
    (folder / "good.py").write_text("import pathlib\npathlib.Path('out.txt').write_text('1')\nprint('all well')\n")
    (folder / "bad.py").write_text("print('rows: 3')\nraise SystemExit('no such column: amount')\n")
    manifest = folder / "golden_projects.yaml"
    manifest.write_text(
        "golden_projects:\n  - path: good.py\n  - {name: bad, path: bad.py}\n  - name: gone\n    path: gone/etl.py\n"
    )
    return manifest


@pytest.fixture(autouse=True)
def git_of_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_git(monkeypatch)
