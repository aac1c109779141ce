"""Verifies a proposal against the base's floor: the base's manifest and baselines are put over it, and a gate runs there.

The gate runs in a worktree of the proposal's commit that no command has touched, as those of `golden verify` do.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.cycle.worktree.edits import (
    HOOKS,
    OwnFiles,
    ProtectedFloor,
    differs_for_pytest,
    list_edits,
    make_configuration_edit,
)
from pytest_golden.cycle.worktree.imports import find_imported, name_module
from pytest_golden.errors import GoldenError
from pytest_golden.gate.base_manifest import read_base_manifest
from pytest_golden.gate.baselines.place import BASELINES_FOLDER
from pytest_golden.gate.git import last_line, run_git, run_git_raw
from pytest_golden.gate.verify.environment import BaseEnvironment, find_setup_seconds
from pytest_golden.gate.verify.gates import GatePlace, clean_environment, keep_aside, start_gate, use_store
from pytest_golden.gate.verify.missing_inputs import Workspaces, find_missing_inputs
from pytest_golden.gate.verify.private_folder import PrivateFolder
from pytest_golden.gate.verify.reports import finish_gate, result_of
from pytest_golden.gate.verify.spooled import keep_spooled
from pytest_golden.gate.verify.worktree import BaseWorktree
from pytest_golden.manifest.reader import load_manifest, parse_manifest
from pytest_golden.regression.floor import find_weakenings
from pytest_golden.regression.model import RegressionCheckResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_golden.gate.verify.reports import GateReport
    from pytest_golden.manifest.model import Manifest

_PYPROJECT = "pyproject.toml"
_MOST_TOLD = 3


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

    def protect(self, is_imported: Callable[[str], bool] = lambda _: False) -> ProtectedFloor:
        """Name what a proposal may not touch unseen; `is_imported` is of `ProtectedFloor`."""
        projects = () if self.manifest is None else self.manifest.projects
        own = tuple(
            OwnFiles(project.name, self._from_root(project.path), self._name_folder(project.path, project.project_dir))
            for project in projects
        )
        return ProtectedFloor(self.relative, self.baselines, own, is_imported)

    def find_imported(self) -> Callable[[str], bool]:
        """Give what tells whether a path is a module that the base's conftests, which the gate loads, may import.

        Raises:
            GoldenError: git cannot tell.
        """
        listed = run_git_raw(self.checkout, "ls-tree", "-r", "-z", "--name-only", "--full-tree", self.commit)
        if listed.returncode:
            raise GoldenError(f"git cannot list the files of {self.commit[:12]}")
        files = os.fsdecode(listed.stdout).split("\0")
        hooks = [str(folder / HOOKS) for folder in PurePosixPath(self.relative).parents]
        return find_imported([path for path in hooks if path in files], files, self._read)

    def _read(self, path: str) -> str | None:
        told = run_git_raw(self.checkout, "cat-file", "blob", f"{self.commit}:{path}")
        return None if told.returncode else told.stdout.decode("utf-8", "replace")

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


class ProposalGuard:
    """Runs the base's golden projects on a proposal. `store` is what was said of it; `seconds_left` is asked while it runs."""

    def __init__(
        self,
        floor: BaseFloor,
        *,
        store: str,
        environment: Mapping[str, str],
        seconds_left: Callable[[], float],
        show: Callable[[str], None],
    ) -> None:
        self._floor = floor
        self._store = store
        self._environment = clean_environment(environment)
        self._seconds_left = seconds_left
        self._show = show

    def check(self, commit: str, changed: tuple[str, ...]) -> Mapping[str, Any]:
        """Give `regression_check`, `weakened_floor` and `warnings` of the proposal at a commit.

        Raises:
            GoldenError: the gate could not be run to its end, or the time is up.
            KeyboardInterrupt: somebody interrupted it.
        """
        manifest = self._floor.manifest
        if manifest is None:
            raise GoldenError("the base has no manifest")
        with PrivateFolder(outside=self._floor.checkout) as private:
            tree = BaseWorktree(self._floor.checkout, private.path, commit)
            try:
                weakened = [*self._list_edits(changed), *self._compare(tree.root, changed)]
                self._put_floor(tree.root)
                environment = BaseEnvironment(self._floor.checkout, tree.root, private.path, self._environment)
                file = tree.root / self._floor.relative
                longest = min(find_setup_seconds(manifest.projects), max(0.0, self._seconds_left()))
                place = _keep_out_of_path(environment.prepare(file, manifest.setup, longest))
                report = self._run(place, private.path, weakened)
                lost = keep_spooled(file, self._store, self._floor.root, {str(report.run_id)})
                warnings = (*self._list_lacks(tree, file, report), *([] if lost is None else [lost]))
            finally:
                tree.close()
        results = tuple(result_of(report, project.name) for project in manifest.projects)
        # The base's own manifest is what ran: what the gate adds is what did not run.
        weakened += [dict(one) for one in report.weakened_floor]
        if report.fails_unexplained:
            raise GoldenError("the gate failed although no golden project and no floor did")
        check = RegressionCheckResult(results)
        return {"regression_check": check, "weakened_floor": tuple(weakened), "warnings": warnings}

    def _list_edits(self, changed: tuple[str, ...]) -> tuple[Mapping[str, Any], ...]:
        may_be_imported = any(name_module(path) is not None for path in changed)
        return list_edits(changed, self._floor.protect(*([self._floor.find_imported()] if may_be_imported else [])))

    def _run(self, place: GatePlace, folder: Path, edited: Sequence[Mapping[str, Any]]) -> GateReport:
        options = (
            *("--golden-learning=off", *keep_aside(folder)),
            *("--golden-base", self._floor.commit, "--golden-floor", "check"),
        )
        gate = start_gate(use_store(place, str(self._store)), folder, "gate", options)
        shown = ""

        def look(line: str) -> None:
            nonlocal shown
            if self._seconds_left() <= 0:
                raise GoldenError("the time limit was reached while the golden projects ran")
            if line and line != shown:
                shown = line
                self._show(f"gate | {line}")

        try:
            return finish_gate(gate, "proposal", look)
        except GoldenError as error:
            # What broke the gate down may be what was edited, of which nothing else tells then.
            told = "".join(f"; {one['message']}" for one in edited[:_MOST_TOLD])
            raise GoldenError(f"{error}{told}") from None

    def _list_lacks(self, tree: BaseWorktree, manifest: Path, report: GateReport) -> tuple[str, ...]:
        """Say what the worktree lacked where something failed: it may be for that alone, and no fault of the proposal."""
        failed = [result for result in report.results.values() if result.is_regression]
        if not failed:
            return ()
        declared = load_manifest(manifest)
        workspaces = Workspaces(self._floor.root, declared.workspace_root)
        missing = find_missing_inputs(workspaces, declared.projects, failed)
        told = (f"{name} may have failed for this alone: {lack}" for name, lack in missing.items())
        return (*tree.find_gaps(), *told)

    def _compare(self, tree: Path, changed: tuple[str, ...]) -> list[Mapping[str, Any]]:
        """Say in what way the proposal's manifest and its settings of pytest are weaker than the base's."""
        found: list[Mapping[str, Any]] = []
        found += [make_configuration_edit(path) for path in changed if self._differs(tree, path)]
        if self._floor.relative in changed:
            found += self._compare_manifests(tree)
        return found

    def _compare_manifests(self, tree: Path) -> list[Mapping[str, Any]]:
        place = self._floor.file
        base = self._floor.manifest
        told = run_git_raw(tree, "cat-file", "blob", f"HEAD:{self._floor.relative}")
        try:
            head = parse_manifest(told.stdout, place.name, place.parent)
        except GoldenError:
            return []
        if base is None or told.returncode:
            return []
        return [one.to_dict() for one in find_weakenings(base, head, not_run={})]

    def _differs(self, tree: Path, path: str) -> bool:
        place = Path(path)
        if place.name != _PYPROJECT or not Path(self._floor.relative).is_relative_to(place.parent):
            return False
        checkout, base = self._floor.checkout, self._floor.commit
        before = run_git_raw(checkout, "cat-file", "blob", f"{base}:{path}").stdout
        now = run_git_raw(tree, "cat-file", "blob", f"HEAD:{path}").stdout
        return differs_for_pytest(before, now)

    def _put_floor(self, tree: Path) -> None:
        """Put the base's manifest and baselines in the place of the proposal's, which may have made links of them."""
        paths = [self._floor.baselines, self._floor.relative]
        commit = self._floor.commit
        removed = run_git(tree, "rm", "-r", "--quiet", "--force", "--ignore-unmatch", "--", *paths)
        there = [path for path in paths if not run_git(tree, "cat-file", "-e", f"{commit}:{path}").returncode]
        put = run_git(tree, "-c", "core.hooksPath=/dev/null", "checkout", "--quiet", commit, "--", *there)
        if removed.returncode or put.returncode:
            told = last_line(removed.stderr if removed.returncode else put.stderr)
            raise GoldenError(f"the base's floor cannot be put over the proposal: {told}")


def _keep_out_of_path(place: GatePlace) -> GatePlace:
    # Else a proposal's own `pytest.py`, or an entry point that it declares, would be the gate that judges it.
    return replace(place, environment={**place.environment, "PYTHONSAFEPATH": "1"})
