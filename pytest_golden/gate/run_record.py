"""Record one gate run as it happens: in the store, or in the spool if the store does not take it.

Errors are reported. They change neither the gate's verdict nor its order.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pytest_golden.errors import GoldenError, JournalError, StorageError, StorageTrouble
from pytest_golden.gate.events import FailureExplained, ResultJudged, RunBegun, Spool, read_spool
from pytest_golden.gate.state_folder import SPOOL_NAME, StorePlace, find_state_folder, find_store_place
from pytest_golden.gate.store import close_interrupted, record_event, record_missing
from pytest_golden.journal.store import has_entry
from pytest_golden.storage.folder import STORE_NAME
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.sqlite import find_log, put_aside, set_log_aside
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.gate.events import GateEvent, RunEnded
    from pytest_golden.gateway.model import GatewayAbilities
    from pytest_golden.journal.model import JournalEntry
    from pytest_golden.manifest.model import Manifest
    from pytest_golden.regression.slowdown import SlowdownJudge

# A gate waits this long in total for a locked store.
PATIENCE_SECONDS = 5.0
# After that it is only tried again briefly.
_LATER_PATIENCE_SECONDS = 0.1
# If the disk damages each new store too, there is no third one.
_MOST_RENEWALS = 2
_LOST = frozenset({StorageTrouble.GONE, StorageTrouble.CORRUPT})
_T = TypeVar("_T")


class RunRecord:
    """The record of one gate run. It raises nothing: every exception is reported.

    `is_own_store` tells that only this workspace writes to the store. `say` receives messages, `warn` what a person must know.
    `substitute` is the folder that was used while the store's own folder could not be written; `merge` merges the store there
    into the one at a location, and returns how many runs were new.
    `store` is there to be read, None where that cannot be either; `takes` tells whether it accepts events.
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
        patience_seconds: float = PATIENCE_SECONDS,
        substitute: Path | None = None,
        merge: Callable[[str | Path, Path], int] | None = None,
    ) -> None:
        self._location = location
        self._spool = spool
        self._substitute = substitute
        self._merge = merge
        self._is_own_store = is_own_store
        self._clock = clock
        self._say = say
        self._warn = warn
        self._patience_seconds = patience_seconds
        # All events so far, for a new store if the present one vanishes, and for the end.
        self._told: list[GateEvent] = []
        # How many of them are durable, in the present store or in the spool, and how many are in the spool.
        self._safe_count = self._spooled_count = 0
        self.takes = False
        self._has_spool = True
        self._has_missed = False
        self._renewals = 0
        self._log: tuple[int, int] | None = None
        self.store: Store | None = None

    @property
    def is_kept(self) -> bool:
        """Tell whether the store has this run, or will have it when its spool is read."""
        return self.takes or self._has_spool

    @property
    def has_recovered(self) -> bool:
        """Tell whether the store missed a part of this run at first and has all of it now."""
        return self.takes and self._has_missed

    def begin(self, begun: RunBegun) -> None:
        """Open the store, record what earlier runs left in the spool, close interrupted runs, and begin."""
        self._open()
        if self._substitute is not None and self._merge is not None and self.takes:
            self._take_in_substitute(self._substitute, self._merge, begun.run_id)
        self._take_in_spool(begun.run_id, self._spool)
        self._close_interrupted(begun)
        self._tell(begun)

    def record(self, event: ResultJudged | FailureExplained) -> JournalEntry | None:
        """Record a result, or what was known of its failure, durably; return a new result's entry if the store has it."""
        return self._tell(event)

    def end(self, ended: RunEnded) -> None:
        """End the run. Offer the whole run once more to a store that did not accept all of it."""
        # What the store has lost of this run is recorded again: it may have been restored from a backup meanwhile.
        with suppress(Exception):
            if self._write(partial(record_missing, events=self._told)):
                self._say_restored()
        self._tell(ended)
        if not self.takes:
            self._offer_again(ended.run_id)

    def close(self) -> None:
        """Close the store."""
        store, self.store = self.store, None
        self.takes = False
        if store is not None:
            store.close()

    def _open(self) -> None:
        self.close()
        try:
            self.store = Store.open(self._location, busy_seconds=self._patience_seconds)
        except Exception as error:
            if self._may_renew(error) and self._put_aside(error):
                self._open()
            else:
                self._refuse(error)
        else:
            self.takes = True
            self._log = find_log(self.store.path)

    def _tell(self, event: GateEvent) -> JournalEntry | None:
        self._told.append(event)
        try:
            entry = self._record(event)
        except Exception as error:
            self._set_aside()
            if self.takes:
                # The event itself is at fault: the store still takes later ones.
                self._told.pop()
                self._safe_count = self._spooled_count = len(self._told)
                self._warn(f"{_describe(event)} is not recorded: {error}")
            return None
        self._safe_count = len(self._told)
        return entry

    def _record(self, event: GateEvent) -> JournalEntry | None:
        try:
            return self._write(lambda connection: record_event(connection, event))
        except JournalError:
            if isinstance(event, RunBegun) or self._write(lambda connection: has_entry(connection, event.run_id)):
                raise
        self._say_restored()
        return self._write(partial(_record_all, events=self._told))

    def _say_restored(self) -> None:
        self._has_missed = True
        where = "" if self.store is None else f" {self.store.where}"
        self._warn(
            f"the store{where} has lost its record of this run, as after restoring a backup; the run is recorded again"
        )

    def _write(self, work: Callable[[Connection], _T]) -> _T:
        """Do some work in a transaction; replace a store that has vanished or is damaged.

        Raises:
            StorageError: no store accepts anything, which has been reported.
            Exception: what the work itself raises; the store still accepts other work.
        """
        while self.store is not None and self.takes:
            try:
                with self.store.write() as connection:
                    return work(connection)
            except StorageError as error:
                if self._may_renew(error):
                    self._renew(error)
                else:
                    self._refuse(error)
        raise StorageError("no store accepts results")

    def _may_renew(self, error: Exception) -> bool:
        trouble = _find_trouble(error)
        is_ours = trouble is StorageTrouble.GONE or (trouble is StorageTrouble.CORRUPT and self._is_own_store)
        return is_ours and self._renewals < _MOST_RENEWALS

    def _renew(self, error: StorageError) -> None:
        """Open a store in place of a lost one, and record all of this run up to the present event."""
        path = None if self.store is None else self.store.path
        self.close()
        self._safe_count = self._spooled_count = 0
        if error.trouble is StorageTrouble.CORRUPT and not self._put_aside(error):
            self._refuse(error)
            return
        if error.trouble is StorageTrouble.GONE:
            self._renewals += 1
            set_log_aside(path, self._log, self._clock())
            self._warn(f"{error}; the store that is there now, or a new one, receives this whole run")
        self._open()
        with suppress(StorageError):
            self._write(partial(_record_all, events=self._told[:-1]))

    def _put_aside(self, error: Exception) -> bool:
        """Keep a damaged store's bytes under another name, so that a new one can take its place."""
        self._renewals += 1
        with suppress(StorageError):
            kept = put_aside(self._location, self._clock())
            self._warn(f"{error}; it is kept as {kept}, and a new store is created")
            return True
        return False

    def _refuse(self, error: Exception) -> None:
        self.takes = False
        self._has_missed = True
        trouble = _find_trouble(error)
        if trouble in _LOST:
            self._safe_count = self._spooled_count = 0
        if trouble is StorageTrouble.LOCKED:
            self._patience_seconds = min(self._patience_seconds, _LATER_PATIENCE_SECONDS)
        self._warn(f"{error}; results are kept in the spool, and the gate continues")

    def _set_aside(self) -> None:
        """Write to the spool what is in no store."""
        unsafe = self._told[self._safe_count :]
        if unsafe and self._has_spool:
            # All of the run: before the next gate the store may be restored from a backup that has nothing of it.
            try:
                self._append(self._told[self._spooled_count :], unsafe)
            except Exception as error:
                self._has_spool = False
                self._warn(f"{error}; unless the store accepts this run at its end, it is not recorded")
        self._safe_count = self._spooled_count = len(self._told)

    def _append(self, whole: Sequence[GateEvent], unsafe: Sequence[GateEvent]) -> None:
        try:
            self._spool.append(*whole)
        except StorageError:
            # There may be room for this much.
            self._spool.append(*unsafe)

    def _offer_again(self, run_id: str) -> None:
        self._open()
        self._take_in_spool(run_id, self._spool)
        try:
            # The spool may have had no room for it.
            self._write(partial(_record_all, events=self._told))
        except Exception:
            waiting = self._spool.files()
            if self._has_spool and waiting:
                self._warn(f"what the store did not accept waits in {waiting[-1].parent}; the next gate imports it")
            else:
                self._warn("this run is not recorded")

    def _take_in_substitute(self, folder: Path, merge: Callable[[str | Path, Path], int], run_id: str) -> None:
        """Merge the runs that were recorded elsewhere while the store's own folder could not be written."""
        try:
            runs = merge(self._location, folder)
        except Exception as error:
            source = folder / STORE_NAME
            self._warn(f"the runs in {source} were not imported: {error}; the next gate will try again")
        else:
            if runs:
                self._say(f"{_count_runs(runs)} in the history now, taken from {folder}")
        self._take_in_spool(run_id, Spool(folder / SPOOL_NAME))

    def _take_in_spool(self, run_id: str, spool: Spool) -> None:
        """Put what waits in spool files into the store, a file in one transaction, and remove the files."""
        others = 0
        for path in spool.files() if self.takes else ():
            try:
                self._write(partial(_record_all, events=tuple(read_spool(path))))
                path.unlink()
            except Exception as error:
                if not self.takes:
                    break
                unknown = "the store does not know their run, as after restoring an older backup"
                told = f"{unknown}; move the file away" if isinstance(error, JournalError) else error
                self._warn(f"the results in {path} were not imported: {told}")
            else:
                others += path.stem != run_id
                self._spooled_count = 0 if path.stem == run_id else self._spooled_count
        if others:
            self._say(f"{_count_runs(others)} in the history now")

    def _close_interrupted(self, begun: RunBegun) -> None:
        try:
            closed = self._write(partial(close_interrupted, begun=begun, is_own_store=self._is_own_store))
        except Exception as error:
            if self.takes:
                self._warn(f"interrupted gates stay open: {error}")
            return
        for run in closed:
            is_of_today = run.started_at.date() == self._clock().date()
            began = f"{run.started_at:{'%H:%M' if is_of_today else '%Y-%m-%d %H:%M'}} UTC"
            counted = f"{run.recorded_count} of {run.expected_count} projects"
            self._say(f"the gate of {began} was cut off after {counted}")


def _record_all(connection: Connection, events: Iterable[GateEvent]) -> JournalEntry | None:
    """Record events, and return the entry of the last one."""
    entry = None
    for event in events:
        entry = record_event(connection, event)
    return entry


def _count_runs(number: int) -> str:
    return "1 earlier run is" if number == 1 else f"{number} earlier runs are"


def _find_trouble(error: Exception) -> StorageTrouble | None:
    return error.trouble if isinstance(error, StorageError) else None


def _describe(event: GateEvent) -> str:
    if isinstance(event, ResultJudged):
        return f"the result of {event.result.name}"
    if isinstance(event, FailureExplained):
        return "what is known of a failure"
    return f"the {'beginning' if isinstance(event, RunBegun) else 'end'} of this run"


def find_slowdown_judge(said: str | None, manifest: Manifest, abilities: GatewayAbilities | None) -> SlowdownJudge:
    """Read it from the store that a workspace's gate would use, `said` or its own. Do not create a store."""
    from pytest_golden.history.past_store import read_slowdown_judge

    with open_existing(find_store_place(said, find_state_folder(manifest.workspace_root))) as store:
        return read_slowdown_judge(store, manifest.projects, manifest.workspace_root, abilities)


@contextmanager
def open_existing(place: StorePlace | None) -> Iterator[Store | None]:
    """Open a store to look at earlier runs; None where there is none, or it cannot be opened."""
    store = None
    if place is not None and parse_location(place.location).is_there:
        # Why it cannot be opened is reported by the record of the run.
        with suppress(GoldenError):
            store = Store.open(place.location, busy_seconds=PATIENCE_SECONDS)
    with store or nullcontext():
        yield store
