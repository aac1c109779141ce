"""What the file system below a store can do. Reads the mount table; on systems without one it says the usual."""

from __future__ import annotations

import os
from pathlib import Path

# Write-ahead logging wants memory that all processes share: https://www.sqlite.org/wal.html#noshm
_NETWORK_TYPES = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "afpfs"),
        *("davfs", "orangefs", "ocfs2", "gfs2"),
        # Folders that a virtual machine shares with its host.
        *("9p", "virtiofs", "vboxsf", "vmhgfs", "prl_fs"),
    }
)
# A container's own disk, where its user has no rights to make another.
_LOCAL_FUSE = "fuse.fuse-overlayfs"
MOUNTS = Path("/proc/self/mountinfo")


def keeps_shared_memory(folder: Path, mounts: Path = MOUNTS) -> bool:
    """Tell whether processes on different machines cannot meet in this folder, so that write-ahead logging is safe."""
    kind = find_type(folder, mounts) or ""
    return kind not in _NETWORK_TYPES and (not kind.startswith("fuse.") or kind == _LOCAL_FUSE)


def find_type(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Give the type of the file system that holds a folder, such as `ext4`; None where there is no mount table.

    Source: proc(5), /proc/pid/mountinfo.
    """
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    place = os.path.realpath(folder)
    best, kind = "", None
    for line in table.splitlines():
        fields = line.split()
        if "-" not in fields:
            continue
        point = _unescape(fields[4])
        # A later mount on the same point hides the earlier one.
        if _holds(point, place) and len(point) >= len(best):
            best, kind = point, fields[fields.index("-", 6) + 1]
    return kind


def _holds(point: str, place: str) -> bool:
    return point == "/" or place == point or place.startswith(point + "/")


def _unescape(text: str) -> str:
    for code, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, sign)
    return text
