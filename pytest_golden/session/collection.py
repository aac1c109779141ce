"""Collect golden projects as items and keep them last and in declaration order. Nothing is executed here."""

from __future__ import annotations

import os
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.session.item import GOLDEN_MARKER, GoldenItem, ItemWork

if TYPE_CHECKING:
    from collections.abc import Container, Generator, Iterable, Sequence
    from pathlib import Path

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.session.declared import Declared

_TAG_MARKER = "golden_tag_"
# Before pytest 9 `pytest . file` collects the file alone.
_NARROWS = pytest.version_tuple < (9,)
# Operators in the expression of `-m`, so they cannot be marker names.
_OPERATORS = frozenset({"and", "not", "or"})


class InlineGoldenProjects(pytest.Collector):
    """The collector of the inline form, which has no file."""

    work: ItemWork

    def collect(self) -> Iterable[GoldenItem]:
        """Return one item for each project, in declaration order."""
        projects = self.work.declared.projects.values()
        return [GoldenItem.from_parent(self, project=project, work=self.work) for project in projects]


class GoldenManifestFile(InlineGoldenProjects, pytest.File):
    """The manifest as pytest's collector."""


class GoldenCollection:
    """The hooks that collect and order golden items, in every process that collects.

    `named` are the inline projects that were asked for by node id; None means all.
    """

    def __init__(self, work: ItemWork, named: frozenset[str] | None = None) -> None:
        self._work = work
        self._declared = work.declared
        self._named = named

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> GoldenManifestFile | None:
        """Collect the manifest of this session and no other file."""
        manifest = self._declared.manifest_path
        if manifest is None or file_path.name != manifest.name or not _is_same(file_path, manifest):
            return None
        collector: GoldenManifestFile = GoldenManifestFile.from_parent(
            parent, path=file_path, nodeid=self._declared.node_prefix
        )
        collector.work = self._work
        return collector

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> Generator[None, Any, Any]:
        """Bring in what no file stands for, or what pytest has not walked to, before anything selects."""
        manifest, prefix = self._declared.manifest_path, self._declared.node_prefix
        collector: InlineGoldenProjects | None = None
        if manifest is None:
            collector = InlineGoldenProjects.from_parent(session, name=prefix, path=session.path, nodeid=prefix)
        elif _NARROWS and not any(isinstance(item, GoldenItem) for item in items):
            collector = GoldenManifestFile.from_parent(session, path=manifest, nodeid=prefix)
        if collector is not None:
            collector.work = self._work
            found = session.genitems(collector)
            items.extend(item for item in found if self._named is None or item.name in self._named)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Restore the order, after everything that shuffles or sorts has had its turn."""
        is_asked = session.config.getoption("failedfirst", default=False)
        from pytest_golden.manifest.model import find_independent

        movable = find_independent(self._declared.projects.values()) if is_asked else ()
        session.items[:] = _golden_last(session.items, list(self._declared.projects), movable)


def select_manifest(config: pytest.Config, declared: Declared) -> frozenset[str] | None:
    """Make pytest collect the manifest: alone when no path was given, else after the given ones.

    Gives the inline projects that were asked for by node id, which no file stands for; None means all.

    Raises:
        SettingsError: the manifest's path holds signs that mean something else to pytest, or an inline project is
            asked for that is not declared.
    """
    source = pytest.Config.ArgsSource
    given = list(config.args) if config.args_source is source.ARGS else []
    # Both are public (pytest-dev/pytest#9897). Otherwise the header would name `testpaths`, which are not collected.
    config.args_source = source.ARGS
    if declared.manifest_path is None:
        named = [argument for argument in given if argument.partition("::")[0] == declared.node_prefix]
        config.args[:] = [argument for argument in given if argument not in named]
        return _take_named(named, declared)
    folder = config.invocation_params.dir
    manifest = declared.manifest_path
    if not any(_names(argument, manifest, folder) or _is_walked(argument, manifest, folder) for argument in given):
        given.append(_as_argument(declared.manifest_path, folder))
    config.args[:] = given
    return None


class TagMarkers:
    """The markers that select projects by tag. `own` are the configuration file's lines, whose names tags may share."""

    def __init__(self, config: pytest.Config, declared: Declared, own: Sequence[str]) -> None:
        # pytest and plug-ins add their lines after those of the file. A name may stand in both.
        taken = _list_markers(config.getini("markers")[len(own) :]) | _OPERATORS
        tags = {tag for project in declared.projects.values() for tag in project.tags} - {GOLDEN_MARKER}
        self._renamed = frozenset(tag for tag in tags if tag in taken or tag.startswith("_"))
        config.addinivalue_line("markers", f"{GOLDEN_MARKER}: a golden project of the manifest.")
        for tag in sorted(tags):
            config.addinivalue_line("markers", f"{self._name(tag)}: golden projects with the tag {tag}.")

    def list_names(self, project: GoldenProjectConfig) -> tuple[str, ...]:
        """Return the markers of a project."""
        return tuple(dict.fromkeys((GOLDEN_MARKER, *map(self._name, project.tags))))

    def describe(self) -> Iterable[str]:
        """Yield a line for each tag that has another marker, because its own name means something else to pytest."""
        for tag in sorted(self._renamed):
            yield f"golden: pytest or a plug-in uses the marker {tag}: select the tag {tag} with -m {self._name(tag)}"

    def _name(self, tag: str) -> str:
        return f"{_TAG_MARKER}{tag}" if tag in self._renamed else tag


def _list_markers(lines: Iterable[str]) -> frozenset[str]:
    return frozenset(line.partition(":")[0].partition("(")[0].strip() for line in lines)


def _golden_last(items: Iterable[pytest.Item], names: list[str], movable: Container[str]) -> list[pytest.Item]:
    """Put golden items last, in declaration order.

    Those in `movable` that were moved ahead of an earlier project stay in front.
    """
    others = [item for item in items if not isinstance(item, GoldenItem)]
    found = {item.name: item for item in items if isinstance(item, GoldenItem)}
    place = {name: number for number, name in enumerate(names)}
    behind = [*accumulate((place[name] for name in reversed(found)), min)][::-1]
    moved = [name for name, least in zip(found, behind, strict=True) if name in movable and least < place[name]]
    left = found.keys() - set(moved)
    rest = [name for name in names if name in left]
    return [*others, *(found[name] for name in (*moved, *rest))]


def _take_named(arguments: Iterable[str], declared: Declared) -> frozenset[str] | None:
    named = frozenset(argument.partition("::")[2] for argument in arguments)
    if not named or "" in named:
        return None
    unknown = sorted(named - declared.projects.keys())
    if unknown:
        known = ", ".join(declared.projects)
        raise SettingsError(f"--golden-projects declares no {', '.join(unknown)}; it declares {known}.")
    return named


def _names(argument: str, manifest: Path, folder: Path) -> bool:
    return _is_same(folder / argument.partition("::")[0], manifest)


def _is_walked(argument: str, manifest: Path, folder: Path) -> bool:
    """Tell whether the manifest must be left to pytest's walk, which without this argument would leave out what is beside it."""
    if not _NARROWS:
        return False
    place = (folder / argument).resolve()
    return place.is_dir() and manifest.resolve().is_relative_to(place)


def _as_argument(manifest: Path, folder: Path) -> str:
    try:
        argument = os.path.relpath(manifest, folder)
    except ValueError:  # another drive
        argument = str(manifest)
    if "[" in argument or "::" in argument:
        message = f"{manifest}: pytest takes '[' and '::' in a path for a test's name; rename it or start below it."
        raise SettingsError(message)
    return argument


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path == other or path.samefile(other)
    except OSError:
        return False
