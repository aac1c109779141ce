"""`--golden-gateway` in a session: refuse what no fleet can do, connect, and be the gateway that the session asks for."""

from __future__ import annotations

import secrets
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.compare.baselines import find_baselines_folder
from pytest_golden.errors import SettingsError
from pytest_golden.gate.state_folder import choose_log_folder, find_store_place, list_store_files, prepare_state_folder
from pytest_golden.regression.wording import name_some
from pytest_golden.session.declared import name_session
from pytest_golden.session.gateway import find_command, keep_baselines
from pytest_golden.session.scheduler import is_distributed, is_worker
from pytest_golden.storage.folder import STATE_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_golden.gateway.model import Gateway
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.session.earlier import EarlierRuns
    from pytest_golden.session.gateway import GoldenSession
    from pytest_golden.settings import GoldenSettings

_FLAG = "--golden-gateway"


class FleetFace:
    """Answers `pytest_golden_gateway` with the fleet, before anyone else, and leaves it at the end whatever happens."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway

    @pytest.hookimpl(tryfirst=True)
    def pytest_golden_gateway(self, config: pytest.Config) -> Gateway:
        """Return the fleet's gateway, unless by now something is plugged in that cannot travel."""
        _refuse_plugged_in(config)
        gateway: Gateway = self._gateway
        return gateway

    def pytest_unconfigure(self) -> None:
        """Leave the cluster."""
        self._gateway.close()


def join_fleet(session: GoldenSession, earlier: EarlierRuns, say: Callable[[str], None]) -> FleetFace | None:
    """Connect to the fleet that is named; None without one, or where nothing will run. `say` shows a line to people.

    Raises:
        SettingsError: the cluster cannot be used, or something is asked for that no fleet can do.
    """
    config, settings = session.config, session.settings
    if settings.gateway is None or config.option.collectonly or not session.declared.projects:
        return None
    if find_spec("distributed") is None:
        message = f"{_FLAG} needs Dask, which is not installed here: pip install 'pytest-golden-projects[dask]'"
        raise SettingsError(message)
    from pytest_golden.fleet.cluster import Cluster, find_address

    address = find_address(settings.gateway)
    _refuse_combinations(config, settings)
    _refuse_plugged_in(config)
    _refuse_untrusted(settings, address, session.declared.projects.values())
    cluster = Cluster.connect(settings.gateway, address, partial(_say_at_once, config, say))
    try:
        return FleetFace(_make_gateway(session, earlier, cluster))
    except BaseException:
        cluster.close()
        raise


def _make_gateway(asked: GoldenSession, earlier: EarlierRuns, cluster: Any) -> Any:
    # Imported only by a gate on a fleet, as the two rooms below.
    from pytest_golden.fleet import fleet_gateway as room
    from pytest_golden.fleet.shipping import FleetSession
    from pytest_golden.gateway.service import ExecutionGateway

    config, settings = asked.config, asked.settings
    local = ExecutionGateway(asked.root, roots=(config.rootpath,))
    root = local.workspace_root
    gate_id = name_session(config)
    state_folder = prepare_state_folder(root)
    folder = find_baselines_folder(asked.declared.manifest_path, root).resolve()
    inside = folder.relative_to(root).as_posix() if folder.is_relative_to(root) else None
    written = list_store_files(find_store_place(settings.store, state_folder))
    session = FleetSession(
        id=gate_id,
        root=str(root),
        # Somewhere else it would tell nothing of the workspace.
        token_file=str(state_folder / f"fleet-{gate_id}") if state_folder == root / STATE_FOLDER else "",
        # Only a worker that sees the same workspace can read it.
        token=secrets.token_hex(16),
        baselines=str(folder),
        baselines_inside=inside,
        accept_command=keep_baselines(asked, Path.cwd()).accept_command,
        view=settings.sandbox,
        roots=(str(config.rootpath),),
        keep=settings.keep,
        hidden=tuple(map(str, written)),
    )
    reports = (path for path in (settings.junit, settings.json, settings.html) if path is not None)
    plan = room.FleetPlan(
        session,
        left_out=(*reports, *written),
        log_folder=choose_log_folder(state_folder, gate_id),
        find_command=partial(find_command, config),
        slowdowns=lambda: earlier.slowdowns,
    )
    return room.FleetGateway(cluster, plan, local)


def _refuse_combinations(config: pytest.Config, settings: GoldenSettings) -> None:
    refused = {
        "-n": (is_worker(config) or is_distributed(config), "the fleet already runs projects in parallel"),
        "--golden-update": (
            settings.update,
            "a person must look at the outputs where the pipeline ran: accept them in a gate on one machine",
        ),
        "--golden-reads": (settings.reads, "a worker also sees what other projects read at the same time"),
    }
    for option, (is_given, why) in refused.items():
        if is_given:
            raise SettingsError(f"{option} cannot be used with {_FLAG}, because {why}: leave one of them out.")


def _refuse_untrusted(settings: GoldenSettings, address: str, projects: Iterable[GoldenProjectConfig]) -> None:
    """Refuse a fleet whose network others can reach, unless a person trusts them all.

    Raises:
        SettingsError: the connection is not encrypted, or a pipeline has the network.
    """
    if settings.fleet_trusted:
        return
    networked = [project.name for project in projects if project.network]
    reasons = [
        *(() if address.startswith("tls:") else ("is used without TLS (dask+tls://)",)),
        *((f"runs pipelines with a network ({name_some(networked, 3)}), which may reach it",) if networked else ()),
    ]
    if reasons:
        raise SettingsError(
            f"{_FLAG}: {settings.gateway} {' and '.join(reasons)}, and whoever reaches a Dask cluster can run code on every worker: "
            f"use TLS and `network: false`, or type --golden-fleet-trusted if you trust all who do."
        )


def _refuse_plugged_in(config: pytest.Config) -> None:
    """Refuse what third parties do to every run in this process: a worker would leave it out, and a secret stay in.

    Raises:
        SettingsError: a hook gives step readers or redactors.
    """
    plugged = {
        "pytest_golden_redactors": config.hook.pytest_golden_redactors(config=config),
        "pytest_golden_step_readers": config.hook.pytest_golden_step_readers(),
    }
    for name, answers in plugged.items():
        if any(answers):
            message = f"{name} is implemented here, and its objects cannot be sent to the workers of {_FLAG}: leave one of them out."
            raise SettingsError(message)


def _say_at_once(config: pytest.Config, say: Callable[[str], None], text: str) -> None:
    """Say something while a project is waited for: captured text would be shown only after that."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        say(text)
