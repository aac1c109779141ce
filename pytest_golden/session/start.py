"""Begin a golden session: read what was asked, refuse what cannot be used, and register the hooks that do the work."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.session.board import RunBoard
from pytest_golden.session.collection import GoldenCollection, register_markers, select_manifest
from pytest_golden.session.declared import read_declared
from pytest_golden.session.distribution import GoldenDistribution, find_notes, is_distributed, is_worker
from pytest_golden.session.execution import GoldenExecution
from pytest_golden.session.floor import FloorCheck
from pytest_golden.session.gateway import OwnGateway, SessionGateway
from pytest_golden.session.github import GitHubNews
from pytest_golden.session.header import warn_of_nothing
from pytest_golden.session.locking import GoldenLock
from pytest_golden.session.recorder import GoldenRecorder
from pytest_golden.session.terminal import GoldenTerminal
from pytest_golden.session.writing import GoldenReports
from pytest_golden.settings import (
    MANIFEST_NAME,
    NO_STORE,
    GoldenSettings,
    Sources,
    prefer_given_base,
    read_settings,
    refuse_self_accepted_floor,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.session.declared import Declared


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
    declared = read_declared(settings, config.rootpath)
    distributed = is_distributed(config)
    register_markers(config, declared)
    named = select_manifest(config, declared)
    register = _registering(config)
    distribution = GoldenDistribution(declared) if distributed else None
    if distribution is not None:
        register(distribution, "golden_distribution")
    board = RunBoard(declared.projects, find_notes(config) if distribution is None else distribution.notes)
    gateway = SessionGateway(config)
    register(gateway, "golden_session_gateway")
    register(OwnGateway(settings, declared), "golden_own_gateway")
    register(GoldenCollection(declared, named), "golden_collection")
    if not distributed:
        register(GoldenExecution(config, declared, gateway, board, skips_fail=settings.require), "golden_execution")
    if not is_worker(config):
        _start_owner(config, settings, declared, board, gateway)


def _start_owner(
    config: pytest.Config, settings: GoldenSettings, declared: Declared, board: RunBoard, gateway: SessionGateway
) -> None:
    """Register what belongs into the one process that shows and writes results."""
    register = _registering(config)
    recorder = GoldenRecorder(config, declared, board, skips_fail=settings.require)
    register(recorder, "golden_recorder")
    floor = FloorCheck(settings, declared, recorder, default_manifest=config.rootpath / MANIFEST_NAME)
    register(floor, "golden_floor")
    warning = warn_of_nothing(declared, settings.mode)
    warnings = [] if warning is None else [warning]
    reports = GoldenReports(settings, declared, recorder, floor, GitHubNews(declared, recorder, floor, warnings))
    register(reports, "golden_reports")
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    say, terminal = _say_nothing, None
    if reporter is not None:
        terminal = GoldenTerminal(
            reporter, declared, recorder, gateway, board, floor=floor, reports=reports, warnings=warnings
        )
        register(terminal, "golden_terminal")
        say = terminal.say
    root = declared.manifest.workspace_root
    register(GoldenLock(root, recorder, say, is_distributed=is_distributed(config)), "golden_lock")
    if settings.store != NO_STORE and not config.option.collectonly:
        # Not imported for a mere collection: the database library costs more than all the rest of it.
        room = import_module("pytest_golden.session.recording")
        recording = room.GoldenRecording(settings, declared, recorder, floor, gateway, warnings=warnings, say=say)
        if is_distributed(config):
            # The workers' first collection tells that projects will run, inside this process's own loop.
            recorder.on_selected.append(recording.begin)
        register(recording, "golden_recording")
        reports.find_entry_id = lambda: recording.entry_id
        if terminal is not None:
            terminal.describe_streak = recording.describe_streak


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
    except ValueError as error:
        raise SettingsError(str(error)) from None
    return settings


def _say_nothing(text: str) -> None:  # noqa: ARG001 - there is no terminal to say it on
    return
