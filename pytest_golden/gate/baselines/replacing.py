"""Copies put in the place of baselines: all of a project's in one step, or where that cannot be done one by one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import BaselineError
from pytest_golden.gate.baselines.exchanging import exchange
from pytest_golden.storage.flushing import flush

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pytest_golden.gate.baselines.place import ProjectBaselines


def replace_at_once(
    baselines: ProjectBaselines, staged: Path, copies: Mapping[str, Path], removed: Collection[str]
) -> dict[str, OSError] | None:
    """Build the project's folder anew, and let it take the place of the old one.

    Gives by path what could not be put there, and None where nothing has changed, since this cannot be done.
    """
    root = baselines.root
    try:
        baselines.refuse_symlinks("any")
        troubles = _build(baselines, staged, copies, removed)
        if not _settle_folders(root, staged):
            return None
        if not os.path.lexists(root):
            staged.rename(root)
        elif not root.is_dir() or not exchange(staged, root):
            return None
    except (OSError, BaselineError):
        return None
    with suppress(OSError):
        # Of a project without baselines nothing stays.
        root.rmdir()
    with suppress(OSError):
        flush(baselines.folder)
    return troubles


def replace_one_by_one(
    baselines: ProjectBaselines, copies: Mapping[str, Path], removed: Collection[str]
) -> dict[str, OSError]:
    """Put each copy in its place in a step of its own, and remove what is to go; gives by path what could not be done."""
    troubles: dict[str, OSError] = {}
    # What goes makes room: a file may have become a folder.
    for path in (*sorted(removed), *copies):
        try:
            baselines.refuse_symlinks(path)
            if path in copies:
                _place(copies[path], baselines.root / path)
            else:
                _remove(baselines.root / path, baselines.folder)
        except OSError as error:
            troubles[path] = error
    for folder in {(baselines.root / path).parent for path in (*copies, *removed)} | {baselines.root}:
        with suppress(OSError):
            flush(folder)
    return troubles


def _build(
    baselines: ProjectBaselines, staged: Path, copies: Mapping[str, Path], removed: Collection[str]
) -> dict[str, OSError]:
    staged.mkdir()
    for path in baselines.list_paths():
        if path not in removed and path not in copies:
            _link(baselines.root / path, staged / path)
    troubles: dict[str, OSError] = {}
    for path, copy in copies.items():
        try:
            _link(copy, staged / path)
        except OSError as error:
            troubles[path] = error
            if os.path.lexists(baselines.root / path):
                _link(baselines.root / path, staged / path)
    return troubles


def _settle_folders(root: Path, staged: Path) -> bool:
    """Have the new folders on the disk, with the modes of the old ones; False where an old one is closed for writing."""
    for folder, _, _ in os.walk(staged):
        old = root / Path(folder).relative_to(staged)
        if old.is_dir():
            if not os.access(old, os.W_OK):
                return False
            Path(folder).chmod(old.stat().st_mode & 0o7777)
        flush(Path(folder))
    return True


def _link(origin: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    os.link(origin, place, follow_symlinks=False)


def _place(copy: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    copy.replace(target)


def _remove(target: Path, top: Path) -> None:
    """Remove a baseline, and the folders that it leaves empty."""
    target.unlink()
    folder = target.parent
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent
