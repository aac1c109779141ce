"""What travels between a gate and the workers of its fleet: the tasks, the answers, the workspace and outputs of red runs.

The workspace is packed where the gate runs and unpacked once per host, without `.git`, `.golden`, caches, virtual environments
and what the gate itself writes. Both ends have the same version of this package.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import stat
import tarfile
import tempfile
import zlib
from base64 import b64decode, b64encode
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from filelock import FileLock

from pytest_golden.compare.waiting import RECORD_NAME
from pytest_golden.errors import GatewayError, GoldenError
from pytest_golden.gate.state_folder import is_own_folder, make_own_folder
from pytest_golden.gate.waiting_outputs import open_artifact
from pytest_golden.gateway import git
from pytest_golden.gateway.model import PipelineOutcome
from pytest_golden.gateway.scratch import remove_abandoned, remove_tree
from pytest_golden.gateway.write_set import take_fingerprint
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.regression.wording import format_size
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pytest_golden.compare.waiting import WaitingFolder, WaitingRun
    from pytest_golden.gateway.model import RunnerCommand
    from pytest_golden.regression.slowdown import SlowdownJudge

#: A worker keeps 10 MiB of a log.
MOST_LOG_BYTES = 11 << 20
#: The limit for what is sent through a scheduler, which holds all of it in memory.
MOST_BYTES = 256 << 20
#: The limit for the outputs that a worker sends of one attempt.
MOST_KEPT_BYTES = 64 << 20
_MOST_RECORD_BYTES = 16 << 20
WORKSPACE, BASELINES, TRACKED = "workspace", "baselines", "tracked"
_PATH_KEYS = ("path", "project_dir", "venv")


@dataclass(frozen=True, slots=True)
class FleetSession:
    """What all runs of a gate on a fleet have in common.

    `root` is the gate's workspace; a worker that reads the `token` in `token_file` sees the same workspace. `baselines` is
    the baselines' folder, and `baselines_inside` its path below the root, None if it lies elsewhere. `keep` is the value
    of `--golden-keep`. `hidden` are the files of the store.
    """

    id: str
    root: str
    token_file: str
    token: str
    baselines: str
    baselines_inside: str | None
    accept_command: str
    view: str
    roots: tuple[str, ...] = ()
    keep: str = "none"
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetTask:
    """One attempt of one project. `environment` holds the gate's variables that `pass_env` names; `command` is a hook's answer.

    `name` is unique in the session. `shipped_project` is the project as it is in a shipped workspace.
    """

    session: FleetSession
    name: str
    project: GoldenProjectConfig
    shipped_project: GoldenProjectConfig
    command: RunnerCommand | None
    environment: Mapping[str, str]
    slowdowns: SlowdownJudge | None = None


@dataclass(frozen=True, slots=True)
class FleetAnswer(Shape):
    """The answer of a worker to an attempt. It travels as JSON, because loading a pickle runs whatever code it names.

    `outcome` is None if it was not run: the worker is `unlike` the gate, it `lacks_workspace`, or the workers `lost_on` were
    lost with it. `log` is the whole log, compressed with zlib, in base64. `kept` is a zip file, in base64, of what a red run
    would have made baselines.
    """

    worker: str
    outcome: PipelineOutcome | None = None
    log: str = ""
    kept: str = ""
    was_examined: bool = False
    lost_on: tuple[str, ...] = ()
    unlike: str = ""
    lacks_workspace: bool = False

    def __post_init__(self) -> None:
        if self.outcome is None and not (self.lost_on or self.unlike or self.lacks_workspace):
            raise ValueError("outcome is missing")


def write_answer(answer: FleetAnswer) -> bytes:
    """Return an answer as JSON."""
    return json.dumps(answer.to_dict()).encode("ascii")


def read_answer(given: Any) -> FleetAnswer:
    """Return the answer that a worker wrote as JSON.

    Raises:
        GatewayError: it is something else.
    """
    try:
        return FleetAnswer.from_dict(json.loads(given))
    except (TypeError, ValueError, RecursionError) as error:
        message = (
            f"the answer of a worker cannot be read ({error}): find out what runs there, and who reaches the cluster"
        )
        raise GatewayError(message) from None


def read_log(answer: FleetAnswer) -> bytes:
    """Return the log in an answer, cut at more than a worker keeps: a few bytes can unpack to very many.

    Raises:
        ValueError: it is not base64.
        zlib.error: it is not compressed.
    """
    return zlib.decompressobj().decompress(b64decode(answer.log), MOST_LOG_BYTES)


def pack_kept(folder: WaitingFolder, name: str) -> str:
    """Return what a run of a project kept as a zip file in base64, without copies that are too large; "" if it kept nothing.

    Raises:
        BaselineError: the record cannot be read.
        OSError: a copy cannot be read.
    """
    run = folder.read(name)
    if run is None:
        return ""
    run = _leave_out_large(run)
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(f"{name}/{RECORD_NAME}", json.dumps(run.to_dict()))
        for output in run.outputs:
            if output.file is not None:
                archive.write(folder.path / name / output.file, f"{name}/{output.file}")
    return b64encode(packed.getvalue()).decode("ascii")


def _leave_out_large(run: WaitingRun) -> WaitingRun:
    left, outputs = MOST_KEPT_BYTES, []
    for output in run.outputs:
        left -= (output.size_bytes or 0) if output.file is not None else 0
        if left < 0 and output.file is not None:
            told = f"a worker sends at most {format_size(MOST_KEPT_BYTES)} of outputs: --rerun runs the project and accepts it"
            outputs.append(replace(output, file=None, sha256=None, refused=told))
        else:
            outputs.append(output)
    return replace(run, outputs=tuple(outputs))


@contextmanager
def open_kept(answer: FleetAnswer) -> Iterator[WaitingFolder]:
    """Yield what the run of an answer kept.

    Raises:
        BaselineError: it cannot be read.
        ValueError: it is not base64, or no zip file of a size that a worker sends.
        OSError: it cannot be unpacked here.
    """
    with tempfile.NamedTemporaryFile(prefix="golden-kept-", suffix=".zip") as file:
        file.write(b64decode(answer.kept))
        file.flush()
        _check_size(file.name)
        with open_artifact(Path(file.name)) as folder:
            yield folder


def _check_size(place: str) -> None:
    """Refuse a zip file that would unpack to more than a worker sends: a few bytes can unpack to very many."""
    try:
        with ZipFile(place) as packed:
            size = sum(member.file_size for member in packed.infolist())
    except BadZipFile as error:
        raise ValueError(f"it is not a zip file: {error}") from None
    if size > MOST_KEPT_BYTES + _MOST_RECORD_BYTES:
        raise ValueError(f"it would unpack to {format_size(size)}, more than a worker sends")


def pack_workspace(
    root: Path, baselines: Path | None, *, left_out: Collection[Path] = (), most_bytes: int = MOST_BYTES
) -> bytes:
    """Return a workspace as an archive, with the baselines' folder if that lies elsewhere, and a list of what git tracks.

    Raises:
        GatewayError: it is larger than `most_bytes`, or cannot be read.
    """
    parts = [(root, WORKSPACE), *([(baselines, BASELINES)] if baselines is not None and baselines.is_dir() else [])]
    found = {(folder, prefix): _list_files(folder, left_out) for folder, prefix in parts}
    size = sum(mark[1] for files in found.values() for mark in files.values() if len(mark) > 2)
    if size > most_bytes:
        raise GatewayError(
            f"the workspace {root} has {size / 2**20:,.0f} MiB, and at most {most_bytes / 2**20:,.0f} MiB are sent to workers: "
            "put it where all workers see it under the same path, or leave large files out of it and mount them"
        )
    written = io.BytesIO()
    try:
        with tarfile.open(fileobj=written, mode="w:gz", compresslevel=1) as archive:
            for (folder, prefix), files in found.items():
                _add(archive, folder, prefix, files)
            _add_tracked(archive, root)
    except OSError as error:
        message = f"the workspace cannot be sent to workers: {error.strerror or error}: {error.filename or root}"
        raise GatewayError(message) from error
    return written.getvalue()


def _add_tracked(archive: tarfile.TarFile, root: Path) -> None:
    """Add the list of the files that git tracks: `.git` itself is not sent."""
    try:
        tracked = git.list_tracked(root)
    except GoldenError:
        tracked = None
    if tracked is not None:
        content = os.fsencode("\0".join(sorted(tracked)))
        member = tarfile.TarInfo(TRACKED)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))


def list_shipped_tracked(session_id: str, folder: Path) -> frozenset[str] | None:
    """Return the files below a folder of an unpacked workspace that git tracks where it came from; None if git knew nothing of it."""
    place = _choose_folder(session_id)
    if not (place / TRACKED).is_file():
        return None
    prefix = folder.relative_to(place / WORKSPACE).as_posix() + "/"
    paths = git.split_paths((place / TRACKED).read_bytes())
    return frozenset(path.removeprefix(prefix) for path in paths if prefix == "./" or path.startswith(prefix))


def find_shipped(session_id: str) -> Path | None:
    """Return the folder that was unpacked for a session on this host, and mark it as in use; None if there is none."""
    folder = _choose_folder(session_id)
    try:
        os.utime(folder)
    except OSError:
        return None
    return folder if is_own_folder(folder) else None


def unpack(session_id: str, digest: str, archive: bytes) -> None:
    """Unpack an archive for a session, unless it is already unpacked on this host.

    Raises:
        OSError: it cannot be written here, or did not arrive complete.
    """
    if hashlib.sha256(archive).hexdigest() != digest:
        raise OSError("the workspace did not arrive whole")
    place = _choose_folder(session_id)
    make_own_folder(place.parent)
    with FileLock(place.parent / ".lock"):
        # Those of gates that were killed together with their workers.
        remove_abandoned(place.parent, "")
        if place.exists():
            return
        folder = place.with_name(f".new-{secrets.token_hex(8)}")
        try:
            folder.mkdir(mode=0o700)
            with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:
                # The gate made it, and the code in it may do more than any archive member could.
                opened.extraction_filter = staticmethod(tarfile.fully_trusted_filter)
                opened.extractall(folder)
            folder.rename(place)
        finally:
            remove_tree(folder)


def make_folder(name: str) -> Path:
    """Make a new folder beside the unpacked workspaces, for the caller to remove.

    Raises:
        OSError: it cannot be made.
    """
    place = _choose_folder(name).parent
    make_own_folder(place)
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=place))


def remove_shipped(session_id: str) -> None:
    """Remove what was unpacked for a session on this host."""
    if (folder := find_shipped(session_id)) is not None:
        remove_tree(folder)


def _list_files(folder: Path, left_out: Collection[Path]) -> dict[str, tuple[int, ...]]:
    skipped = {os.path.relpath(path, folder) for path in left_out if path.is_relative_to(folder)}
    look = take_fingerprint(str(folder))
    skipped.update(look.withheld)
    return {path: mark for path, mark in look.marks.items() if path not in skipped}


def _add(archive: tarfile.TarFile, folder: Path, prefix: str, files: Iterable[str]) -> None:
    archive.add(folder, prefix, recursive=False)
    for path in files:
        # A pipeline cannot be declared with pipes, sockets or devices.
        mode = (folder / path).lstat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode):
            archive.add(folder / path, f"{prefix}/{path}", recursive=False)


def _choose_folder(session_id: str) -> Path:
    return Path(tempfile.gettempdir()).resolve() / f"golden-fleet-{os.getuid()}" / session_id


def relocate(project: GoldenProjectConfig, root: Path) -> GoldenProjectConfig:
    """Return a project with absolute paths below `root` made relative, so that it works in a copy of the workspace."""
    given = project.to_dict()
    told: dict[str, Any] = dict(given)
    for key in _PATH_KEYS:
        if isinstance(told[key], str):
            told[key] = _relative(told[key], root)
    for key in ("pass_files", "not_secret"):
        told[key] = [_relative(path, root) for path in told[key]]
    told["mounts"] = [{**mount, "path": _relative(mount["path"], root)} for mount in told["mounts"]]
    return project if told == given else GoldenProjectConfig(**told)


def _relative(path: str, root: PurePath) -> str:
    found = PurePath(path)
    return found.relative_to(root).as_posix() if found.is_absolute() and found.is_relative_to(root) else path
