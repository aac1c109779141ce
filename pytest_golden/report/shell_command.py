"""Commands about one project. Typed in the person's current folder, they find the same manifest."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from pytest_golden.settings import find_manifest_above

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

#: A placeholder for a project's name in a command. Like every such name, it needs no quotes in a shell.
NAME_SIGNS = "@name@"


def shell_command(name: str, manifest: Path, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the command that opens a shell in a project's view, to be typed in `folder`."""
    return _with_manifest(f"golden run {name} --shell", manifest, folder, environment)


def accept_command(manifest: Path, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the command that accepts present outputs, to be typed in `folder`, with `{name}` for the project."""
    return as_template(_with_manifest(f"golden accept {NAME_SIGNS}", manifest, folder, environment))


def as_template(command: str) -> str:
    """Return a format string: the command with `{name}` in place of `NAME_SIGNS`."""
    return command.replace("{", "{{").replace("}", "}}").replace(NAME_SIGNS, "{name}")


def accept_arguments(names: Iterable[str], manifest: Path, folder: Path) -> list[str]:
    """Return the arguments for pytest, started in `folder`, to accept the outputs of these projects and no others.

    `-k` would also select projects whose names contain one of these.
    """
    shown = _show_from(manifest, folder)
    return ["--golden", f"--golden-manifest={shown}", *(f"{shown}::{name}" for name in names), "--golden-update"]


def _with_manifest(command: str, manifest: Path, folder: Path, environment: Mapping[str, str]) -> str:
    """Name the manifest, unless the command would find it by itself."""
    found = None if environment.get("GOLDEN_MANIFEST") else find_manifest_above(folder)
    if found is not None and (found == manifest or (manifest.exists() and found.samefile(manifest))):
        return command
    return f"{command} --manifest {shlex.quote(_show_from(manifest, folder))}"


def _show_from(manifest: Path, folder: Path) -> str:
    """Return a path as seen from a folder: relative if one of the two folders contains the other."""
    if not (manifest.is_relative_to(folder) or folder.is_relative_to(manifest.parent)):
        return str(manifest)
    shown = os.path.relpath(manifest, folder)
    return f"./{shown}" if shown.startswith("-") else shown
