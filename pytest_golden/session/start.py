"""Begin a golden session: read what was asked, refuse what cannot be used, and register the hooks that do the work."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.session.baselines import keep_baselines
from pytest_golden.session.board import RunBoard
from pytest_golden.session.collection import GoldenCollection, register_markers, select_manifest
from pytest_golden.session.declared import find_default_manifest, read_declared
from pytest_golden.session.distribution import GoldenDistribution, find_notes, is_distributed, is_worker
from pytest_golden.session.earlier import EarlierRuns
from pytest_golden.session.execution import GoldenExecution
from pytest_golden.session.fleet import join_fleet
from pytest_golden.session.floor import FloorCheck
from pytest_golden.session.gateway import OwnGateway, SessionGateway
from pytest_golden.session.github import GitHubNews
from pytest_golden.session.header import warn_of_nothing
from pytest_golden.session.locking import GoldenLock
from pytest_golden.session.parts import SessionParts
from pytest_golden.session.recorder import GoldenRecorder
from pytest_golden.session.sharding import GoldenSharding, find_shard
from pytest_golden.session.terminal import GoldenTerminal
from pytest_golden.session.writing import GoldenReports
from pytest_golden.settings import (
    NO_STORE,
    GoldenSettings,
    Sources,
    prefer_given_base,
    read_settings,
    refuse_self_accepted_floor,
    refuse_unasked_update,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.gate.changed import Selection
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.recording import GoldenRecording
    from pytest_golden.session.sharding import SessionShard


def start(config: pytest.Config) -> None:
    """Set the golden session up.

    Raises:
        pytest.UsageError: something that a person gave cannot be used; nothing has run.
    """
    try:
        _start(config)
    except GoldenError as error:
        raise pytest.UsageError(str(error)) from None


def _start(config: pytest.Config) -> None:
    settings = _read_settings(config)
    declared = read_declared(settings, find_default_manifest(config), config.rootpath)
    shard = find_shard(settings, declared)
    distributed = is_distributed(config)
    register_markers(config, declared)
    named = select_manifest(config, declared)
    register = _registering(config)
    earlier = EarlierRuns.of(config)
    distribution = GoldenDistribution(declared, earlier) if distributed else None
    if distribution is not None:
        register(distribution, "golden_distribution")
    board = RunBoard(declared.projects, find_notes(config) if distribution is None else distribution.notes)
    gateway = SessionGateway(config)
    register(gateway, "golden_session_gateway")
    register(OwnGateway(settings, declared, earlier), "golden_own_gateway")
    fleet = join_fleet(config, settings, declared, earlier)
    if fleet is not None:
        register(fleet, "golden_fleet")
    register(GoldenCollection(declared, named), "golden_collection")
    if shard is not None:
        register(GoldenSharding(shard), "golden_sharding")
    if not distributed:
        baselines = keep_baselines(settings, declared, config.rootpath)
        execution = GoldenExecution(
            config, declared, gateway, board, baselines=baselines, earlier=earlier, skips_fail=settings.require
        )
        register(execution, "golden_execution")
    if not is_worker(config):
        _start_owner(config, _make_parts(config, settings, declared, board, gateway, earlier, shard=shard))


def _make_parts(
    config: pytest.Config,
    settings: GoldenSettings,
    declared: Declared,
    board: RunBoard,
    gateway: SessionGateway,
    earlier: EarlierRuns,
    *,
    shard: SessionShard | None,
) -> SessionParts:
    """Register what gathers the results and compares the floor, and put it together with what was there before."""
    register = _registering(config)
    recorder = GoldenRecorder(config, declared, board, skips_fail=settings.require, shard=shard)
    register(recorder, "golden_recorder")
    floor = FloorCheck(settings, declared, recorder, default_manifest=find_default_manifest(config), earlier=earlier)
    register(floor, "golden_floor")
    warning = warn_of_nothing(declared, settings.mode)
    warnings = [] if warning is None else [warning]
    return SessionParts(settings, declared, gateway, board, earlier, recorder, floor, warnings, shard)


def _start_owner(config: pytest.Config, parts: SessionParts) -> None:
    """Register what shows, writes and records results."""
    register = _registering(config)
    reports = GoldenReports(parts, GitHubNews(parts))
    terminal = _start_terminal(config, parts, reports)
    say = _say_nothing if terminal is None else terminal.say
    root = parts.declared.manifest.workspace_root
    register(GoldenLock(root, parts.recorder, say, is_distributed=is_distributed(config)), "golden_lock")
    recording = _start_recording(config, parts, say)
    if recording is not None:
        register(recording, "golden_recording")
        reports.find_entry_id = lambda: recording.entry_id
        parts.earlier.read_slowdowns = recording.read_slowdowns
        if terminal is not None:
            terminal.describe_streak = recording.describe_streak
    # Both act last at the session's end, in the order of their registration: what a report says of the run is in the store by then.
    register(reports, "golden_reports")
    if parts.settings.changed is not None and not config.option.collectonly:
        parts.earlier.selection = _find_selection(config, parts, recording)


def _start_terminal(config: pytest.Config, parts: SessionParts, reports: GoldenReports) -> GoldenTerminal | None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return None
    terminal = GoldenTerminal(reporter, parts, reports)
    _registering(config)(terminal, "golden_terminal")
    return terminal


def _start_recording(config: pytest.Config, parts: SessionParts, say: Callable[[str], None]) -> GoldenRecording | None:
    if parts.settings.store == NO_STORE or config.option.collectonly:
        return None
    # Not imported for a mere collection: the database library costs more than all the rest of it.
    room = import_module("pytest_golden.session.recording")
    recording: GoldenRecording = room.GoldenRecording(parts, say)
    if is_distributed(config):
        # The workers' first collection tells that projects will run, inside this process's own loop.
        parts.recorder.on_selected.append(recording.begin)
    return recording


def _find_selection(config: pytest.Config, parts: SessionParts, recording: GoldenRecording | None) -> Selection:
    room = import_module("pytest_golden.session.changed")
    find: Callable[..., Selection] = room.find_selection
    if recording is None:
        return find(config, parts.settings, parts.declared, None, dict)
    with recording.open_earlier() as store:
        return find(config, parts.settings, parts.declared, store, recording.hide)


def _registering(config: pytest.Config) -> Callable[[object, str], None]:
    """Give what registers a part of ours, which `-p no:` in addopts must not take away: the floor would be among them."""

    def register(part: object, name: str) -> None:
        if config.pluginmanager.register(part, name) is None:
            message = f"-p no:{name} takes away a part of the gate: leave it out, wherever it is given."
            raise SettingsError(message)

    return register


def _read_settings(config: pytest.Config) -> GoldenSettings:
    arguments = [str(argument) for argument in config.invocation_params.args]
    sources = Sources(
        flag=prefer_given_base(config.getoption, arguments, os.environ),
        ini=config.getini,
        environment=os.environ,
        invocation_dir=config.invocation_params.dir,
        rootdir=config.rootpath,
    )
    try:
        settings = read_settings(sources)
        refuse_self_accepted_floor(settings.floor, arguments, os.environ)
        refuse_unasked_update(update=settings.update, arguments=arguments, environment=os.environ)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    return settings


def _say_nothing(text: str) -> None:  # noqa: ARG001 - there is no terminal to say it on
    return
