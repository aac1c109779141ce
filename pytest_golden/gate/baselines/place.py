"""Where the baselines of a project lie, and what lies there. No symlink leads out of their folder."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from pytest_golden.errors import BaselineError
from pytest_golden.regression.wording import show_path

#: Beside the manifest, with one folder a project.
BASELINES_FOLDER = "golden_baselines"
#: How the folders begin in which accepted outputs wait for their place; no project's name begins so.
WAITING_PREFIX = ".accepting-"


def find_baselines_folder(manifest: Path | None, workspace_root: Path) -> Path:
    """Give the folder of all baselines; where projects have no manifest, below the workspace root."""
    return (workspace_root if manifest is None else manifest.parent) / BASELINES_FOLDER


@dataclass(frozen=True, slots=True)
class Baseline:
    """What was found where a baseline should be: `file` to be read, or `trouble` why it may not be; neither: nothing."""

    file: Path | None = None
    trouble: str = ""

    @property
    def is_missing(self) -> bool:
        """Tell whether nothing is there."""
        return self.file is None and not self.trouble


@dataclass(frozen=True, slots=True)
class ProjectBaselines:
    """The baselines of one project: `folder` holds those of all, each project's below its `name`."""

    folder: Path
    name: str

    @property
    def root(self) -> Path:
        """The project's own folder."""
        return self.folder / self.name

    def find(self, path: str) -> Baseline:
        """Look at the baseline of an output, whose path is relative to project_dir."""
        place = self.root / path
        try:
            place.lstat()
        except PermissionError as error:
            return Baseline(trouble=str(error.strerror))
        except OSError:
            return Baseline()
        real = Path(os.path.realpath(place))
        if not real.is_relative_to(self._real_root):
            return Baseline(trouble="it is reached by a symlink that leads out of its folder; put a real file there")
        try:
            mode = real.stat().st_mode
        except OSError as error:
            return Baseline(trouble=str(error.strerror))
        if not stat.S_ISREG(mode):
            return Baseline(trouble=f"it is {describe_kind(mode)}, not a file")
        return Baseline(file=real)

    def list_paths(self) -> tuple[str, ...]:
        """Give the paths of all that lies there and is no folder, sorted; no symlink is followed.

        Raises:
            BaselineError: a folder may not be looked into, so that nobody knows what should be there.
        """
        if os.path.realpath(self.root) != str(self._real_root):
            return ()
        found = []
        pending = [""]
        while pending:
            prefix = pending.pop()
            try:
                entries = _list(self.root / prefix)
            except OSError as error:
                place = show_path(f"{self.folder.name}/{self.name}/{prefix}".rstrip("/"))
                raise BaselineError(f"the baselines in {place} cannot be looked at: {error.strerror}") from error
            for name, is_folder in entries:
                pending += [f"{prefix}{name}/"] if is_folder else []
                found += [] if is_folder else [prefix + name]
        return tuple(sorted(found))

    def refuse_symlinks(self, path: str) -> None:
        """Make sure that nothing but real folders lies on the way to a baseline that is about to be written or removed.

        Raises:
            OSError: a symlink, or a file, lies on the way; or one cannot look.
        """
        place = self.folder
        for part in (None, self.name, *path.split("/")[:-1]):
            place = place if part is None else place / part
            if place.is_symlink():
                message = f"{place} is a symlink, and baselines are only written into real folders"
                raise OSError(message)

    @property
    def _real_root(self) -> Path:
        return Path(os.path.realpath(self.folder.parent)) / self.folder.name / self.name


def describe_kind(mode: int) -> str:
    """Say what kind of thing a path is, with its article."""
    kinds = (
        (stat.S_ISLNK, "a symlink"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISREG, "a file"),
    )
    return next((told for is_kind, told in kinds if is_kind(mode)), "a device")


def _list(folder: Path) -> list[tuple[str, bool]]:
    try:
        with os.scandir(folder) as entries:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []
