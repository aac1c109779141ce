"""Whether files that git ignores changed since a moment, told by the time of their last change of any kind. Nothing is read.

Nobody can set that time (ctime) back, so a file that is older is the same; one that is newer may be.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gate.changed.reports import list_reports
from pytest_golden.gate.inputs import is_by_product

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_MOST_LOOKED_AT = 5000
_NEVER = float("inf")
# Each installation writes a list of all that is below it directly into it.
_PACKAGES = "node_modules"
# A folder and what came into it have the same time, but for a tick of the kernel's clock.
_TICK_MS = 20


class IgnoredFiles:
    """Ignored files and folders below a checkout's root, looked through once, when it is first asked.

    `products` are real paths that the session writes itself.
    """

    def __init__(self, root: Path, paths: Collection[str], products: Collection[str] = ()) -> None:
        self._root = root
        self._paths = paths
        self._products = products
        self._newest: tuple[float, str] | None = None

    def find_newer(self, moment_ms: int) -> str | None:
        """Give what changed last, if that was at a moment or after it; a folder that holds too much for a look is new.

        A folder out of which a file went has changed too.
        """
        if self._newest is None:
            self._newest = self._find_newest()
        changed_at, path = self._newest
        return path if changed_at >= moment_ms else None

    def _find_newest(self) -> tuple[float, str]:
        newest, left = (-_NEVER, ""), _MOST_LOOKED_AT
        for path in self._paths:
            for file in self._list_files(path):
                left -= 1
                if left < 0:
                    return _NEVER, path
                changed_at = read_change(file)
                relative = str(file.relative_to(self._root))
                if changed_at > newest[0] and not self._is_explained(file, relative, changed_at):
                    newest = changed_at, relative
        return newest

    def _list_files(self, path: str) -> Iterator[Path]:
        place = self._root / path
        if not path.endswith("/"):
            yield from () if self._is_nobodys(place) else (place,)
            return
        for folder, folders, files in os.walk(place):
            folders[:] = [name for name in folders if not is_by_product(name) and Path(folder).name != _PACKAGES]
            yield from (file for file in (Path(folder, name) for name in files) if not self._is_nobodys(file))
            yield Path(folder)

    def _is_explained(self, file: Path, relative: str, changed_at: float) -> bool:
        """Tell whether it is a report, or a folder in which nothing changed but what is nobody's input."""
        if not file.is_dir() or file.is_symlink():
            return bool(list_reports(self._root, [relative]))
        try:
            beside = [entry for entry in file.iterdir() if read_change(entry) >= changed_at - _TICK_MS]
        except OSError:
            return False
        return any(
            self._is_nobodys(entry) or list_reports(self._root, [f"{relative}/{entry.name}"]) for entry in beside
        )

    def _is_nobodys(self, file: Path) -> bool:
        return str(file) in self._products or is_by_product(file.name)


def read_change(file: Path) -> float:
    """Give when a file changed in any way, in milliseconds since the epoch."""
    try:
        return file.lstat().st_ctime_ns / 1_000_000
    except OSError:
        # It went meanwhile, and nobody knows what else does.
        return _NEVER
