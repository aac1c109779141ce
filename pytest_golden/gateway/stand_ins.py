"""Files that stand in for a project's own in one view, such as candidates that are tried out. The originals stay untouched.

A stand-in is part of what the pipeline finds, not of what it writes: it counts in the write set only where the pipeline
changed or removed it, compared with what was put there.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_golden.gateway.content import find_regular_file
from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.resolution import ProjectUnusableError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class StandIns:
    """The stand-ins of one view. They lie below `root`, out of the pipeline's reach; `paths` are relative, with `/`."""

    root: str = ""
    paths: frozenset[str] = frozenset()

    def root_of(self, relative: str, project_dir: str) -> str:
        """Give the folder below which a path lay as the pipeline found it."""
        return self.root if relative in self.paths else project_dir


#: Every file is the project's own.
NO_STAND_INS = StandIns()


def write_stand_ins(files: Mapping[str, bytes], project_dir: Path, folder: Path) -> StandIns:
    """Write stand-ins below a new folder, with the modes of the files that they stand in for, and of the folders above.

    Raises:
        ProjectUnusableError: there is no such regular file in the project to stand in for.
        OSError: scratch is full.
    """
    if not files:
        return NO_STAND_INS
    folder.mkdir(mode=0o700)
    modes: dict[str, int] = {}
    for relative, content in files.items():
        original = find_regular_file(str(project_dir), relative)
        if original is None:
            raise ProjectUnusableError(
                Problem.PATH_NOT_FOUND,
                f"{relative} is no regular file of {project_dir}, so nothing can stand in for it",
            )
        path = os.path.join(folder, relative)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _write(path, content)
        while relative:
            modes[relative] = stat.S_IMODE(os.lstat(os.path.join(project_dir, relative)).st_mode)
            relative = os.path.dirname(relative)
    for relative in sorted(modes, reverse=True):
        os.chmod(os.path.join(folder, relative), modes[relative])
    return StandIns(str(folder), frozenset(files))


def put_into_copy(stand_ins: StandIns, copy: Path) -> None:
    """Put stand-ins into a private copy of the project, whose files keep their modes."""
    for relative in stand_ins.paths:
        path = os.path.join(copy, relative)
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
        with open(os.path.join(stand_ins.root, relative), "rb") as stand_in:
            _write(path, stand_in.read())
        os.chmod(path, mode)


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
