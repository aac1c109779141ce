"""What the controller knows about a session: all results, the floor, and the session's other parts."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import GoldenError, ManifestError, SettingsError
from pytest_golden.gate.state_folder import hold_gate_lock
from pytest_golden.regression.model import ReasonKind, ResultStatus, error_result
from pytest_golden.regression.rules import blame_setting_for_skip
from pytest_golden.regression.verdict import RegressionCheckResult, Weakening, fails_the_gate
from pytest_golden.report.result_text import summarize_reasons
from pytest_golden.session.declared import find_default_manifest
from pytest_golden.session.item import find_category, place_crash, read_result, tell_known
from pytest_golden.session.scheduler import is_distributed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from pytest_golden.history.base_files import BaseManifest
    from pytest_golden.journal.model import JournalEntry
    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.regression.verdict import ChangedBaseline
    from pytest_golden.session.earlier import EarlierRuns
    from pytest_golden.session.gateway import GoldenSession
    from pytest_golden.session.run_recording import GoldenRecording

_CONFTEST = f"{os.sep}conftest.py"


class GoldenLock:
    """The workspace's gate lock, held while golden projects run and until their end is recorded."""

    def __init__(self, workspace_root: Path, say: Callable[[str], None]) -> None:
        self._workspace_root = workspace_root
        self._say = say
        self._held = ExitStack()
        self._is_held = False

    def take(self) -> None:
        """Take the lock, unless it is held."""
        if not self._is_held:
            self._is_held = True
            self._held.enter_context(hold_gate_lock(self._workspace_root, self._say))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None, Any, Any]:
        """Release it when the end is recorded: the next gate would take a run without an end for a killed one."""
        with self._held:
            return (yield)

    def pytest_unconfigure(self) -> None:
        """Release it whatever happened."""
        self._held.close()


class GoldenRecorder:
    """Takes results off the reports, has them recorded, and knows what was left out.

    `record` stores a result before anyone else receives it, and may add to it; None means that nothing is recorded. Both
    `lock` and `record` begin when it is known that golden projects will run.
    """

    def __init__(self, session: GoldenSession, lock: GoldenLock, record: GoldenRecording | None) -> None:
        self.config = session.config
        self.declared = session.declared
        self._board = session.board
        # Names the setting that makes skips fail; empty if none does.
        self._skips_fail = session.settings.require_said
        self._shard = session.shard
        self._results: dict[str, GoldenProjectResult] = {}
        self._reported: dict[str, int] = {}
        # How long each result took to be recorded.
        self.record_seconds: dict[str, float] = {}
        self._selected: set[str] | None = None
        self._lock = lock
        self._keeper = record
        self._is_distributed = is_distributed(session.config)

    @property
    def results(self) -> tuple[GoldenProjectResult, ...]:
        """The results so far, in declaration order."""
        return tuple(self._results[name] for name in self.declared.projects if name in self._results)

    @property
    def check_result(self) -> RegressionCheckResult:
        """The results so far as one value."""
        return RegressionCheckResult(self.results)

    @property
    def is_gate_run(self) -> bool:
        """Tell whether any golden project was selected, or this is a shard, which is recorded even without any."""
        return bool(self._selected) or (self._shard is not None and self._selected is not None)

    @property
    def selected(self) -> tuple[str, ...]:
        """Names of the selected projects, in declaration order; none before the collection has ended."""
        return tuple(name for name in self.declared.projects if name in (self._selected or ()))

    @property
    def deselected(self) -> tuple[str, ...]:
        """Names of the declared projects that were not selected; none before the collection has ended."""
        if self._selected is None:
            return ()
        return tuple(name for name in self.declared.projects if name not in self._selected)

    @property
    def of_other_shards(self) -> tuple[str, ...]:
        """Names of the declared projects that another shard runs, which are deselected here."""
        shard = self._shard
        return () if shard is None else tuple(name for name in self.declared.projects if not shard.has(name))

    @property
    def not_run(self) -> tuple[str, ...]:
        """Names of the selected projects without a result: the session ended before their turn."""
        return tuple(name for name in self.selected if name not in self._results)

    @property
    def unchecked_needs(self) -> dict[str, tuple[str, ...]]:
        """Names of deselected projects that others need, each with those that ran all the same."""
        users: dict[str, list[str]] = {name: [] for name in self.deselected}
        for result in self.results:
            if result.status is not ResultStatus.SKIPPED:
                for need in self.declared.projects[result.name].needs:
                    users.get(need, []).append(result.name)
        return {need: tuple(names) for need, names in users.items() if names}

    def fails(self, result: GoldenProjectResult) -> bool:
        """Tell whether this result fails the gate."""
        return fails_the_gate(result, skips_fail=bool(self._skips_fail))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Take the lock and begin the record before the first test runs."""
        if self.is_gate_run and not session.config.option.collectonly:
            self._begin()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, Any, Any]:
        """Record the result that a report brings, before anyone else reads the report."""
        project = self.declared.find_project(report.nodeid)
        result = read_result(report, project) if project is not None else None
        # If a plug-in runs an item again, its report has the same result.
        present = hash(getattr(report, "golden", None))
        if project is None or result is None or self._reported.get(project.name) == present:
            return (yield)
        if hasattr(report, "golden"):
            self._reported[project.name] = present
        # A project that a mark skipped has not passed through the gate.
        result = blame_setting_for_skip(result, self._skips_fail)
        result, entry = self._record(result)
        place_crash(report, project, self.declared.manifest.lines.get(project.name))
        tell_known(report, result)
        self._tell(result, entry)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count a golden ERROR, and a worker that crashed, among pytest's errors; all else is counted as pytest does."""
        if not report.failed or self.declared.find_project(report.nodeid) is None:
            return None
        category = find_category(report)
        return None if category is None else (category, "E", "ERROR")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what was selected."""
        self._note_selected(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        """Note what a worker has selected."""
        self._note_selected(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Record what began in this session and cannot report any more: an interrupted worker ends without a report."""
        for name in self._board.statuses(self.not_run):
            message = f"interrupted while {name} was running"
            interrupted = error_result(self.declared.projects[name], ReasonKind.INTERRUPTED, message)
            self._tell(*self._record(interrupted))

    def _record(self, result: GoldenProjectResult) -> tuple[GoldenProjectResult, JournalEntry | None]:
        keeper, began = self._keeper, monotonic_seconds()
        result, entry = (result, None) if keeper is None else keeper.keep(result, fails=self.fails(result))
        self.record_seconds[result.name] = monotonic_seconds() - began
        self._results[result.name] = result
        return result, entry

    def _tell(self, result: GoldenProjectResult, entry: JournalEntry | None) -> None:
        self.config.hook.pytest_golden_result_recorded(result=result, entry=entry)

    def _note_selected(self, node_ids: Iterable[str]) -> None:
        if self._selected is not None:
            return
        projects = map(self.declared.find_project, node_ids)
        self._selected = {project.name for project in projects if project is not None}
        if self._is_distributed and self.is_gate_run:
            # The workers run the tests: their first collection tells that projects will run.
            self._begin()

    def _begin(self) -> None:
        self._lock.take()
        if self._keeper is not None:
            self._keeper.begin(self.selected)


class _Base(NamedTuple):
    """The base: its manifest, the folder of that, and the commit."""

    manifest: Manifest
    folder: Path
    commit: str


class FloorCheck:
    """Compares with the base at the end of the session; without `--golden-base` it does nothing.

    Baselines are looked at before anything runs, and not by a session that accepts new ones: a person sees those.

    A base without a manifest at the present path is asked for the one that became it: moving it is no way out. `notes` says
    what could not be compared, and what is odd. `weakenings` are known once the session has finished.
    """

    def __init__(self, session: GoldenSession, recorder: GoldenRecorder, earlier: EarlierRuns) -> None:
        settings = session.settings
        self.is_accepted = settings.floor == "accept"
        self.notes: list[str] = []
        self.weakenings: tuple[Weakening, ...] = ()
        self._declared = session.declared
        self._recorder = recorder
        self._earlier = earlier
        self._accepts_outputs = settings.update
        self._workspace = settings.workspace
        self._changed_baselines: tuple[ChangedBaseline, ...] = ()
        # What is weaker beside the projects: where the manifest is, and what pytest is told about the gate.
        self._around: list[Weakening] = []
        self._config = session.config
        self._base = None if settings.base is None else self._read_base(settings.base)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Find the baselines, and the files that speak to pytest, that differ from the base.

        Raises:
            pytest.UsageError: git cannot tell; nothing has run.
        """
        path = self._declared.manifest_path
        if self._base is None or path is None or self._accepts_outputs or session.config.option.collectonly:
            return
        from pytest_golden.history.base_files import find_changed_baselines, find_configuration_changes

        base = self._base
        begins, configuration, conftests = self._find_configuration()
        try:
            self._around += find_configuration_changes(
                base.commit, begins, configuration=configuration, conftests=conftests
            )
            self._changed_baselines = find_changed_baselines(
                base.folder, base.commit, path.parent, self._declared.projects.keys()
            )
        except GoldenError as error:
            raise pytest.UsageError(f"the floor cannot be compared: {error}") from None

    def _find_configuration(self) -> tuple[Path, Path | None, Sequence[Path]]:
        """Return where pytest begins to look for its configuration, the file that a person named, and the loaded conftests."""
        if self._workspace is not None:
            # What this session is told comes from the base. What counts is what the change would have told it.
            return self._declared.judged_folder, None, ()
        config = self._config
        loaded = (getattr(plugin, "__file__", None) or "" for plugin in config.pluginmanager.get_plugins())
        begins, found = config.invocation_params.dir, config.inipath
        return (
            begins if found is None or not found.parent.is_relative_to(begins) else found.parent,
            found if config.getoption("inifilename", None) else None,
            [Path(file) for file in loaded if file.endswith(_CONFTEST)],
        )

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare the floors. The run's verdict decides what a weakened floor means."""
        if self._base is None or session.config.option.collectonly:
            return
        from pytest_golden.regression.floor import find_weakenings

        found = find_weakenings(
            self._base.manifest,
            self._declared.manifest,
            not_run=self._not_run(session),
            changed_baselines=self._changed_baselines,
        )
        self.weakenings = (*self._around, *found)
        self._tell_emptied(self._base.commit)

    def _tell_emptied(self, commit: str) -> None:
        """Note which projects pass although the change has emptied an input. That may be right, so it is not a weakening."""
        from pytest_golden.history.base_files import find_emptied_inputs

        root, path = self._declared.manifest.workspace_root, self._declared.manifest_path
        passed = [one.name for one in self._recorder.results if one.status is ResultStatus.PASSED]
        folders = {name: _find_folder(root, self._declared.projects[name]) for name in passed}
        own = {name: folder for name, folder in folders.items() if path is None or folder not in path.parents}
        with suppress(GoldenError, OSError):
            for name, emptied in find_emptied_inputs(commit, own).items():
                self.notes.append(f"{name} passes also with an empty input: {emptied} holds nothing any more.")

    def _read_base(self, ref: str) -> _Base | None:
        path = self._declared.manifest_path
        if path is None:
            message = "--golden-base compares manifests, and --golden-projects has none: give one or the other."
            raise SettingsError(message)
        from pytest_golden.history.base_files import find_manifest_at, read_base_manifest, tell_move

        base, place = read_base_manifest(path, ref), path
        if base.text is None:
            found = find_manifest_at(path, base.commit, find_default_manifest(self._config))
            if found is None:
                self.notes.append(
                    f"the base {ref} ({base.commit[:12]}) has no {path.name}: there is no floor to compare."
                )
                return None
            base, place = read_base_manifest(found, ref), found
            self._around.append(tell_move(found, path, self._config.rootpath))
        return None if base.text is None else self._parse_base(base, base.text, place)

    def _parse_base(self, base: BaseManifest, text: str, path: Path) -> _Base | None:
        from pytest_golden.manifest.reader import parse_manifest

        try:
            manifest = parse_manifest(text, f"{base.ref}:{path.name}", path.parent)
            if self._workspace is not None:
                manifest = replace(manifest, workspace_root=self._workspace)
            return _Base(manifest, path.parent, base.commit)
        except ManifestError as error:
            told = f"the manifest of the base {base.ref} cannot be read, so the floor cannot be compared: {error}"
            if not self.is_accepted:
                raise GoldenError(f"{told}\nA person may continue with --golden-floor=accept.") from None
            self.notes.append(told)
            return None

    def _not_run(self, session: pytest.Session) -> dict[str, str]:
        # What another shard runs is not missing; `golden merge` tells whether all shards together ran everything.
        elsewhere = frozenset(self._recorder.of_other_shards)
        reasons = {name: "deselected" for name in self._recorder.deselected if name not in elsewhere}
        is_excused = self._holds_since_base()
        for result in self._recorder.results:
            if result.is_narrowed and not is_excused:
                reasons[result.name] = "only the part that depends on its changed files ran"
            if result.status is not ResultStatus.SKIPPED or result.is_regression:
                continue
            if not (is_excused and result.is_left_out_as_unchanged):
                reasons[result.name] = summarize_reasons(result)
        if session.exitstatus != pytest.ExitCode.INTERRUPTED:
            reasons |= dict.fromkeys(self._recorder.not_run, "the session ended before its turn")
        return reasons

    def _holds_since_base(self) -> bool:
        """Tell whether unchanged projects are unchanged since the base, or since before it."""
        selection, path = self._earlier.selection, self._declared.manifest_path
        if selection is None or selection.commit is None or self._base is None or path is None:
            return False
        from pytest_golden.history.checkout import descends

        return descends(path.parent, self._base.commit, selection.commit)


def _find_folder(root: Path, project: GoldenProjectConfig) -> Path:
    return root / project.project_dir if project.project_dir is not None else (root / project.path).parent


class SessionParts(NamedTuple):
    """The parts of a session that the others ask. `warnings` are the session's own, and grow while it runs.

    `notes` are lines of the header about what pytest or its options mean for golden projects.
    """

    session: GoldenSession
    earlier: EarlierRuns
    recorder: GoldenRecorder
    floor: FloorCheck
    warnings: list[str]
    notes: tuple[str, ...]
