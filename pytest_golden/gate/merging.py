"""Merge stores into one: the journal, the gate's runs and results, trajectories and memories; all of it or nothing."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from pytest_golden.errors import StorageError
from pytest_golden.gate.lock import LOCK_NAME
from pytest_golden.gate.merging_store import RowMerger, read_last_gate
from pytest_golden.gate.sharding import GateUnion, LastGate, unite
from pytest_golden.journal.agent_rules import find_rules, parse_rules
from pytest_golden.journal.transfer.lines import read_again
from pytest_golden.journal.transfer.service import Intake
from pytest_golden.journal.transfer.store import read_copies, read_orphans
from pytest_golden.learning.gate_learning import learn_from_results
from pytest_golden.learning.memory_merging_store import merge_memories
from pytest_golden.storage.files import list_files
from pytest_golden.storage.folder import STORE_NAME
from pytest_golden.storage.integrity import copy_source
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import Connection

    from pytest_golden.journal.rules import Rules

_TOLD_EACH = 1000
_LEARNING_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReport:
    """What a merge has done: entries that were new, known otherwise and known; and the other rows that were new.

    `gate` is what the last gates of the sources are together; None where no gate was run in any.
    """

    added: int = 0
    merged: int = 0
    unchanged: int = 0
    orphans: int = 0
    runs: int = 0
    results: int = 0
    trajectories: int = 0
    memories: int = 0
    gate: GateUnion | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all counts under their names, and the gate."""
        gate = None if self.gate is None else self.gate.to_dict()
        return {**{name: getattr(self, name) for name in self.__slots__}, "gate": gate}


def merge_stores(
    location: str | Path,
    sources: Sequence[str | Path],
    *,
    rules: Mapping[str, Rules],
    progress: Callable[[int], None],
    learns: bool = True,
) -> MergeReport:
    """Take everything of some stores into one, which is made when it is not there. The sources stay as they are.

    In any order and however often, the result is the same. `rules` are those of the agents by whose copies differ.

    Raises:
        SettingsError: a source is the store itself, or no store can be at its place.
        StorageError: a source is not there, damaged, newer or no store, or the store cannot be written. Nothing is merged.
    """
    target = parse_location(location)
    with TemporaryDirectory(prefix="golden-merge-") as folder, ExitStack() as opened:
        copies = []
        for number, source in enumerate(sources):
            place = Path(folder, str(number))
            place.mkdir()
            copy = copy_source(source, place, target=target.path)
            copies.append((str(source), opened.enter_context(Store.open(copy))))
        store = opened.enter_context(Store.open(location))
        with store.write() as connection:
            report = _Merge(connection, rules, progress).run(copies)
        # Outside, so that nobody waits for it; what does not fit in its time is left to the next gate.
        if learns:
            learn_from_results(store, budget_seconds=_LEARNING_SECONDS)
    return report


def take_in_substitute(location: str | Path, folder: Path) -> int:
    """Merge the store used while `.golden` could not be written, then remove it; return how many runs were new.

    If a gate is using that store, it is left for the next gate to merge.

    Raises:
        SettingsError, StorageError: as `merge_stores`; the store stays where it is.
    """
    source = folder / STORE_NAME
    if source.is_symlink() or not source.is_file():
        return 0
    with suppress(Timeout), FileLock(folder / LOCK_NAME, timeout=0):
        runs = merge_stores(
            location, [source], rules=parse_rules(find_rules()), progress=lambda _: None, learns=False
        ).runs
        # Everything is on the disk now. After a crash before this line it is merged again, which changes nothing.
        for file in list_files(source):
            file.unlink()
        return runs
    return 0


class _Merge:
    """One merge, in one transaction."""

    def __init__(self, target: Connection, rules: Mapping[str, Rules], progress: Callable[[int], None]) -> None:
        self._target = target
        self._intake = Intake(target, rules)
        self._rows = RowMerger(target)
        self._progress = progress
        self._entries = self._memories = 0
        self._gates: list[LastGate] = []

    def run(self, sources: Sequence[tuple[str, Store]]) -> MergeReport:
        for name, source in sources:
            try:
                with source.read() as connection:
                    self._take(connection)
                    gate = read_last_gate(connection, name)
            except (ValueError, TypeError, OverflowError, RecursionError) as error:
                raise StorageError(f"the store {name}: {error}; nothing was merged") from None
            except StorageError as error:
                # A person knows the store, and not its copy.
                raise StorageError(str(error).replace(source.where, name), error.trouble) from None
            self._gates += [] if gate is None else [gate]
        done = self._intake.finish()
        self._rows.finish()
        return MergeReport(
            added=done.added,
            merged=done.merged,
            unchanged=done.unchanged,
            orphans=done.orphans,
            runs=self._rows.runs,
            results=self._rows.results,
            trajectories=self._rows.trajectories,
            memories=self._memories,
            gate=unite(self._gates),
        )

    def _take(self, source: Connection) -> None:
        for copy in read_copies(source):
            self._intake.take(read_again(copy))
            self._entries += 1
            if self._entries % _TOLD_EACH == 0:
                self._progress(self._entries)
        for signal in read_orphans(source):
            self._intake.take_orphan(signal)
        self._rows.take(source)
        self._memories += merge_memories(source, self._target)
