"""A folder as a step reader sees it after a run; the real one is built by the gateway, a layer above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Folder:
    project_dir: Path

    def find_file(self, relative: str) -> Path | None:
        path = self.project_dir / relative
        return path if path.exists() else None


@dataclass(frozen=True)
class Written:
    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    write_set: Written = Written()
    exit_code: int | None = 0
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0


def run_that_wrote_all(folder: Path) -> Run:
    return Run(Written(tuple(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())))
