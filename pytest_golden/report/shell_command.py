"""The command that opens a shell in a project's view, as it must be typed here to mean the same manifest."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from pytest_golden.settings import find_manifest_above

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def shell_command(name: str, manifest: Path, folder: Path, environment: Mapping[str, str]) -> str:
    """Give the command to type in `folder`; the manifest is named unless the command would find it by itself."""
    command = f"golden run {name} --shell"
    found = None if environment.get("GOLDEN_MANIFEST") else find_manifest_above(folder)
    if found is not None and _is_same(found, manifest):
        return command
    shown = os.path.relpath(manifest, folder) if manifest.is_relative_to(folder) else str(manifest)
    return f"{command} --manifest {shlex.quote(shown)}"


def _is_same(found: Path, manifest: Path) -> bool:
    return found == manifest or (manifest.exists() and found.samefile(manifest))
