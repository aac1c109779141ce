"""The clean context of a pipeline: an environment built from nothing, and the programs it will find."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.gateway.resolution import ResolvedProject

#: The same everywhere, so that a pipeline that depends on one of them depends on nothing. 2020-01-01T00:00:00Z.
FIXED = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "1577836800"}
_WINDOWS_NEEDS = ("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "WINDIR")
_MODULE_CHECK = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"


def build_path_variable(project: ResolvedProject, environ: Mapping[str, str]) -> str:
    """Return PATH: the project's own environment first, then the gate's interpreter, then the gate's PATH.

    Relative entries are dropped: they would mean another folder inside the view.
    """
    folders = [str(Path(project.python).parent), str(Path(sys.executable).parent)]
    folders += [folder for folder in environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)]
    return os.pathsep.join(dict.fromkeys(folders))


def build_environment(
    project: ResolvedProject,
    *,
    environ: Mapping[str, str],
    home: str,
    temporary: str,
    steps_file: str,
    runner: Mapping[str, str],
) -> dict[str, str]:
    """Build the environment of a pipeline; what the manifest sets wins over everything."""
    clean = {
        **{name: environ[name] for name in _WINDOWS_NEEDS if name in environ},
        "PATH": build_path_variable(project, environ),
        "HOME": home,
        "TMPDIR": temporary,
        **FIXED,
        "GOLDEN_STEPS": steps_file,
    }
    prefix = project.venv if project.venv is not None else Path(sys.prefix)
    if project.venv is not None or sys.prefix != sys.base_prefix:
        clean["VIRTUAL_ENV"] = str(prefix)
    return {**clean, **runner, **passed_variables(project, environ), **project.config.set_env}


def passed_variables(project: ResolvedProject, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the manifest lets through, those of them that are set."""
    return {name: environ[name] for name in project.config.pass_env if name in environ}


def find_missing(project: ResolvedProject, path_variable: str) -> tuple[str, ...]:
    """List the names in `skip_if_missing` that are neither a program on PATH nor a module of the interpreter."""
    return tuple(
        name
        for name in project.config.skip_if_missing
        if shutil.which(name, path=path_variable) is None and not _has_module(project, name)
    )


def _has_module(project: ResolvedProject, name: str) -> bool:
    top = name.partition(".")[0]
    if not top.isidentifier():
        return False
    if project.venv is None:
        return top in sys.modules or importlib.util.find_spec(top) is not None
    done = subprocess.run(
        [project.python, "-I", "-c", _MODULE_CHECK, top], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return done.returncode == 0
