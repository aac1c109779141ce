"""The spool, and where a workspace keeps its store, spool and logs.

The spool keeps what a store did not take until it does: one JSON line for each event, synced one by one.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import StorageError
from pytest_golden.gate.events import read_event, write_event
from pytest_golden.settings import NO_STORE
from pytest_golden.storage.folder import STORE_NAME, make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.gate.events import GateEvent

SPOOL_NAME = "spool"
# What SQLite keeps beside a file while it is in use.
_BESIDE = ("", "-wal", "-shm", "-journal")
KEPT_GATES = 20


class Spool:
    """The spool files of a workspace for one store, one a gate run, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def append(self, *events: GateEvent) -> Path:
        """Keep events of one run, durably, all or none, and return the file.

        Raises:
            StorageError: it cannot be written either.
        """
        path = self._folder / f"{events[0].run_id}.jsonl"
        lines = "".join(json.dumps(write_event(event), separators=(",", ":")) + "\n" for event in events)
        try:
            make_folder(self._folder)
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                _write_whole(handle, lines.encode("ascii"))
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise StorageError(f"the spool file {path} cannot be written: {error.strerror}") from error
        return path

    def files(self) -> tuple[Path, ...]:
        """Return the files that wait, oldest run first."""
        return tuple(sorted(self._folder.glob("*.jsonl"))) if self._folder.is_dir() else ()


def read_spool(path: Path) -> Iterator[GateEvent]:
    """Return the events of a spool file in order; a torn last line, which a kill leaves, is passed over.

    Raises:
        StorageError: the file cannot be read, or a whole line of it is no event.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise StorageError(f"the spool file {path} cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines[:-1], 1):
        try:
            yield read_event(json.loads(line))
        except ValueError as error:
            raise StorageError(f"the spool file {path}, line {number}: {error}; move it away") from None


def _write_whole(handle: int, content: bytes) -> None:
    """Write all or nothing: half a line would tear the next one too."""
    start = os.fstat(handle).st_size
    try:
        while content:
            content = content[os.write(handle, content) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, start)
        raise


class StorePlace(NamedTuple):
    """A store's location; `is_own` if only this workspace writes to it."""

    location: str | Path
    is_own: bool


def find_store_place(said: str | None, state_folder: Path) -> StorePlace | None:
    """Return the location of the store that was named, by default the one in the state folder; None for no store."""
    if said == NO_STORE:
        return None
    own = state_folder / STORE_NAME
    return StorePlace(own, is_own=True) if said is None or said == str(own) else StorePlace(said, is_own=False)


def find_spool_folder(place: StorePlace, state_folder: Path) -> Path:
    """Return the folder of what waits for this store, and for no other.

    Raises:
        SettingsError: no store can be at such a place.
    """
    folder = state_folder / SPOOL_NAME
    if place.is_own:
        return folder
    # Imported here, since it loads the database library, which a workspace's own store does not need.
    from pytest_golden.storage.location import parse_location

    return folder / sha256(os.fsencode(parse_location(place.location).shown)).hexdigest()[:16]


def list_store_files(place: StorePlace | None) -> tuple[Path, ...]:
    """Return the files that a gate writes to while it runs, wherever a store was said to be; none for one on a server.

    Raises:
        SettingsError: no store can be at such a place.
    """
    file = None if place is None else _find_file(place)
    return () if file is None else tuple(file.with_name(f"{file.name}{ending}") for ending in _BESIDE)


def _find_file(place: StorePlace) -> Path | None:
    if place.is_own:
        return Path(place.location).absolute()
    from pytest_golden.storage.location import parse_location

    return parse_location(place.location).path


def choose_log_folder(state_folder: Path, gate_id: str) -> Path:
    """Return the folder for the logs of a gate, and remove those of the oldest gates."""
    logs = state_folder / "logs"
    if logs.is_dir():
        # The ids sort by time.
        for old in sorted(logs.iterdir())[: -KEPT_GATES + 1]:
            shutil.rmtree(old, ignore_errors=True)
    return logs / gate_id
