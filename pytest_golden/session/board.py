"""Which project runs and how the finished ones ended, shared between xdist workers by small files in a scratch folder.

Without a folder it is a plain memory. It serves `needs`, the live line, and naming what was running when all ended;
results travel with pytest's reports.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_golden.regression.model import ResultStatus

_RUNNING = "running"
_STEP = ".step"


class Running(NamedTuple):
    """A project that is running, its start in seconds since the epoch, and the step that it has reached."""

    name: str
    since: float
    step: str | None


class RunBoard:
    """Notes by project name; `names` are all declared ones, in order."""

    def __init__(self, names: Iterable[str], folder: Path | None = None) -> None:
        self._numbers = {name: str(number) for number, name in enumerate(names)}
        self._folder = folder
        self._notes: dict[str, str] = {}
        self._steps: dict[str, str] = {}
        self._elsewhere: Mapping[str, float] = {}

    def note_running(self, name: str) -> None:
        """Note that a project begins now, or that the session waits for one that another machine runs."""
        self._note(name, f"{_RUNNING} {self._elsewhere.get(name, utc_now().timestamp())}")

    def note_ended(self, name: str, status: ResultStatus) -> None:
        """Note how a project ended."""
        self._note(name, status.value)

    def note_step(self, name: str, step: str) -> None:
        """Note the step that a project of this process has reached."""
        if self._steps.get(name) != step:
            self._steps[name] = step
            self._share(f"{self._numbers[name]}{_STEP}", json.dumps(step))

    def note_elsewhere(self, begun: Mapping[str, float]) -> None:
        """Note which projects other machines run for this process, and the start of each, as in `Running`."""
        self._elsewhere = begun

    def find_own(self) -> str | None:
        """Find the project that is running in this process."""
        return next((name for name, note in self._notes.copy().items() if note.startswith(_RUNNING)), None)

    def statuses(self, names: Iterable[str]) -> dict[str, ResultStatus | None]:
        """Return the status of those of `names` that ran in this session; None for one that began and never ended."""
        from pytest_golden.regression.model import ResultStatus

        notes = {name: self._read(name) for name in names}
        return {
            name: None if note.startswith(_RUNNING) else ResultStatus(note)
            for name, note in notes.items()
            if note is not None
        }

    def running(self) -> tuple[tuple[str, float], ...]:
        """Return name and seconds so far of each project that is running, in declaration order."""
        now = utc_now().timestamp()
        return tuple((name, max(0.0, now - since)) for name, since in self._list_begun())

    def list_running(self) -> tuple[Running, ...]:
        """Return each project that is running, in declaration order."""
        return tuple(Running(name, since, self._read_step(name)) for name, since in self._list_begun())

    def _list_begun(self) -> list[tuple[str, float]]:
        if self._folder is not None:
            present = {path.name for path in self._folder.iterdir()} if self._folder.is_dir() else set()
            notes = {name: self._read(name) for name, number in self._numbers.items() if number in present}
        else:
            notes = dict(self._notes)
        begun = {name: note.partition(" ")[2] for name, note in notes.items() if note and note.startswith(_RUNNING)}
        elsewhere = {name: since for name, since in self._elsewhere.items() if name not in notes}
        found = {**{name: float(since) for name, since in begun.items()}, **elsewhere}
        return [(name, found[name]) for name in self._numbers if name in found] if elsewhere else list(found.items())

    def _note(self, name: str, text: str) -> None:
        self._notes[name] = text
        self._share(self._numbers[name], text)

    def _share(self, number: str, text: str) -> None:
        if self._folder is not None:
            scratch = self._folder / f"{number}.new"
            # The controller removes the folder, perhaps before the last worker ends.
            with suppress(OSError):
                scratch.write_text(text, encoding="ascii")
                scratch.replace(self._folder / number)

    def _read(self, name: str) -> str | None:
        if self._folder is None or name in self._notes:
            return self._notes.get(name)
        with suppress(OSError):
            text = (self._folder / self._numbers[name]).read_text(encoding="ascii")
            if not text.startswith(_RUNNING):
                # It will not run again.
                self._notes[name] = text
            return text
        return None

    def _read_step(self, name: str) -> str | None:
        if self._folder is None or name in self._steps:
            return self._steps.get(name)
        with suppress(OSError, ValueError):
            return str(json.loads((self._folder / f"{self._numbers[name]}{_STEP}").read_text(encoding="ascii")))
        return None
