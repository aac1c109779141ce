"""`venv: "uv:FOLDER"`: the environment of a uv project, made once for each lock file in the user's cache.

A change may bring the lock file, so nothing of what it names runs outside a seal: only wheels are installed, the project
itself is not, and the interpreter is the gate's. https://docs.astral.sh/uv/reference/cli/#uv-sync
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import GatewayError
from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.scratch import remove_tree
from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.storage.folder import open_regular

if TYPE_CHECKING:
    from collections.abc import Mapping

LOCK_NAME = "uv.lock"
_MOST_LOCK_BYTES = 64 << 20
_MOST_SECONDS = 1800
_SYNC = (
    *("sync", "--frozen", "--no-build", "--no-python-downloads", "--quiet", "--color=never"),
    *("--no-install-project", "--no-install-workspace"),
    # The settings in a `pyproject.toml` could have it start what it has installed, or write elsewhere.
    *("--no-config", "--no-compile-bytecode"),
)
# A file in the environment's folder: it is there when the environment is whole, and its time is that of the last run.
_MADE = "made-by-golden"
_KEPT_SECONDS = 30 * 86_400
_MOST_LINES = 5


class UvError(GatewayError):
    """There is no lock file, or the environment cannot be made. `problem` is what a result says of it."""

    def __init__(self, message: str, problem: Problem = Problem.PATH_NOT_FOUND) -> None:
        self.problem = problem
        super().__init__(message)


def find_environment(folder: Path, python: str) -> Path:
    """Return where the environment of a uv project is, or will be.

    Raises:
        UvError: the project has no lock file that can be read.
    """
    digest = hashlib.sha256(_read_lock(folder))
    digest.update(os.fsencode(os.path.realpath(python)))
    try:
        home = Path.home()
    except RuntimeError:
        raise UvError("there is no HOME for the environment: set it", Problem.PERMISSION_DENIED) from None
    return home / ".cache" / "pytest-golden" / "uv" / digest.hexdigest()[:32]


def read_locked(folder: Path) -> Mapping[str, str]:
    """Return name and version of each package in a lock file; empty if it cannot be read."""
    try:
        packages = tomllib.loads(_read_lock(folder).decode()).get("package", [])
        found = {str(one["name"]): str(one["version"]) for one in packages if "version" in one}
    except (UvError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
    return dict(sorted(found.items()))


def make_environment(folder: Path, environment: Path, python: str) -> None:
    """Make the environment of a uv project, if it is not whole; another process that makes it is waited for.

    Environments that no run has named for a month are removed.

    Raises:
        UvError: uv is not installed, or it failed.
    """
    from filelock import FileLock

    try:
        environment.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{environment}.lock"):
            is_new = not (environment / _MADE).exists()
            if is_new:
                # uv would start the interpreter of an environment that is there, and with it what was installed.
                remove_tree(environment)
                _sync(folder, environment, python)
            (environment / _MADE).touch()
        if is_new:
            _remove_unused(environment.parent)
    except OSError as error:
        raise UvError(
            f"{environment} cannot be written: {error.strerror or error}", Problem.PERMISSION_DENIED
        ) from None


def _remove_unused(folder: Path) -> None:
    from filelock import FileLock, Timeout

    for mark in folder.glob(f"*/{_MADE}"):
        with suppress(OSError, Timeout), FileLock(f"{mark.parent}.lock", timeout=0):
            if time.time() - mark.stat().st_mtime > _KEPT_SECONDS:
                remove_tree(mark.parent)


def _find_uv() -> str:
    beside = str(Path(sys.executable).parent)
    program = shutil.which("uv", path=os.pathsep.join((beside, os.environ.get("PATH", os.defpath))))
    if program is None:
        told = "uv is not installed: get it (`python -m pip install uv`), or name the folder of an environment"
        raise UvError(told, Problem.COMMAND_NOT_FOUND)
    return program


def _sync(folder: Path, environment: Path, python: str) -> None:
    given = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "UV_PYTHON"}}
    try:
        done = subprocess.run(
            (_find_uv(), *_SYNC, "--python", python, "--project", str(folder)),
            cwd=folder,
            env={**given, "UV_PROJECT_ENVIRONMENT": str(environment)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UvError(f"`uv sync` took longer than {_MOST_SECONDS // 60} minutes", Problem.HARNESS) from None
    if done.returncode:
        lines = strip_escapes(done.stderr.decode("utf-8", "replace")).strip().splitlines()
        told = " ".join(line.strip() for line in lines[-_MOST_LINES:]) or f"exit code {done.returncode}"
        raise UvError(f"`uv sync` failed: {told}", Problem.HARNESS)


def _read_lock(folder: Path) -> bytes:
    try:
        with open_regular(folder / LOCK_NAME) as stream:
            content: bytes = stream.read(_MOST_LOCK_BYTES + 1)
    except OSError as error:
        told = f"{folder / LOCK_NAME} cannot be read: {error.strerror or error}; `uv lock` writes it"
        raise UvError(told) from None
    if len(content) > _MOST_LOCK_BYTES:
        raise UvError(f"{folder / LOCK_NAME} is larger than any lock file")
    return content
