"""Hold the workspace's gate lock while golden projects run and until their end is recorded, in the process that owns the session."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gate.state_folder import hold_gate_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from pytest_golden.session.results import GoldenRecorder


class GoldenLock:
    """Takes the lock when it is known that golden projects will run, under xdist by the first worker's collection."""

    def __init__(
        self, workspace_root: Path, recorder: GoldenRecorder, say: Callable[[str], None], *, is_distributed: bool
    ) -> None:
        self._workspace_root = workspace_root
        self._recorder = recorder
        self._say = say
        self._held = ExitStack()
        self._is_held = False
        if is_distributed:
            recorder.on_selected.append(self._take)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Take the lock before the first test runs."""
        if self._recorder.is_gate_run and not session.config.option.collectonly:
            self._take()
        return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None, Any, Any]:
        """Let go when the end is recorded: the next gate takes a run without an end for one that was killed."""
        with self._held:
            return (yield)

    def pytest_unconfigure(self) -> None:
        """Let go whatever happened."""
        self._held.close()

    def _take(self) -> None:
        if not self._is_held:
            self._is_held = True
            self._held.enter_context(hold_gate_lock(self._workspace_root, self._say))
