"""What this session was asked to run: the projects of a manifest or of `--golden-projects`, read once and frozen.

The id of this session's gate, the same for the controller and all workers; its logs lie below it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.clock import new_id
from pytest_golden.errors import SettingsError
from pytest_golden.manifest.reader import load_manifest, parse_inline_manifest
from pytest_golden.report.shell_command import shell_command
from pytest_golden.settings import MANIFEST_NAME, find_manifest_above

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.settings import GoldenSettings


@dataclass(frozen=True, slots=True)
class Declared:
    """The projects of this session by name, in declaration order.

    `manifest_path` is None for the inline form. `node_prefix` is what stands before `::` in their node ids. `judged_folder`
    is the manifest's folder in the checkout that is judged, which is another one than the manifest's with `--golden-workspace`.
    """

    manifest: Manifest
    projects: Mapping[str, GoldenProjectConfig]
    manifest_path: Path | None
    node_prefix: str
    judged_folder: Path

    @property
    def label(self) -> str:
        """Name the place of the declaration for people."""
        return "--golden-projects" if self.manifest_path is None else self.node_prefix

    def find_project(self, node_id: str) -> GoldenProjectConfig | None:
        """Return the project whose item has this node id, or None for an ordinary test.

        xdist's `--dist loadgroup` adds `@` and the item's group to a node id.
        """
        # Called several times for each ordinary test.
        if not node_id.startswith(self.node_prefix):
            return None
        prefix = f"{self.node_prefix}::"
        if not node_id.startswith(prefix):
            return None
        name = node_id.removeprefix(prefix)
        return self.projects.get(name) or self.projects.get(name.rpartition("@")[0])

    def shell_command(self, name: str) -> str | None:
        """Return the command that opens a shell in a project's view; None for the inline form, which no command knows."""
        if self.manifest_path is None:
            return None
        return shell_command(name, self.manifest_path, Path.cwd(), os.environ)


def find_default_manifest(config: pytest.Config) -> Path:
    """Return the path of the manifest for a session that names none; it need not exist.

    It is in the rootdir. Without a configuration pytest guesses that from every path on the command line, also from those
    of options: then the nearest manifest from here upwards is meant.
    """
    expected = config.rootpath / MANIFEST_NAME
    if config.inipath is not None or expected.exists():
        return expected
    return find_manifest_above(config.invocation_params.dir) or expected


def read_declared(settings: GoldenSettings, default_manifest: Path, rootdir: Path) -> Declared:
    """Read what is declared.

    Raises:
        ManifestError: the manifest or the inline form cannot be used.
        SettingsError: there is none, there are two, or it is empty although it must not be.
    """
    if settings.projects is not None:
        declared = _read_inline(settings.projects, settings.manifest, rootdir)
    else:
        declared = _read_file(settings.manifest or default_manifest, rootdir, settings.workspace)
    if (settings.require or declared.manifest.require_golden_projects) and not declared.projects:
        raise SettingsError(f"{declared.label} declares no golden projects, and they are required: declare one.")
    return declared


def _read_file(path: Path, rootdir: Path, workspace: Path | None) -> Declared:
    if not path.exists():
        message = f"{path} does not exist, so no golden projects are declared: run `golden init` to write a first one."
        raise SettingsError(message)
    manifest, folder = load_manifest(path), path.parent
    if workspace is not None:
        folder = workspace / os.path.relpath(folder, manifest.workspace_root)
        manifest = replace(manifest, workspace_root=workspace)
    return Declared(manifest, _by_name(manifest), path, _node_prefix(path, rootdir), folder)


def _read_inline(text: str, manifest_path: Path | None, rootdir: Path) -> Declared:
    if manifest_path is not None:
        raise SettingsError("--golden-projects and --golden-manifest both declare golden projects: give one of them.")
    manifest = parse_inline_manifest(text, rootdir)
    return Declared(manifest, _by_name(manifest), None, MANIFEST_NAME, rootdir)


def _by_name(manifest: Manifest) -> Mapping[str, GoldenProjectConfig]:
    return {project.name: project for project in manifest.projects}


def _node_prefix(path: Path, rootdir: Path) -> str:
    if path.is_relative_to(rootdir):
        return path.relative_to(rootdir).as_posix()
    return os.path.relpath(path, rootdir).replace(os.sep, "/")


_SESSION_KEY = "golden_session"
_ID = pytest.StashKey[str]()


def name_session(config: pytest.Config) -> str:
    """Return this session's id, which xdist workers get from their controller."""
    told: dict[str, Any] | None = getattr(config, "workerinput", None)
    if told is not None:
        return str(told[_SESSION_KEY])
    return config.stash.setdefault(_ID, new_id("gate"))


def tell_worker(config: pytest.Config, workerinput: dict[str, Any]) -> None:
    """Tell a worker this session's id."""
    workerinput[_SESSION_KEY] = name_session(config)
