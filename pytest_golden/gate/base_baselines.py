"""Which accepted outputs are others than at another git ref: by git's names for their content, so that none is checked out.

Git itself names what lies in the working tree, so that a file which it converts (line ends, LFS) is the same as committed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gate.baselines.place import BASELINES_FOLDER
from pytest_golden.gate.blobs import find_head
from pytest_golden.gate.git import last_line, run_git_raw
from pytest_golden.regression.weakening import ChangedBaseline

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

_LONGEST_SECONDS = 600
_MOST_CHARACTERS = 60_000
_LINK, _SUBMODULE = "120000", "160000"
# None of them is the name of a content.
_REGULAR, _ANOTHER_KIND, _UNREADABLE = "a file", "another kind", "unreadable"


class _Entry(NamedTuple):
    """A file of the base: its mode, the name of its content, and its path below the folder of the baselines.

    A submodule may be that folder (its path is empty) or the one of a project.
    """

    mode: str
    blob: str
    path: str

    def list_projects(self, names: Collection[str]) -> list[str]:
        """Give those of the named projects whose baseline it is."""
        project = self.path.partition("/")[0]
        if not project:
            return list(names)
        return [project] if project in names else []


def find_changed_baselines(
    base_folder: Path, commit: str, head_folder: Path, names: Collection[str]
) -> tuple[ChangedBaseline, ...]:
    """Find the baselines at a commit that are gone or others in the working tree; new ones are none of them.

    Args:
        base_folder: the folder of the manifest that the base had.
        commit: the base's commit.
        head_folder: the folder of the present manifest.
        names: the golden projects that are looked at.

    Raises:
        GoldenError: git cannot tell.

    Where a submodule holds all baselines of a project, their path is empty.
    """
    entries = [entry for entry in _list_entries(base_folder, commit) if entry.list_projects(names)]
    present = _name_present(head_folder / BASELINES_FOLDER, entries)
    return tuple(
        ChangedBaseline(project, entry.path.partition("/")[2], is_gone=present[entry.path] is None)
        for entry in entries
        if present[entry.path] != entry.blob
        for project in entry.list_projects(names)
    )


def _list_entries(folder: Path, commit: str) -> list[_Entry]:
    done = run_git_raw(folder, "ls-tree", "-r", "-z", commit, "--", BASELINES_FOLDER, longest_seconds=_LONGEST_SECONDS)
    if done.returncode:
        message = f"the baselines at {commit[:12]} cannot be listed ({last_line(os.fsdecode(done.stderr))})."
        raise GoldenError(message)
    entries = [_read_entry(record) for record in os.fsdecode(done.stdout).split("\0") if record]
    return [entry for entry in entries if entry.path or entry.mode == _SUBMODULE]


def _read_entry(record: str) -> _Entry:
    """Read one line. Source: git-ls-tree(1), "Output format"."""
    facts, _, path = record.partition("\t")
    mode, _, blob = facts.split(" ")
    return _Entry(mode, blob, path.removeprefix(BASELINES_FOLDER).removeprefix("/"))


def _name_present(folder: Path, entries: Sequence[_Entry]) -> dict[str, str | None]:
    """Name for each entry's path what lies there now; None where nothing does."""
    names = {entry.path: _name_special(folder / entry.path, entry) for entry in entries}
    for some in _split(path for path, name in names.items() if name == _REGULAR):
        names |= _name_files(folder, some)
    return names


def _name_special(place: Path, entry: _Entry) -> str | None:
    """Name what is no regular file, or another kind than in the base; `_REGULAR` for what git has to look into."""
    try:
        mode = place.lstat().st_mode
    except OSError:
        return None
    if entry.mode == _SUBMODULE:
        return find_head(place)
    if stat.S_ISLNK(mode) != (entry.mode == _LINK):
        return _ANOTHER_KIND
    if stat.S_ISLNK(mode):
        return _name_text(os.fsencode(place.readlink()), entry.blob)
    return _REGULAR if stat.S_ISREG(mode) else _ANOTHER_KIND


def _name_text(content: bytes, like: str) -> str:
    digest = hashlib.new("sha256" if len(like) == 64 else "sha1", b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def _split(paths: Iterable[str]) -> Iterator[list[str]]:
    """Cut into what one command line can take."""
    some: list[str] = []
    length = 0
    for path in paths:
        if some and length + len(path) > _MOST_CHARACTERS:
            yield some
            some, length = [], 0
        some.append(path)
        length += len(path) + 1
    if some:
        yield some


def _name_files(folder: Path, paths: Sequence[str]) -> dict[str, str | None]:
    done = run_git_raw(folder, "hash-object", "--", *paths, longest_seconds=_LONGEST_SECONDS)
    names = done.stdout.decode("ascii").split()
    if not done.returncode and len(names) == len(paths):
        return dict(zip(paths, names, strict=True))
    if len(paths) == 1:
        return {paths[0]: _UNREADABLE}
    # One that is gone by now, or may not be read, is no reason to know nothing of the others.
    middle = len(paths) // 2
    return _name_files(folder, paths[:middle]) | _name_files(folder, paths[middle:])
