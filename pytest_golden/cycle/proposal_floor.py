"""How the base's golden projects stand before the work, and a proposal against that floor: how it touches it, and a gate with the base's judge."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gateway.git import read_blob
from pytest_golden.gateway.view import is_below
from pytest_golden.history.base_files import read_base_manifest
from pytest_golden.manifest.reader import load_manifest, parse_manifest
from pytest_golden.regression.comparison import ProjectRuns, SideRuns, find_unjudged
from pytest_golden.regression.floor import find_weakenings
from pytest_golden.regression.verdict import RegressionCheckResult
from pytest_golden.settings import BASELINES_FOLDER, NO_STORE
from pytest_golden.verify import base_worktree, gates
from pytest_golden.verify.base_worktree import BaseEnvironment, BaseWorktree, JudgedHead
from pytest_golden.verify.failures import identify_failure
from pytest_golden.verify.model import BaseKey
from pytest_golden.verify.store import VerificationRecord, digest_environment, keep_spooled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_golden.manifest.model import Manifest
    from pytest_golden.verify.gates import GatePlace, GateReport

# What a failure gets that the proposal did not cause: as a quarantined one, it is shown and fails nothing.
_KNOWN: Mapping[str, Any] = {
    "regression_kind": "known",
    "quarantined": "it failed on the base too, for the same reason",
}


@dataclass(slots=True)
class ProposalGuard:
    """Runs the base's golden projects on a proposal, in a worktree of its commit that no command has touched.

    `store` is the value of `--store`; `seconds_left` is called while the gate runs.
    """

    floor: BaseFloor
    store: str
    environment: Mapping[str, str]
    seconds_left: Callable[[], float]
    show: Callable[[str], None]
    before: Mapping[str, SideRuns] = field(default_factory=dict, init=False)

    def look(self) -> Mapping[str, SideRuns]:
        """Return how each golden project stands on the base: what gates recorded of this commit, else what a gate finds there now.

        A project that may fail for want of ignored files alone is left out.

        Raises:
            GoldenError: the gate could not run to its end, or the time is up.
            KeyboardInterrupt: it was interrupted.
        """
        manifest, floor = self.floor.manifest, self.floor
        if manifest is None or not manifest.projects:
            return {}
        key = BaseKey(
            commit=floor.commit,
            manifest=floor.relative,
            environment=digest_environment(manifest, floor.root, floor.file.parent),
            setup=manifest.setup,
        )
        record = VerificationRecord(None if self.store == NO_STORE else self.store, self.show)
        recorded = record.find_base(key, [project.name for project in manifest.projects])
        self.before = self._run_base() if recorded is None else recorded
        return self.before

    def check(self, commit: str, changed: tuple[str, ...]) -> Mapping[str, Any]:
        """Return `regression_check`, `weakened_floor` and `warnings` of the proposal at a commit.

        Raises:
            GoldenError: the gate could not run to its end, or the time is up.
            KeyboardInterrupt: it was interrupted.
        """
        manifest = self.floor.manifest
        if manifest is None:
            raise GoldenError("the base has no manifest")
        with base_worktree.PrivateFolder(outside=self.floor.checkout) as private, ExitStack() as held:
            tree = BaseWorktree(self.floor.checkout, private.path, commit)
            held.callback(tree.close)
            weakened = list(list_edits(changed, self.floor.protect()))
            if self.floor.relative in changed:
                weakened += self._compare_manifests(tree.root)
            judge = BaseWorktree(self.floor.checkout, private.path, self.floor.commit, "judge")
            held.callback(judge.close)
            place, root = self._prepare(manifest, tree, judge, private.path)
            place = gates.use_store(place, str(self.store))
            report = self._run(place, private.path, "proposal", self._make_options(private.path))
            lost = keep_spooled(root, self.store, self.floor.root, {str(report.run_id)})
            lacks = self._list_lacks(tree, replace(manifest, workspace_root=root), report)
            failed = [name for name, result in report.results.items() if result.is_regression]
            known, told = self._find_known(report, failed) if failed and not lacks else ((), ())
            warnings = (*lacks, *told, *([] if lost is None else [lost]))
        results = tuple(gates.result_of(report, project.name) for project in manifest.projects)
        results = tuple(replace(one, **_KNOWN) if one.name in known else one for one in results)
        # The base's own manifest is what ran: the gate adds what did not run, and what the proposal tells pytest about it.
        weakened += [dict(one) for one in report.weakened_floor]
        if report.fails_unexplained:
            raise GoldenError("the gate failed although no golden project and no floor did")
        check = RegressionCheckResult(results)
        facts = {"run_id": report.run_id, "commit": commit}
        return {"regression_check": check, "weakened_floor": tuple(weakened), "warnings": warnings, **facts}

    def _prepare(
        self, manifest: Manifest, tree: BaseWorktree, judge: BaseWorktree, private: Path
    ) -> tuple[GatePlace, Path]:
        """Return where the gate runs, which judges the proposal from a worktree of the base, and the proposal's workspace root."""
        floor = self.floor
        file = tree.root / floor.relative
        with suppress(OSError):
            # The proposal may have removed the manifest's folder, in which `setup:` is run.
            file.parent.mkdir(parents=True, exist_ok=True)
        passed = manifest.list_passed()
        environment = BaseEnvironment(floor.checkout, tree.root, private, self.environment, passed)
        pipelines = environment.prepare(file, manifest.setup, self._limit_setup(manifest))
        root = tree.root / os.path.relpath(floor.root, floor.checkout)
        place = floor.checkout / floor.relative
        head = JudgedHead(floor.checkout, place, root, pipelines.environment, passed, manifest.setup, pipelines.python)
        return base_worktree.make_judge(judge, private / "judging", head), root

    def _limit_setup(self, manifest: Manifest) -> float:
        return min(base_worktree.find_setup_seconds(manifest.projects), max(0.0, self.seconds_left()))

    def _make_options(self, folder: Path) -> tuple[str, ...]:
        compares = ("--golden-base", self.floor.commit, "--golden-floor", "check")
        return ("--golden-learning=off", *gates.keep_aside(folder), *compares)

    def _find_known(self, report: GateReport, failed: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of what fails on the base too, for the same reason, and what to say."""
        try:
            # Run now: what was seen before the work was seen in another hour, and whoever works here can write the store.
            before = self._run_base(failed)
        except GoldenError as error:
            return (), (f"whether {', '.join(failed)} failed before is not known: {error}",)
        heads = {name: report.results[name] for name in failed if name in before}
        pairs = {
            name: ProjectRuns(name, before[name], SideRuns.begin(result, identify_failure(result)))
            for name, result in heads.items()
        }
        known = tuple(name for name, pair in pairs.items() if _is_known(pair))
        return known, tuple(
            f"{name} failed on the base too, for the same reason: the proposal did not break it" for name in known
        )

    def _run_base(self, names: Sequence[str] = ()) -> Mapping[str, SideRuns]:
        """Run projects, or all, on the base; nothing is told of those that a worktree may fail."""
        floor, manifest = self.floor, self.floor.manifest
        if manifest is None:
            return {}
        with base_worktree.PrivateFolder(outside=floor.checkout) as private, ExitStack() as held:
            tree = BaseWorktree(floor.checkout, private.path, floor.commit)
            held.callback(tree.close)
            if gaps := tree.find_gaps():
                raise GoldenError("; ".join(gaps))
            file = tree.root / floor.relative
            environment = BaseEnvironment(
                floor.checkout, tree.root, private.path / "before", self.environment, manifest.list_passed()
            )
            place = replace(
                environment.prepare(file, manifest.setup, self._limit_setup(manifest)),
                judged=floor.checkout,
                flags=("-P",),
            )
            options = ("--golden-learning=off", *gates.keep_aside(private.path))
            report = self._run(gates.use_store(place, NO_STORE), private.path, "base", options, names)
            missing = base_worktree.find_missing_inputs(floor.root, load_manifest(file), report.results.values())
        return {
            name: SideRuns.begin(result, identify_failure(result))
            for name, result in report.results.items()
            if name not in missing
        }

    def _run(
        self, place: GatePlace, folder: Path, named: str, options: Sequence[str], projects: Sequence[str] = ()
    ) -> GateReport:
        gate = gates.start_gate(place, folder, named, options, projects=projects)
        shown = ""

        def look(line: str) -> None:
            nonlocal shown
            if self.seconds_left() <= 0:
                raise GoldenError("the time limit was reached while the golden projects ran")
            if line and line != shown:
                shown = line
                self.show(f"gate | {line}")

        return gates.finish_gate(gate, named, look)

    def _list_lacks(self, tree: BaseWorktree, manifest: Manifest, report: GateReport) -> tuple[str, ...]:
        """Say what the worktree lacked if something failed: that may be the only cause, and not the proposal's fault."""
        if not any(result.is_regression for result in report.results.values()):
            return ()
        missing = base_worktree.find_missing_inputs(self.floor.root, manifest, report.results.values())
        told = (f"{name} may have failed for this alone: {lack}" for name, lack in missing.items())
        return (*tree.find_gaps(), *told)

    def _compare_manifests(self, tree: Path) -> list[Mapping[str, Any]]:
        place, base = self.floor.file, self.floor.manifest
        told = read_blob(tree, "HEAD", self.floor.relative)
        if base is None or told is None:
            return []
        try:
            head = parse_manifest(told, place.name, place.parent)
        except GoldenError:
            return []
        return [one.to_dict() for one in find_weakenings(base, head, not_run={})]


def _is_known(project: ProjectRuns) -> bool:
    return project.base.failed and not project.fails_otherwise and find_unjudged(project) is None


class BaseFloor(NamedTuple):
    """The floor as the base declares it. `manifest` is None where the base has none; `file` is where it would be."""

    checkout: Path
    commit: str
    file: Path
    manifest: Manifest | None

    @property
    def relative(self) -> str:
        """The manifest's path from the checkout's root."""
        return Path(os.path.relpath(self.file, self.checkout)).as_posix()

    @property
    def root(self) -> Path:
        """The workspace root."""
        return self.file.parent if self.manifest is None else self.manifest.workspace_root

    @property
    def baselines(self) -> str:
        """The baselines' folder from the checkout's root."""
        return (Path(self.relative).parent / BASELINES_FOLDER).as_posix()

    def protect(self) -> ProtectedFloor:
        """Return what a proposal may not change unnoticed."""
        projects = () if self.manifest is None else self.manifest.projects
        own = tuple(
            OwnFiles(project.name, self._from_root(project.path), self._name_folder(project.path, project.project_dir))
            for project in projects
        )
        return ProtectedFloor(self.relative, self.baselines, own)

    def _name_folder(self, path: str, project_dir: str | None) -> str | None:
        # A folder that holds the manifest, as the whole checkout does, is not one project's own.
        folder = self._from_root(str(Path(path).parent) if project_dir is None else project_dir)
        is_shared = folder == "." or folder.startswith("..") or Path(self.relative).is_relative_to(folder)
        return None if is_shared else folder

    def _from_root(self, path: str) -> str:
        return Path(os.path.relpath(self.root / path, self.checkout)).as_posix()


def read_base_floor(checkout: Path, commit: str, file: Path) -> BaseFloor:
    """Read the floor at a commit.

    Raises:
        GoldenError: git cannot tell.
        ManifestError: the manifest there cannot be used.
    """
    place = Path(os.path.realpath(file.parent), file.name)
    text = read_base_manifest(place, commit).text
    manifest = None if text is None else parse_manifest(text, f"{commit[:12]}:{file.name}", place.parent)
    return BaseFloor(Path(os.path.realpath(checkout)), commit, place, manifest)


class OwnFiles(NamedTuple):
    """A golden project's own files, from the checkout's root: its path, and its folder unless other projects share it."""

    project: str
    path: str
    folder: str | None


class ProtectedFloor(NamedTuple):
    """What a proposal may not change unnoticed; all paths are relative to the checkout's root."""

    manifest: str
    baselines: str
    projects: tuple[OwnFiles, ...]


def list_edits(changed: Sequence[str], floor: ProtectedFloor) -> Iterator[Mapping[str, Any]]:
    """Yield an entry of the weakened floor for each of its files that a proposal has changed, sorted by path."""
    for path in sorted(changed):
        if path == floor.manifest:
            yield make_edit(None, "manifest", f"{path} was edited")
        elif is_below(path, floor.baselines):
            project = path.removeprefix(floor.baselines).strip("/").partition("/")[0]
            yield make_edit(project or None, "baseline", f"the baseline {path} was edited")
        for own in floor.projects:
            if is_below(path, own.path) or (own.folder is not None and is_below(path, own.folder)):
                yield make_edit(own.project, "project_files", f"its own file {path} was edited")


def make_edit(project: str | None, kind: str, message: str) -> Mapping[str, Any]:
    """Return an entry of the weakened floor; `project` is None if it belongs to no single project."""
    return {"project": project, "kind": kind, "message": message, "base": None, "head": None}
