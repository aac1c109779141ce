"""Find out which projects are unchanged since a ref: git and the store are asked a few questions for all of them together."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gate.base_manifest import read_base_manifest
from pytest_golden.gate.changed.deciding import Present, Unclaimed, find_reason, spread
from pytest_golden.gate.changed.ignored import IgnoredFiles
from pytest_golden.gate.changed.model import Selection
from pytest_golden.gate.changed.paths import PathIndex
from pytest_golden.gate.changed.places import PlaceFinder
from pytest_golden.gate.changed.remembered import find_gone
from pytest_golden.gate.changed.store import LastResult, read_last_results
from pytest_golden.gate.changed.tree import Tree, is_in_git, read_tree
from pytest_golden.gate.changed.unclaimed import Claims
from pytest_golden.gate.checkout import Checkout, read_checkout
from pytest_golden.gate.checkout_changes import list_changed_files
from pytest_golden.gate.surroundings import describe_surroundings, locate_venv
from pytest_golden.manifest import parse_manifest
from pytest_golden.redaction.references import MARK
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.storage.store import Store

    Hide = Callable[[dict[str, Any]], dict[str, Any] | None]

# Each asks git once. Projects that passed in yet other runs are run, and have one run in common from then on.
_MOST_RUNS = 20


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    `hide` takes out of plain values what the store does not keep. `products` are files that this session itself writes,
    `judging` those that take part in the judgement of every project, such as a conftest. `reads`: the files that the last
    run of a project read count as its inputs.
    """

    ref: str
    manifest: Manifest
    hide: Hide
    products: tuple[Path, ...] = ()
    judging: tuple[Path, ...] = ()
    reads: bool = False


def select_changed(question: Question, store: Store | None) -> Selection:
    """Find the projects that need not run. One that nobody knows enough of runs.

    Raises:
        SettingsError: the ref is not there; the message says what to fetch.
    """
    manifest, ref = question.manifest, question.ref
    folder = manifest.workspace_root
    if not is_in_git(folder):
        return _run_all(question, None, f"{folder} is in no git repository")
    try:
        tree = read_tree(folder, ref, question.products, _list_known_environments(question))
        doubt, entries = _compare_manifests(question, tree)
        if doubt is not None:
            return _run_all(question, tree.base, doubt)
        past = _read_past(store, question)
        held, ignored_judging = _part_judging(question, tree)
        finder = PlaceFinder(manifest, tree.root, held)
        places = {project.name: finder.find(project) for project in manifest.projects}
        products = {os.path.realpath(product) for product in question.products}
        claims = Claims(
            places.values(), (*finder.list_kept(), *tree.reports, *filter(None, map(finder.relate, products)))
        )
        ignored = IgnoredFiles(tree.root, claims.leave_unclaimed(tree.ignored.paths), products)
        unclaimed = Unclaimed(claims, ignored, ignored_judging)
        present = _describe_present(question, tree, entries, past, unclaimed, products)
        if question.reads:
            present = replace(present, no_reads=frozenset((*tree.reports, *filter(None, map(finder.relate, products)))))
    except SettingsError:
        raise
    except GoldenError as error:
        return _run_all(question, None, str(error))
    reasons = {
        project.name: find_reason(project, places[project.name], tree, present, past.get(project.name))
        for project in manifest.projects
    }
    why = spread(reasons, manifest.projects)
    left_out = frozenset(project.name for project in manifest.projects if project.name not in why)
    return Selection(ref, tree.base, left_out, why)


def _list_known_environments(question: Question) -> list[Path]:
    venvs = {project.venv for project in question.manifest.projects if project.venv is not None}
    return [Path(sys.prefix), *(locate_venv(venv, question.manifest.workspace_root) for venv in venvs)]


def _run_all(question: Question, commit: str | None, why: str) -> Selection:
    return Selection(question.ref, commit, why={project.name: why for project in question.manifest.projects})


def _compare_manifests(question: Question, tree: Tree) -> tuple[str | None, Mapping[str, GoldenProjectConfig] | None]:
    """Give why all projects have to run, if they have to, and the projects as the base declares them, if it does so otherwise."""
    finder = PlaceFinder(question.manifest, tree.root)
    for judging in question.judging:
        place = finder.relate(os.path.realpath(judging))
        changed = None if place is None else tree.changed.find(place)
        if changed is not None:
            return f"{show_path(changed)} changed, which may judge every project", None
    path = question.manifest.path
    place = None if path is None else finder.relate(os.path.realpath(path))
    if path is None or place is None or tree.changed.find(place) is None:
        return None, None
    real = Path(os.path.realpath(path))
    text = read_base_manifest(real, tree.base).text
    if text is None:
        return "the manifest is new", None
    try:
        base = parse_manifest(text, f"{question.ref}:{path.name}", path.parent)
    except GoldenError:
        return f"the manifest at {question.ref} cannot be read", None
    if base.workspace_root != question.manifest.workspace_root:
        return "workspace_root changed", None
    return None, {project.name: project for project in base.projects}


def _part_judging(question: Question, tree: Tree) -> tuple[list[Path], tuple[Path, ...]]:
    """Part the files that may judge every project into those that git holds and those that it ignores, as generated ones."""
    finder = PlaceFinder(question.manifest, tree.root)
    real = [Path(os.path.realpath(path)) for path in question.judging]
    ignored = [path for path in real if (place := finder.relate(str(path))) and _is_ignored(place, tree)]
    return [path for path in real if path not in ignored], tuple(ignored)


def _is_ignored(place: str, tree: Tree) -> bool:
    """Tell whether git ignores a file itself, or a folder that it is in, and not only something below it."""
    found = tree.ignored.find(place)
    return found is not None and not found.startswith(f"{place}/")


def _read_past(store: Store | None, question: Question) -> Mapping[str, LastResult]:
    names = [project.name for project in question.manifest.projects]
    if store is None or not names:
        return {}
    try:
        with store.read() as connection:
            return read_last_results(connection, names, with_reads=question.reads)
    except GoldenError:
        return {}


def _describe_present(
    question: Question,
    tree: Tree,
    entries: Mapping[str, GoldenProjectConfig] | None,
    past: Mapping[str, LastResult],
    unclaimed: Unclaimed,
    products: Collection[str],
) -> Present:
    manifest = question.manifest
    return Present(
        entries,
        describe_surroundings(manifest.projects, manifest.workspace_root) if past else {},
        _FilesSince(tree.root, question.hide),
        _GoneSince(tree.root, products),
        question.hide,
        os.environ,
        unclaimed,
        (platform.node(), (question.hide({"root": str(manifest.workspace_root)}) or {"root": ""})["root"]),
    )


class _FilesSince:
    """Gives the files that differ from those of a run; each run is asked for once."""

    def __init__(self, root: Path, hide: Hide) -> None:
        self._root = root
        self._hide = hide
        self._now: Checkout | None = None
        self._known: dict[int, PathIndex | str] = {}

    def __call__(self, last: LastResult) -> PathIndex | str:
        key = id(last.checkout)
        if key not in self._known:
            is_more = len(self._known) >= _MOST_RUNS
            told = "its last pass is one of too many runs to compare with"
            self._known[key] = told if is_more else self._look(last.checkout)
        return self._known[key]

    def _look(self, then: Checkout) -> PathIndex | str:
        if self._now is None:
            found = read_checkout(self._root)
            # With the marks of what is stored: else each path with one would differ from what was kept of it.
            hidden = self._hide(found.to_dict()) or Checkout().to_dict()
            self._now = Checkout(root=found.root, **hidden)
        try:
            paths = list_changed_files(self._root, then, self._now)
        except GoldenError as error:
            return f"what changed since it passed is not known: {error}"
        marked = next((path for path in paths if MARK in path), None)
        return f"{marked} changed since it passed, whose name is hidden" if marked else PathIndex(paths)


class _GoneSince:
    """Gives the files that git ignored when a run began and that are gone; each run is looked at once."""

    def __init__(self, root: Path, products: Collection[str]) -> None:
        self._root = root
        self._products = products
        self._known: dict[int, PathIndex | str] = {}

    def __call__(self, last: LastResult) -> PathIndex | str:
        key = id(last.checkout)
        if key not in self._known:
            self._known[key] = find_gone(self._root, last.ignored, self._products)
        return self._known[key]
