"""Where a workspace's store and spool are. Opens nothing."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.settings import NO_STORE
from pytest_golden.storage.folder import STORE_NAME
from pytest_golden.storage.location import parse_location

if TYPE_CHECKING:
    from pathlib import Path

_SPOOL_NAME = "spool"
# What SQLite keeps beside a file while it is in use.
_BESIDE = ("", "-wal", "-shm", "-journal")


class StorePlace(NamedTuple):
    """A store's place, `is_own` when only this workspace writes to it."""

    location: str | Path
    is_own: bool


def find_store_place(said: str | None, state_folder: Path) -> StorePlace | None:
    """Give the place of the store that was said, the one in the state folder without a word, None for no store."""
    if said == NO_STORE:
        return None
    own = state_folder / STORE_NAME
    return StorePlace(own, is_own=True) if said is None or said == str(own) else StorePlace(said, is_own=False)


def find_spool_folder(place: StorePlace, state_folder: Path) -> Path:
    """Give the folder of what waits for this store, and for no other.

    Raises:
        SettingsError: no store can be at such a place.
    """
    folder = state_folder / _SPOOL_NAME
    if place.is_own:
        return folder
    return folder / sha256(os.fsencode(parse_location(place.location).shown)).hexdigest()[:16]


def list_store_files(place: StorePlace | None) -> tuple[Path, ...]:
    """Give the files that a gate writes to while it runs, wherever a store was said to be; none for one on a server.

    Raises:
        SettingsError: no store can be at such a place.
    """
    file = None if place is None else parse_location(place.location).path
    return () if file is None else tuple(file.with_name(f"{file.name}{ending}") for ending in _BESIDE)
