"""What this session executes with: the gateway, requested once through the hook, our own implementation of it, and the baselines."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_golden.errors import GatewayError
from pytest_golden.session.declared import name_session
from pytest_golden.storage.folder import STATE_FOLDER
from pytest_golden.values.loading import loading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_golden.compare.examination import BaselineKeeper
    from pytest_golden.gate.events import SecretHider
    from pytest_golden.gateway.model import Gateway, RunnerCommand
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.earlier import EarlierRuns
    from pytest_golden.session.live_line import RunBoard
    from pytest_golden.session.selection import SessionShard
    from pytest_golden.settings import GoldenSettings

# Options, by their names in `config.option`, that name a file or folder which grows while tests run: of pytest, of
# pytest-reportlog and of allure-pytest. Other reports are written at the session's end.
_GROWING_REPORTS = ("log_file", "report_log", "allure_report_dir")


class SessionGateway:
    """Gives the session's gateway. It is made at first use, so a session that only collects pays nothing."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._gateway: Gateway | None = None

    def get(self) -> Gateway:
        """Return the gateway.

        Raises:
            GatewayError: a plugged-in gateway cannot execute anything.
        """
        if self._gateway is None:
            with loading():
                found = self._config.hook.pytest_golden_gateway(config=self._config)
            if not callable(getattr(found, "run_pipeline", None)):
                raise GatewayError(
                    f"pytest_golden_gateway returned {found!r}, which has no run_pipeline: return an object that has one."
                )
            self._gateway = found
        return self._gateway

    def call(self, name: str, *arguments: Any) -> Any:
        """Call an optional method of the gateway; return None if it has no such method."""
        method = getattr(self.get(), name, None)
        return method(*arguments) if callable(method) else None

    def pytest_unconfigure(self) -> None:
        """Let the gateway remove its scratch folder."""
        if self._gateway is not None:
            self.call("close")


class GoldenSession(NamedTuple):
    """What the parts of a session are made from. `shard` is the part of the declared projects that it runs; None means all."""

    config: pytest.Config
    settings: GoldenSettings
    declared: Declared
    board: RunBoard
    gateway: SessionGateway
    shard: SessionShard | None

    @property
    def root(self) -> Path:
        """The workspace root."""
        return self.declared.manifest.workspace_root

    def make_hider(self) -> SecretHider:
        """Return the function that hides secrets: the output of one project may hold a secret of another."""
        from pytest_golden.gate.events import SecretHider

        return SecretHider(partial(self.gateway.call, "redact"), self.declared.projects.values())

    def note_present_step(self) -> None:
        """Record the current step of this process's project, if its gateway reports it."""
        name = self.board.find_own()
        if name is None:
            return
        step = self.gateway.call("present_step")
        # Another project may have begun since, and the step may be its.
        if step is not None and self.board.find_own() == name:
            self.board.note_step(name, str(step))

    def note_elsewhere(self) -> None:
        """Record what other machines run beside this process's project, if its gateway reports it."""
        has_own = self.board.find_own() is not None
        self.board.note_elsewhere((self.gateway.call("list_elsewhere") or {}) if has_own else {})


class OwnGateway:
    """Our implementation of `pytest_golden_gateway`, which the other hooks use too."""

    def __init__(self, session: GoldenSession, earlier: EarlierRuns) -> None:
        self._session = session
        self._earlier = earlier

    @pytest.hookimpl(trylast=True)
    def pytest_golden_gateway(self, config: pytest.Config) -> Gateway:
        """Return the gateway with the chosen view."""
        # An xdist worker that runs only ordinary tests never needs these.
        from pytest_golden.compare.baselines import find_baselines_folder
        from pytest_golden.gate import state_folder as folders
        from pytest_golden.gate.service import choose_keeping
        from pytest_golden.gateway.service import ExecutionGateway

        hook, root, settings = config.hook, self._session.root, self._session.settings
        state_folder = folders.prepare_state_folder(root)
        # The gate itself writes accepted outputs, while other projects may be running.
        accepted = [find_baselines_folder(self._session.declared.manifest_path, root)] if settings.update else []
        written = folders.list_store_files(folders.find_store_place(settings.store, state_folder))
        reads = None
        if settings.reads:
            from pytest_golden.gateway.reads import ReadRecorder

            reads = ReadRecorder(root)
        return ExecutionGateway(
            root,
            view=settings.sandbox,
            roots=(config.rootpath, *_list_judged(settings)),
            python=sys.executable if settings.python is None else str(settings.python),
            find_command=lambda project: find_command(config, project),
            step_readers=tuple(_flatten(hook.pytest_golden_step_readers())),
            redactors=tuple(_flatten(hook.pytest_golden_redactors(config=config))),
            log_folder=folders.choose_log_folder(state_folder, name_session(config)),
            keep_if=choose_keeping(settings.keep, lambda: self._earlier.slowdowns),
            unwatched=accepted,
            growing=_list_growing_reports(config, root),
            # A folder that replaces `.golden` may be where pipelines can see it.
            hidden=(*written, *([state_folder] if state_folder.name != STATE_FOLDER else [])),
            reads=reads,
        )


def _list_judged(settings: GoldenSettings) -> list[Path]:
    """Return the checkout that is judged from outside: its projects may read files beside the workspace."""
    if settings.workspace is None:
        return []
    from pytest_golden.gateway.git import find_top

    top = find_top(settings.workspace)
    return [] if top is None else [top]


def _list_growing_reports(config: pytest.Config, root: Path) -> Iterator[Path]:
    """List the files below the workspace root that pytest, its plug-ins and coverage.py write while the session runs."""
    named = [config.getoption(name, None) for name in _GROWING_REPORTS]
    if "coverage" in sys.modules:
        from pytest_golden.gateway.line_coverage import find_measuring

        measuring = find_measuring()
        named += [] if measuring is None else [measuring.get_option("run:data_file")]
    for given in named:
        if isinstance(given, str) and given:
            path = Path(config.invocation_params.dir, given).resolve()
            if root.resolve() in path.parents:
                yield path


def find_command(config: pytest.Config, project: GoldenProjectConfig) -> RunnerCommand | None:
    """Ask the hook which command starts a project's pipeline; None if no plug-in knows one."""
    found: RunnerCommand | None = config.hook.pytest_golden_runner(project=project)
    return found


def _flatten(answers: Iterable[Any]) -> Iterable[Any]:
    for answer in answers:
        if isinstance(answer, (list, tuple)):
            yield from answer
        elif answer is not None:
            yield answer


def keep_baselines(session: GoldenSession, folder: Path) -> BaselineKeeper:
    """Return the object that compares the outputs of this session's projects, and accepts them with `--golden-update`.

    `folder` is the person's current folder.
    """
    from pytest_golden.compare.baselines import find_baselines_folder
    from pytest_golden.compare.examination import BaselineKeeper
    from pytest_golden.gate.state_folder import describe_origin, find_state_folder
    from pytest_golden.report.shell_command import accept_command

    settings, manifest = session.settings, session.declared.manifest_path
    kept_in = find_baselines_folder(manifest, session.root)
    if manifest is None:
        # The inline form declares no outputs, so nothing is reported about them.
        return BaselineKeeper(kept_in, accepts=settings.update)
    command = accept_command(manifest, folder, os.environ)
    state_folder = find_state_folder(session.root)
    return BaselineKeeper(
        kept_in,
        accepts=settings.update,
        accept_command=command,
        state_folder=state_folder,
        calibrates=not settings.no_calibrate,
        describe_run=describe_origin(session.root),
    )
