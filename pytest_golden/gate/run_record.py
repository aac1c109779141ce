"""Tell the store about one gate run as it happens, and the spool when the store will not listen.

Whatever goes wrong here is said and costs the gate nothing: its verdict, its order and its time are not the store's.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.gate.recording import close_interrupted, record_event
from pytest_golden.gate.spool import read_spool
from pytest_golden.storage.integrity import put_aside
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from pytest_golden.gate.events import GateEvent, ResultJudged, RunBegun, RunEnded
    from pytest_golden.gate.spool import Spool
    from pytest_golden.journal.model import JournalEntry

# A gate waits this long for a locked store, once: then the spool takes what comes.
_PATIENCE_SECONDS = 5.0
_LOST = frozenset({StorageTrouble.GONE, StorageTrouble.CORRUPT})


class RunRecord:
    """The record of one gate run. Nothing is raised: whatever exception comes up is said.

    `store` is None while nothing can be written to it.

    `is_own_store` tells that only this workspace writes to the store. `say` gets news, `warn` what a person must know.
    """

    def __init__(
        self,
        location: str | Path,
        spool: Spool,
        *,
        is_own_store: bool,
        clock: Callable[[], datetime],
        say: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> None:
        self._location = location
        self._spool = spool
        self._is_own_store = is_own_store
        self._clock = clock
        self._say = say
        self._warn = warn
        # Kept to be told again to a new store, when the present one vanishes below us.
        self._told: list[GateEvent] = []
        self._has_given_up = False
        self.store: Store | None = None

    def begin(self, begun: RunBegun) -> None:
        """Open the store, take in what earlier runs could not leave there, close the interrupted ones, and begin."""
        self._open()
        self._take_in_spool()
        self._close_interrupted(begun)
        self._tell(begun)

    def record(self, judged: ResultJudged) -> JournalEntry | None:
        """Record a result durably, and give its entry; None when only the spool has it."""
        return self._tell(judged)

    def end(self, ended: RunEnded) -> None:
        """End the run; what the spool took meanwhile is offered to the store once more."""
        self._tell(ended)
        if self._spool.holds(ended.run_id):
            self._open()
            self._take_in_spool()
            waiting = self._spool.files()
            if waiting:
                self._warn(f"what the store did not take waits in {waiting[-1].parent}; the next gate takes it in")

    def close(self) -> None:
        """Let go of the store."""
        store, self.store = self.store, None
        if store is not None:
            store.close()

    def _open(self) -> None:
        self.close()
        try:
            self.store = Store.open(self._location, busy_seconds=_PATIENCE_SECONDS)
        except Exception as error:
            if _trouble(error) is StorageTrouble.CORRUPT and self._put_aside(error):
                self._open()
            else:
                self._say_spooled(error)

    def _put_aside(self, error: Exception) -> bool:
        """Keep a damaged store's bytes under another name, so that a new one can take its place."""
        if self._is_own_store:
            with suppress(StorageError):
                self.close()
                kept = put_aside(self._location, self._clock())
                self._warn(f"{error}; its bytes are kept as {kept}, and a new store begins")
                return True
        return False

    def _tell(self, event: GateEvent) -> JournalEntry | None:
        self._told.append(event)
        if self._has_given_up:
            return None
        if self.store is None or self._spool.holds(event.run_id):
            self._set_aside(event)
            return None
        try:
            return self._write(self.store, event)
        except Exception as error:
            if _trouble(error) in _LOST:
                return self._tell_again(error)
            self._say_spooled(error)
            self._set_aside(event)
            return None

    def _tell_again(self, error: Exception) -> JournalEntry | None:
        """Tell a new store all of this run, since the one that had it has vanished or is damaged."""
        if _trouble(error) is StorageTrouble.GONE:
            self._warn(f"{error}; a new store begins with this run")
        if _trouble(error) is StorageTrouble.GONE or self._put_aside(error):
            self._open()
        entry = None
        for event in self._told:
            try:
                if self.store is None or self._spool.holds(event.run_id):
                    self._set_aside(event)
                else:
                    entry = self._write(self.store, event)
            except Exception as again:
                self._say_spooled(again)
                self._set_aside(event)
        return entry

    def _set_aside(self, event: GateEvent) -> None:
        try:
            self._spool.append(event)
        except StorageError as error:
            # Without a spool, each result would wait for the store in vain.
            self._has_given_up = True
            self._warn(f"{error}. This run is lost to history from here on, and the gate goes on")

    def _say_spooled(self, error: Exception) -> None:
        self._warn(f"{error}. Results go to a spool file, and the gate goes on")

    def _take_in_spool(self) -> None:
        """Put what waits in spool files into the store, a file in one transaction, and remove the files."""
        store = self.store
        if store is None:
            return
        for path in self._spool.files():
            try:
                with store.write() as connection:
                    for event in read_spool(path):
                        record_event(connection, event)
                path.unlink()
            except Exception as error:
                self._warn(f"the results in {path} were not taken in: {error}")
            else:
                self._say(f"results that waited in {path.name} are in the store now")

    def _close_interrupted(self, begun: RunBegun) -> None:
        if self.store is None:
            return
        try:
            with self.store.write() as connection:
                closed = close_interrupted(
                    connection,
                    run_id=begun.run_id,
                    workspace_root=begun.workspace_root,
                    host=begun.host,
                    moment=begun.moment,
                    is_own_store=self._is_own_store,
                )
        except Exception as error:
            self._warn(str(error))
            return
        for run in closed:
            began = f"{run.started_at:%Y-%m-%d %H:%M} UTC"
            counted = f"{run.recorded_count} of {run.expected_count} projects"
            self._say(f"the gate that began {began} was interrupted after {counted}; the journal says so now")

    @staticmethod
    def _write(store: Store, event: GateEvent) -> JournalEntry | None:
        with store.write() as connection:
            return record_event(connection, event)


def _trouble(error: Exception) -> StorageTrouble | None:
    return error.trouble if isinstance(error, StorageError) else None
