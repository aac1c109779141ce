"""The baselines of this session: where they lie, whether they are accepted, and what a person types to accept them."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gate.baselines import BaselineKeeper, find_baselines_folder
from pytest_golden.settings import MANIFEST_NAME

if TYPE_CHECKING:
    from pytest_golden.session.declared import Declared
    from pytest_golden.settings import GoldenSettings


def keep_baselines(settings: GoldenSettings, declared: Declared, rootdir: Path) -> BaselineKeeper:
    """Give what compares the outputs of this session's projects, and accepts them with `--golden-update`."""
    folder = find_baselines_folder(declared.manifest_path, declared.manifest.workspace_root)
    manifest = declared.manifest_path
    named = ""
    if manifest is not None and manifest != rootdir / MANIFEST_NAME:
        shown = os.path.relpath(manifest) if manifest.is_relative_to(Path.cwd()) else str(manifest)
        named = f" --golden-manifest {shlex.quote(shown)}".replace("{", "{{").replace("}", "}}")
    return BaselineKeeper(
        folder, accepts=settings.update, accept_command=f"pytest --golden{named} -k {{name}} --golden-update"
    )
