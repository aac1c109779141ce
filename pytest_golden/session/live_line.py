"""What is running now: the board that xdist workers share, one line that erases itself on a terminal, or names in a log.

And work that a thread does meanwhile.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast
from weakref import WeakSet

from pytest_golden.clock import monotonic_seconds, thread_seconds, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import TextIO

    from pytest_golden.regression.model import ResultStatus

_T = TypeVar("_T")
_SECONDS_BEFORE = 0.2
_SECONDS_BETWEEN = 1.0
# Work that takes long is done less often: apart from the first imports, it uses at most a hundredth of a processor.
_LEAST_REST = 100
_LOADING_SECONDS = 0.3
_MOST_JOINED_SECONDS = 1.0
_SECONDS_BETWEEN_LIVE = 0.2
_SECONDS_BEFORE_NAMED = 1.0
_SPINNER = "|/-\\"
_ERASE = "\r\x1b[2K"
_RUNNING = "running"
_STEP = ".step"


class Running(NamedTuple):
    """A project that is running, its start in seconds since the epoch, and the step that it has reached."""

    name: str
    since: float
    step: str | None


class RunBoard:
    """Which project runs and how the finished ones ended, shared between xdist workers by small files in a scratch folder.

    Without a folder it is a plain memory. It serves `needs`, the live line, and naming what was running when all ended;
    results travel with pytest's reports. `names` are all declared projects, in order.
    """

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


class LiveLine:
    """Shows what `describe` returns, about five times a second, in one line of a terminal; None leaves the line as it is.

    `descriptor` is the terminal's and is closed at the end; it is written to beside pytest's capture. The text must be at
    least two characters shorter than the terminal is wide.
    """

    def __init__(self, descriptor: int, describe: Callable[[], str | None]) -> None:
        self._descriptor = descriptor
        self._describe = describe
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._is_shown = False
        self._thread = threading.Thread(target=self._show, name="golden-live-line", daemon=True)

    def start(self) -> None:
        """Start showing the line."""
        self._thread.start()

    def stop(self) -> None:
        """Erase the line and close the descriptor; nothing is written afterwards."""
        self._ended.set()
        self._thread.join()
        self.erase()
        os.close(self._descriptor)

    def erase(self) -> None:
        """Erase the line, so that another can be written in its place."""
        with self._lock:
            if self._is_shown:
                self._write(_ERASE)
                self._is_shown = False

    def _show(self) -> None:
        turn = 0
        while not self._ended.wait(_SECONDS_BETWEEN_LIVE):
            with self._lock:
                text = self._describe()
                if text is None:
                    continue
                turn += 1
                self._write(f"{_ERASE}{_SPINNER[turn % len(_SPINNER)]} {text}")
                self._is_shown = True

    def _write(self, text: str) -> None:
        with suppress(OSError):
            os.write(self._descriptor, text.encode("utf-8", "replace"))


class RunningNames:
    """Names each project in a log once it has run for a second, so that a hanging project can be seen before it ends.

    `list_running` returns names and seconds so far; `is_within_line` tells whether pytest's current line is open.
    """

    def __init__(
        self,
        stream: TextIO,
        list_running: Callable[[], Iterable[tuple[str, float]]],
        is_within_line: Callable[[], bool],
    ) -> None:
        self._stream = stream
        self._list_running = list_running
        self._is_within_line = is_within_line
        self._named: set[str] = set()
        self._descriptor: int | None = None
        self._is_ended = False
        self._lock = threading.Lock()
        self._ticker = Ticker(self._name_new, name="golden-running")

    def start(self) -> None:
        """Start naming projects."""
        with suppress(AttributeError, OSError, ValueError):
            # pytest captures output to the stream's own descriptor.
            self._descriptor = os.dup(self._stream.fileno())
        self._ticker.start()

    def stop(self) -> None:
        """Stop naming projects."""
        self._ticker.stop()
        with self._lock:
            # The ticker may still be writing, and a closed descriptor's number is soon used for another file.
            self._is_ended = True
            if self._descriptor is not None:
                os.close(self._descriptor)

    def erase(self) -> None:
        """Keep the lines, as a log does. Start the ticker again after a fork, which stops it."""
        self._ticker.start()

    def _name_new(self) -> None:
        for name, seconds in self._list_running():
            if seconds >= _SECONDS_BEFORE_NAMED and name not in self._named:
                self._named.add(name)
                # The writer of the open line ends it later.
                self._write(f"\nrunning {name}" if self._is_within_line() else f"running {name}\n")

    def _write(self, text: str) -> None:
        with self._lock:
            if self._is_ended:
                return
            if self._descriptor is not None:
                os.write(self._descriptor, text.encode("utf-8", "replace"))
            else:
                self._stream.write(text)
                self._stream.flush()


class Ticker:
    """Repeats `work` about once a second, in a thread, from start to stop; exceptions are only counted, in `missed_count`.

    A fork of the process stops it, so that no thread of ours disturbs the fork; the next `start` continues.
    """

    def __init__(self, work: Callable[[], None], *, name: str) -> None:
        self.missed_count = 0
        self._work = work
        self._name = name
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        _TICKERS.add(self)

    def start(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is None:
            self._ended = threading.Event()
            self._thread = threading.Thread(target=self._tick, args=(self._ended,), name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread; wait at most a second for work in progress."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ended.set()
            thread.join(_MOST_JOINED_SECONDS)

    def _tick(self, ended: threading.Event) -> None:
        began, pause = monotonic_seconds(), _SECONDS_BEFORE
        while not ended.wait(pause):
            try:
                self._work()
            except Exception:
                self.missed_count += 1
            owed = _LEAST_REST * (thread_seconds() - _LOADING_SECONDS)
            pause = max(_SECONDS_BETWEEN, owed - (monotonic_seconds() - began))


class Errand(Generic[_T]):
    """Does `work` once, in a thread: after a pause, or as soon as somebody waits for it. A fork of the process does."""

    def __init__(self, work: Callable[[], _T], *, name: str, pause_seconds: float = 0) -> None:
        self._work = work
        self._pause_seconds = pause_seconds
        self._is_awaited = threading.Event()
        self._answer: _T | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._do, name=name, daemon=True)
        self._thread.start()
        _ERRANDS.add(self)

    @property
    def is_done(self) -> bool:
        """Tell whether it has ended."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Wait for its end."""
        self._is_awaited.set()
        self._thread.join()

    def get_answer(self) -> _T:
        """Wait for its end, and return what the work has returned, or raise what it has raised."""
        self.wait()
        if self._error is not None:
            raise self._error
        return cast("_T", self._answer)

    def _do(self) -> None:
        self._is_awaited.wait(self._pause_seconds)
        try:
            self._answer = self._work()
        except BaseException as error:
            self._error = error


_TICKERS: WeakSet[Ticker] = WeakSet()
_ERRANDS: WeakSet[Errand[Any]] = WeakSet()


def _stop_all() -> None:
    # An errand may start a ticker.
    for errand in list(_ERRANDS):
        errand.wait()
    for ticker in list(_TICKERS):
        ticker.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_stop_all)
