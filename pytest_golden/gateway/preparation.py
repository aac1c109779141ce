"""Prepares a project to run: its view, private folders, environment, and the seal around it. Starts no pipeline."""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway import view as views
from pytest_golden.gateway.limits import used_bytes
from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.own_network import mount_resolver
from pytest_golden.gateway.resolution import ProjectUnusableError, find_prefix, is_conda_prefix, write_stand_ins
from pytest_golden.gateway.runners.runner import find_missing_modules
from pytest_golden.gateway.seal import SHARED_MEMORY_BYTES, Mounted, PrivateFolders, find_mounts_below, find_sockets
from pytest_golden.gateway.view import CopyView, HiddenPlaces, OverlayView, View, copy_tree, is_below, select_hidden
from pytest_golden.gateway.write_set import keep_only, take_fingerprint
from pytest_golden.settings import BASELINES_FOLDER, MANIFEST_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_golden.gateway.model import RunnerCommand
    from pytest_golden.gateway.process import Handover
    from pytest_golden.gateway.resolution import ResolvedMount, ResolvedProject, StandIns
    from pytest_golden.gateway.seal import Seal
    from pytest_golden.gateway.write_set import Fingerprint


_MASK_BYTES = 1 << 20
_STEPS_NAME = "golden-steps.jsonl"
_MOUNT_TABLE = "/proc/self/mountinfo"

#: The same everywhere, so that no pipeline depends on the machine's values. 2020-01-01T00:00:00Z.
FIXED = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "1577836800"}

_MOST_NAMED = 3
# A folder has a shorter mark than a file.
_FOLDER_MARK = 2


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that a launch of this project needs. `prefix` begins every command line; it is empty without a seal.

    `filter` tells the kernel which system calls to refuse; `own_network` means that it reaches the internet but not this machine.
    `disk_before_bytes` is the size of `folder` before the first command, if there is a limit. With a `handover`,
    each command passes a socket of its network out before it starts. `hidden` are the folders of this machine that the
    seal hides, `left_out` the files of the project that the view does not show. `hint` is as in `RunnerCommand`.
    """

    project: ResolvedProject
    folder: Path
    view: View
    prefix: tuple[str, ...]
    filter: bytes
    environment: Mapping[str, str]
    steps_file: Path
    handover: Handover | None = None
    own_network: bool = False
    disk_before_bytes: int = 0
    hidden: HiddenPlaces = field(default_factory=HiddenPlaces)
    left_out: tuple[str, ...] = ()
    hint: str = ""

    @property
    def is_sealed(self) -> bool:
        """Tell whether the pipeline runs in namespaces."""
        return bool(self.prefix)

    @property
    def own_loopback(self) -> bool:
        """Tell whether it has a loopback of its own instead of this machine's."""
        return self.is_sealed and (self.own_network or not self.project.config.network)

    @property
    def host_folder(self) -> str:
        """Return the folder that the launching process starts in; the seal then changes to the view's."""
        return "/" if self.is_sealed else self.view.seen_at

    def path_inside(self) -> str:
        """Return the pipeline's absolute path as it sees it."""
        return str(Path(self.view.seen_at) / self.project.file.relative_to(self.project.project_dir))

    def fill_in(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Replace `{path}` with the pipeline's path."""
        path = self.path_inside()
        return tuple(argument.replace("{path}", path) for argument in argv)

    def wrap(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Fill in the pipeline's path and put the seal around a command line."""
        launcher = () if self.handover is None else self.handover.launcher
        return (*self.prefix, *launcher, *self.fill_in(argv))


def prepare(
    project: ResolvedProject,
    command: RunnerCommand,
    *,
    folder: Path,
    seal: Seal | None,
    overlay: bool,
    fingerprint: Fingerprint,
    masked_roots: Iterable[Path],
    environ: Mapping[str, str],
    stand_ins: Mapping[str, bytes] | None = None,
    resolver: Path | None = None,
    tracked: Collection[str] | None = None,
) -> Prepared:
    """Make the view, the private folders and the environment in an empty scratch folder.

    `stand_ins` are contents that replace the project's own files in the view, by relative path. `resolver` is
    the resolv.conf of the project's own network, or None. `tracked` are the only files that the view
    shows; None shows all.

    Raises:
        ProjectUnusableError: the project declares what only a seal can provide.
        OSError: a file cannot be copied, or scratch is full.
    """
    if seal is None:
        _require_nothing_sealed(project)
    written = write_stand_ins(stand_ins or {}, project.project_dir, folder / "stand-ins")
    shown = None if tracked is None else keep_only(fingerprint, tracked)
    view = _make_view(project, folder, fingerprint, written, overlay=overlay, is_sealed=seal is not None, shown=shown)
    home, temporary, mounts = _private_inside(private := PrivateFolders.make(folder), seal)
    passed = list(_pass_files(project, private, home, sealed=seal is not None))
    prefix: tuple[str, ...] = ()
    hidden = HiddenPlaces()
    if seal is not None:
        mounts += [*_own_environment(project, seal), *_masks(masked_roots), *_withheld(project, fingerprint)]
        mounts += [*_declared_mounts(project.mounts, folder, overlay=overlay), *passed]
        mounts += [] if resolver is None else mount_resolver(resolver)
        prefix, hidden = _seal_in(seal, project, view, private, mounts)
    environment = build_environment(
        project,
        environ=environ,
        home=home,
        temporary=temporary,
        steps_file=f"{temporary}/{_STEPS_NAME}",
        runner=command.environment,
    )
    return Prepared(
        project,
        folder,
        view,
        prefix,
        b"" if seal is None else seal.filter,
        environment,
        private.temporary / _STEPS_NAME,
        own_network=resolver is not None,
        disk_before_bytes=0 if project.config.disk_limit is None else used_bytes(str(folder)),
        hidden=hidden,
        left_out=() if shown is None else _find_left_out(project, fingerprint, shown),
        hint=command.hint,
    )


def _find_left_out(project: ResolvedProject, look: Fingerprint, shown: Fingerprint) -> tuple[str, ...]:
    """List what a view does not show, except our own files and the project's environment, which may be a link."""
    files = (path for path, mark in look.marks.items() if len(mark) > _FOLDER_MARK)
    known = {MANIFEST_NAME, os.path.basename(project.config.venv or MANIFEST_NAME)}
    ours = f"{BASELINES_FOLDER}/"
    return tuple(path for path in files if path not in shown.marks and path not in known and not path.startswith(ours))


def list_hints(prepared: Prepared, words: str) -> tuple[str, ...]:
    """Say why a pipeline may have failed: its engine is too old, or its view is the cause.

    The view can be the cause if it left files out, or if the pipeline's `words` include an error that overlays return.
    """
    return (*filter(None, [prepared.hint]), *_explain_view(prepared.left_out, words))


def _explain_view(left_out: Sequence[str], words: str) -> tuple[str, ...]:
    # The error of an overlay that would have to copy a file with another owner.
    if os.strerror(errno.EOVERFLOW) in words:
        return (
            "an overlay cannot change what belongs to another user or group: give these files and folders to your user and its first"
            " group, or run with --golden-sandbox=copy",
        )
    if not left_out:
        return ()
    named = sorted(left_out, key=lambda path: (path.startswith("."), path))
    more = f" and {len(left_out) - _MOST_NAMED} more" if len(left_out) > _MOST_NAMED else ""
    files = ", ".join(named[:_MOST_NAMED])
    return (
        f"its view shows only what git tracks, without {files}{more}: if the pipeline needs them, `git add` them, name them"
        " in `depends_on:`, or declare `view: all`",
    )


def _make_view(
    project: ResolvedProject,
    folder: Path,
    fingerprint: Fingerprint,
    stand_ins: StandIns,
    *,
    overlay: bool,
    is_sealed: bool,
    shown: Fingerprint | None,
) -> View:
    """Make the view; `shown` is the part of the project to show, or None for all of it."""
    source = None
    if shown is not None:
        source, fingerprint = folder / "tracked", shown
        copy_tree(project.project_dir, source, fingerprint)
    if overlay:
        return OverlayView(project.project_dir, folder, stand_ins, source=source)
    return CopyView(project.project_dir, folder, fingerprint, sealed=is_sealed, stand_ins=stand_ins, source=source)


def _seal_in(
    seal: Seal, project: ResolvedProject, view: View, private: PrivateFolders, inner: Sequence[Mounted]
) -> tuple[tuple[str, ...], HiddenPlaces]:
    """Return the beginning of a sealed command line, and what the seal hides of this machine."""
    prefix = seal.arguments(
        private,
        view.mount_arguments(),
        inner,
        network=bool(project.config.network),
        working_folder=view.seen_at,
        shared_memory_bytes=project.config.memory_limit or SHARED_MEMORY_BYTES,
        sockets=find_sockets(),
    )
    mounted = (mount.path for mount in inner if "--tmpfs" not in mount.arguments)
    shown = (*seal.visible, str(project.project_dir), view.seen_at, *mounted)
    return prefix, HiddenPlaces((*seal.masked, *seal.hidden), shown)


def _require_nothing_sealed(project: ResolvedProject) -> None:
    if not project.config.network:
        raise ProjectUnusableError(
            "`network: false` cannot be kept: the network can only be cut off inside a seal, which this machine does not"
            " allow; `golden doctor` says how to get it",
            Problem.NETWORK_UNAVAILABLE,
        )
    copied = [str(mount.path) for mount in project.mounts if mount.mode == "copy"]
    if copied:
        raise ProjectUnusableError(
            f"`mounts:` with `mode: copy` needs a seal, which this machine does not allow: {', '.join(copied)};"
            " `golden doctor` says how to get it",
            Problem.SANDBOX_UNAVAILABLE,
        )


def _private_inside(private: PrivateFolders, seal: Seal | None) -> tuple[str, str, list[Mounted]]:
    """Return HOME and TMPDIR as the pipeline sees them, and the mounts for those outside the masks."""
    if seal is None:
        return str(private.home), str(private.temporary), []
    home = seal.home if seal.home in seal.masked else str(private.home)
    temporary = "/tmp" if "/tmp" in seal.masked else str(private.temporary)
    own = [path for path in (home, temporary) if path not in seal.masked]
    return home, temporary, [Mounted(path, ("--bind", path, path)) for path in own]


def _own_environment(project: ResolvedProject, seal: Seal) -> Iterator[Mounted]:
    """Show the project's virtual environment, the interpreter that it was made from, and its editable installs."""
    folders = (
        () if project.venv is None else views.find_environment_folders(project.venv, linked=project.uv_project is None)
    )
    for path in select_hidden(folders, (*seal.masked, *seal.hidden)):
        if not is_below(path, str(project.project_dir)):
            yield Mounted(path, ("--ro-bind", path, path))


def _masks(roots: Iterable[Path]) -> Iterator[Mounted]:
    """Hide our own store, logs and lock from pipelines."""
    for path in dict.fromkeys(os.path.join(root, ".golden") for root in roots):
        if os.path.isdir(path):
            yield Mounted(path, ("--size", str(_MASK_BYTES), "--tmpfs", path))


def _withheld(project: ResolvedProject, fingerprint: Fingerprint) -> Iterator[Mounted]:
    """Mount `.git`, virtual environments and nested mounts again, read-only."""
    inside = [str(project.project_dir / relative) for relative in fingerprint.withheld]
    declared = {str(mount.path) for mount in project.mounts}
    with open(_MOUNT_TABLE, encoding="utf-8", errors="replace") as file:
        table = file.read()
    inside += [path for path in find_mounts_below(str(project.project_dir), table) if path not in declared]
    for path in dict.fromkeys(inside):
        if os.path.exists(path):
            yield Mounted(path, ("--ro-bind", path, path))


def _declared_mounts(mounts: Iterable[ResolvedMount], folder: Path, *, overlay: bool) -> Iterator[Mounted]:
    for number, mount in enumerate(mounts):
        path = str(mount.path)
        if mount.mode == "read":
            yield Mounted(path, ("--ro-bind", path, path), is_granted=True)
        elif mount.mode == "write":
            yield Mounted(path, ("--bind", path, path), is_granted=True)
        else:
            yield Mounted(path, _copy_on_write(mount.path, folder / f"mount-{number}", overlay=overlay))


def _copy_on_write(path: Path, folder: Path, *, overlay: bool) -> tuple[str, ...]:
    folder.mkdir()
    if overlay and path.is_dir():
        return tuple(OverlayView(path, folder).mount_arguments())
    if path.is_dir():
        views.copy_tree(path, folder / "copy", take_fingerprint(str(path)))
    else:
        views.copy_file(str(path), str(folder / "copy"))
    return ("--bind", str(folder / "copy"), str(path))


def _place_in_home(declared: str) -> Path:
    """Return where a passed file goes in HOME: its declared path, because programs look for it there."""
    path = Path(os.path.normpath(os.path.expanduser(declared)))
    return path.relative_to(Path.home()) if path.is_relative_to(Path.home()) else Path(path.name)


def _pass_files(project: ResolvedProject, private: PrivateFolders, home: str, *, sealed: bool) -> Iterator[Mounted]:
    """Put the passed files where programs look for them in HOME: read-only in a seal, as private copies without one."""
    for declared, file in zip(project.config.pass_files, project.pass_files, strict=True):
        relative = _place_in_home(declared)
        if sealed:
            inside = f"{home}/{relative}"
            yield Mounted(inside, ("--ro-bind", str(file), inside), is_granted=True)
            continue
        copy = private.home / relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        copy.chmod(0o400)


def build_path_variable(project: ResolvedProject, environ: Mapping[str, str]) -> str:
    """Return PATH: the project's own environment first, then the gate's interpreter, then the gate's PATH.

    Relative entries are dropped: they would mean another folder inside the view.
    """
    own = Path(project.python).parent if project.venv is None else project.venv / "bin"
    folders = [str(own), str(Path(project.gate_python).parent)]
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
    """Build the environment of a pipeline; the manifest's variables override all others."""
    clean = {
        "PATH": build_path_variable(project, environ),
        "HOME": home,
        "TMPDIR": temporary,
        **FIXED,
        "GOLDEN_STEPS": steps_file,
    }
    prefix = project.venv if project.venv is not None else find_prefix(project.gate_python)
    is_own = project.gate_python == sys.executable
    is_virtual = sys.prefix != sys.base_prefix if is_own else (prefix / "pyvenv.cfg").exists()
    if project.venv is not None or is_virtual:
        clean["CONDA_PREFIX" if is_conda_prefix(prefix) else "VIRTUAL_ENV"] = str(prefix)
    clock = {}
    if project.config.clock is not None:
        from pytest_golden.gateway.project_clock import start_clock

        clock = start_clock(project.config.clock)
    return {**clean, **runner, **passed_variables(project, environ), **clock, **project.config.set_env}


def passed_variables(project: ResolvedProject, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are set and that the manifest lets through."""
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
    return not find_missing_modules(project.python, (top,))
