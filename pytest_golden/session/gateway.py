"""What this session executes with: the gateway, asked for once through the hook, our own answer to it, and the baselines."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import GatewayError
from pytest_golden.session.declared import name_session
from pytest_golden.settings import MANIFEST_NAME, NO_STORE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_golden.compare.examination import BaselineKeeper
    from pytest_golden.gateway.model import Gateway, RunnerCommand
    from pytest_golden.gateway.reads import ReadRecorder
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.earlier import EarlierRuns
    from pytest_golden.settings import GoldenSettings


class SessionGateway:
    """Gives the session's gateway, made at first use so that a session that only collects pays nothing."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._gateway: Gateway | None = None

    def get(self) -> Gateway:
        """Return the gateway.

        Raises:
            GatewayError: a plugged-in one cannot execute anything.
        """
        if self._gateway is None:
            found = self._config.hook.pytest_golden_gateway(config=self._config)
            if not callable(getattr(found, "run_pipeline", None)):
                message = f"pytest_golden_gateway gave {found!r}, which has no run_pipeline: give an object that has."
                raise GatewayError(message)
            self._gateway = found
        return self._gateway

    def call(self, name: str, *arguments: Any) -> Any:
        """Call what a gateway may have beside `run_pipeline`; None when it has not."""
        method = getattr(self.get(), name, None)
        return method(*arguments) if callable(method) else None

    def pytest_unconfigure(self) -> None:
        """Let the gateway remove its scratch."""
        if self._gateway is not None:
            self.call("close")


class OwnGateway:
    """Our implementation of `pytest_golden_gateway`, which the other hooks reach into."""

    def __init__(self, settings: GoldenSettings, declared: Declared, earlier: EarlierRuns) -> None:
        self._earlier = earlier
        self._keep = settings.keep
        self._accepts = settings.update
        self._manifest_path = declared.manifest_path
        self._store = settings.store
        self._view = settings.sandbox
        self._workspace_root = declared.manifest.workspace_root
        self._records_reads = settings.reads

    @pytest.hookimpl(trylast=True)
    def pytest_golden_gateway(self, config: pytest.Config) -> Gateway:
        """Return the gateway of the chosen view."""
        # An xdist worker that runs only ordinary tests never needs these.
        from pytest_golden.compare.baselines import find_baselines_folder
        from pytest_golden.gate.service import choose_keeping
        from pytest_golden.gate.state_folder import choose_log_folder, prepare_state_folder
        from pytest_golden.gateway.service import ExecutionGateway

        hook = config.hook

        def find_command(project: GoldenProjectConfig) -> RunnerCommand | None:
            found: RunnerCommand | None = hook.pytest_golden_runner(project=project)
            return found

        state_folder = prepare_state_folder(self._workspace_root)
        # What is accepted is written by the gate itself, while other projects may be running.
        accepted = [find_baselines_folder(self._manifest_path, self._workspace_root)] if self._accepts else []
        return ExecutionGateway(
            self._workspace_root,
            view=self._view,
            roots=(config.rootpath,),
            find_command=find_command,
            step_readers=tuple(_flatten(hook.pytest_golden_step_readers())),
            redactors=tuple(_flatten(hook.pytest_golden_redactors(config=config))),
            log_folder=choose_log_folder(state_folder, name_session(config)),
            keep_if=choose_keeping(self._keep, lambda: self._earlier.slowdowns),
            unwatched=(*accepted, *_list_store_files(self._store, state_folder)),
            reads=_record_reads(self._workspace_root) if self._records_reads else None,
        )


def _flatten(answers: Iterable[Any]) -> Iterable[Any]:
    for answer in answers:
        if isinstance(answer, (list, tuple)):
            yield from answer
        elif answer is not None:
            yield answer


def _list_store_files(said: str | None, state_folder: Path) -> tuple[Path, ...]:
    if said == NO_STORE:
        return ()
    from pytest_golden.gate.state_folder import find_store_place, list_store_files

    return list_store_files(find_store_place(said, state_folder))


def _record_reads(workspace_root: Path) -> ReadRecorder:
    from pytest_golden.gateway.reads import ReadRecorder

    return ReadRecorder(workspace_root)


def keep_baselines(settings: GoldenSettings, declared: Declared, rootdir: Path, folder: Path) -> BaselineKeeper:
    """Return what compares the outputs of this session's projects, and accepts them with `--golden-update`.

    `folder` is where the person stands.
    """
    from pytest_golden.compare.baselines import find_baselines_folder
    from pytest_golden.compare.examination import BaselineKeeper
    from pytest_golden.report.shell_command import NAME_SIGNS, accept_arguments, as_template

    kept_in = find_baselines_folder(declared.manifest_path, declared.manifest.workspace_root)
    manifest = declared.manifest_path
    if manifest is None:
        # The inline form declares no outputs: nothing is said about them.
        return BaselineKeeper(kept_in, accepts=settings.update)
    is_default = settings.manifest is None and manifest == rootdir / MANIFEST_NAME
    arguments = accept_arguments([NAME_SIGNS], manifest, folder, is_default=is_default)
    command = as_template(shlex.join(["pytest", *arguments]))
    return BaselineKeeper(kept_in, accepts=settings.update, accept_command=command)
