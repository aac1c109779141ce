"""The seal around a pipeline: the arguments of bubblewrap, in the order in which it mounts.

Inside, the whole system is read-only, HOME, /tmp, /var/tmp and /run are private, processes have a namespace of their
own, and the network is there or not as declared. Building arguments is all that happens here.

Source: https://github.com/containers/bubblewrap/blob/main/bwrap.xml
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_golden.gateway.visibility import is_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

# As root, bubblewrap skips the user namespace and keeps capabilities unless told otherwise: a remount, or the root of
# the process outside seen through /proc, would then get past the seal.
# Nested user namespaces would give them back: with a delegated cgroup, enough to kill or freeze what is outside.
_NAMESPACES = (
    *("--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc"),
    *("--cap-drop", "ALL", "--die-with-parent"),
)
_PRIVATE = ("/tmp", "/var/tmp")
# The kernel's switches belong to the host's root, whose id a gate that runs as root keeps inside.
_KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/acpi", "/proc/fs")
# What lies in memory counts in no process, so it is bounded where it lies.
_RUN_BYTES = 64 << 20
SHARED_MEMORY_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class PrivateFolders:
    """Where the private folders of a run lie on the host."""

    home: Path
    temporary: Path

    @classmethod
    def make(cls, folder: Path) -> PrivateFolders:
        """Make them empty below a run's scratch folder."""
        private = cls(folder / "home", folder / "tmp")
        private.home.mkdir(mode=0o700)
        private.temporary.mkdir(mode=0o700)
        return private


@dataclass(frozen=True, slots=True)
class Seal:
    """A machine's seal: the sandbox program, the folders that are replaced, and what stays visible below them."""

    bwrap: str
    home: str
    masked: tuple[str, ...]
    visible: tuple[str, ...]

    def arguments(
        self,
        private: PrivateFolders,
        view: Sequence[str],
        inner: Iterable[Mounted],
        *,
        network: bool,
        working_folder: str,
        shared_memory_bytes: int = SHARED_MEMORY_BYTES,
    ) -> tuple[str, ...]:
        """Give the whole command line up to the pipeline's own.

        `view` mounts the project; `inner` are further mounts, outer folders first, placed before the view where they
        hold the project and after it otherwise.
        """
        mounts = self._machine_mounts(private, shared_memory_bytes)
        # What lies inside the project is seen as the view has it.
        shown = [path for path in self.visible if not is_below(path, working_folder)]
        mounts += [Mounted(path, ("--ro-bind", path, path)) for path in shown]
        mounts.append(Mounted(working_folder, tuple(view)))
        mounts += inner
        ordered = sorted(mounts, key=lambda mount: mount.depth)
        return (
            self.bwrap,
            *_NAMESPACES,
            *(() if network else ("--unshare-net",)),
            *(argument for mount in ordered for argument in mount.arguments),
            "--chdir",
            working_folder,
            "--",
        )

    def _machine_mounts(self, private: PrivateFolders, shared_memory_bytes: int) -> list[Mounted]:
        """Mount what is the same for every project of a machine: the system read-only, and the private folders."""
        mounts = [
            Mounted("/", ("--ro-bind", "/", "/")),
            Mounted("/dev", ("--dev", "/dev", "--remount-ro", "/dev")),
            Mounted("/dev/shm", ("--perms", "1777", "--size", str(shared_memory_bytes), "--tmpfs", "/dev/shm")),
            Mounted("/proc", ("--proc", "/proc")),
        ]
        if can_set_switches():
            mounts += [Mounted(path, ("--ro-bind", path, path)) for path in _KERNEL if os.path.exists(path)]
        mounts += [Mounted(path, ("--bind", str(private.temporary), path)) for path in self.masked if path in _PRIVATE]
        in_memory = [path for path in self.masked if path not in {*_PRIVATE, self.home}]
        mounts += [Mounted(path, ("--size", str(_RUN_BYTES), "--tmpfs", path)) for path in in_memory]
        if self.home in self.masked:
            mounts.append(Mounted(self.home, ("--bind", str(private.home), self.home)))
        return mounts


@dataclass(frozen=True, slots=True)
class Mounted:
    """One mount: the path it covers inside, and the arguments that make it."""

    path: str
    arguments: tuple[str, ...]

    @property
    def depth(self) -> int:
        """Count the folders above; sorting by it is stable, so of two mounts on one path the later stays on top."""
        return 0 if self.path == "/" else self.path.rstrip("/").count("/")


def can_set_switches() -> bool:
    """Tell whether we could set the kernel's switches; whoever cannot is spared the mounts that keep pipelines off them.

    The kernel asks for the host's root, whatever our own number says inside some container.
    """
    switch = "/proc/sys/kernel/core_pattern"
    return not os.path.exists(switch) or os.access(switch, os.W_OK)


def find_masked(home: str) -> tuple[str, ...]:
    """List the folders of this machine that a seal replaces: they hold other people's files, sockets and secrets."""
    candidates = (*_PRIVATE, "/run", home)
    return tuple(path for path in candidates if path != "/" and os.path.isdir(path) and not os.path.islink(path))


def find_mounts_below(folder: str, mount_table: str) -> tuple[str, ...]:
    r"""List the mount points below a folder, outer ones first.

    Args:
        folder: an absolute path without links.
        mount_table: the text of /proc/self/mountinfo (see `man 5 proc`), where spaces are written as `\040`.
    """
    prefix = folder.rstrip("/") + "/"
    points = (line.split(" ", 5)[4] for line in mount_table.splitlines() if line)
    plain = {point.encode().decode("unicode_escape").encode("latin-1").decode("utf-8", "replace") for point in points}
    return tuple(sorted(point for point in plain if point.startswith(prefix)))
