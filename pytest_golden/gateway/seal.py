"""The seal around a pipeline: the arguments of bubblewrap, in the order of the mounts.

Inside, the whole system is read-only. HOME, /tmp, /var/tmp and /run are private, processes have their own
namespace, and the network is available only if it is declared. This module only builds arguments.

Source: https://github.com/containers/bubblewrap/blob/main/bwrap.xml
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.supervisor_child import hand_in
from pytest_golden.gateway.view import is_below
from pytest_golden.storage.folder import find_settings_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


# As root, bubblewrap skips the user namespace and keeps capabilities unless told otherwise: a remount, or the root of
# the process outside seen through /proc, would then get past the seal.
# Nested user namespaces would give them back: with a delegated cgroup, enough to kill or freeze what is outside.
_NAMESPACES = (
    *("--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc"),
    *("--cap-drop", "ALL", "--die-with-parent"),
)
_PRIVATE = ("/tmp", "/var/tmp")
# Kernel settings belong to the host's root, and a gate that runs as root keeps this user id inside.
# The sandbox itself covers /proc/irq, /proc/bus and /proc/sysrq-trigger for root.
_KERNEL = ("/proc/sys", "/proc/acpi", "/proc/fs")
# Files in memory count for no process, so the file system itself has a limit.
_RUN_BYTES = 64 << 20
_COVER = ("--ro-bind", "/dev/null")
# Programs keep credentials, and what a person typed, in these files and folders of HOME.
_CREDENTIALS = """
    .ssh .gnupg .password-store .pki .local/share/keyrings .netrc .git-credentials .config/git/credentials .config/gh
    .config/hub .config/glab-cli .aws .azure .config/gcloud .boto .s3cfg .oci .kube .docker .config/containers .terraform.d
    .vault-token .config/op .config/rclone .databrickscfg .snowflake .snowsql .dbt .pgpass .pg_service.conf .my.cnf
    .mylogin.cnf .pypirc .config/pypoetry .npmrc .yarnrc.yml .cargo/credentials .cargo/credentials.toml .gem/credentials
    .m2/settings.xml .gradle/gradle.properties .kaggle .cache/huggingface/token .cache/pytest-golden .claude .claude.json .codex
    .gemini .mozilla .config/google-chrome .config/chromium .bash_history .zsh_history .python_history .psql_history
    .mysql_history
"""
_EMPTY_BYTES = 4096
# Where a system keeps what only root may read, and how deep we look: other folders may hold very many files.
_PLACES_OF_SYSTEM = {"/etc": 99, "/var/lib": 1, "/var/spool": 2}
# The sandbox takes 9,000 arguments, and its time grows with the square of the mounts.
_MOST_COVERS = 250
SHARED_MEMORY_BYTES = 2 << 30

_SOCKET_TABLE = Path("/proc/net/unix")
# A name can contain spaces and line ends, so it ends where the next row begins.
_ROW_START = re.compile(rb"^\S+: [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{8} [0-9A-F]{4} [0-9A-F]{2} +\d+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PrivateFolders:
    """The locations of a run's private folders on the host."""

    home: Path
    temporary: Path

    @classmethod
    def make(cls, folder: Path) -> PrivateFolders:
        """Create them, empty, below a run's scratch folder."""
        private = cls(folder / "home", folder / "tmp")
        private.home.mkdir(mode=0o700)
        private.temporary.mkdir(mode=0o700)
        return private


@dataclass(frozen=True, slots=True)
class Seal:
    """A machine's seal: the sandbox program, the folders that are replaced, and what stays visible below them.

    `hidden` are files and folders that no pipeline sees, unless a mount names exactly that path. The caller that runs the command line
    passes the `filter` of system calls, which may be empty, and the environment.
    """

    bwrap: str
    home: str
    masked: tuple[str, ...]
    visible: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    filter: bytes = b""

    def arguments(
        self,
        private: PrivateFolders,
        view: Sequence[str],
        inner: Iterable[Mounted],
        *,
        network: bool,
        working_folder: str,
        shared_memory_bytes: int = SHARED_MEMORY_BYTES,
        sockets: Iterable[str] = (),
    ) -> tuple[str, ...]:
        """Return the whole command line up to the pipeline's own.

        `view` mounts the project; `inner` are further mounts, outer folders first. Those that contain the project come before the view, the
        others after it. `sockets` of the machine are covered where they would be visible.
        """
        mounts = self._machine_mounts(private, shared_memory_bytes)
        # Paths inside the project are as the view shows them.
        shown = [path for path in self.visible if not is_below(path, working_folder)]
        mounts += [Mounted(path, ("--ro-bind", path, path)) for path in shown]
        mounts.append(Mounted(working_folder, tuple(view)))
        inner = tuple(inner)
        mounts += [*self._conceal([*mounts, *inner]), *inner]
        ordered = sorted(mounts, key=lambda mount: mount.depth)
        ordered += [cover(path) for path in _find_in_sight(ordered, sockets)]
        return (
            self.bwrap,
            *_NAMESPACES,
            *(() if network else ("--unshare-net",)),
            *(argument for mount in ordered for argument in mount.arguments),
            "--chdir",
            working_folder,
            "--",
        )

    def _conceal(self, mounts: Sequence[Mounted]) -> Iterator[Mounted]:
        """Cover each hidden path that these mounts would leave visible with an empty file or folder."""
        ordered = sorted(mounts, key=lambda mount: mount.depth)
        for path in self.hidden:
            last = _find_last(ordered, path)
            if last is None or not last.shows_machine or (last.is_granted and last.path == path):
                continue
            if os.path.isdir(path):
                yield Mounted(path, ("--size", str(_EMPTY_BYTES), "--tmpfs", path))
            elif os.path.exists(path):
                yield cover(path)

    def _machine_mounts(self, private: PrivateFolders, shared_memory_bytes: int) -> list[Mounted]:
        """Mount what is the same for every project of a machine: the system, read-only, and the private folders."""
        mounts = [
            Mounted("/", ("--ro-bind", "/", "/")),
            Mounted("/dev", ("--dev", "/dev", "--remount-ro", "/dev")),
            Mounted("/dev/shm", ("--perms", "1777", "--size", str(shared_memory_bytes), "--tmpfs", "/dev/shm")),
            Mounted("/proc", ("--proc", "/proc")),
        ]
        if can_set_switches():
            mounts += [Mounted(path, ("--ro-bind", path, path)) for path in _KERNEL if _holds_anything(path)]
        mounts += [Mounted(path, ("--bind", str(private.temporary), path)) for path in self.masked if path in _PRIVATE]
        in_memory = [path for path in self.masked if path not in {*_PRIVATE, self.home}]
        mounts += [Mounted(path, ("--size", str(_RUN_BYTES), "--tmpfs", path)) for path in in_memory]
        if self.home in self.masked:
            mounts.append(Mounted(self.home, ("--bind", str(private.home), self.home)))
        return mounts


@dataclass(frozen=True, slots=True)
class Mounted:
    """One mount: the path that it covers inside, and the arguments that make it.

    `is_granted` means that the manifest asks for it, and so also for the servers that can be reached through it.
    """

    path: str
    arguments: tuple[str, ...]
    is_granted: bool = False

    @property
    def depth(self) -> int:
        """Count the folders above it. Sorting by it is stable, so of two mounts on one path the later one stays on top."""
        return 0 if self.path == "/" else self.path.rstrip("/").count("/")

    @property
    def shows_machine(self) -> bool:
        """Tell whether the machine's files below it are visible, also below an overlay on it."""
        kind, source = self.arguments[:2]
        return kind in {"--ro-bind", "--bind", "--overlay-src"} and source == self.path

    @property
    def shows_servers(self) -> bool:
        """Tell whether sockets below it lead out: those of the machine's own folder do, but not through an overlay."""
        return self.shows_machine and self.arguments[0] != "--overlay-src" and not self.is_granted


@contextmanager
def handing_in(
    command: Sequence[str], program: bytes, environment: Mapping[str, str]
) -> Iterator[tuple[list[str], list[int]]]:
    """Yield a sandbox's command line that runs without an environment, and the descriptors that it must inherit."""
    argv, numbers = hand_in(list(command), program, dict(environment))
    try:
        for number in numbers:
            os.set_inheritable(number, True)
        yield argv, numbers
    finally:
        for number in numbers:
            os.close(number)


def cover(socket: str) -> Mounted:
    """Cover a socket with a device, so that nothing can connect to it."""
    return Mounted(socket, (*_COVER, socket))


def without_idle_covers(prefix: Sequence[str], complaint: bytes) -> tuple[str, ...]:
    """Return a command line without the covers that, by the sandbox's message, could not be made.

    An existing socket can always be covered. A socket that is gone, or unreachable in the seal, needs no cover.
    """
    kept: list[str] = []
    for word in prefix:
        kept.append(word)
        if tuple(kept[-3:-1]) == _COVER and _is_idle(word, complaint):
            del kept[-3:]
    return tuple(kept)


def _is_idle(socket: str, complaint: bytes) -> bool:
    return not os.path.lexists(socket) or b"Can't create file at %b: " % os.fsencode(socket) in complaint


def _find_in_sight(mounts: Sequence[Mounted], sockets: Iterable[str]) -> list[str]:
    """List the sockets that these mounts, in their order, leave visible."""
    shown = []
    for path in sockets:
        last = _find_last(mounts, path)
        if last is not None and last.shows_servers:
            shown.append(path)
    return shown[:_MOST_COVERS]


def _find_last(mounts: Sequence[Mounted], path: str) -> Mounted | None:
    """Return the mount that a path is seen through: the last of these mounts, in their order, that covers it."""
    return next((mount for mount in reversed(mounts) if is_below(path, mount.path)), None)


def can_set_switches() -> bool:
    """Tell whether this process could change kernel settings; if not, no mounts need to protect them.

    The kernel requires the host's root, whatever user id a container shows.
    """
    switch = "/proc/sys/kernel/core_pattern"
    return not os.path.exists(switch) or os.access(switch, os.W_OK)


def _holds_anything(folder: str) -> bool:
    try:
        return bool(os.listdir(folder))
    except OSError:
        return os.path.exists(folder)


def find_masked(home: str) -> tuple[str, ...]:
    """List the folders of this machine that a seal replaces: they hold other people's files, sockets and secrets."""
    candidates = [*_PRIVATE, "/run", home]
    # Runs of other pipelines lie in it. There is none if no such folder can be written.
    with suppress(FileNotFoundError):
        temporary = os.path.realpath(tempfile.gettempdir())
        candidates += [] if any(is_below(temporary, place) for place in candidates) else [temporary]
    return tuple(path for path in candidates if path != "/" and os.path.isdir(path) and not os.path.islink(path))


def find_credentials(home: str) -> tuple[str, ...]:
    """List the files and folders of HOME that hold credentials or what a person typed, and the one with our key and token.

    Links are resolved; missing paths are left out.
    """
    places = (*(os.path.join(home, name) for name in _CREDENTIALS.split()), str(find_settings_folder()))
    return tuple(dict.fromkeys(os.path.realpath(path) for path in places if os.path.exists(path)))


@cache
def find_private_to_root() -> tuple[str, ...]:
    """List what only root may read, where a system keeps such files; nothing for another user.

    In a seal, root keeps its user id without its rights, so its files would be readable by their modes alone.
    """
    return tuple(sorted(_list_private(_PLACES_OF_SYSTEM)))[:_MOST_COVERS] if os.getuid() == 0 else ()


def _list_private(places: Mapping[str, int]) -> Iterator[str]:
    pending = list(places.items())
    while pending:
        folder, depth = pending.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            with suppress(OSError):
                facts = entry.stat(follow_symlinks=False)
                is_folder = stat.S_ISDIR(facts.st_mode)
                if facts.st_uid == 0 and _is_closed_to_others(entry.path, facts):
                    yield entry.path
                elif is_folder and depth > 1:
                    pending.append((entry.path, depth - 1))


def _is_closed_to_others(path: str, found: os.stat_result) -> bool:
    """Tell whether others may not enter this folder, or read this file, and it is not empty."""
    if stat.S_ISDIR(found.st_mode):
        return not found.st_mode & stat.S_IXOTH and _holds_anything(path)
    return stat.S_ISREG(found.st_mode) and found.st_size > 0 and not found.st_mode & stat.S_IROTH


def find_mounts_below(folder: str, mount_table: str) -> tuple[str, ...]:
    r"""List the mount points below a folder, outer ones first.

    Args:
        folder: an absolute path without links.
        mount_table: the text of /proc/self/mountinfo (see `man 5 proc`), where spaces are written as `\040`.
    """
    prefix = folder.rstrip("/") + "/"
    points = {_plain(line.split(" ", 5)[4]) for line in mount_table.splitlines() if line}
    return tuple(sorted(point for point in points if point.startswith(prefix)))


def _plain(point: str) -> str:
    if "\\" not in point:
        return point
    return point.encode().decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")


def find_sockets() -> tuple[str, ...]:
    """List the sockets in the file system that one of our processes could connect to, links resolved, sorted.

    A read-only mount does not prevent connections, so the seal covers the sockets that stay visible. Paths that are gone, or
    that belong to another mount namespace, are left out.
    """
    try:
        table = _SOCKET_TABLE.read_bytes()
    except OSError:
        return ()
    if b" /" not in table:
        return ()
    resolve = cache(os.path.realpath)
    is_open = _make_folder_check()
    found = set()
    for name in set(parse_names(table)):
        folder, _, last = name.rpartition("/")
        path = f"{resolve(folder or '/').rstrip('/')}/{last}"
        if _is_socket(path) and is_open(os.path.dirname(path)):
            found.add(path)
    return tuple(sorted(found))


def parse_names(table: bytes) -> Iterator[str]:
    """Yield the absolute names in the text of /proc/net/unix (see `man 5 proc`); abstract ones begin with `@`."""
    for rest in _ROW_START.split(table)[1:]:
        if rest.startswith(b" /"):
            yield os.fsdecode(rest[1:].removesuffix(b"\n"))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _make_folder_check() -> Callable[[str], bool]:
    """Make a function that tells whether a process in the seal can enter a folder: there, root has only the rights of its mode."""
    if os.getuid() != 0:
        return lambda _: True
    groups = {os.getgid(), *os.getgroups()}

    @cache
    def is_open(folder: str) -> bool:
        found, above = os.stat(folder), os.path.dirname(folder)
        its = stat.S_IXGRP if found.st_gid in groups else stat.S_IXOTH
        return (found.st_uid == 0 or bool(found.st_mode & its)) and (above == folder or is_open(above))

    return is_open
