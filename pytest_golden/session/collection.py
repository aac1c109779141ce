"""Collect golden projects as items and keep them last and in declaration order. Nothing is executed here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.session.item import GoldenItem

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

    from pytest_golden.session.declared import Declared


class GoldenManifestFile(pytest.File):
    """The manifest as pytest's collector."""

    declared: Declared

    def collect(self) -> Iterable[GoldenItem]:
        """Give one item a project, in declaration order."""
        return _make_items(self, self.declared)


class InlineGoldenProjects(pytest.Collector):
    """The collector of the inline form, which has no file."""

    declared: Declared

    def collect(self) -> Iterable[GoldenItem]:
        """Give one item a project, in declaration order."""
        return _make_items(self, self.declared)


class GoldenCollection:
    """The hooks that collect and order golden items, in every process that collects.

    `named` are the inline projects that were asked for by node id; None means all.
    """

    def __init__(self, declared: Declared, named: frozenset[str] | None = None) -> None:
        self._declared = declared
        self._named = named

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> GoldenManifestFile | None:
        """Collect the manifest of this session and no other file."""
        manifest = self._declared.manifest_path
        if manifest is None or file_path.name != manifest.name or not _is_same(file_path, manifest):
            return None
        collector: GoldenManifestFile = GoldenManifestFile.from_parent(
            parent, path=file_path, nodeid=self._declared.node_prefix
        )
        collector.declared = self._declared
        return collector

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> Generator[None, Any, Any]:
        """Bring in the inline form before anything selects."""
        if self._declared.manifest_path is None:
            collector: InlineGoldenProjects = InlineGoldenProjects.from_parent(
                session, name=self._declared.node_prefix, path=session.path, nodeid=self._declared.node_prefix
            )
            collector.declared = self._declared
            inline = session.genitems(collector)
            items.extend(item for item in inline if self._named is None or item.name in self._named)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Restore the order, after everything that shuffles or sorts has had its turn."""
        session.items[:] = _golden_last(session.items, list(self._declared.projects))


def select_manifest(config: pytest.Config, declared: Declared) -> frozenset[str] | None:
    """Make pytest collect the manifest: alone when no path was given, else after the given ones.

    Gives the inline projects that were asked for by node id, which no file stands for; None means all.

    Raises:
        SettingsError: the manifest's path holds signs that mean something else to pytest, or an inline project is
            asked for that is not declared.
    """
    source = pytest.Config.ArgsSource
    given = list(config.args) if config.args_source is source.ARGS else []
    config.args_source = source.ARGS
    if declared.manifest_path is None:
        named = [argument for argument in given if argument.partition("::")[0] == declared.node_prefix]
        config.args[:] = [argument for argument in given if argument not in named]
        return _take_named(named, declared)
    folder = config.invocation_params.dir
    if not any(_names(argument, declared.manifest_path, folder) for argument in given):
        given.append(_as_argument(declared.manifest_path, folder))
    config.args[:] = given
    return None


def register_markers(config: pytest.Config, declared: Declared) -> None:
    """Declare the markers `golden` and every tag, as `--strict-markers` wants it."""
    config.addinivalue_line("markers", "golden: a golden project of the manifest.")
    for tag in sorted({tag for project in declared.projects.values() for tag in project.tags} - {"golden"}):
        config.addinivalue_line("markers", f"{tag}: golden projects with this tag.")


def _make_items(parent: pytest.Collector, declared: Declared) -> list[GoldenItem]:
    return [
        GoldenItem.from_parent(parent, project=project, line=declared.manifest.lines.get(name))
        for name, project in declared.projects.items()
    ]


def _golden_last(items: Iterable[pytest.Item], names: list[str]) -> list[pytest.Item]:
    others: list[pytest.Item] = []
    golden: dict[str, pytest.Item] = {}
    for item in items:
        if isinstance(item, GoldenItem):
            golden[item.name] = item
        else:
            others.append(item)
    return [*others, *(golden[name] for name in names if name in golden)]


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
