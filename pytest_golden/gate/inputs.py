"""Looks at a project's inputs that git does not hold: ignored data, mounts, passed files, passed variables. It compares nothing.

Content makes an input the same in two checkouts, so it is read within a budget. What may be a secret is never read: of a
passed file its size is known, of a variable that it is set; a digest of either could be guessed.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.gate.checkout import redact_paths
from pytest_golden.gate.input_changes import MOST_IN_FOLDER, fold_files
from pytest_golden.gateway.fingerprint import CACHE_FOLDERS, WITHHELD_FOLDERS, is_environment
from pytest_golden.redaction.names import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from io import FileIO

    from pytest_golden.gate.checkout import Checkout
    from pytest_golden.manifest.model import GoldenProjectConfig

_MOST_INPUTS, _MOST_LOOKED_AT = 100, 5_000
_MOST_BYTES, _MOST_OF_A_FILE = 4 << 20, 256 << 10
_BLOCK, _BLOCKS = 4096, 8
_BY_PRODUCTS = frozenset({*CACHE_FOLDERS, *WITHHELD_FOLDERS, "htmlcov", ".idea", ".vscode", ".eggs"})
# As caches, these come and go by themselves.
_LEFT_OUT = _BY_PRODUCTS | {"node_modules", "build", "dist", "logs"}
_LEFT_OUT_FILES = re.compile(r"\.DS_Store|\.coverage.*|.*\.(?:log|py[cod]|sw[op]|tmp|pid)|.*~")
_CREDENTIALS = re.compile(
    r"\.env(?:\..*)?|\.?pgpass(?:\.conf)?|\.?netrc|id_[a-z0-9]+|.*\.(?:env|pem|key|pfx|p12|jks|kdbx|gpg|asc)|profiles\.ya?ml"
    r"|.*(?:credential|secret|passw|token).*",
    re.IGNORECASE,
)


class _Place(NamedTuple):
    """A file or folder to be looked at, and what its path is called."""

    path: str
    shown: str


class InputReader:
    """Looks at the inputs of a session's projects; a file that two of them have is read once.

    Args:
        workspace_root: the folder that the manifest's paths resolve against.
        checkout: what `read_checkout(workspace_root)` gave: files that git holds are told by it.
        projects: all that are declared: what one may write to is no input of another.
        reports: files that the session itself writes.
        environ: where `pass_env` is taken from; the process's own by default.
    """

    def __init__(
        self,
        workspace_root: Path,
        checkout: Checkout,
        projects: Iterable[GoldenProjectConfig],
        reports: Iterable[Path | None] = (),
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._workspace = os.path.realpath(workspace_root)
        self._root = None if checkout.root is None else os.path.realpath(checkout.root)
        self._ignored = tuple(checkout.ignored or ())
        self._is_known = checkout.root is None or checkout.ignored is not None
        self._environ = os.environ if environ is None else environ
        mounts = (mount for project in projects for mount in project.mounts if mount.mode == "write")
        written = [*(mount.path for mount in mounts), *(str(report) for report in reports if report is not None)]
        self._products = tuple(map(self._resolve, written))
        self._names: dict[tuple[Any, ...], str] = {}

    def read(self, project: GoldenProjectConfig) -> dict[str, Any]:
        """Give a project's inputs as JSON-safe values, in the form that `input_changes` compares; paths are redacted."""
        folder = self._resolve(project.project_dir or project.path)
        if project.project_dir is None and not Path(folder).is_dir():
            folder = str(Path(folder).parent)
        look = _Look(self._names, self._products)
        places = list(self._list_places(folder, self._show(folder))) if self._is_known else []
        for mount in project.mounts:
            if mount.mode != "write":
                places += self._list_places(self._resolve(mount.path), mount.path.rstrip("/"))
        for place in places:
            if not _is_any_below(place.path, self._products):
                look.at(place)
        shown = redact_paths(list(look.files))
        inside = self._show(folder)
        return {
            "holds": self._root is not None,
            "folder": f"{inside}/" if inside else "",
            "is_all": look.is_all,
            "files": dict(zip(shown, look.files.values(), strict=True)),
            "passed": dict(self._look_at_passed(project)),
            "variables": {name: name in self._environ for name in project.pass_env},
        }

    def _resolve(self, path: str) -> str:
        # A user that there is not is no error here.
        return os.path.realpath(Path(self._workspace, os.path.expanduser(path)))  # noqa: PTH111

    def _show(self, path: str) -> str:
        """Name a path as git does, relative to the checkout's root, that of the workspace outside git."""
        relative = os.path.relpath(path, self._root or self._workspace).replace(os.sep, "/")
        return "" if relative == "." else relative

    def _list_places(self, path: str, shown: str) -> Iterator[_Place]:
        """List what git does not hold at or below a path: all of it outside the checkout, else what it ignores."""
        if self._root is None or not _is_at_or_below(path, self._root):
            yield _Place(path, shown)
            return
        for relative in self._ignored:
            ignored = str(Path(self._root, relative))
            if _is_at_or_below(path, ignored):
                yield _Place(path, shown)
            elif _is_at_or_below(ignored, path):
                below = os.path.relpath(ignored, path).replace(os.sep, "/")
                if not any(map(is_left_out, below.split("/"))):
                    yield _Place(ignored, f"{shown}/{below}" if shown else below)

    def _look_at_passed(self, project: GoldenProjectConfig) -> Iterator[tuple[str, list[Any]]]:
        for declared in project.pass_files:
            with suppress(OSError, ValueError):
                yield declared, [Path(self._resolve(declared)).stat().st_size, None]


class _Look:
    """One look at all places of a project: what was found, and whether that was all."""

    def __init__(self, names: dict[tuple[Any, ...], str], products: tuple[str, ...]) -> None:
        self.files: dict[str, list[Any]] = {}
        self.is_all = True
        self._names = names
        self._products = products
        self._left = _MOST_LOOKED_AT
        self._bytes_left = _MOST_BYTES

    def at(self, place: _Place) -> None:
        """Look at a place and all below it, without following symlinks."""
        try:
            status = os.lstat(place.path)
        except (OSError, ValueError):
            return
        if stat.S_ISDIR(status.st_mode):
            self._at_folder(place)
        else:
            self._keep(place, status)

    def _at_folder(self, place: _Place) -> None:
        waiting = [place]
        while waiting:
            folder = waiting.pop(0)
            if self._left <= 0 or len(self.files) >= _MOST_INPUTS:
                self.is_all = False
                return
            waiting += self._list_folder(folder)

    def _list_folder(self, folder: _Place) -> Iterator[_Place]:
        """Keep the files of a folder, and give the folders in it."""
        entries = self._read_folder(folder.path)
        if is_environment({entry.name for entry in entries}):
            return
        prefix = f"{folder.shown}/" if folder.shown else ""
        files: list[tuple[os.DirEntry[str], os.stat_result]] = []
        for entry in entries:
            if self._is_left_out(entry):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield _Place(entry.path, prefix + entry.name)
                continue
            with suppress(OSError):
                files.append((entry, entry.stat(follow_symlinks=False)))
        if len(files) > MOST_IN_FOLDER:
            self.files[prefix or "./"] = fold_files({entry.name: status.st_size for entry, status in files})
            return
        for entry, status in files:
            self._keep(_Place(entry.path, prefix + entry.name), status)

    def _is_left_out(self, entry: os.DirEntry[str]) -> bool:
        return is_left_out(entry.name) or _is_any_below(entry.path, self._products)

    def _read_folder(self, path: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(path) as listing:
                entries = list(islice(listing, self._left))
        except OSError:
            return []
        self._left -= len(entries)
        self.is_all = self.is_all and self._left > 0
        return sorted(entries, key=lambda entry: entry.name)

    def _keep(self, place: _Place, status: os.stat_result) -> None:
        if len(self.files) >= _MOST_INPUTS:
            self.is_all = False
        elif stat.S_ISLNK(status.st_mode):
            self.files[place.shown] = [status.st_size, self._name_link(place.path)]
        elif stat.S_ISREG(status.st_mode):
            self.files[place.shown] = [status.st_size, self._name(place, status)]

    def _name(self, place: _Place, status: os.stat_result) -> str | None:
        """Name what a file holds: `w` and a digest of all of it, or `p` and one of its size and parts; None: not read."""
        file = Path(place.path)
        if _CREDENTIALS.fullmatch(file.name) or is_secret_name(file.stem):
            return None
        known = (place.path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if known not in self._names:
            is_whole = status.st_size <= min(_MOST_OF_A_FILE, self._bytes_left)
            self._bytes_left -= status.st_size if is_whole else _BLOCK * _BLOCKS
            with suppress(OSError):
                self._names[known] = _read_name(place.path, status.st_size, is_whole=is_whole)
        return self._names.get(known)

    def _name_link(self, path: str) -> str | None:
        with suppress(OSError):
            return f"l{_digest([os.fsencode(Path(path).readlink())])}"
        return None


def _read_name(path: str, size: int, *, is_whole: bool) -> str:
    with Path(path).open("rb", buffering=0) as file:
        if is_whole:
            return f"w{_digest([file.read(size)])}"
        last = max(0, size - _BLOCK)
        starts = [last * number // (_BLOCKS - 1) for number in range(_BLOCKS)]
        return f"p{_digest([str(size).encode(), *(_read_block(file, start) for start in starts)])}"


def _read_block(file: FileIO, start: int) -> bytes:
    file.seek(start)
    return file.read(_BLOCK)


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def is_by_product(name: str) -> bool:
    """Tell by its name whether a file or folder is what tools keep for themselves: no pipeline reads it."""
    return name in _BY_PRODUCTS or _LEFT_OUT_FILES.fullmatch(name) is not None


def is_left_out(name: str) -> bool:
    """Tell by its name whether a file or folder comes and goes by itself, as what tools build and log."""
    return name in _LEFT_OUT or _LEFT_OUT_FILES.fullmatch(name) is not None


def _is_any_below(path: str, folders: Iterable[str]) -> bool:
    return any(_is_at_or_below(path, folder) for folder in folders)


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip(os.sep)}{os.sep}")
