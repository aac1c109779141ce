"""Write the results for others at the end of the session: JUnit XML, the gate report, its page, GitHub's summary."""

from __future__ import annotations

import platform
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.clock import iso_utc, utc_now
from pytest_golden.errors import GoldenError
from pytest_golden.gate.git import describe_commit
from pytest_golden.gate.hiding import SecretHider
from pytest_golden.report import gate_report, write_gate_report, write_html, write_junit

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.session.github import GitHubNews
    from pytest_golden.session.parts import SessionParts

_SUITE = "golden projects"


class GoldenReports:
    """Writes the reports. The gate's verdict stays what it is.

    `problems` says which of the asked ones could not be written, `lesser_problems` which of the others.
    """

    def __init__(self, parts: SessionParts, github: GitHubNews) -> None:
        self._settings = parts.settings
        self._declared = parts.declared
        self._shard = parts.shard
        self._recorder = parts.recorder
        self._floor = parts.floor
        self._gateway = parts.gateway
        self._started_at = utc_now()
        self._is_interrupted = False
        self.github = github
        self.find_entry_id: Callable[[], str | None] = lambda: None
        self.problems: list[str] = []
        self.lesser_problems: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the files when all results are known. One that was asked for and cannot be written is no success."""
        if session.config.option.collectonly:
            return
        self._is_interrupted = session.exitstatus == pytest.ExitCode.INTERRUPTED
        self._try(self._write_junit, self.problems)
        self._try(self._write_json, self.problems)
        self._try(self._write_html, self.problems)
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

    def _write_html(self) -> None:
        if self._settings.html is not None:
            report = gate_report(
                self._recorder.check_result, gate=self._gate_facts(), weakened_floor=self._floor.weakenings
            )
            write_html(self._settings.html, report)

    def _gate_facts(self) -> dict[str, Any]:
        return {
            "entry_id": self.find_entry_id(),
            **describe_commit(self._declared.manifest.workspace_root),
            "manifest": self._declared.label,
            "mode": self._settings.mode,
            "require": self._settings.require,
            "command_line": self._describe_command(),
            "environment": {
                "python": f"{platform.python_implementation()} {platform.python_version()}",
                "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
                "host": platform.node(),
            },
            "started_at": iso_utc(self._started_at),
            "finished_at": iso_utc(utc_now()),
            "interrupted": self._is_interrupted,
            "shard": None if self._shard is None else str(self._shard.shard),
            "deselected": list(self._recorder.deselected),
            "not_run": list(self._recorder.not_run),
            "floor_base": self._settings.base,
            "floor_accepted": self._floor.is_accepted,
        }

    def _describe_command(self) -> list[str] | None:
        """Give what was typed, without the secrets of any project; None where that cannot be told."""
        hider = SecretHider(partial(self._gateway.call, "redact"), self._declared.projects.values())
        return hider.hide_for_all(["pytest", *map(str, self._recorder.config.invocation_params.args)])
