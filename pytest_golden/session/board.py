"""Which project runs and how the finished ones ended, shared between xdist workers by small files in a scratch folder.

Without a folder it is a plain memory. It serves `needs`, the live line, and naming what was running when all ended;
results travel with pytest's reports.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_RUNNING = "running"


class RunBoard:
    """Notes by project name; `names` are all declared ones, in order."""

    def __init__(self, names: Iterable[str], folder: Path | None = None) -> None:
        self._numbers = {name: str(number) for number, name in enumerate(names)}
        self._folder = folder
        self._notes: dict[str, str] = {}

    def note_running(self, name: str) -> None:
        """Note that a project begins now."""
        self._note(name, f"{_RUNNING} {utc_now().timestamp()}")

    def note_ended(self, name: str, status: ResultStatus) -> None:
        """Note how a project ended."""
        self._note(name, status.value)

    def statuses(self, names: Iterable[str]) -> dict[str, ResultStatus | None]:
        """Give the status of those of `names` that ran in this session; None for one that began and never ended."""
        notes = {name: self._read(name) for name in names}
        return {
            name: None if note.startswith(_RUNNING) else ResultStatus(note)
            for name, note in notes.items()
            if note is not None
        }

    def running(self) -> tuple[tuple[str, float], ...]:
        """Give name and seconds so far of each project that is running, in declaration order."""
        now = utc_now().timestamp()
        if self._folder is not None:
            present = {path.name for path in self._folder.iterdir()} if self._folder.is_dir() else set()
            notes = {name: self._read(name) for name, number in self._numbers.items() if number in present}
        else:
            notes = dict(self._notes)
        begun = {name: note.partition(" ")[2] for name, note in notes.items() if note and note.startswith(_RUNNING)}
        return tuple((name, max(0.0, now - float(since))) for name, since in begun.items())

    def _note(self, name: str, text: str) -> None:
        self._notes[name] = text
        if self._folder is not None:
            scratch = self._folder / f"{self._numbers[name]}.new"
            # The folder goes with the controller, perhaps before the last worker.
            with suppress(OSError):
                scratch.write_text(text, encoding="ascii")
                scratch.replace(self._folder / self._numbers[name])

    def _read(self, name: str) -> str | None:
        if self._folder is None or name in self._notes:
            return self._notes.get(name)
        with suppress(OSError):
            return (self._folder / self._numbers[name]).read_text(encoding="ascii")
        return None
