"""The manifest as it is now, read again when its file has changed: that of a thousand projects takes longer than their page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.manifest import load_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.manifest.model import Manifest

# What is written twice within a tick of the file system's clock may look the same.
_SECONDS_UNTIL_KEPT = 2.0


class ManifestReader:
    """Reads one manifest. Threads may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: tuple[tuple[int, int, int], Manifest] | None = None

    def read(self) -> Manifest | None:
        """Give it; None where there is none.

        Raises:
            ManifestError: it cannot be used.
        """
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return load_manifest(self._path)
        # Asked before it is read: what changes meanwhile is seen the next time.
        mark = (found.st_mtime_ns, found.st_size, found.st_ino)
        kept = self._kept
        if kept is not None and kept[0] == mark:
            return kept[1]
        manifest = load_manifest(self._path)
        if utc_now().timestamp() - found.st_mtime > _SECONDS_UNTIL_KEPT:
            self._kept = (mark, manifest)
        return manifest
