"""Why a project has to run: the first thing that changed, or that nobody can know of. It asks nobody but what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.gate.changed.ignored import read_change
from pytest_golden.gate.changed.links import leads_through
from pytest_golden.gate.changed.reads import find_changed_read
from pytest_golden.gate.surroundings import compare_surroundings
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_golden.gate.changed.ignored import IgnoredFiles
    from pytest_golden.gate.changed.paths import PathIndex
    from pytest_golden.gate.changed.places import InputPlaces
    from pytest_golden.gate.changed.store import LastResult
    from pytest_golden.gate.changed.tree import Tree
    from pytest_golden.gate.changed.unclaimed import Claims
    from pytest_golden.manifest.model import GoldenProjectConfig

_FOR_PEOPLE = frozenset({"title", "description"})


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """What may be an input of any project that declares no `depends_on`: what nobody claims, and which of it git ignores.

    `judging` are ignored files that may judge every project, whatever it declares.
    """

    claims: Claims
    ignored: IgnoredFiles
    judging: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Present:
    """What a project is compared with, beside the files.

    `base_entries` are the projects as the manifest at the base declares them, None where it is the same manifest.
    `since_pass` gives the files that differ from those of a run, `gone_since` those that git ignored and that are gone, or why
    that is not known. `hide` takes out of a
    declaration what the store does not keep. `environ` is where `pass_env` is taken from. `where` are this machine and
    workspace, as the store keeps them. `no_reads` are files that count for nobody who reads them; None where it is not asked
    what was read.
    """

    base_entries: Mapping[str, GoldenProjectConfig] | None
    surroundings: Mapping[str, Any]
    since_pass: Callable[[LastResult], PathIndex | str]
    gone_since: Callable[[LastResult], PathIndex | str]
    hide: Callable[[dict[str, Any]], dict[str, Any] | None]
    environ: Mapping[str, str]
    unclaimed: Unclaimed
    where: tuple[str, str] = ("", "")
    no_reads: frozenset[str] | None = None


def find_reason(
    project: GoldenProjectConfig, places: InputPlaces, tree: Tree, present: Present, last: LastResult | None
) -> str | None:
    """Say why a project has to run; None where nothing that it is made of changed, and it passed so."""
    return (
        _find_changed_entry(project, present)
        or _find_changed_input(places, tree.changed, present.unclaimed.claims)
        or _find_doubt(places, tree)
        or _find_variable(project, present.environ)
        or _find_in_past(project, places, tree, present, last)
    )


def spread(reasons: Mapping[str, str | None], projects: Iterable[GoldenProjectConfig]) -> dict[str, str]:
    """Give why each project runs: with one that does, those that need it and those that it needs do too.

    `projects` are in declaration order, in which no one needs a later one.
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
    changed = _compare(before.to_dict(), project.to_dict())
    return f"its entry in the manifest changed: {', '.join(changed)}" if changed else None


def _compare(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    keys = [key for key in {**now, **before} if key not in _FOR_PEOPLE]
    return [key for key in keys if before.get(key) != now.get(key)]


def _find_changed_input(places: InputPlaces, changed: PathIndex, claims: Claims, told: str = " changed") -> str | None:
    found = _find(places, changed) or next(filter(None, map(changed.find, (*places.configs, *places.links))), None)
    if found is not None:
        return f"{show_path(found)}{told}"
    # Whoever says what it reads outside its own folder has said all of it.
    unclaimed = None if places.patterns else claims.find_unclaimed(changed)
    return None if unclaimed is None else f"{show_path(unclaimed)}{told}, and it has no depends_on"


def _find(places: InputPlaces, index: PathIndex) -> str | None:
    for place in places.places:
        found = index.find(place)
        if found is not None:
            return found
    return next(filter(None, map(index.find_named, places.patterns)), None)


def _find_doubt(places: InputPlaces, tree: Tree) -> str | None:
    if places.doubt is not None:
        return f"{show_path(places.doubt)} is outside git, so nobody knows whether it changed"
    for index, told in (
        (tree.ignored, "git ignores {}, so nobody knows whether it changed"),
        (tree.environments, "nobody knows the versions in {}, which no venv: names"),
        (tree.submodules, "{} is a submodule"),
        (tree.unwatched, "git does not watch {}"),
    ):
        found = _find(places, index) or next(filter(None, map(index.find, places.links)), None)
        if found is not None:
            return told.format(show_path(found))
    return _find_leaving_link(places, tree)


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


def _find_variable(project: GoldenProjectConfig, environ: Mapping[str, str]) -> str | None:
    name = next((name for name in project.pass_env if environ.get(name)), None)
    return None if name is None else f"it is given {name}, and no value of that is kept to compare"


def _find_in_past(
    project: GoldenProjectConfig, places: InputPlaces, tree: Tree, present: Present, last: LastResult | None
) -> str | None:
    if last is None:
        return "no run of it is recorded"
    if last.status is not ResultStatus.PASSED:
        return f"its last run was {last.status}"
    declaration = present.hide(project.to_dict())
    changed = ["all of it"] if declaration is None else _compare(last.declaration, declaration)
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
        or _find_changed_input(places, since, present.unclaimed.claims, " changed since it passed")
        or _find_gone(places, present, last)
        or _find_read(tree, since, present, last)
    )


def _find_gone(places: InputPlaces, present: Present, last: LastResult) -> str | None:
    gone = present.gone_since(last)
    if isinstance(gone, str):
        return gone
    found = _find_changed_input(places, gone, present.unclaimed.claims, ", which git ignored, is gone since it passed")
    if found is None and last.ignored is not None and not last.ignored.is_all and not places.patterns:
        return "git ignored too many files when it passed to note them all, and it has no depends_on"
    return found


def _find_read(tree: Tree, since: PathIndex, present: Present, last: LastResult) -> str | None:
    if present.no_reads is None:
        return None
    moment = last.started_at if last.where == present.where else 0
    return find_changed_read(last.reads, tree, since, present.no_reads, moment)


def _find_newer_log(places: InputPlaces, tree: Tree, present: Present, last: LastResult) -> str | None:
    """Say which of its own logs changed: tools leave most of them, but a pipeline may read one."""
    moment = last.started_at if last.where == present.where else 0
    newer = next(filter(None, (tree.find_newer_log(place, moment) for place in places.places)), None) or next(
        (str(path) for path in present.unclaimed.judging if read_change(path) >= moment), None
    )
    return None if newer is None else f"git ignores {show_path(newer)}, which is newer than its last pass"


def _find_newer_ignored(present: Present, last: LastResult) -> str | None:
    # Times tell nothing of the files that another machine, or another checkout, had.
    is_elsewhere = last.where != present.where
    newer = present.unclaimed.ignored.find_newer(0 if is_elsewhere else last.started_at)
    if newer is None:
        return None
    told = "and it last passed elsewhere" if is_elsewhere else "which is newer than its last pass"
    return f"git ignores {show_path(newer)}, {told}, and it has no depends_on"
