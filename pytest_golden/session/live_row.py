"""What runs at this moment, told to the store for those who watch from elsewhere. A store that is busy is not waited for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_golden.clock import monotonic_seconds, utc_now
from pytest_golden.gate.live import Beat, RunningProject, describe_machine
from pytest_golden.gate.store import write_beat
from pytest_golden.session.board import note_elsewhere, note_present_step
from pytest_golden.session.live_line import Ticker
from pytest_golden.storage.columns import from_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.gate.run_record import RunRecord
    from pytest_golden.session.parts import SessionParts

# Where nothing new is to be told, a sign of life is enough now and then.
_SECONDS_OF_SILENCE = 10.0
_LONGEST_STEP = 200


class LiveRow:
    """Keeps the live row of one run up to date. `hide` takes out of a text what is secret in any project."""

    def __init__(
        self,
        run_id: str,
        record: RunRecord,
        parts: SessionParts,
        hide: Callable[[str], str | None],
    ) -> None:
        self._run_id = run_id
        self._record = record
        self._recorder = parts.recorder
        self._board = parts.board
        self._gateway = parts.gateway
        self._hide = hide
        self._machine = describe_machine()
        self._hidden: dict[str, tuple[str, str | None]] = {}
        self._told: tuple[RunningProject, ...] | None = None
        self._told_at = 0.0
        self._ticker = Ticker(self._tell, name="golden-live-row")

    def start(self) -> None:
        """Begin to tell, unless that has begun."""
        self._ticker.start()

    def stop(self) -> None:
        """Tell no more; the row goes with the end of the run."""
        self._ticker.stop()

    def _tell(self) -> None:
        """Tell the store what runs, when that has changed or was told a while ago.

        Raises:
            StorageError: it does not take it at this moment.
        """
        note_present_step(self._board, self._gateway)
        note_elsewhere(self._board, self._gateway)
        running, now = self._describe(), monotonic_seconds()
        if running == self._told and now - self._told_at < _SECONDS_OF_SILENCE:
            return
        store = self._record.store
        if store is None or not self._record.takes:
            return
        total = len(self._recorder.selected)
        beat = Beat(self._run_id, utc_now(), os.getpid(), self._machine, total, running)
        with store.write_aside() as connection:
            write_beat(connection, beat)
        self._told, self._told_at = running, now

    def _describe(self) -> tuple[RunningProject, ...]:
        return tuple(
            RunningProject(one.name, from_ms(int(one.since * 1000)), self._hide_step(one.name, one.step))
            for one in self._board.list_running()
        )

    def _hide_step(self, name: str, step: str | None) -> str | None:
        if step is None:
            return None
        known = self._hidden.get(name)
        if known is None or known[0] != step:
            hidden = self._hide(step)
            known = step, None if hidden is None else hidden[:_LONGEST_STEP]
            self._hidden[name] = known
        return known[1]
