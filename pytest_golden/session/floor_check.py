"""The floor cannot sink unseen: compare what is declared and what ran with the base, and fail on a weakening.

The baselines of this session: where they lie, whether they are accepted, and what a person types to accept them.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_golden.compare.baselines import find_baselines_folder
from pytest_golden.compare.examination import BaselineKeeper
from pytest_golden.errors import GoldenError, ManifestError, SettingsError
from pytest_golden.regression.model import ResultStatus
from pytest_golden.report.result_text import summarize_reasons
from pytest_golden.report.shell_command import NAME_SIGNS, accept_arguments, as_template
from pytest_golden.settings import MANIFEST_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.history.base import BaseManifest
    from pytest_golden.manifest.model import Manifest
    from pytest_golden.regression.floor import ChangedBaseline, Weakening
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.earlier import EarlierRuns
    from pytest_golden.session.results import GoldenRecorder
    from pytest_golden.settings import GoldenSettings


class _Base(NamedTuple):
    """What is compared with: the manifest as it was, the folder in which it stood, and the commit."""

    manifest: Manifest
    folder: Path
    commit: str


class FloorCheck:
    """Compares with the base at the end of the session; without `--golden-base` it does nothing.

    Baselines are looked at before anything runs, and not by a session that accepts new ones: a person sees those.

    A base without a manifest at the present path is asked for the one at `default_manifest`, so that moving the
    manifest is no way out. `notes` says what could not be compared. `weakenings` are known once the session has finished.
    """

    def __init__(
        self,
        settings: GoldenSettings,
        declared: Declared,
        recorder: GoldenRecorder,
        *,
        default_manifest: Path,
        earlier: EarlierRuns,
    ) -> None:
        self.is_accepted = settings.floor == "accept"
        self.notes: list[str] = []
        self.weakenings: tuple[Weakening, ...] = ()
        self._declared = declared
        self._recorder = recorder
        self._earlier = earlier
        self._accepts_outputs = settings.update
        self._changed_baselines: tuple[ChangedBaseline, ...] = ()
        self._default_manifest = default_manifest
        self._base = None if settings.base is None else self._read_base(settings.base)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Find the baselines that are others than at the base.

        Raises:
            pytest.UsageError: git cannot tell; nothing has run.
        """
        path = self._declared.manifest_path
        if self._base is None or path is None or self._accepts_outputs or session.config.option.collectonly:
            return
        from pytest_golden.history.base import find_changed_baselines

        base = self._base
        try:
            self._changed_baselines = find_changed_baselines(
                base.folder, base.commit, path.parent, self._declared.projects.keys()
            )
        except GoldenError as error:
            message = f"the floor cannot be compared: {error}"
            raise pytest.UsageError(message) from None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare the floors. The run's verdict decides what a weakened floor means."""
        if self._base is None or session.config.option.collectonly:
            return
        from pytest_golden.regression.floor import find_weakenings

        self.weakenings = find_weakenings(
            self._base.manifest,
            self._declared.manifest,
            not_run=self._not_run(session),
            changed_baselines=self._changed_baselines,
        )

    def _read_base(self, ref: str) -> _Base | None:
        path = self._declared.manifest_path
        if path is None:
            message = "--golden-base compares manifests, and --golden-projects has none: give one or the other."
            raise SettingsError(message)
        from pytest_golden.history.base import read_base_manifest

        base = read_base_manifest(path, ref)
        if base.text is not None:
            return self._parse_base(base, base.text, path)
        told = f"the base {ref} ({base.commit[:12]}) has no {path.name}"
        default = self._default_manifest
        if path != default:
            base = read_base_manifest(default, ref)
        if base.text is None:
            self.notes.append(f"{told}: there is no floor to compare.")
            return None
        self.notes.append(f"{told}: its {default.name} is the floor to compare.")
        return self._parse_base(base, base.text, default)

    def _parse_base(self, base: BaseManifest, text: str, path: Path) -> _Base | None:
        from pytest_golden.manifest.reader import parse_manifest

        try:
            manifest = parse_manifest(text, f"{base.ref}:{path.name}", path.parent)
            return _Base(manifest, path.parent, base.commit)
        except ManifestError as error:
            told = f"the manifest of the base {base.ref} cannot be read, so the floor cannot be compared: {error}"
            if not self.is_accepted:
                message = f"{told}\nA person may go on with --golden-floor=accept."
                raise GoldenError(message) from None
            self.notes.append(told)
            return None

    def _not_run(self, session: pytest.Session) -> dict[str, str]:
        # What another shard runs is no hole; `golden merge` tells whether all shards together ran everything.
        elsewhere = frozenset(self._recorder.of_other_shards)
        reasons = {name: "deselected" for name in self._recorder.deselected if name not in elsewhere}
        is_excused = self._holds_since_base()
        for result in self._recorder.results:
            if result.status is not ResultStatus.SKIPPED or result.is_regression:
                continue
            if not (is_excused and result.is_left_out_as_unchanged):
                reasons[result.name] = summarize_reasons(result)
        if session.exitstatus != pytest.ExitCode.INTERRUPTED:
            reasons |= dict.fromkeys(self._recorder.not_run, "the session ended before its turn")
        return reasons

    def _holds_since_base(self) -> bool:
        """Tell whether what is unchanged is so since the base, or since before it: a later commit could have changed it unseen."""
        selection, path = self._earlier.selection, self._declared.manifest_path
        if selection is None or selection.commit is None or self._base is None or path is None:
            return False
        from pytest_golden.history.checkout import descends

        return descends(path.parent, self._base.commit, selection.commit)


def keep_baselines(settings: GoldenSettings, declared: Declared, rootdir: Path, folder: Path) -> BaselineKeeper:
    """Return what compares the outputs of this session's projects, and accepts them with `--golden-update`.

    `folder` is where the person stands.
    """
    kept_in = find_baselines_folder(declared.manifest_path, declared.manifest.workspace_root)
    manifest = declared.manifest_path
    if manifest is None:
        # The inline form declares no outputs: nothing is said about them.
        return BaselineKeeper(kept_in, accepts=settings.update)
    is_default = settings.manifest is None and manifest == rootdir / MANIFEST_NAME
    arguments = accept_arguments([NAME_SIGNS], manifest, folder, is_default=is_default)
    command = as_template(shlex.join(["pytest", *arguments]))
    return BaselineKeeper(kept_in, accepts=settings.update, accept_command=command)
