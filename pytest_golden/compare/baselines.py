"""Where the baselines of a project are, which outputs they belong to, and what killed processes left there."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import BaselineError
from pytest_golden.gateway.content import lstat_below
from pytest_golden.gateway.runners.runner import LEFT_OUT_FILE, read_regular
from pytest_golden.regression.model import ReasonKind
from pytest_golden.regression.unexpected import RUN, find_run, names_output
from pytest_golden.regression.wording import name_some, show_path
from pytest_golden.settings import BASELINES_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.gateway.write_set import WrittenFiles
    from pytest_golden.manifest.model import DeclaredOutput, Manifest


#: The folder beside the manifest that has one folder for each project.
#: The prefix of folders in which accepted outputs wait; no project's name begins with it.
WAITING_PREFIX = ".accepting-"
#: The folder in the state folder with what red runs kept, one folder for each project.
WAITING_FOLDER = "waiting"
#: The file that says who accepted which outputs, for reviewers.
ACCEPTED_NAME = "ACCEPTED.md"
EXISTS = "exists"
#: Troubles that end with a new baseline.
ACCEPTABLE = frozenset({ReasonKind.BASELINE_MISSING, ReasonKind.OUTPUT_DIFFERS, ReasonKind.BASELINE_UNREADABLE})

_MOST_NAMED = 5
_MOST_LEFT_OUT_BYTES = 16 << 20


def find_baselines_folder(manifest: Path | None, workspace_root: Path) -> Path:
    """Return the folder of all baselines; where projects have no manifest, below the workspace root."""
    return (workspace_root if manifest is None else manifest.parent) / BASELINES_FOLDER


@dataclass(frozen=True)
class ProjectBaselines:
    """The baselines of one project. All baselines are in `folder`, those of this project below its `name`. No symlink leads out."""

    folder: Path
    name: str

    @property
    def root(self) -> Path:
        """The project's own folder."""
        return self.folder / self.name

    def find(self, path: str) -> Path | None:
        """Return the file of the baseline of an output, whose path is relative to project_dir; None when nothing is there.

        Raises:
            OSError: what is there may not be read; its text says why.
        """
        at = lstat_below(self._real_parent, f"{self.folder.name}/{self.name}/{path}", self._real_folders)
        if at is not None and stat.S_ISREG(at.st_mode):
            return self._real_root / path
        place = self.root / path
        try:
            place.lstat()
        except PermissionError:
            raise
        except OSError:
            return None
        real = Path(os.path.realpath(place))
        if not real.is_relative_to(self._real_root):
            message = "it is reached by a symlink that leads out of its folder; put a real file there"
            raise OSError(message)
        mode = real.stat().st_mode
        if not stat.S_ISREG(mode):
            message = f"it is {describe_kind(mode)}, not a file"
            raise OSError(message)
        return real

    def list_paths(self) -> tuple[str, ...]:
        """Return the paths of everything there except folders, sorted; no symlink is followed.

        Raises:
            BaselineError: a folder cannot be read.
        """
        if os.path.realpath(self.root) != str(self._real_root):
            return ()
        found: list[str] = []
        for place, folders, files in os.walk(self.root, onerror=self._refuse_unreadable):
            links = [name for name in folders if Path(place, name).is_symlink()]
            prefix = f"{place}/".removeprefix(f"{self.root}/")
            found += [prefix + name for name in (*files, *links)]
        return tuple(sorted(found))

    def _refuse_unreadable(self, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            place = show_path(os.path.relpath(error.filename, self.folder.parent))
            raise BaselineError(f"the baselines in {place} cannot be looked at: {error.strerror}") from error

    def refuse_symlinks(self, path: str) -> None:
        """Make sure that the path to a baseline consists of real folders, before it is written or removed.

        Raises:
            OSError: a symlink or a file is on the path, or it cannot be read.
        """
        place = self.folder
        for part in (None, self.name, *path.split("/")[:-1]):
            place = place if part is None else place / part
            if place.is_symlink():
                message = f"{place} is a symlink, and baselines are only written into real folders"
                raise OSError(message)

    @cached_property
    def _real_parent(self) -> str:
        return os.path.realpath(self.folder.parent)

    @cached_property
    def _real_folders(self) -> set[str]:
        return set()

    @cached_property
    def _real_root(self) -> Path:
        return Path(self._real_parent, self.folder.name, self.name)


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


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """An expected file: each of `entries` names it, and all of them must hold.

    `known_key` is the key of its rows according to the engine that made the table.
    """

    path: str
    entries: tuple[DeclaredOutput, ...]
    is_written: bool
    known_key: tuple[str, ...] = ()

    @property
    def needs_baseline(self) -> bool:
        """Tell whether any of its entries compares it with a baseline."""
        return any(entry.compare != EXISTS for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Matched:
    """The declared outputs, as files.

    `files` are sorted. `unmatched` are entries that match nothing. `unused` are baselines that are compared with
    nothing, because no entry names them, or only entries that need no baseline.
    """

    files: tuple[ExpectedFile, ...]
    unmatched: tuple[DeclaredOutput, ...]
    unused: tuple[str, ...]


def match_outputs(
    outputs: Sequence[DeclaredOutput], written: Iterable[str], kept: Sequence[str], tables: Iterable[str] = ()
) -> Matched:
    """Find the declared files among the `written` paths and the baselines (`kept`).

    `tables` are the written tables of databases; an entry for tables names no other file.
    """
    written = frozenset(written)
    tables = frozenset((*tables, *kept))
    files = []
    for path in sorted(written.union(kept)):
        entries = tuple(
            entry for entry in outputs if names_output(entry, path) and (path in tables or not entry.is_of_tables)
        )
        if entries:
            files.append(ExpectedFile(path, entries, path in written))
    expected = tuple(file for file in files if file.is_written or file.needs_baseline)
    named = {id(entry) for file in expected for entry in file.entries}
    compared = {file.path for file in expected if file.needs_baseline}
    return Matched(
        expected,
        tuple(entry for entry in outputs if id(entry) not in named),
        tuple(path for path in sorted(kept) if path not in compared),
    )


def settle_runs(
    outputs: Sequence[DeclaredOutput], written: WrittenFiles
) -> tuple[WrittenFiles, list[tuple[DeclaredOutput, str]]]:
    """Give files whose path contains the name of the run a stable one: `{run}` in its place, as in the pattern of their entry.

    Return the written files by these names, and the entries with errors: `{run}` stands for one name in a run.
    """
    stable: dict[str, str] = {}
    wrong = []
    for entry in outputs:
        found = {path: run for path in written.paths if (run := find_run(path, entry.path)) is not None}
        values = sorted({value for value, _ in found.values()})
        if len(values) > 1:
            named = name_some([*map(show_path, values)], _MOST_NAMED)
            told = f"{RUN} of `{show_path(entry.path)}` stands for one name, and this run wrote {len(values)}: {named}"
            wrong.append((entry, told))
        else:
            stable |= {path: name for path, (_, name) in found.items()}
    if not stable:
        return written, wrong
    exported = {**written.exported, **{name: written.locate(path) for path, name in stable.items()}}
    paths = tuple(sorted({stable.get(path, path) for path in written.paths}))
    return replace(written, paths=paths, exported=exported), wrong


def read_left_out(written: WrittenFiles) -> tuple[str, ...]:
    """Return the tables and files that a run in part left out, as it reports; none if the report cannot be used."""
    if LEFT_OUT_FILE not in written.paths:
        return ()
    try:
        told = json.loads(read_regular(written.locate(LEFT_OUT_FILE), _MOST_LEFT_OUT_BYTES) or b"")
    except (OSError, ValueError, RecursionError):
        return ()
    return tuple(name for name in told if isinstance(name, str)) if isinstance(told, list) else ()


def list_absent(
    names: Sequence[str], outputs: Sequence[DeclaredOutput], kept: Iterable[str], written: WrittenFiles
) -> tuple[str, ...]:
    """Return the baselines of files that a run in part left out: they have one of these names, or are below it.

    A file that exists is judged, whatever the run reports.
    """
    if not names:
        return ()
    exact, folders = set(names), tuple(f"{name}/" for name in names)
    there = set(settle_runs(outputs, written)[0].paths)
    return tuple(path for path in kept if path not in there and (path in exact or path.startswith(folders)))


def find_unused_baselines(manifest: Manifest) -> Iterator[str]:
    """Yield the unused baselines, as one sentence for each project."""
    folder = find_baselines_folder(manifest.path, manifest.workspace_root)
    projects = {project.name: project for project in manifest.projects}
    for name in _list_names(folder):
        if name not in projects:
            told = f"{folder.name}/{show_path(name)} belongs to no golden project: remove it"
            yield f"{told}, or rename it to the project's present name"
            continue
        try:
            kept = ProjectBaselines(folder, name).list_paths()
        except BaselineError as error:
            yield f"{name}: {error}"
            continue
        unused = match_outputs(projects[name].outputs, (), kept).unused
        if unused:
            yield f"{name}: {describe_unused(folder.name, name, unused)}"


def describe_unused(folder_name: str, name: str, unused: Sequence[str]) -> str:
    """Say which baselines of a project none of its outputs uses, and how to remove them."""
    named = name_some([*map(show_path, unused)], _MOST_NAMED)
    return f"{folder_name}/{name} has baselines that no output is compared with ({named}): --golden-update removes them"


def _list_names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.name[0] != "." and entry.name != ACCEPTED_NAME)
    except OSError:
        return []
