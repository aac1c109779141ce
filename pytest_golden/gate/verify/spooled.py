"""What gates in a worktree could not leave in the store: it waits in the worktree, and would go with it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.gate.lock import find_state_folder, prepare_state_folder
from pytest_golden.gate.spool import Spool
from pytest_golden.gate.store_place import StorePlace, find_spool_folder, find_store_place
from pytest_golden.manifest import load_manifest
from pytest_golden.storage.flushing import flush
from pytest_golden.storage.folder import make_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path


def keep_spooled(
    manifest: Path, store: str | None, workspace_root: Path, run_ids: Collection[str] | None = None
) -> str | None:
    """Move what waits there for the store to the workspace, whose next gate takes it in; say what is lost instead.

    `manifest` is the worktree's; `store` is what was said of the workspace's store, None where nothing was. With `run_ids`
    only what these gates have left: a proposal may bring files of its own.
    """
    try:
        state = prepare_state_folder(workspace_root)
        place = find_store_place(store, state)
        if place is not None:
            there = find_state_folder(load_manifest(manifest).workspace_root)
            waiting = Spool(find_spool_folder(StorePlace(place.location, is_own=False), there)).files()
            _move(
                [path for path in waiting if run_ids is None or path.stem in run_ids], find_spool_folder(place, state)
            )
    except (GoldenError, OSError) as error:
        return f"what the store did not take of a gate in a worktree is lost to history: {error}"
    return None


def _move(files: Iterable[Path], folder: Path) -> None:
    for path in files:
        make_folder(folder)
        # Whoever takes in a file removes it: so it comes there whole, and on the disk.
        part = folder / f".{path.name}.part"
        shutil.copyfile(path, part, follow_symlinks=False)
        flush(part)
        part.replace(folder / path.name)
        path.unlink()
