"""Find the projects that are unchanged since a ref, and say why each of the others has to run.

A few questions to git and the store serve all projects together. A project runs unless it is known to be unchanged.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.baselines import find_baselines_folder
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gateway.runners.choice import find_narrowing
from pytest_golden.history import unchanged_tree
from pytest_golden.history.base_files import read_base_manifest
from pytest_golden.history.checkout import Checkout, list_changed_files, read_checkout
from pytest_golden.history.past_store import LastResult, read_last_results
from pytest_golden.history.run_environment import compare_surroundings, describe_surroundings, locate_venv
from pytest_golden.history.unchanged_paths import Claims, OwnReads, PathIndex, PlaceFinder, leads_through, leave_out
from pytest_golden.history.unchanged_tree import IgnoredFiles, Tree
from pytest_golden.manifest.reader import parse_manifest
from pytest_golden.redaction.rule import MARK
from pytest_golden.regression.model import Reason, ReasonKind, ResultStatus, result_without_run
from pytest_golden.regression.wording import name_some, show_path
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_golden.history.unchanged_paths import InputPlaces
    from pytest_golden.history.unchanged_tree import HeldFiles
    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.storage.store import Store

    Hide = Callable[[dict[str, Any]], dict[str, Any] | None]

_FOR_PEOPLE = frozenset({"title", "description"})
# Git is called once for each of these runs. Projects that passed in other runs run again, and then share one run.
_MOST_RUNS = 20
# More changed files affect most of a project anyway.
_MOST_NARROWING = 100
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Selection(Shape):
    """The projects that are left out as unchanged since `ref`. `why` says for each other project why it runs.

    `narrowed` are the projects of which only the part that depends on these changed files has to run; the paths are relative to the folder
    of the pipeline's file. `commit` is where this branch left the ref, None outside git. `forewarnings` say what such changes broke before.
    """

    ref: str
    commit: str | None = None
    left_out: frozenset[str] = frozenset()
    why: Mapping[str, str] = field(default_factory=dict, metadata=form(hidden=True))
    narrowed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    forewarnings: tuple[str, ...] = field(default=(), metadata=form(hidden=True))

    def make_result(self, project: GoldenProjectConfig) -> GoldenProjectResult | None:
        """Return the result of a project that is left out; None for one that runs."""
        if project.name not in self.left_out:
            return None
        reason = Reason(ReasonKind.UNCHANGED, f"unchanged since {self.ref}")
        return result_without_run(project, ResultStatus.SKIPPED, reason)


@dataclass(frozen=True, slots=True)
class Question:
    """The question for `select_changed`.

    `hide` removes secrets from plain values, as the store does. `products` are files that this session itself writes. `judging` are files
    that can affect the judgement of every project, such as a conftest. `reads`: the files that the last run of a project read count as its
    inputs. `narrows`: a project may run in part.
    """

    ref: str
    manifest: Manifest
    hide: Hide
    products: tuple[Path, ...] = ()
    judging: tuple[Path, ...] = ()
    reads: bool = False
    narrows: bool = False


def select_changed(question: Question, store: Store | None) -> Selection:
    """Return which projects need not run. A project runs if too little is known about it.

    Raises:
        SettingsError: the ref is unknown; the message says what to fetch.
    """
    manifest, ref = question.manifest, question.ref
    folder = manifest.workspace_root
    if not unchanged_tree.is_in_git(folder):
        return _run_all(question, None, f"{folder} is not in a git repository")
    try:
        venvs = {project.venv for project in manifest.projects if project.venv is not None}
        known = [Path(sys.prefix), *(locate_venv(venv, folder) for venv in venvs)]
        tree = unchanged_tree.read_tree(folder, ref, question.products, known)
        doubt, entries = _compare_manifests(question, tree)
        if doubt is not None:
            return _run_all(question, tree.base, doubt)
        past = _read_past(store, question)
        held, ignored_judging = _part_judging(question, tree)
        finder = PlaceFinder(manifest, tree.root, held)
        places = {project.name: finder.find(project) for project in manifest.projects}
        products = {os.path.realpath(product) for product in question.products}
        no_inputs = (*tree.reports, *filter(None, map(finder.relate, products)))
        claims = Claims(places.values(), (*finder.list_kept(), *no_inputs))
        shown_root = (question.hide({"root": str(folder)}) or {"root": ""})["root"]
        read_now = cache(partial(_read_hidden_checkout, tree.root, question.hide))
        present = Present(
            base_entries=entries,
            surroundings=describe_surroundings(manifest.projects, folder) if past else {},
            since_pass=_once_a_run(lambda last: _find_files_since(tree.root, last.checkout, read_now())),
            gone_since=_once_a_run(lambda last: unchanged_tree.find_gone(tree.root, last.ignored, products)),
            hide=question.hide,
            claims=claims,
            ignored=IgnoredFiles(tree.root, claims.leave_unclaimed(tree.ignored.paths), products),
            ignored_judging=ignored_judging,
            where=(platform.node(), shown_root),
            no_reads=frozenset(no_inputs) if question.reads else None,
            list_held=cache(partial(unchanged_tree.list_held, tree.root)),
        )
    except SettingsError:
        raise
    except GoldenError as error:
        return _run_all(question, None, str(error))
    reasons = {
        project.name: find_reason(project, places[project.name], tree, present, past.get(project.name))
        for project in manifest.projects
    }
    narrowed: dict[str, tuple[str, ...]] = {}
    for project in manifest.projects if question.narrows else ():
        if reasons[project.name] is not None:
            rest, files = find_narrowed(project, places[project.name], tree, present, past.get(project.name), manifest)
            if files:
                narrowed |= {} if rest else {project.name: files}
                reasons[project.name] = rest or _tell_narrowed(files)
    why = spread(reasons, manifest.projects)
    left_out = frozenset(project.name for project in manifest.projects if project.name not in why)
    return Selection(ref, tree.base, left_out, why, narrowed)


def _tell_narrowed(files: Sequence[str]) -> str:
    return f"only the part that depends on {name_some([*map(show_path, files)], _MOST_NAMED)} has to run"


def _run_all(question: Question, commit: str | None, why: str) -> Selection:
    return Selection(question.ref, commit, why={project.name: why for project in question.manifest.projects})


def _compare_manifests(question: Question, tree: Tree) -> tuple[str | None, Mapping[str, GoldenProjectConfig] | None]:
    """Return why all projects have to run, or None; and the base's projects, or None if its manifest is the same."""
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
    """Split the files that can judge every project into those that git tracks and those that it ignores, such as generated ones."""
    finder = PlaceFinder(question.manifest, tree.root)
    held: list[Path] = []
    ignored: list[Path] = []
    for path in map(Path, map(os.path.realpath, question.judging)):
        place = finder.relate(str(path))
        found = tree.ignored.find(place) if place else None
        # Git ignores the file itself, or a folder that it is in, and not only something below it.
        is_ignored = found is not None and not found.startswith(f"{place}/")
        (ignored if is_ignored else held).append(path)
    return held, tuple(ignored)


def _read_past(store: Store | None, question: Question) -> Mapping[str, LastResult]:
    names = [project.name for project in question.manifest.projects]
    if store is None or not names:
        return {}
    try:
        with store.read() as connection:
            return read_last_results(connection, names, with_reads=question.reads)
    except GoldenError:
        return {}


def _once_a_run(compare: Callable[[LastResult], PathIndex | str]) -> Callable[[LastResult], PathIndex | str]:
    """Return a function that compares with each recorded run once, and with a limited number of runs."""
    known: dict[int, PathIndex | str] = {}

    def find(last: LastResult) -> PathIndex | str:
        key = id(last.checkout)
        if key not in known:
            is_more = len(known) >= _MOST_RUNS
            known[key] = (
                "the last passes of the projects are from too many runs to compare with all"
                if is_more
                else compare(last)
            )
        return known[key]

    return find


def _read_hidden_checkout(root: Path, hide: Hide) -> Checkout:
    found = read_checkout(root)
    # Hide the same secrets as the store, or each path with one would differ from the stored path.
    return Checkout(root=found.root, **(hide(found.to_dict()) or Checkout().to_dict()))


def _find_files_since(root: Path, then: Checkout, now: Checkout) -> PathIndex | str:
    try:
        paths = list_changed_files(root, then, now)
    except GoldenError as error:
        return f"the changes since its last pass are not known: {error}"
    marked = next((path for path in paths if MARK in path), None)
    return f"{marked} changed since it passed, whose name is hidden" if marked else PathIndex(paths)


@dataclass(frozen=True, slots=True)
class Present:
    """The present state that a project's last pass is compared with, apart from its files.

    `base_entries` are the projects as declared in the manifest at the base; None if the manifest is the same.
    `since_pass` returns the files that differ from those of a run. `gone_since` returns the ignored files that were deleted since, or
    why that is not known. `hide` removes secrets from a declaration, as the store does. Files that `claims` leave
    unclaimed may be an input of any project that declares no `depends_on`; `ignored` are those of them that git ignores.
    `ignored_judging` are ignored files that can judge every project, whatever it declares. `where` are this machine and
    workspace, as the store has them. `no_reads` are files that are not inputs of a project that reads them; None if the reads do not
    matter. `list_held` returns the files of a commit; None if git does not know it.
    """

    base_entries: Mapping[str, GoldenProjectConfig] | None
    surroundings: Mapping[str, Any]
    since_pass: Callable[[LastResult], PathIndex | str]
    gone_since: Callable[[LastResult], PathIndex | str]
    hide: Hide
    claims: Claims
    ignored: IgnoredFiles
    ignored_judging: tuple[Path, ...]
    where: tuple[str, str]
    no_reads: frozenset[str] | None
    list_held: Callable[[str], HeldFiles | None] = lambda _: None


def find_reason(
    project: GoldenProjectConfig,
    places: InputPlaces,
    tree: Tree,
    present: Present,
    last: LastResult | None,
    is_set_aside: Callable[[str], bool] | None = None,
) -> str | None:
    """Say why a project has to run; None if it passed and no input has changed, apart from those set aside."""
    unread = _find_unread(places, tree, present, last)
    if is_set_aside is not None:
        unread = _either(unread, is_set_aside)
    return (
        _find_changed_entry(project, present)
        or _find_changed_input(places, leave_out(tree.changed, unread), present.claims)
        or _find_doubt(places, tree)
        or _find_ignored(places, tree, present, last)
        or _find_variable(project)
        or _find_in_past(project, places, tree, present, last, unread)
    )


def _either(one: Callable[[str], bool] | None, other: Callable[[str], bool]) -> Callable[[str], bool]:
    return other if one is None else lambda path: one(path) or other(path)


def find_narrowed(
    project: GoldenProjectConfig,
    places: InputPlaces,
    tree: Tree,
    present: Present,
    last: LastResult | None,
    manifest: Manifest,
) -> tuple[str | None, tuple[str, ...]]:
    """Return why the whole project has to run, and the changed files to which its runner could narrow the run otherwise.

    The paths are relative to the folder of the pipeline's file. A newly accepted baseline is one of them, relative to the
    project's baselines: `dbt/orders.parquet`.
    """
    is_node = find_narrowing(project, manifest.workspace_root)
    if is_node is None:
        return None, ()
    folder = os.path.realpath((manifest.workspace_root / project.path).parent)
    baselines = os.path.realpath(find_baselines_folder(manifest.path, manifest.workspace_root) / project.name)
    found: dict[str, None] = {}

    def is_narrowing(path: str) -> bool:
        place = f"{tree.root}/{path}"
        is_baseline = place.startswith(f"{baselines}/")
        name = os.path.relpath(place, baselines if is_baseline else folder)
        fits = is_node(name) or (is_baseline and name.endswith(".parquet"))
        if not fits or Path(place).is_symlink() or not Path(place).is_file():
            return False
        found[name] = None
        return True

    reason = find_reason(project, places, tree, present, last, is_narrowing)
    return reason, tuple(sorted(found)) if len(found) <= _MOST_NARROWING else ()


def _find_unread(
    places: InputPlaces, tree: Tree, present: Present, last: LastResult | None
) -> Callable[[str], bool] | None:
    """Return a function that tells whether the project does not read a changed file of its own folder; None if that is not known."""
    if present.no_reads is None or last is None or last.reads_inside is None or last.checkout.commit is None:
        return None
    if places.folder is None or last.checkout.dirty_files is None:
        return None
    held = present.list_held(last.checkout.commit)
    if held is None:
        return None
    others = [
        *(place for place in places.places if place != places.folder),
        *tree.links.paths,
        *held.links,
        *last.checkout.dirty_files,
    ]
    return OwnReads(places.folder, last.reads_inside, held.files, PathIndex(others), places.patterns).is_unread


def spread(reasons: Mapping[str, str | None], projects: Iterable[GoldenProjectConfig]) -> dict[str, str]:
    """Return why each project runs. If one runs, the projects that need it and the projects that it needs run too.

    `projects` are in declaration order, in which no project needs a later one.
    """
    everyone = tuple(projects)
    why = {name: reason for name, reason in reasons.items() if reason is not None}
    for project in everyone:
        needed = next((name for name in project.needs if name in why), None)
        if project.name not in why and needed is not None:
            why[project.name] = f"it needs {needed}, which runs"
    for project in reversed(everyone):
        for name in project.needs if project.name in why else ():
            why.setdefault(name, f"{project.name}, which runs, needs it")
    return {project.name: why[project.name] for project in everyone if project.name in why}


def _find_changed_entry(project: GoldenProjectConfig, present: Present) -> str | None:
    if present.base_entries is None:
        return None
    before = present.base_entries.get(project.name)
    if before is None:
        return "it is new in the manifest"
    changed = _list_changed_keys(before.to_dict(), project.to_dict())
    return f"its entry in the manifest changed: {', '.join(changed)}" if changed else None


def _list_changed_keys(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    keys = [key for key in {**now, **before} if key not in _FOR_PEOPLE]
    return [key for key in keys if before.get(key) != now.get(key)]


def _find_changed_input(
    places: InputPlaces, changed: PathIndex, claims: Claims, told: str = " changed", unseen: str | None = None
) -> str | None:
    found = _find(places, changed, unseen) or next(
        filter(None, map(changed.find, (*places.configs, *places.links))), None
    )
    if found is not None:
        return f"{show_path(found)}{told}"
    # A project with `depends_on` has declared everything that it reads outside its own folder.
    unclaimed = None if places.patterns else claims.find_unclaimed(changed)
    return None if unclaimed is None else f"{show_path(unclaimed)}{told}, and it has no depends_on"


def _find(places: InputPlaces, index: PathIndex, unseen: str | None = None) -> str | None:
    """Return a path of an index that is at or below a place of a project, or that a pattern names. The place `unseen` does not count."""
    for place in places.places:
        found = index.find(place) if place != unseen else None
        if found is not None:
            return found
    return next(filter(None, map(index.find_named, places.patterns)), None)


def _find_doubt(places: InputPlaces, tree: Tree) -> str | None:
    if places.doubt is not None:
        return f"{show_path(places.doubt)} is outside git, so it may have changed"
    for index, told in (
        (tree.environments, "the versions in {} are not known, because no venv: names it"),
        (tree.submodules, "{} is a submodule"),
        (tree.unwatched, "git does not watch {}"),
    ):
        found = _find(places, index) or next(filter(None, map(index.find, places.links)), None)
        if found is not None:
            return told.format(show_path(found))
    return _find_leaving_link(places, tree)


def _find_ignored(places: InputPlaces, tree: Tree, present: Present, last: LastResult | None) -> str | None:
    """Name an input that git ignores and that is newer than the last run here. Older ones have not changed since."""
    seen = [place for place in places.places if place != places.unseen]
    named = [path for pattern in places.patterns for path in tree.ignored.list_named(pattern)]
    inside = dict.fromkeys([*(path for place in seen for path in tree.ignored.list_below(place)), *named])
    # Git ignores all of it, or a symlink on the way to it.
    around = [place for place in seen if not tree.ignored.list_below(place)]
    found = next(filter(None, map(tree.ignored.find, (*around, *places.links))), None)
    if found is None and inside and last is not None and last.where == present.where:
        newer = present.ignored.list_own(inside).find_newer(last.started_at)
        if newer is None:
            return None
        told = "which is newer than its last pass"
        if Path(tree.root, newer).is_symlink():
            told = "a symlink, so its target may have changed"
        return f"git ignores {show_path(newer)}, {told}"
    found = found or next(iter(inside), None)
    return None if found is None else f"git ignores {show_path(found)}, so it may have changed"


def _find_leaving_link(places: InputPlaces, tree: Tree) -> str | None:
    for place in places.places:
        home = str(tree.root / place)
        for link in tree.links.list_below(place):
            if not f"{tree.find_target(link)}/".startswith(f"{home}/"):
                return f"{show_path(link)} is a symlink that leads out of {place or 'the checkout'}"
    linked = next(filter(None, map(tree.links.find_named, places.patterns)), None) or next(
        (
            link
            for pattern in places.patterns
            for link in tree.links.paths
            if leads_through(pattern, link, tree.find_target, str(tree.root))
        ),
        None,
    )
    return None if linked is None else f"{show_path(linked)} is a symlink"


def _find_variable(project: GoldenProjectConfig) -> str | None:
    name = next((name for name in project.pass_env if os.environ.get(name)), None)
    return None if name is None else f"it gets the variable {name}, whose value is not stored"


def _find_in_past(
    project: GoldenProjectConfig,
    places: InputPlaces,
    tree: Tree,
    present: Present,
    last: LastResult | None,
    unread: Callable[[str], bool] | None,
) -> str | None:
    if last is None:
        return "no run of it is recorded"
    if last.status is not ResultStatus.PASSED:
        return f"its last run was {last.status}"
    declaration = present.hide(project.to_dict())
    changed = ["all of it"] if declaration is None else _list_changed_keys(last.declaration, declaration)
    if changed:
        return f"its declaration changed since it passed: {', '.join(changed)}"
    versions: Sequence[str] = compare_surroundings(last.surroundings, present.surroundings, venv=project.venv)
    if versions:
        return f"versions changed since it passed: {versions[0]}"
    since = present.since_pass(last)
    if isinstance(since, str):
        return since
    return (
        _find_newer_log(places, tree, present, last)
        or (None if places.patterns else _find_newer_ignored(present, last))
        or _find_changed_input(places, leave_out(since, unread), present.claims, " changed since it passed")
        or _find_gone(places, present, last)
        or _find_changed_read(tree, since, present, last)
    )


def _find_moment(present: Present, last: LastResult) -> int:
    """Return when the last run began; 0 if it ran elsewhere, because times of another machine say nothing about files here."""
    return last.started_at if last.where == present.where else 0


def _find_gone(places: InputPlaces, present: Present, last: LastResult) -> str | None:
    gone = present.gone_since(last)
    if isinstance(gone, str):
        return gone
    told = ", which git ignored, is gone since it passed"
    found = _find_changed_input(places, gone, present.claims, told, places.unseen)
    if found is None and last.ignored is not None and not last.ignored.is_all and not places.patterns:
        return "git ignored too many files to record at its last pass, and it has no depends_on"
    return found


def _find_changed_read(tree: Tree, since: PathIndex, present: Present, last: LastResult) -> str | None:
    if present.no_reads is None:
        return None
    return unchanged_tree.find_changed_read(last.reads, tree, since, present.no_reads, _find_moment(present, last))


def _find_newer_log(places: InputPlaces, tree: Tree, present: Present, last: LastResult) -> str | None:
    """Name one of the project's own logs that changed. Tools write most logs, but a pipeline may read one."""
    moment = _find_moment(present, last)
    seen = (place for place in places.places if place != places.unseen)
    newer = next(filter(None, (tree.find_newer_log(place, moment) for place in seen)), None) or next(
        (str(path) for path in present.ignored_judging if unchanged_tree.read_change(path) >= moment), None
    )
    return None if newer is None else f"git ignores {show_path(newer)}, which is newer than its last pass"


def _find_newer_ignored(present: Present, last: LastResult) -> str | None:
    newer = present.ignored.find_newer(_find_moment(present, last))
    if newer is None:
        return None
    is_elsewhere = last.where != present.where
    told = "and it last passed elsewhere" if is_elsewhere else "which is newer than its last pass"
    return f"git ignores {show_path(newer)}, {told}, and it has no depends_on"
