"""What a store would not take, kept in a file beside it until it does: one JSON line an event, synced one by one."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_golden.errors import StorageError
from pytest_golden.gate.events import read_event, write_event
from pytest_golden.storage.folder import make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_golden.gate.events import GateEvent


class Spool:
    """The spool files of a workspace for one store, one a gate run, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def append(self, *events: GateEvent) -> Path:
        """Keep events of one run, durably, all or none, and give the file.

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
        """Give the files that wait, oldest run first."""
        return tuple(sorted(self._folder.glob("*.jsonl"))) if self._folder.is_dir() else ()


def read_spool(path: Path) -> Iterator[GateEvent]:
    """Give the events of a spool file in order; a torn last line, which a kill leaves, is passed over.

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
