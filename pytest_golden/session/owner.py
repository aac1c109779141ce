"""What only the process that owns the session has: recorder, terminal, record and reports. An xdist worker imports none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.session.declared import find_default_manifest
from pytest_golden.session.floor_check import FloorCheck
from pytest_golden.session.header import describe_options, warn_of_nothing
from pytest_golden.session.locking import GoldenLock
from pytest_golden.session.parts import SessionParts
from pytest_golden.session.results import GoldenRecorder
from pytest_golden.session.scheduler import is_distributed
from pytest_golden.session.terminal import GoldenTerminal, LateExitStatus
from pytest_golden.session.writing import GitHubNews, GoldenReports
from pytest_golden.settings import NO_STORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pytest

    from pytest_golden.history.unchanged import Selection
    from pytest_golden.session.board import RunBoard
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.earlier import EarlierRuns
    from pytest_golden.session.gateway import SessionGateway
    from pytest_golden.session.run_recording import GoldenRecording
    from pytest_golden.session.sharding import SessionShard
    from pytest_golden.settings import GoldenSettings


class SessionOwner:
    """Registers what gathers, shows, writes and records the results of a session."""

    def __init__(self, config: pytest.Config, register: Callable[[object, str], None]) -> None:
        self._config = config
        self._register = register

    def gather(
        self,
        settings: GoldenSettings,
        declared: Declared,
        board: RunBoard,
        gateway: SessionGateway,
        earlier: EarlierRuns,
        *,
        shard: SessionShard | None,
        notes: Iterable[str],
    ) -> SessionParts:
        """Register what gathers the results and compares the floor, and put it together with what was there before."""
        config = self._config
        recorder = GoldenRecorder(config, declared, board, skips_fail=settings.require_said, shard=shard)
        self._register(recorder, "golden_recorder")
        default_manifest = find_default_manifest(config)
        floor = FloorCheck(settings, declared, recorder, default_manifest=default_manifest, earlier=earlier)
        self._register(floor, "golden_floor")
        warning = warn_of_nothing(declared, settings.mode)
        warnings = [] if warning is None else [warning]
        all_notes = (*notes, *describe_options(config, declared))
        return SessionParts(settings, declared, gateway, board, earlier, recorder, floor, warnings, all_notes, shard)

    def start(self, parts: SessionParts) -> None:
        """Register what shows, writes and records results."""
        config = self._config
        reports = GoldenReports(parts, GitHubNews(parts))
        terminal = self._start_terminal(parts, reports)
        say = _say_nothing if terminal is None else terminal.say
        root = parts.declared.manifest.workspace_root
        lock = GoldenLock(root, parts.recorder, say, is_distributed=is_distributed(config))
        self._register(lock, "golden_lock")
        recording = self._start_recording(parts, say)
        if recording is not None:
            self._register(recording, "golden_recording")
            reports.find_entry_id = lambda: recording.entry_id
            reports.end_record = recording.end
            parts.earlier.read_slowdowns = recording.read_slowdowns
            if terminal is not None:
                terminal.describe_streak = recording.describe_streak
        # It acts last at the session's end, when the exit status is known. What a report says of the run is in the store by then.
        self._register(reports, "golden_reports")
        self._register(LateExitStatus(reports, terminal), "golden_exit_status")
        if parts.settings.changed is not None and not config.option.collectonly:
            parts.earlier.selection = _find_selection(config, parts, recording)

    def _start_terminal(self, parts: SessionParts, reports: GoldenReports) -> GoldenTerminal | None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return None
        terminal = GoldenTerminal(reporter, parts, reports)
        self._register(terminal, "golden_terminal")
        return terminal

    def _start_recording(self, parts: SessionParts, say: Callable[[str], None]) -> GoldenRecording | None:
        if parts.settings.store == NO_STORE or self._config.option.collectonly:
            return None
        # A mere collection does without: the database library costs more than all the rest.
        from pytest_golden.session.run_recording import GoldenRecording

        recording = GoldenRecording(parts, say)
        if is_distributed(self._config):
            # The workers' first collection tells that projects will run, inside this process's own loop.
            parts.recorder.on_selected.append(recording.begin)
        return recording


def _find_selection(config: pytest.Config, parts: SessionParts, recording: GoldenRecording | None) -> Selection:
    from pytest_golden.session.changed import find_selection

    if recording is None:
        return find_selection(config, parts.settings, parts.declared, None, dict)
    with recording.open_earlier() as store:
        return find_selection(config, parts.settings, parts.declared, store, recording.hide)


def _say_nothing(text: str) -> None:  # noqa: ARG001 - there is no terminal to say it on
    return
