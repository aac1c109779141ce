"""A project as it is declared in a copy of its workspace: absolute paths into the workspace become relative ones."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from typing import Any

_PATHS = ("path", "project_dir", "venv")


def relocate(project: GoldenProjectConfig, root: Path) -> GoldenProjectConfig:
    """Give a project that means the same below another root as it does below this one."""
    given = project.to_dict()
    told: dict[str, Any] = dict(given)
    for key in _PATHS:
        if isinstance(told[key], str):
            told[key] = _relative(told[key], root)
    told["pass_files"] = [_relative(path, root) for path in told["pass_files"]]
    told["mounts"] = [{**mount, "path": _relative(mount["path"], root)} for mount in told["mounts"]]
    return project if told == given else GoldenProjectConfig(**told)


def _relative(path: str, root: PurePath) -> str:
    found = PurePath(path)
    return found.relative_to(root).as_posix() if found.is_absolute() and found.is_relative_to(root) else path
