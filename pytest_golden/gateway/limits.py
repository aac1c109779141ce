"""What a run takes of the machine: memory, CPU time, processes and disk, measured here or held by a control group.

The supervisor imports this: standard library only.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

#: Looking at what was written takes at most a tenth of the time, a third while the disk fills fast.
_DISK_COST, _DISK_COST_WHILE_FILLING = 10, 2
_BLOCK_BYTES = 512
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

_GROUPS = "/sys/fs/cgroup"
_MEMBERSHIP = "/proc/self/cgroup"
#: Where the gate itself goes: a group that has groups below it may hold no process (`man 7 cgroups`).
_OWN_LEAF = "golden-gate"
_NEEDED = {"memory", "pids"}


def stat_fields(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat after the command's name: state, ppid, ...; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def proportional_bytes(pid: int) -> int:
    """Return a process's proportional share of resident memory, which counts shared pages once over all sharers.

    One that does not let its memory be looked into counts with all that it shares.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return resident_bytes(pid)
    return 0


def resident_bytes(pid: int) -> int:
    """Return a process's resident memory with all that it shares."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def exceeds_memory(pids: list[int], limit_bytes: int) -> bool:
    """Tell whether the processes together hold more than the limit; the exact sum is only taken when it could be."""
    if sum(map(resident_bytes, pids)) <= limit_bytes:
        return False
    return sum(map(proportional_bytes, pids)) > limit_bytes


def count_threads(pids: list[int]) -> int:
    """Count processes with all their threads."""
    return sum(int(fields[17]) for fields in map(stat_fields, pids) if fields)


def cpu_ticks(pid: int) -> int:
    """Return the CPU time of a process and of the children it has waited for."""
    fields = stat_fields(pid)
    return sum(int(field) for field in fields[11:15]) if fields else 0


def living_cpu_seconds(pids: list[int]) -> float:
    """Return the CPU time of processes that have not been waited for."""
    return sum(map(cpu_ticks, pids)) / _TICKS_PER_SECOND


def used_bytes(folder: str) -> int:
    """Return the space that everything below a folder takes, as far as it may be looked into; links count once.

    Each folder is opened from the one above it: a path may be longer than the kernel takes, and a link that has just taken
    a folder's place is not followed.
    """
    total = 0
    linked: dict[tuple[int, int], int] = {}
    # Open folders, each with the names of those in it that are still to be looked at.
    pending: list[tuple[int | None, list[str]]] = [(None, [folder])]
    while pending:
        above, names = pending[-1]
        number: int | None = None
        # What is removed meanwhile is left out, and hides nothing beside it.
        with suppress(OSError):
            number = os.open(names.pop(), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        if not names:
            pending.pop()
            if above is not None:
                os.close(above)
        if number is not None:
            blocks, below = _look_into(number, linked)
            total += blocks
            if below:
                pending.append((number, below))
            else:
                os.close(number)
    return (total + sum(linked.values())) * _BLOCK_BYTES


def _look_into(folder: int, linked: dict[tuple[int, int], int]) -> tuple[int, list[str]]:
    """Return the blocks of what lies in an open folder, and the names of its folders; what has links is noted."""
    total, below = 0, []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                if found.st_nlink == 1:
                    total += found.st_blocks
                else:
                    linked[found.st_dev, found.st_ino] = found.st_blocks
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.name)
    return total, below


class DiskMeter:
    """What a run has written to the disk below its folder, which held something before."""

    def __init__(self, folder: str, held_before: int, limit: int) -> None:
        self.folder = folder
        self.held_before = held_before
        self.limit = limit
        self.bytes = 0
        self.free = self.find_free()
        self.looked, self.took = 0.0, 0.0

    def find_free(self) -> int:
        """Return the free space of the disk; none if the folder is gone, which a pipeline without a seal may remove."""
        try:
            found = os.statvfs(self.folder)
        except OSError:
            return 0
        return found.f_bavail * found.f_frsize

    def is_exceeded(self) -> bool:
        """Tell whether more was written than the limit; look again only when that is due."""
        age = time.monotonic() - self.looked
        is_filling = self.free - self.find_free() > self.limit - self.bytes
        if age >= self.took * (_DISK_COST_WHILE_FILLING if is_filling else _DISK_COST):
            self.measure()
        return self.bytes > self.limit

    def measure(self) -> int:
        """Look now, and return the bytes."""
        began, self.free = time.monotonic(), self.find_free()
        self.bytes = max(0, used_bytes(self.folder) - self.held_before)
        self.looked = time.monotonic()
        self.took = self.looked - began
        return self.bytes


class ControlGroup:
    """A control group (cgroup v2) of one run, in which the kernel holds its memory and its processes.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, parent: str, memory_bytes: int | None, processes: int | None) -> None:
        self.folder = f"{parent}/golden-run-{os.getpid()}-{time.monotonic_ns()}"
        os.mkdir(self.folder)
        if processes is not None:
            _write(f"{self.folder}/pids.max", str(processes))
        if memory_bytes is not None:
            _write(f"{self.folder}/memory.max", str(memory_bytes))
            _write(f"{self.folder}/memory.oom.group", "1")
            # There is no such file where swap is not counted.
            if os.path.exists(f"{self.folder}/memory.swap.max"):
                _write(f"{self.folder}/memory.swap.max", "0")

    def enter(self) -> None:
        """Move this process, which has just been forked, into it."""
        _write(f"{self.folder}/cgroup.procs", "0")

    def find_excess(self) -> str:
        """Return the limit that the kernel has applied, empty if none."""
        if self.count("memory.events", "oom_kill"):
            return "memory_limit"
        return "process_limit" if self.count("pids.events", "max") else ""

    def count(self, name: str, event: str) -> int:
        """Return how often something happened in it."""
        try:
            counts = dict(line.split() for line in _read(f"{self.folder}/{name}").splitlines())
        except OSError:
            return 0
        return int(counts.get(event, 0))

    def remove(self) -> None:
        """Remove it, empty as it is then."""
        with suppress(OSError):
            os.rmdir(self.folder)


def open_control_groups() -> str:
    """Return the folder below which control groups can be made for runs, with the gate in a group beside them.

    It is empty where none was delegated: systemd does by `Delegate=yes`, and marks the folder.
    """
    try:
        folder = _GROUPS + _read(_MEMBERSHIP).partition("0::")[2].split("\n")[0]
        if os.path.basename(folder) == _OWN_LEAF:
            folder = os.path.dirname(folder)
        is_ours = os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK)
        if not is_ours or not set(_read(f"{folder}/cgroup.controllers").split()) >= _NEEDED:
            return ""
        if not set(_read(f"{folder}/cgroup.subtree_control").split()) >= _NEEDED:
            if os.getxattr(folder, "user.delegate") != b"1":
                return ""
            _move_to_leaf(folder)
    except OSError:
        return ""
    return folder


def _move_to_leaf(folder: str) -> None:
    leaf = f"{folder}/{_OWN_LEAF}"
    os.makedirs(leaf, exist_ok=True)
    for pid in _read(f"{folder}/cgroup.procs").split():
        # One that has ended meanwhile needs no move.
        with suppress(ProcessLookupError):
            _write(f"{leaf}/cgroup.procs", pid)
    _write(f"{folder}/cgroup.subtree_control", "+memory +pids")


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
