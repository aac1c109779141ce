"""The paths that a manifest declares, made absolute and checked, and the files that stand in for a project's own."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

from pytest_golden.errors import GatewayError
from pytest_golden.gateway.content import find_regular_file
from pytest_golden.gateway.model import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_golden.manifest.model import GoldenProjectConfig


#: What `venv:` begins with where it names the folder of uv's lock file.
UV_PREFIX = "uv:"


class ProjectUnusableError(GatewayError):
    """A golden project cannot be run, and why. It becomes an outcome and never reaches a user as an exception."""

    def __init__(self, message: str, problem: Problem = Problem.PATH_NOT_FOUND) -> None:
        super().__init__(message)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class ResolvedMount:
    """A mount with its absolute path; `mode` is read, copy or write."""

    path: Path
    mode: str


@dataclass(frozen=True, slots=True)
class ResolvedProject:
    """A golden project with its paths made absolute, links in the folders followed.

    `python` runs it; `gate_python` is that of projects without a `venv`. `uv_project` is the folder of uv's lock file, if
    the environment is made from one.
    """

    config: GoldenProjectConfig
    file: Path
    project_dir: Path
    venv: Path | None
    python: str
    gate_python: str
    mounts: tuple[ResolvedMount, ...]
    pass_files: tuple[Path, ...]
    uv_project: Path | None = None


def resolve_project(
    config: GoldenProjectConfig, workspace_root: Path, gate_python: str = sys.executable
) -> ResolvedProject:
    """Resolve all of a project's paths. `gate_python` runs it where it declares no `venv`.

    Raises:
        ProjectUnusableError: one of them does not exist, cannot be read, or lies where it may not.
    """
    file = _resolve(config.path, workspace_root, "path")
    if config.project_dir is not None:
        project_dir = _resolve(config.project_dir, workspace_root, "project_dir")
    else:
        project_dir = file if file.is_dir() else file.parent
    if not project_dir.is_dir():
        raise ProjectUnusableError(f"project_dir {project_dir} is not a folder")
    if project_dir == Path(project_dir.anchor):
        message = f"project_dir {project_dir} is the whole file system; name a folder"
        raise ProjectUnusableError(message, Problem.PATH_NOT_ALLOWED)
    if not file.is_relative_to(project_dir):
        message = f"path {file} lies outside project_dir {project_dir}; set project_dir to a folder that contains it"
        raise ProjectUnusableError(message, Problem.PATH_NOT_ALLOWED)
    _require_readable(file)
    _require_readable(project_dir)
    uv_project, venv, python = _resolve_venv(config.venv, workspace_root, gate_python)
    return ResolvedProject(
        config=config,
        file=file,
        project_dir=project_dir,
        venv=venv,
        python=python,
        gate_python=gate_python,
        mounts=tuple(ResolvedMount(_resolve(m.path, workspace_root, "mounts"), m.mode) for m in config.mounts),
        pass_files=tuple(_resolve(name, workspace_root, "pass_files") for name in config.pass_files),
        uv_project=uv_project,
    )


def _resolve_venv(text: str | None, workspace_root: Path, gate_python: str) -> tuple[Path | None, Path | None, str]:
    """Return the folder of uv's lock file, the environment, which uv may still have to make, and its Python."""
    if text is None:
        return None, None, gate_python
    if not text.startswith(UV_PREFIX):
        venv = _resolve(text, workspace_root, "venv")
        return None, venv, _find_python(venv, gate_python)
    # Few projects name a lock file.
    from pytest_golden.gateway.uv_environment import find_environment

    folder = _resolve(text.removeprefix(UV_PREFIX) or ".", workspace_root, "venv")
    with explaining_uv(text):
        environment = find_environment(folder, gate_python)
    return folder, environment, str(environment / "bin" / "python")


@contextmanager
def explaining_uv(text: str) -> Iterator[None]:
    """Make what uv could not do a `ProjectUnusableError` that names the `venv:`."""
    from pytest_golden.gateway.uv_environment import UvError

    try:
        yield
    except UvError as error:
        raise ProjectUnusableError(f"venv {text}: {error}", error.problem) from None


def _resolve(text: str, workspace_root: Path, key: str) -> Path:
    """Follow links in the folders of a path but keep its last name, which programs like Python's venv go by."""
    if key == "venv" and "://" in text:
        raise ProjectUnusableError(
            f"venv {text} is not a folder: images of containers are not supported yet; run the gate inside the container instead"
        )
    if PureWindowsPath(text).drive and not text.startswith("/"):
        raise ProjectUnusableError(f"{key} {text} is a Windows path, and this is {sys.platform}")
    given = workspace_root / os.path.expanduser(text)
    try:
        path = Path(os.path.realpath(given.parent, strict=True)) / given.name if given.name else given
        if given.name in {".", ".."} or path.is_dir():
            path = Path(os.path.realpath(given, strict=True))
        path.stat()
    except OSError as error:
        raise _path_problem(error, key, text, given) from error
    except ValueError as error:
        raise ProjectUnusableError(f"{key} {text!r} is not a usable path: {error}") from error
    return path


def _path_problem(error: OSError, key: str, text: str, given: Path) -> ProjectUnusableError:
    problem, what = Problem.PATH_NOT_FOUND, f"cannot be resolved: {error.strerror}"
    if error.errno == errno.ELOOP:
        what = f"goes round in a loop of symlinks: {given}"
    elif error.errno in {errno.EACCES, errno.EPERM}:
        problem, what = Problem.PERMISSION_DENIED, f"cannot be read: permission denied for {given}"
    elif error.errno in {errno.ENOENT, errno.ENOTDIR}:
        what = f"does not exist (looked for {given})"
    return ProjectUnusableError(f"{key} {text} {what}", problem)


def _require_readable(path: Path) -> None:
    wanted = os.R_OK | (os.X_OK if path.is_dir() else 0)
    if not os.access(path, wanted):
        message = f"{path} cannot be read: permission denied; check its mode and owner"
        raise ProjectUnusableError(message, Problem.PERMISSION_DENIED)


def find_prefix(python: str) -> Path:
    """Return the folder of the environment that a Python belongs to."""
    return Path(sys.prefix) if python == sys.executable else Path(python).parent.parent


def is_conda_prefix(folder: Path) -> bool:
    """Tell whether a folder is an environment of conda, or of what makes such: mamba and pixi."""
    return (folder / "conda-meta").is_dir()


def _find_python(venv: Path, gate_python: str) -> str:
    python = venv / "bin" / "python"
    if python.exists():
        return str(python)
    if is_conda_prefix(venv):
        # One for R, for example.
        return gate_python
    raise ProjectUnusableError(
        f"venv {venv} contains no Python; create it with `python -m venv {venv}` and install into it"
    )


@dataclass(frozen=True, slots=True)
class StandIns:
    """Files that replace a project's own in one view, such as candidates that are tried out; the originals stay untouched.

    They lie below `root`, out of the pipeline's reach; `paths` are relative, with `/`. They count as what the pipeline
    finds: one is in the write set only where the pipeline changed or removed it.
    """

    root: str = ""
    paths: frozenset[str] = frozenset()

    def root_of(self, relative: str, project_dir: str) -> str:
        """Return the folder below which a path lay as the pipeline found it."""
        return self.root if relative in self.paths else project_dir


#: Every file is the project's own.
NO_STAND_INS = StandIns()


def write_stand_ins(files: Mapping[str, bytes], project_dir: Path, folder: Path) -> StandIns:
    """Write stand-ins below a new folder, with the modes of the files that they replace and of the folders above those.

    Raises:
        ProjectUnusableError: the project has no regular file at one of these paths.
        OSError: scratch is full.
    """
    if not files:
        return NO_STAND_INS
    folder.mkdir(mode=0o700)
    modes: dict[str, int] = {}
    for relative, content in files.items():
        original = find_regular_file(str(project_dir), relative)
        if original is None:
            raise ProjectUnusableError(f"{relative} is not a regular file of {project_dir}, so it cannot be replaced")
        path = os.path.join(folder, relative)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _write_file(path, content)
        while relative:
            modes[relative] = stat.S_IMODE(os.lstat(os.path.join(project_dir, relative)).st_mode)
            relative = os.path.dirname(relative)
    for relative in sorted(modes, reverse=True):
        os.chmod(os.path.join(folder, relative), modes[relative])
    return StandIns(str(folder), frozenset(files))


def put_into_copy(stand_ins: StandIns, copy: Path) -> None:
    """Put stand-ins into a private copy of the project, whose files keep their modes."""
    for relative in stand_ins.paths:
        path = os.path.join(copy, relative)
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
        with open(os.path.join(stand_ins.root, relative), "rb") as stand_in:
            _write_file(path, stand_in.read())
        os.chmod(path, mode)


def _write_file(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
