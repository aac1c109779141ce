"""Where a workspace's store and spool are. Opens nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.settings import NO_STORE

if TYPE_CHECKING:
    from pathlib import Path

STORE_NAME = "golden.db"
SPOOL_NAME = "spool"


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
