"""Write the results for others at the end of the session: JUnit XML, the gate report, GitHub's summary."""

from __future__ import annotations

import platform
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.clock import iso_utc, utc_now
from pytest_golden.errors import GoldenError
from pytest_golden.gate.git import describe_commit
from pytest_golden.report import write_gate_report, write_junit

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.session.declared import Declared
    from pytest_golden.session.floor import FloorCheck
    from pytest_golden.session.github import GitHubNews
    from pytest_golden.session.recorder import GoldenRecorder
    from pytest_golden.settings import GoldenSettings

_SUITE = "golden projects"


class GoldenReports:
    """Writes the reports. The gate's verdict stays what it is.

    `problems` says which of the asked ones could not be written, `lesser_problems` which of the others.
    """

    def __init__(
        self,
        settings: GoldenSettings,
        declared: Declared,
        recorder: GoldenRecorder,
        floor: FloorCheck,
        github: GitHubNews,
    ) -> None:
        self._settings = settings
        self._declared = declared
        self._recorder = recorder
        self._floor = floor
        self._started_at = utc_now()
        self.github = github
        self.find_entry_id: Callable[[], str | None] = lambda: None
        self.problems: list[str] = []
        self.lesser_problems: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the files when all results are known. One that was asked for and cannot be written is no success."""
        if session.config.option.collectonly:
            return
        self._try(self._write_junit, self.problems)
        self._try(self._write_json, self.problems)
        # Nobody asked for this one.
        self._try(partial(self.github.write_summary, self.problems), self.lesser_problems)
        if self.problems and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def _try(self, write: Callable[[], None], problems: list[str]) -> None:
        try:
            write()
        except GoldenError as error:
            problems.append(str(error))

    def _write_junit(self) -> None:
        if self._settings.junit is not None:
            write_junit(
                self._settings.junit,
                self._recorder.check_result,
                suite_name=_SUITE,
                timestamp=self._started_at,
                hostname=platform.node(),
            )

    def _write_json(self) -> None:
        if self._settings.json is not None:
            write_gate_report(
                self._settings.json,
                self._recorder.check_result,
                gate=self._gate_facts(),
                weakened_floor=self._floor.weakenings,
            )

    def _gate_facts(self) -> dict[str, Any]:
        return {
            "entry_id": self.find_entry_id(),
            **describe_commit(self._declared.manifest.workspace_root),
            "manifest": self._declared.label,
            "mode": self._settings.mode,
            "started_at": iso_utc(self._started_at),
            "finished_at": iso_utc(utc_now()),
            "deselected": list(self._recorder.deselected),
            "not_run": list(self._recorder.not_run),
            "floor_base": self._settings.base,
            "floor_accepted": self._floor.is_accepted,
        }
