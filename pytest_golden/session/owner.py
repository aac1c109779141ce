"""What only the process that owns the session has: record, results, floor, terminal and reports. An xdist worker imports none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.session.declared import find_default_manifest
from pytest_golden.session.earlier import EarlierRuns
from pytest_golden.session.header import describe_options, warn_of_nothing
from pytest_golden.session.results import FloorCheck, GoldenLock, GoldenRecorder, SessionParts
from pytest_golden.session.terminal import GoldenTerminal, LateExitStatus, Screen
from pytest_golden.session.writing import GitHubNews, GoldenReports
from pytest_golden.settings import NO_STORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pytest

    from pytest_golden.history.unchanged import Selection
    from pytest_golden.session.board import RunBoard
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.gateway import SessionGateway
    from pytest_golden.session.run_recording import GoldenRecording
    from pytest_golden.session.selection import SessionShard
    from pytest_golden.settings import GoldenSettings


class SessionOwner:
    """Makes and registers what gathers, shows, writes and records the results of a session."""

    def __init__(
        self,
        config: pytest.Config,
        settings: GoldenSettings,
        declared: Declared,
        board: RunBoard,
        gateway: SessionGateway,
        *,
        shard: SessionShard | None,
    ) -> None:
        self._config = config
        self._settings = settings
        self._declared = declared
        self._board = board
        self._gateway = gateway
        self._shard = shard
        warning = warn_of_nothing(declared, settings.mode)
        self._warnings = [] if warning is None else [warning]
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        self._screen = None if reporter is None else Screen(reporter)
        self._recording = self._make_recording()
        slowdowns = None if self._recording is None else self._recording.read_slowdowns
        self.earlier = EarlierRuns(self._find_selection, slowdowns)

    def register(self, register: Callable[[object, str], None], *, notes: Iterable[str]) -> None:
        """Register the hooks of all parts. `notes` are lines for the header.

        Raises:
            SettingsError: the base cannot be compared with, or the ref of `--golden-changed` is not there.
        """
        config, settings, declared, recording = self._config, self._settings, self._declared, self._recording
        lock = GoldenLock(declared.manifest.workspace_root, self.say)
        recorder = GoldenRecorder(
            config,
            declared,
            self._board,
            skips_fail=settings.require_said,
            shard=self._shard,
            lock=lock,
            record=recording,
        )
        register(recorder, "golden_recorder")
        default_manifest = find_default_manifest(config)
        floor = FloorCheck(settings, declared, recorder, default_manifest=default_manifest, earlier=self.earlier)
        register(floor, "golden_floor")
        parts = SessionParts(
            settings,
            declared,
            self._gateway,
            self._board,
            self.earlier,
            recorder,
            floor,
            self._warnings,
            (*notes, *describe_options(config, declared)),
            self._shard,
        )
        reports = GoldenReports(parts, GitHubNews(parts), recording)
        terminal = None
        if self._screen is not None:
            describe_streak = _know_no_streak if recording is None else recording.describe_streak
            terminal = GoldenTerminal(self._screen, parts, reports, describe_streak)
            register(terminal, "golden_terminal")
        register(lock, "golden_lock")
        if recording is not None:
            register(recording, "golden_recording")
        # Their hooks come last at the session's end, when the exit status is known.
        register(reports, "golden_reports")
        register(LateExitStatus(reports, terminal), "golden_exit_status")
        # A ref that is not there is refused before anything runs.
        _ = self.earlier.selection

    def say(self, text: str) -> None:
        """Write a line of its own on the terminal, if there is one."""
        if self._screen is not None:
            self._screen.say(text)

    def _make_recording(self) -> GoldenRecording | None:
        if self._settings.store == NO_STORE or self._config.option.collectonly:
            return None
        # A mere collection does without: the database library costs more than all the rest.
        from pytest_golden.session.run_recording import GoldenRecording

        return GoldenRecording(
            self._config,
            self._settings,
            self._declared,
            self._board,
            self._gateway,
            shard=self._shard,
            say=self.say,
            warnings=self._warnings,
        )

    def _find_selection(self) -> Selection | None:
        if self._settings.changed is None or self._config.option.collectonly:
            return None
        from pytest_golden.session.selection import find_selection

        recording = self._recording
        if recording is None:
            return find_selection(self._config, self._settings, self._declared, None, dict)
        with recording.open_earlier() as store:
            return find_selection(self._config, self._settings, self._declared, store, recording.hide)


def _know_no_streak(name: str) -> str:  # noqa: ARG001 - nothing is recorded
    return ""
