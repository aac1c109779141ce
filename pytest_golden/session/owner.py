"""The parts that only the controller has: record, results, floor, terminal and reports. An xdist worker imports none of it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.session.earlier import EarlierRuns
from pytest_golden.session.header import describe_options, warn_of_nothing
from pytest_golden.session.results import FloorCheck, GoldenLock, GoldenRecorder, SessionParts
from pytest_golden.session.terminal import GoldenTerminal, LateExitStatus, Screen
from pytest_golden.session.writing import GoldenReports
from pytest_golden.settings import NO_STORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pytest

    from pytest_golden.history.unchanged import Hide, Selection
    from pytest_golden.session.gateway import GoldenSession
    from pytest_golden.session.run_recording import GoldenRecording
    from pytest_golden.storage.store import Store

_CONFTEST = "conftest.py"
_OURS = Path(__file__).parents[1]
_INSTALLED = f"{os.sep}site-packages{os.sep}"
_BESIDE_STORE = ("", "-wal", "-shm", "-journal")


class SessionOwner:
    """Makes and registers what gathers, shows, writes and records the results of a session."""

    def __init__(self, session: GoldenSession) -> None:
        self._session = session
        warning = warn_of_nothing(session.declared, session.settings.mode)
        self._warnings = [] if warning is None else [warning]
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        self._screen = None if reporter is None else Screen(reporter)
        self._recording = self._make_recording()
        slowdowns = None if self._recording is None else self._recording.read_slowdowns
        self.earlier = EarlierRuns(self._find_selection, slowdowns)

    def register(self, register: Callable[[object, str], None], *, notes: Iterable[str]) -> None:
        """Register the hooks of all parts. `notes` are lines for the header.

        Raises:
            SettingsError: the base cannot be compared with, or the ref of `--golden-changed` is not there.
        """
        session, recording = self._session, self._recording
        lock = GoldenLock(session.root, self.say)
        recorder = GoldenRecorder(session, lock, recording)
        register(recorder, "golden_recorder")
        floor = FloorCheck(session, recorder, self.earlier)
        register(floor, "golden_floor")
        notes = (*notes, *describe_options(session.config, session.declared))
        parts = SessionParts(session, self.earlier, recorder, floor, self._warnings, notes)
        reports = GoldenReports(parts, recording)
        terminal = None
        if self._screen is not None:
            describe_streak = (lambda _: "") if recording is None else recording.describe_streak
            terminal = GoldenTerminal(self._screen, parts, reports, describe_streak)
            register(terminal, "golden_terminal")
        register(lock, "golden_lock")
        if recording is not None:
            register(recording, "golden_recording")
        # Their hooks come last at the session's end, when the exit status is known.
        register(reports, "golden_reports")
        register(LateExitStatus(reports, terminal), "golden_exit_status")
        # An unknown ref is refused before anything runs.
        _ = self.earlier.selection

    def say(self, text: str) -> None:
        """Write a separate line on the terminal, if there is one."""
        if self._screen is not None:
            self._screen.say(text)

    def _make_recording(self) -> GoldenRecording | None:
        if self._session.settings.store == NO_STORE or self._session.config.option.collectonly:
            return None
        # A session that only collects does not load the database library, which costs more than all the rest.
        from pytest_golden.session.run_recording import GoldenRecording

        return GoldenRecording(self._session, self.say, self._warnings)

    def _find_selection(self) -> Selection | None:
        if self._session.settings.changed is None or self._session.config.option.collectonly:
            return None
        recording = self._recording
        if recording is None:
            return _find_selection(self._session, None, dict)
        with recording.open_earlier() as store:
            return _find_selection(self._session, store, recording.hide)


def _find_selection(session: GoldenSession, store: Store | None, hide: Hide) -> Selection:
    """Find which projects are unchanged since the ref, and what these changes have broken before.

    Raises:
        SettingsError: the ref is not there; the message says what to fetch.
    """
    from pytest_golden.gate.known import foresee
    from pytest_golden.history.unchanged import Question, select_changed

    config, settings, declared = session.config, session.settings, session.declared
    folders = [config.rootpath, *([] if declared.manifest_path is None else [declared.manifest_path.parent])]
    question = Question(
        str(settings.changed),
        declared.manifest,
        hide,
        tuple(_list_products(session, store)),
        tuple(_list_judging(config, folders)),
        reads=settings.reads,
        # A worker of a fleet compares by itself, and what a narrowed run did not write must stay accepted.
        narrows=settings.gateway is None and not settings.update,
    )
    selection = select_changed(question, store)
    if store is None or selection.commit is None or settings.learning == "off":
        return selection
    try:
        foresight = foresee(store, session.root, question.ref, projects=declared.projects.keys())
        return replace(selection, forewarnings=foresight.tell())
    except Exception as error:
        # It is only a hint for the person who waits.
        return replace(selection, forewarnings=(f"what these changes broke before is not known: {error}",))


def _list_judging(config: pytest.Config, folders: Iterable[Path]) -> Iterator[Path]:
    """List the files that take part in judging every project and may lie in the checkout.

    A conftest or a plugin of one's own has the hooks' code, or imports it: whatever is imported by now and not installed.
    """
    yield from (folder / _CONFTEST for folder in folders)
    if config.inipath is not None:
        yield config.inipath
    yield _OURS
    installed = (str(_OURS), sys.prefix, sys.base_prefix)
    for module in tuple(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(file, str) and not file.startswith(installed) and _INSTALLED not in file:
            yield Path(file)


def _list_products(session: GoldenSession, store: Store | None) -> Iterator[Path]:
    """List the files that are the gate's own: reports, also pytest's, the store, and the plan of shards."""
    config, settings = session.config, session.settings
    from pytest_golden.session.selection import find_plan_file

    plan = find_plan_file(settings, session.declared)
    if plan is not None:
        yield plan
    reports = (settings.junit, settings.json, settings.html, config.getoption("xmlpath", None))
    yield from (Path(config.invocation_params.dir, path) for path in reports if path is not None)
    if store is not None and store.path is not None:
        yield from (Path(f"{store.path}{ending}") for ending in _BESIDE_STORE)
