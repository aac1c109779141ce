"""The floor cannot sink unseen: compare what is declared and what ran with the base, and fail on a weakening."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError, ManifestError, SettingsError
from pytest_golden.gate.base_manifest import read_base_manifest
from pytest_golden.manifest import parse_manifest
from pytest_golden.regression.floor import find_weakenings
from pytest_golden.regression.model import ResultStatus
from pytest_golden.report.one_line import summarize_reasons

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.manifest import Manifest
    from pytest_golden.regression.floor import Weakening
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.recorder import GoldenRecorder
    from pytest_golden.settings import GoldenSettings


class FloorCheck:
    """Compares with the base at the end of the session; without `--golden-base` it does nothing.

    A base without a manifest at the present path is asked for the one at `default_manifest`, so that moving the
    manifest is no way out. `notes` says what could not be compared. `weakenings` are known once the session has finished.
    """

    def __init__(
        self, settings: GoldenSettings, declared: Declared, recorder: GoldenRecorder, *, default_manifest: Path
    ) -> None:
        self.is_accepted = settings.floor == "accept"
        self.notes: list[str] = []
        self.weakenings: tuple[Weakening, ...] = ()
        self._declared = declared
        self._recorder = recorder
        self._default_manifest = default_manifest
        self._base = None if settings.base is None else self._read_base(settings.base)

    @property
    def fails(self) -> bool:
        """Tell whether the floor is weaker and nobody has accepted it."""
        return bool(self.weakenings) and not self.is_accepted

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare, and let a weakened floor fail a session that would pass."""
        if self._base is None or session.config.option.collectonly:
            return
        self.weakenings = find_weakenings(self._base, self._declared.manifest, not_run=self._not_run(session))
        if self.fails and session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _read_base(self, ref: str) -> Manifest | None:
        path = self._declared.manifest_path
        if path is None:
            message = "--golden-base compares manifests, and --golden-projects has none: give one or the other."
            raise SettingsError(message)
        base = read_base_manifest(path, ref)
        if base.text is not None:
            return self._parse_base(base.text, path, ref)
        told = f"the base {ref} ({base.commit[:12]}) has no {path.name}"
        default = self._default_manifest
        if path != default:
            base = read_base_manifest(default, ref)
        if base.text is None:
            self.notes.append(f"{told}: there is no floor to compare.")
            return None
        self.notes.append(f"{told}: its {default.name} is the floor to compare.")
        return self._parse_base(base.text, default, ref)

    def _parse_base(self, text: str, path: Path, ref: str) -> Manifest | None:
        try:
            return parse_manifest(text, f"{ref}:{path.name}", path.parent)
        except ManifestError as error:
            told = f"the manifest of the base {ref} cannot be read, so the floor cannot be compared: {error}"
            if not self.is_accepted:
                message = f"{told}\nA person may go on with --golden-floor=accept."
                raise GoldenError(message) from None
            self.notes.append(told)
            return None

    def _not_run(self, session: pytest.Session) -> dict[str, str]:
        reasons = dict.fromkeys(self._recorder.deselected, "deselected")
        for result in self._recorder.results:
            if result.status is ResultStatus.SKIPPED and not result.is_regression:
                reasons[result.name] = summarize_reasons(result)
        if session.exitstatus != pytest.ExitCode.INTERRUPTED:
            reasons |= dict.fromkeys(self._recorder.not_run, "the session ended before its turn")
        return reasons
