"""Begin a golden session: read what was asked, refuse what cannot be used, and register the hooks that do the work."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_golden import settings as options
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.session.collection import GoldenCollection, TagMarkers, select_manifest
from pytest_golden.session.declared import find_default_manifest, read_declared
from pytest_golden.session.earlier import EarlierRuns
from pytest_golden.session.gateway import GoldenSession, OwnGateway, SessionGateway
from pytest_golden.session.item import EXECUTION, ItemWork
from pytest_golden.session.live_line import RunBoard
from pytest_golden.session.running import GoldenExecution
from pytest_golden.session.scheduler import GoldenDistribution, is_worker, make_notes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_golden.session.declared import Declared
    from pytest_golden.session.selection import SessionShard


def start(config: pytest.Config, own_markers: Sequence[str]) -> None:
    """Set the golden session up. `own_markers` are the lines of the configuration file that declare markers.

    Raises:
        pytest.UsageError: something that a person gave cannot be used; nothing has run.
    """
    try:
        _start(config, own_markers)
    except GoldenError as error:
        # `--markers` lists markers and runs nothing: a manifest that is missing or wrong has no tags to list.
        if not config.option.markers:
            raise pytest.UsageError(str(error)) from None


def _start(config: pytest.Config, own_markers: Sequence[str]) -> None:
    """Make the parts of a session from top to bottom, each from those above it, and register their hooks."""
    settings = _read_settings(config)
    declared = read_declared(settings, find_default_manifest(config), config.rootpath)
    shard = _find_shard(settings, declared)
    notes = make_notes(config)
    markers = TagMarkers(config, declared, own_markers)
    named = select_manifest(config, declared)
    register = _registering(config)
    gateway = SessionGateway(config)
    session = GoldenSession(config, settings, declared, RunBoard(declared.projects, notes), gateway, shard)
    owner = None
    if not is_worker(config):
        # An xdist worker imports none of it.
        from pytest_golden.session.owner import SessionOwner

        owner = SessionOwner(session)
    earlier = EarlierRuns.of_controller(config) if owner is None else owner.earlier
    if notes is not None and owner is not None:
        register(GoldenDistribution(session, earlier, notes), "golden_distribution")
    register(gateway, "golden_session_gateway")
    register(OwnGateway(session, earlier), "golden_own_gateway")
    if settings.gateway is not None and owner is not None:
        from pytest_golden.session.fleet import join_fleet

        fleet = join_fleet(session, earlier, owner.say)
        if fleet is not None:
            register(fleet, "golden_fleet")
    work = ItemWork(declared, settings.require_said, markers.list_names)
    register(GoldenCollection(work, named), "golden_collection")
    if shard is not None:
        from pytest_golden.session.selection import GoldenSharding

        register(GoldenSharding(shard), "golden_sharding")
    if owner is None or notes is None:
        register(GoldenExecution(session, earlier), EXECUTION)
    if owner is not None:
        owner.register(register, notes=tuple(markers.describe()))


def _find_shard(settings: options.GoldenSettings, declared: Declared) -> SessionShard | None:
    if settings.shard is None:
        return None
    from pytest_golden.session.selection import find_shard

    return find_shard(settings, declared)


def _registering(config: pytest.Config) -> Callable[[object, str], None]:
    """Return a function that registers a part of ours; `-p no:` must not remove one, since the floor is among them."""

    def register(part: object, name: str) -> None:
        if config.pluginmanager.register(part, name) is None:
            raise SettingsError(f"-p no:{name} disables a part of the gate: remove it, wherever it is set.")

    return register


def _read_settings(config: pytest.Config) -> options.GoldenSettings:
    arguments = [str(argument) for argument in config.invocation_params.args]
    sources = options.Sources(
        flag=options.prefer_given_base(config.getoption, arguments, os.environ),
        ini=config.getini,
        environment=os.environ,
        invocation_dir=config.invocation_params.dir,
        rootdir=config.rootpath,
        ini_file=config.inipath,
    )
    try:
        settings = options.read_settings(sources)
        options.refuse_self_accepted_floor(settings.floor, arguments, os.environ)
        options.refuse_unasked_update(update=settings.update, arguments=arguments, environment=os.environ)
        options.refuse_untyped_trust(trusted=settings.fleet_trusted, arguments=arguments, environment=os.environ)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    return settings
