"""Write the results for others at the end of the session: JUnit XML, the gate report, GitHub's annotations."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.clock import iso_utc, utc_now
from pytest_golden.errors import GoldenError
from pytest_golden.gate.git import describe_commit
from pytest_golden.report import annotation, write_gate_report, write_junit
from pytest_golden.report.failure_text import summarize_reasons

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    from pytest_golden.session.declared import Declared
    from pytest_golden.session.floor import FloorCheck
    from pytest_golden.session.recorder import GoldenRecorder
    from pytest_golden.settings import GoldenSettings

    Level = Literal["error", "warning"]

_SUITE = "golden projects"


class GoldenReports:
    """Writes the asked reports. `problems` says which could not be written; the gate's verdict stays what it is."""

    def __init__(
        self, settings: GoldenSettings, declared: Declared, recorder: GoldenRecorder, floor: FloorCheck
    ) -> None:
        self._settings = settings
        self._declared = declared
        self._recorder = recorder
        self._floor = floor
        self._started_at = utc_now()
        self.problems: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the files when all results are known. One that was asked for and cannot be written is no success."""
        if session.config.option.collectonly:
            return
        self._try(self._write_junit)
        self._try(self._write_json)
        if self.problems and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def annotations(self, warnings: list[str]) -> Iterator[str]:
        """Give GitHub's annotations of what a person must see; none outside GitHub Actions."""
        if os.environ.get("GITHUB_ACTIONS") != "true":
            return
        file = self._manifest_for_github()
        lines = self._declared.manifest.lines
        for warning in warnings:
            yield annotation("warning", warning, title=_SUITE, file=file)
        for result in self._recorder.results:
            if self._recorder.fails(result):
                title = f"{result.name}: {result.status}"
                yield annotation(
                    "error", summarize_reasons(result), title=title, file=file, line=lines.get(result.name)
                )
        for weakening in self._floor.weakenings:
            name = weakening.project
            told = f"{name}: {weakening.message}" if name else weakening.message
            level: Level = "warning" if self._floor.is_accepted else "error"
            yield annotation(level, told, title="weakened floor", file=file, line=lines.get(name or ""))

    def _try(self, write: Callable[[], None]) -> None:
        try:
            write()
        except GoldenError as error:
            self.problems.append(str(error))

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
            "entry_id": None,
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

    def _manifest_for_github(self) -> str | None:
        path = self._declared.manifest_path
        if path is None:
            return None
        checkout = Path(os.environ.get("GITHUB_WORKSPACE", "."))
        return Path(os.path.relpath(path, checkout)).as_posix()
