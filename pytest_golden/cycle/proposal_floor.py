"""Verify a proposal against the base's floor: how it touches the floor, and a gate with the base's manifest and baselines."""

from __future__ import annotations

import ast
import os
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.compare.baselines import BASELINES_FOLDER
from pytest_golden.errors import GoldenError
from pytest_golden.gateway.view import is_below
from pytest_golden.history.base_files import read_base_manifest
from pytest_golden.history.git import ask_git, last_line, read_blob, run_git, split_paths
from pytest_golden.manifest.reader import parse_manifest
from pytest_golden.regression.floor import find_weakenings
from pytest_golden.regression.verdict import RegressionCheckResult
from pytest_golden.verify import base_worktree, gates
from pytest_golden.verify.base_worktree import BaseWorktree
from pytest_golden.verify.store import keep_spooled

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_golden.manifest.model import Manifest
    from pytest_golden.verify.gates import GatePlace, GateReport


_CONFIGURATIONS = frozenset({"pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pytest.toml", ".pytest.toml"})
#: The file by which a checkout has its say in every gate below its folder.
HOOKS = "conftest.py"
_MOST_READ = 500
_ENDINGS = frozenset({".py", ".pyc", ".pyd", ".so"})
_PACKAGE = "__init__"
# Where a package's sources lie in the checkout of one that is installed in place.
_SOURCES = "src"
_IMPORTERS = frozenset({"import_module", "__import__", "importorskip", "register_assert_rewrite"})
_PLUGINS = "pytest_plugins"
_PYPROJECT = "pyproject.toml"
_MOST_TOLD = 3


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

    def check(self, commit: str, changed: tuple[str, ...]) -> Mapping[str, Any]:
        """Return `regression_check`, `weakened_floor` and `warnings` of the proposal at a commit.

        Raises:
            GoldenError: the gate could not run to its end, or the time is up.
            KeyboardInterrupt: it was interrupted.
        """
        manifest = self.floor.manifest
        if manifest is None:
            raise GoldenError("the base has no manifest")
        with base_worktree.PrivateFolder(outside=self.floor.checkout) as private:
            tree = BaseWorktree(self.floor.checkout, private.path, commit)
            try:
                may_be_imported = any(name_module(path) is not None for path in changed)
                protected = self.floor.protect(*([self.floor.find_imported()] if may_be_imported else []))
                weakened = [*list_edits(changed, protected), *self._compare(tree.root, changed)]
                self._put_floor(tree.root)
                environment = base_worktree.BaseEnvironment(
                    self.floor.checkout, tree.root, private.path, self.environment
                )
                file = tree.root / self.floor.relative
                longest = min(base_worktree.find_setup_seconds(manifest.projects), max(0.0, self.seconds_left()))
                place = environment.prepare(file, manifest.setup, longest)
                # Else a proposal's own `pytest.py`, or an entry point that it declares, would be the gate that judges it.
                place = replace(place, environment={**place.environment, "PYTHONSAFEPATH": "1"})
                report = self._run(place, private.path, weakened)
                lost = keep_spooled(file, self.store, self.floor.root, {str(report.run_id)})
                warnings = (*self._list_lacks(tree, file, report), *([] if lost is None else [lost]))
            finally:
                tree.close()
        results = tuple(gates.result_of(report, project.name) for project in manifest.projects)
        # The base's own manifest is what ran: what the gate adds is what did not run.
        weakened += [dict(one) for one in report.weakened_floor]
        if report.fails_unexplained:
            raise GoldenError("the gate failed although no golden project and no floor did")
        check = RegressionCheckResult(results)
        return {"regression_check": check, "weakened_floor": tuple(weakened), "warnings": warnings}

    def _run(self, place: GatePlace, folder: Path, edited: Sequence[Mapping[str, Any]]) -> GateReport:
        options = (
            *("--golden-learning=off", *gates.keep_aside(folder)),
            *("--golden-base", self.floor.commit, "--golden-floor", "check"),
        )
        gate = gates.start_gate(gates.use_store(place, str(self.store)), folder, "gate", options)
        shown = ""

        def look(line: str) -> None:
            nonlocal shown
            if self.seconds_left() <= 0:
                raise GoldenError("the time limit was reached while the golden projects ran")
            if line and line != shown:
                shown = line
                self.show(f"gate | {line}")

        try:
            return gates.finish_gate(gate, "proposal", look)
        except GoldenError as error:
            # An edit may be what broke the gate, and nothing else would then mention it.
            told = "".join(f"; {one['message']}" for one in edited[:_MOST_TOLD])
            raise GoldenError(f"{error}{told}") from None

    def _list_lacks(self, tree: BaseWorktree, manifest: Path, report: GateReport) -> tuple[str, ...]:
        """Say what the worktree lacked if something failed: that may be the only cause, and not the proposal's fault."""
        if not any(result.is_regression for result in report.results.values()):
            return ()
        missing = base_worktree.find_missing_inputs(self.floor.root, manifest, report.results.values())
        told = (f"{name} may have failed for this alone: {lack}" for name, lack in missing.items())
        return (*tree.find_gaps(), *told)

    def _compare(self, tree: Path, changed: tuple[str, ...]) -> list[Mapping[str, Any]]:
        """Return how the proposal's manifest and pytest settings are weaker than the base's."""
        told = "says something else to pytest"
        found = [
            make_edit(None, "gate_configuration", f"{path} {told}") for path in changed if self._differs(tree, path)
        ]
        if self.floor.relative in changed:
            found += self._compare_manifests(tree)
        return found

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

    def _differs(self, tree: Path, path: str) -> bool:
        place = Path(path)
        if place.name != _PYPROJECT or not Path(self.floor.relative).is_relative_to(place.parent):
            return False
        before = read_blob(self.floor.checkout, self.floor.commit, path)
        return differs_for_pytest(before or b"", read_blob(tree, "HEAD", path) or b"")

    def _put_floor(self, tree: Path) -> None:
        """Replace the proposal's manifest and baselines, which may be links, by the base's."""
        paths = [self.floor.baselines, self.floor.relative]
        commit = self.floor.commit
        removed = run_git(tree, "rm", "-r", "--quiet", "--force", "--ignore-unmatch", "--", *paths)
        there = [path for path in paths if not run_git(tree, "cat-file", "-e", f"{commit}:{path}").returncode]
        put = run_git(tree, "-c", "core.hooksPath=/dev/null", "checkout", "--quiet", commit, "--", *there)
        if removed.returncode or put.returncode:
            told = last_line(removed.stderr if removed.returncode else put.stderr)
            raise GoldenError(f"the base's floor cannot be put over the proposal: {told}")


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
        """Return what a proposal may not change unnoticed; `is_imported` is passed to `ProtectedFloor`."""
        projects = () if self.manifest is None else self.manifest.projects
        own = tuple(
            OwnFiles(project.name, self._from_root(project.path), self._name_folder(project.path, project.project_dir))
            for project in projects
        )
        return ProtectedFloor(self.relative, self.baselines, own, is_imported)

    def find_imported(self) -> Callable[[str], bool]:
        """Return a function that tells whether the base's conftests, which the gate loads, may import a path.

        Raises:
            GoldenError: git cannot tell.
        """
        asked = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", self.commit)
        files = split_paths(ask_git(self.checkout, *asked, failing=f"git cannot list the files of {self.commit[:12]}"))
        hooks = [str(folder / HOOKS) for folder in PurePosixPath(self.relative).parents]
        return find_imported([path for path in hooks if path in files], files, self._read)

    def _read(self, path: str) -> str:
        return (read_blob(self.checkout, self.commit, path) or b"").decode("utf-8", "replace")

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
    """What a proposal may not change unnoticed; all paths are relative to the checkout's root.

    `is_imported` tells whether the gate's conftests may import a path.
    """

    manifest: str
    baselines: str
    projects: tuple[OwnFiles, ...]
    is_imported: Callable[[str], bool] = lambda _: False


def list_edits(changed: Sequence[str], floor: ProtectedFloor) -> Iterator[Mapping[str, Any]]:
    """Yield an entry of the weakened floor for each of its files that a proposal has changed, sorted by path."""
    for path in sorted(changed):
        if path == floor.manifest:
            yield make_edit(None, "manifest", f"{path} was edited")
        elif is_below(path, floor.baselines):
            project = path.removeprefix(floor.baselines).strip("/").partition("/")[0]
            yield make_edit(project or None, "baseline", f"the baseline {path} was edited")
        elif _loads_with_gate(path, floor):
            yield make_edit(None, "gate_configuration", f"{path}, which the gate loads, was edited")
        for own in floor.projects:
            if is_below(path, own.path) or (own.folder is not None and is_below(path, own.folder)):
                yield make_edit(own.project, "project_files", f"its own file {path} was edited")


def _loads_with_gate(path: str, floor: ProtectedFloor) -> bool:
    file = PurePosixPath(path)
    if file.name not in _CONFIGURATIONS and file.name != HOOKS:
        return floor.is_imported(path)
    return PurePosixPath(floor.manifest).is_relative_to(file.parent) or floor.is_imported(path)


def make_edit(project: str | None, kind: str, message: str) -> Mapping[str, Any]:
    """Return an entry of the weakened floor; `project` is None if it belongs to no single project."""
    return {"project": project, "kind": kind, "message": message, "base": None, "head": None}


def differs_for_pytest(before: bytes, now: bytes) -> bool:
    """Tell whether two pyproject.toml configure pytest differently; if in doubt, they do."""
    try:
        told = [tomllib.loads(text.decode("utf-8")).get("tool", {}).get("pytest") for text in (before, now)]
    except (ValueError, AttributeError):
        return True
    return bool(told[0] != told[1])


def find_imported(
    conftests: Sequence[str], files: Iterable[str], read: Callable[[str], str | None]
) -> Callable[[str], bool]:
    """Return a function that tells whether these conftests may import a path, directly or not; it also answers for new paths.

    Only texts are read. Nothing is imported, and what this process has loaded is not considered: the process that judges a
    proposal has loaded the proposal's own modules.

    Paths are from the checkout's root. `files` are all that are there, `read` gives the text of one, None where it cannot.
    """
    known = {place: file for file in files if (place := name_module(file)) is not None}
    roots = tuple(dict.fromkeys(root for file in conftests for root in _list_roots(file)))
    found: set[str] = set()
    waiting, read_files = list(conftests), 0
    while waiting and read_files < _MOST_READ:
        file = waiting.pop()
        read_files += 1
        new = {*_locate(file, read(file) or "", roots, known)} - found
        found |= new
        waiting += sorted(known[place] for place in new if place in known)
    return lambda path: name_module(path) in found


def name_module(path: str) -> str | None:
    """Return a module's place in the checkout, without its ending; None where a path is no module."""
    file = PurePosixPath(path)
    if file.suffix not in _ENDINGS:
        return None
    stem = file.name.partition(".")[0]
    return str(file.parent if stem == _PACKAGE else file.parent / stem)


def _list_roots(conftest: str) -> Iterator[str]:
    """Yield the folders in which a conftest's imports may be found: beside it and above, and `src` in each."""
    for folder in PurePosixPath(conftest).parents:
        yield from (str(folder), str(folder / _SOURCES))


def _locate(file: str, text: str, roots: Sequence[str], known: Collection[str]) -> Iterator[str]:
    for level, name in _list_names(text):
        if level:
            yield from _list_prefixes(str(PurePosixPath(file).parents[min(level, file.count("/") + 1) - 1]), name)
            continue
        yield from (place for root in roots for place in _list_prefixes(root, name))
        top = name.partition(".")[0]
        if not any(str(PurePosixPath(root, top)) in known for root in roots):
            # A place that only pytest's `pythonpath` or the environment names.
            elsewhere = [place.removesuffix(f"/{top}") for place in known if place.endswith(f"/{top}")]
            yield from (place for root in elsewhere for place in _list_prefixes(root, name))


def _list_prefixes(root: str, name: str) -> Iterator[str]:
    """List the places of a module and of all packages that it is in."""
    place = PurePosixPath(root)
    for part in filter(None, name.split(".")):
        place /= part
        yield str(place)


def _list_names(text: str) -> Iterator[tuple[int, str]]:
    """List what a module's text imports: how many folders up, and the dotted name from there."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.level, f"{node.module or ''}.{alias.name}".strip(".")) for alias in node.names)
        else:
            yield from ((0, name) for name in _list_named(node))


def _list_named(node: ast.AST) -> Iterator[str]:
    """List the modules that a text names in strings, for pytest or for the import system."""
    if isinstance(node, ast.Call):
        function = node.func
        called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
        named: Iterable[ast.AST] = node.args if called in _IMPORTERS else ()
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        is_plugins = any(isinstance(target, ast.Name) and target.id == _PLUGINS for target in targets)
        named = ast.walk(node.value) if is_plugins else ()
    else:
        return
    yield from (one.value for one in named if isinstance(one, ast.Constant) and isinstance(one.value, str))
